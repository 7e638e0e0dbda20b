// Package op has the words in which every endpoint is written: what an operation is, the
// call that reaches it, the reply that leaves it, and what all of them share (limits, pages
// of lists, documents, the body of an error).
//
//	declare  an Operation says method, path, access, types and limits, and has no function yet
//	bind     Does returns a copy with the function that answers it
//	answer   that function takes a Call and returns a Reply, or an error
package op

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/policy"
)

// Object is a JSON object: a schema, or a document that is made of them.
type Object = schema.Object

// Operation is one endpoint. Its route, the validation of its input, its part of the
// OpenAPI document and its metrics all follow from it.
type Operation struct {
	ID, Method, Path string
	Summary          string
	Service          *policy.Service           // of a priced service; nil: free
	Sells            func(*Call) (Sale, error) // what a priced call buys if there is no service; only payments pay for it
	Access           credential.Access         // who may call; the zero value lets everybody call
	Tries            *Limit                    // how often a network may try, before its credentials are checked
	CORS             bool                      // pages of every origin may call it; only for free operations
	Query            []Parameter               // the parameters of the query
	Needs            []string                  // names of required query parameters
	Input, Output    reflect.Type              // nil: no JSON body
	Optional         bool                      // the body may be absent, which counts as {}
	Parses           bool                      // run parses the text of the body; Input only describes it
	Creates          bool                      // creates something each time: an Idempotency-Key is refused
	OAuth            string                    // for an OAuth endpoint: its code for bad input; errors have OAuth's form
	Form             bool                      // the body may be a form; only for an OAuth endpoint
	Example          string                    // of the input
	Conditions       []any                     // JSON Schemas that say which members of the input need or exclude each other
	Success          int
	Unlimited        bool     // calls do not count against the limits, so no limit refuses one
	Replays          bool     // the same request again is answered with 200 and the stored answer
	Media            string   // of the answer; empty: application/json
	Errors           []int    // statuses besides success; refusals adds those of every operation
	Refuses          []string // codes that refuse a body with the shape of Input; the description names them
	BareErrors       bool     // bodies of errors are exactly {error}
	Limit            int64    // maximum bytes of the body
	Run              func(*Call) (Reply, error)

	Schema *schema.Schema // of the input, compiled once
}

// Refusals are the statuses that an operation publishes besides its success. An operation that
// creates something each time answers 400 to an Idempotency-Key. The limits of calls may refuse
// every operation that is not Unlimited, so these have 503 too, and 429 where the contract
// knows it.
func (o *Operation) Refusals() []int {
	list := slices.Clone(o.Errors)
	if o.Creates {
		list = append(list, http.StatusBadRequest)
	}
	if !o.Unlimited {
		list = append(list, http.StatusServiceUnavailable)
		if o.Knows429() {
			list = append(list, http.StatusTooManyRequests)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Knows429 reports whether an operation may answer 429. Operations with bare errors may
// not: there the contract fixes the statuses, as it fixes the bodies of errors.
func (o *Operation) Knows429() bool { return !o.BareErrors }

// Does returns a copy of a declared operation with the function that runs it. The
// declaration itself is shared and never changed.
func (o *Operation) Does(run func(*Call) (Reply, error)) *Operation {
	bound := *o
	bound.Run = run
	return &bound
}

// Selling returns a copy of a declared operation with the function that finds what a call
// buys. Its error refuses what is not for sale, before a payment is asked for.
func (o *Operation) Selling(sells func(*Call) (Sale, error)) *Operation {
	bound := *o
	bound.Sells = sells
	return &bound
}

// ForEveryOrigin lets pages of every origin read documents. It changes the operations it is
// given, so give it copies (see Does).
func ForEveryOrigin(documents []*Operation) []*Operation {
	for _, o := range documents {
		o.CORS = true
	}
	return documents
}

// Parameter is one parameter of a query string.
type Parameter struct {
	Name, Description string
	Schema            Object
}

// Sale describes the purchase that a priced call makes.
type Sale struct {
	Cents       int
	Description string
}

// Call is one request on its way through an operation. It may come over HTTP or
// from an MCP tool call: then Request is the one that carried the message. Its credential
// counts, its body does not.
type Call struct {
	credential.Caller
	Op             *Operation
	Request        *http.Request
	Tool           *ToolCall // nil over HTTP
	Sale           Sale      // of a priced operation
	IdempotencyKey string
	Body           []byte // canonical JSON; nil if the operation takes no body
	Text           []byte // as it was sent, if the operation parses it itself
	Vars           map[string]string
}

// Reply is an answer: a value that is written as canonical JSON, or a body that is written
// as it is.
type Reply struct {
	Value  any    // marshalled, unless Body is set
	Body   []byte // canonical JSON, or text of the type that Media names
	Header http.Header
	Media  string // empty: application/json
	Status int    // 0: the operation's success
}

// Priced reports whether a call costs anything.
func (o *Operation) Priced() bool { return o.Service != nil || o.Sells != nil }

// Timeout is how long a call may take. A paid one has longer, since it may have to wait for
// a settlement.
func (o *Operation) Timeout(paying bool) time.Duration {
	if o.Priced() && paying {
		return paidTimeout
	}
	return HandlerTimeout
}

// AnyOrigin reports whether pages of every origin may call an operation.
func (o *Operation) AnyOrigin() bool {
	return o.Priced() || o.Access.Kind == credential.KeyHolder || o.CORS
}

// KeyOutsideBody reports whether an operation takes its idempotency key outside of the body: in
// a header over HTTP, and among its arguments over MCP, where a model sets no header.
func (o *Operation) KeyOutsideBody() bool {
	if o.Service == nil {
		return false
	}
	properties, _ := o.Schema.Document["properties"].(Object)
	return properties["idempotencyKey"] == nil
}

// KeyArgument is the idempotency key among the arguments of a tool call. The operation takes
// it in a header over HTTP (see Operation.KeyOutsideBody).
type KeyArgument struct {
	IdempotencyKey string `json:"idempotencyKey,omitempty" jsonschema:"minLength=1,maxLength=200"`
}

// ToolCall is what an MCP tool call brings instead of a path and a body.
type ToolCall struct {
	Vars      map[string]string // of the operation's path
	Query     url.Values
	Arguments []byte         // as sent, for an operation that takes a body
	Payment   jsontext.Value // of _meta["x402/payment"]; nil for none
}

// PathParameters returns the names in braces of the operation's path.
func (o *Operation) PathParameters() (names []string) {
	for part := range strings.SplitSeq(o.Path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}
