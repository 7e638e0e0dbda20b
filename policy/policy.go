// Package policy is the root of every deterministic rule and formula of
// countersign. The folders below it are pure: the same input gives the same
// bytes for ever. They know no clock, randomness, file, network, goroutine or
// map order, and import nothing of ours but each other.
//
// A service is one declaration. Each folder exports one or more values made by
// Declare, which hold everything that follows from them elsewhere: the REST
// route, the request validation, the OpenAPI operation, the price, the MCP tool.
//
//	var Service = policy.Declare(policy.Service{
//		Name:       "options/price",
//		PriceCents: 25,
//		Summary:    "Price of a European or American option, with Greeks",
//		Example:    `{"optionType":"call","spot":100, …}`,
//	}, Evaluate) // func Evaluate(in Input) (Output, error)
//
// Input and Output are structs whose tags give name, requiredness (no
// omitempty) and bounds: json:"spot" jsonschema:"exclusiveMinimum=0,maximum=1e12".
package policy

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// Error is why an input is refused: a code, a JSON pointer and one clause.
type Error = canon.Error

// Refuse makes an *Error.
func Refuse(code, path, message string) error {
	return &Error{Code: code, Path: path, Message: message}
}

// Version of the interface description; every answer carries it.
const Version = "1.0.0"

// Groups of services: the page that shows them, and their tag in the contract. The gate has
// a group of its own, so that developers who look for it do not meet finance first.
const (
	GroupSafety   = "action-safety"
	GroupPayments = "payments"
	GroupFinance  = "finance"
)

// Sizes of requests in bytes. ActionBody fits the twelve members of an action eight times.
// ServiceBody is for services that say nothing else.
const (
	ActionBody  = 65_536
	ServiceBody = 1_048_576
)

// Service is the one declaration of a priced deterministic function.
type Service struct {
	Name       string // path below /api/agent-services/, for example "wallet-screen/score"
	Operation  string // OpenAPI operationId and MCP tool name; Declare derives it from Name if empty
	PriceCents int    // price of one call in US cents
	Group      string // one of the groups above
	BodyLimit  int64  // bytes of a request; Declare sets ServiceBody for 0
	Title      string // a few words
	Summary    string // one sentence: what it answers and when to call it
	Example    string // a request that is answered, as JSON
	Signed     bool   // the answer carries a signed receipt
	Bare       bool   // the answer is the Output alone, without the common members

	// TakesNUL names the one member whose text may hold an escaped NUL, which is read as
	// U+FFFD: the service judges such a text instead of refusing the request.
	TakesNUL string

	// Workflow says that each answer of a signed service is kept under an id, with a
	// status record; the receipt repeats what is kept.
	Workflow bool

	// Statement is what a signed service signs beside the receipt; nil: nothing.
	Statement *Statement

	// Rules tells what its own findings are about; nil: it has none. It is a function
	// because examples are long, and a guard that starts must not make them. PassesOn
	// names the services whose findings it passes on: they are declared there.
	Rules    func() []Rule
	PassesOn []string

	// Ruleset names the rule tables behind the answer, where there are any.
	Ruleset func() (version, hash string)

	// Conditions are JSON Schemas of what tags cannot say: which members need or exclude each
	// other (package shape). Reasons are the codes with which the service refuses a request of
	// the published shape, since no schema can say why: the contract names them.
	Conditions func() []any
	Reasons    []string

	// Charts are the figures on the service's page; nil: its example is easier to read.
	Charts func(Service) ([]Chart, error)

	// Unlisted leaves the service out of the agents' contract (/openapi.json) and of the MCP
	// tools. Agents read those whole, and readers of both take no more than about forty
	// operations. It is called, priced and described everywhere else like any other service.
	Unlisted bool

	input, output reflect.Type
	evaluate      func(body []byte) (answer, error)
}

// Statement is a record that is signed in its own name: the answer carries it as
// record and integrity, with verifyUrl. The service's Output is a Stater.
type Statement struct {
	IDPrefix    string // of the id it is given, for example "att_"
	PayloadType string
}

// Stater is an Output that makes a record to be signed, which is given its id and its
// time (RFC 3339, UTC, milliseconds). It comes from the same computation as the
// answer: a second one would cost as much, and could differ.
type Stater interface {
	Statement(id, issuedAt string) (record any)
}

type answer struct {
	output   any
	decision string
	state    func(id, issuedAt string) any
}

// Common holds the members every enveloped service takes; inputs embed it.
type Common struct {
	Reference string `json:"reference,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"The caller's own reference, echoed in the answer."`
}

// Decider is an Output that reaches a decision, which its signed receipt repeats.
type Decider interface{ ReceiptDecision() string }

