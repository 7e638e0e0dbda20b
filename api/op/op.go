// Package op defines how endpoints are declared: the operation, the call that it receives, the
// reply that it returns, and what all endpoints share (limits, pages of lists, documents, the body
// of an error).
//
//	declare  an Operation contains method, path, access, types and limits, but no function yet
//	bind     Does returns a copy with the function that answers calls
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

// Object is a JSON object: a JSON Schema, or a document that contains schemas.
type Object = schema.Object

// Operation declares one endpoint. Its route, the validation of its input, its part of the OpenAPI
// document and its metrics are derived from it.
type Operation struct {
	ID, Method, Path string
	Summary          string
	Service          *policy.Service           // the priced service; nil if the operation is not a service
	Sells            func(*Call) (Sale, error) // for a priced operation that is not a service: returns what a call buys; only payments can pay for it
	Access           credential.Access         // who may call; the zero value allows everybody
	Tries            *Limit                    // limit of attempts per network, counted before the credentials are checked
	CORS             bool                      // allows pages of every origin to call it; only for free operations
	Query            []Parameter               // parameters of the query
	Needs            []string                  // names of required query parameters
	Input, Output    reflect.Type              // JSON types of the bodies; a nil Input means no body
	Optional         bool                      // the body may be absent, which means {}
	Parses           bool                      // Run parses the body itself; Input only describes it
	Creates          bool                      // each call creates something, so an Idempotency-Key is refused
	OAuth            string                    // for an OAuth endpoint: the error code for invalid input; errors have the form of OAuth
	Form             bool                      // the body may be a form; only for OAuth endpoints
	Example          string                    // example of the input
	Conditions       []any                     // JSON Schemas that define which members of the input require or exclude each other
	Success          int
	Unlimited        bool     // calls are not counted, so no limit refuses them
	Replays          bool     // a repeated request gets 200 and the stored answer
	Media            string   // media type of the answer; empty means application/json
	Errors           []int    // error statuses; Refusals adds those of every operation
	Refuses          []string // error codes for a body that matches Input; the description lists them
	BareErrors       bool     // error bodies have only the member "error"
	Limit            int64    // largest body in bytes
	Run              func(*Call) (Reply, error)

	Schema *schema.Schema // compiled schema of the input
}

// Refusals returns the error statuses that an operation publishes. An operation with Creates
// answers 400 to an Idempotency-Key. An operation that is not Unlimited may be refused by the
// limits of calls, with 503, and with 429 if Knows429.
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

// Knows429 reports whether an operation may answer 429. Operations with BareErrors may not,
// because their contract fixes the statuses.
func (o *Operation) Knows429() bool { return !o.BareErrors }

// Does returns a copy of the operation with the function that answers calls. The declaration
// itself is shared and never changed.
func (o *Operation) Does(run func(*Call) (Reply, error)) *Operation {
	bound := *o
	bound.Run = run
	return &bound
}

// Selling returns a copy of the operation with the function that returns what a call buys. If the
// product is not for sale, the function returns an error, before the caller is asked to pay.
func (o *Operation) Selling(sells func(*Call) (Sale, error)) *Operation {
	bound := *o
	bound.Sells = sells
	return &bound
}

// ForEveryOrigin allows pages of every origin to read documents. It changes the operations in the
// list, so pass copies (see Does).
func ForEveryOrigin(documents []*Operation) []*Operation {
	for _, o := range documents {
		o.CORS = true
	}
	return documents
}

// Parameter is a parameter of the query.
type Parameter struct {
	Name, Description string
	Schema            Object
}

// Sale describes what a priced call buys.
type Sale struct {
	Cents       int
	Description string
}

// Call is one request to an operation. It comes over HTTP or from an MCP tool call. In a tool
// call, Request is the HTTP request that contained the message: its credential is used, but its
// body is not.
type Call struct {
	credential.Caller
	Op             *Operation
	Request        *http.Request
	Tool           *ToolCall // nil over HTTP
	Sale           Sale      // what a priced call buys
	IdempotencyKey string
	Body           []byte // canonical JSON; nil if the operation takes no body
	Text           []byte // body as sent, if the operation parses it itself
	Vars           map[string]string
}

// Reply is an answer: a value that is written as canonical JSON, or a body that is written
// unchanged.
type Reply struct {
	Value  any    // value to marshal; ignored if Body is set
	Body   []byte // canonical JSON, or text of the media type Media
	Header http.Header
	Media  string // empty means application/json
	Status int    // 0 means the operation's Success
}

// Priced reports whether a call costs anything.
func (o *Operation) Priced() bool { return o.Service != nil || o.Sells != nil }

// Timeout returns how long a call may take. A paid call may take longer, because it may wait for a
// settlement.
func (o *Operation) Timeout(paying bool) time.Duration {
	if o.Priced() && paying {
		return paidTimeout
	}
	return HandlerTimeout
}

// AnyOrigin reports whether pages of every origin may call the operation.
func (o *Operation) AnyOrigin() bool {
	return o.Priced() || o.Access.Kind == credential.KeyHolder || o.CORS
}

// KeyOutsideBody reports whether an operation takes its idempotency key outside of the body: over
// HTTP in a header, and over MCP among the arguments, because a model cannot set headers.
func (o *Operation) KeyOutsideBody() bool {
	if o.Service == nil {
		return false
	}
	properties, _ := o.Schema.Document["properties"].(Object)
	return properties["idempotencyKey"] == nil
}

// KeyArgument is the idempotency key among the arguments of a tool call (see
// Operation.KeyOutsideBody).
type KeyArgument struct {
	IdempotencyKey string `json:"idempotencyKey,omitempty" jsonschema:"minLength=1,maxLength=200"`
}

// ToolCall contains the parts of an MCP tool call that replace the path, the query and the body.
type ToolCall struct {
	Vars      map[string]string // variables of the operation's path
	Query     url.Values
	Arguments []byte         // arguments as sent, for an operation that takes a body
	Payment   jsontext.Value // _meta["x402/payment"]; nil without a payment
}

// PathParameters returns the names of the variables in the operation's path.
func (o *Operation) PathParameters() (names []string) {
	for part := range strings.SplitSeq(o.Path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}