// Declare completes a declaration with the types and the function behind it. It
// panics for one that signs a Statement which its Output does not make.
func Declare[I, O any](s Service, evaluate func(I) (O, error)) Service {
	if s.Operation == "" {
		s.Operation = strings.NewReplacer("/", "_", "-", "_").Replace(s.Name)
	}
	s.BodyLimit = cmp.Or(s.BodyLimit, ServiceBody)
	s.input, s.output = reflect.TypeFor[I](), reflect.TypeFor[O]()
	if s.Statement != nil && !s.output.Implements(reflect.TypeFor[Stater]()) {
		panic("policy: the output of " + s.Name + " makes no statement")
	}
	s.evaluate = func(body []byte) (answer, error) {
		var in I
		if err := canon.DecodeChecked(body, &in); err != nil {
			return answer{}, err
		}
		out, err := evaluate(in)
		if err != nil {
			return answer{}, err
		}
		a := answer{output: out}
		if d, ok := any(out).(Decider); ok {
			a.decision = d.ReceiptDecision()
		}
		if stater, ok := any(out).(Stater); ok {
			a.state = stater.Statement
		}
		return a, nil
	}
	return s
}

// Input is the Go type of the request, from which its JSON Schema is made.
func (s Service) Input() reflect.Type { return s.input }

// Output is the Go type of the service's own part of the answer.
func (s Service) Output() reflect.Type { return s.output }

// Answer is what a service says to one request.
type Answer struct {
	Body       []byte // canonical JSON of the whole answer, but for receipt and workflow members
	InputHash  string // SHA-256 of the canonical request, hex
	OutputHash string // SHA-256 of Body without its outputHash, hex
	Decision   string // for the receipt; empty where the service takes none

	// State makes the record that is signed beside the receipt, of the service's
	// Statement; nil where it has none.
	State func(id, issuedAt string) (record any)
}

// Evaluate answers one request, a JSON object. The error is an *Error for an input
// that is no strict JSON or that the service refuses.
func (s Service) Evaluate(body []byte) (Answer, error) {
	canonical, err := canon.Canonical(s.WithoutNUL(body))
	if err != nil {
		return Answer{}, err
	}
	return s.EvaluateCanonical(canonical)
}

// WithoutNUL is a body in which the member that TakesNUL names has none.
func (s Service) WithoutNUL(body []byte) []byte {
	if s.TakesNUL == "" {
		return body
	}
	return canon.ReplaceNUL(body, s.TakesNUL)
}

// EvaluateCanonical is Evaluate for a body that is canonical already.
func (s Service) EvaluateCanonical(canonical []byte) (Answer, error) {
	a, err := s.evaluate(canonical)
	if err != nil {
		return Answer{}, err
	}
	result := Answer{InputHash: canon.Hash(canonical), Decision: a.decision, State: a.state}
	if s.Bare {
		result.Body, err = canon.Marshal(a.output)
		result.OutputHash = canon.Hash(result.Body)
		return result, err
	}
	own, err := canon.Marshal(a.output)
	if err != nil {
		return Answer{}, err
	}
	members, err := canon.Members(own)
	if err != nil {
		return Answer{}, err
	}
	common := map[string]string{"service": s.Label(), "version": Version, "inputHash": result.InputHash}
	if _, has := members["status"]; !has {
		common["status"] = "ok"
	}
	if start, end, has := canon.Find(canonical, "reference"); has && canonical[start] == '"' {
		members["reference"] = jsontext.Value(canonical[start:end]) // canonical as the whole is, and no longer than 200 characters
	}
	for name, text := range common {
		if members[name], err = canon.Marshal(text); err != nil {
			return Answer{}, err
		}
	}
	result.OutputHash = canon.Hash(canon.Object(members))
	members["outputHash"] = jsontext.Value(`"` + result.OutputHash + `"`)
	result.Body = canon.Object(members)
	return result, nil
}

// Label is the service's name as its answers carry it: "options-price".
func (s Service) Label() string { return strings.ReplaceAll(s.Name, "/", "-") }

// Finding is one observation about an input, with the rule that made it.
type Finding struct {
	ID       string `json:"id" jsonschema_description:"Name of the rule that made the finding."`
	Severity string `json:"severity" jsonschema:"enum=info,enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"How much it counts."`
	Message  string `json:"message" jsonschema_description:"What was found, in one sentence."`
	Path     string `json:"path,omitempty" jsonschema_description:"JSON pointer of the member it is about, where there is one."`
	Evidence string `json:"evidence,omitempty" jsonschema_description:"The part of the input it is about, shortened and with secrets masked."`
	DocPath  string `json:"docPath" jsonschema_description:"Page of the rule, below the address of the service."` // RulePath; SortFindings fills it in
}

var severities = []string{"info", "low", "medium", "high", "critical"}

// SortFindings orders findings by severity, highest first, then id, then path, points
// each to the page of its rule, and returns an empty list rather than none.
func SortFindings(findings []Finding) []Finding {
	if findings == nil {
		return []Finding{}
	}
	for i := range findings {
		findings[i].DocPath = RulePath(findings[i].ID)
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(severities, b.Severity), slices.Index(severities, a.Severity)),
			cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Path, b.Path),
		)
	})
	return findings
}

// Sig12 rounds to 12 significant decimal digits, so that the last bits in which
// processors differ never reach a hash. -0 becomes 0.
func Sig12(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x + 0
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 11, 64), 64)
	if err != nil {
		return x
	}
	return r + 0
}
