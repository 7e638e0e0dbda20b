// Package policy is the root of every deterministic rule and formula of countersign. The
// packages below it are pure: the same input always gives the same bytes. They use no clock,
// randomness, file, network, goroutine or map order, and import no packages of the project
// except each other.
//
// A service is one declaration. Each folder exports one or more values made by Declare, from
// which everything else follows: the REST route, the request validation, the OpenAPI operation,
// the price, the MCP tool.
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

// Error is the refusal of an input: a code, a JSON pointer to the refused member and a message of
// one clause.
type Error = canon.Error

// Refuse returns an *Error.
func Refuse(code, path, message string) error {
	return &Error{Code: code, Path: path, Message: message}
}

// Version is the version of the interface description; every answer contains it.
const Version = "1.0.0"

// Groups of services. Each has a page and a tag in the contract. The gate has its own group, so
// that developers who look for the gate do not first see finance services.
const (
	GroupSafety   = "action-safety"
	GroupPayments = "payments"
	GroupFinance  = "finance"
)

// Largest request bodies in bytes. ActionBody is the limit for requests with one action: about
// eight times the largest size of the twelve members of an action. ServiceBody is the limit of a
// service that declares none.
const (
	ActionBody  = 65_536
	ServiceBody = 1_048_576
)

// Service is the declaration of a priced deterministic function.
type Service struct {
	Name       string // path below /api/agent-services/, for example "wallet-screen/score"
	Operation  string // OpenAPI operationId and MCP tool name; Declare derives it from Name if empty
	PriceCents int    // price of one call in US cents
	Group      string // one of the groups above
	BodyLimit  int64  // largest request body in bytes; Declare sets ServiceBody for 0
	Title      string // a few words
	Summary    string // one sentence: what it answers and when to call it
	Example    string // a valid request, as JSON
	Signed     bool   // the answer contains a signed receipt
	Bare       bool   // the answer is only the Output, without the common members

	// TakesNUL names the one member whose text may contain an escaped NUL, which is read as
	// U+FFFD: the service judges such a text instead of refusing the request.
	TakesNUL string

	// Workflow means that each answer of a signed service is stored under an id, with a status
	// record. The receipt repeats what is stored.
	Workflow bool

	// Statement describes a record that a signed service signs in addition to the receipt; nil if
	// there is none.
	Statement *Statement

	// Rules describes the rules of the service's own findings; nil if it has none. It is a
	// function because examples are long: the coding-agent guard starts once per command and must
	// not build them. PassesOn names the services whose findings this service passes on; their
	// rules are declared there.
	Rules    func() []Rule
	PassesOn []string

	// Ruleset returns the version and the hash of the rule tables that the service applies; nil if
	// there are none.
	Ruleset func() (version, hash string)

	// Conditions returns JSON Schemas for what struct tags cannot express: which members need or
	// exclude each other (package shape). Reasons lists the error codes of requests that satisfy
	// the published schema and are refused all the same; the contract lists these codes too.
	Conditions func() []any
	Reasons    []string

	// Charts returns the figures on the service's page; nil if the example alone is easier to
	// read.
	Charts func(Service) ([]Chart, error)

	// Unlisted leaves the service out of the agents' contract (/openapi.json) and of the MCP
	// tools, because agents read those completely and handle at most about forty operations.
	// Everywhere else it is called, priced and described like any other service.
	Unlisted bool

	input, output reflect.Type
	evaluate      func(body []byte) (answer, error)
}

// Statement describes a record that is signed separately. The answer contains it in the members
// record and integrity, with verifyUrl. The service's Output must implement Stater.
type Statement struct {
	IDPrefix    string // prefix of its id, for example "att_"
	PayloadType string
}

// Stater is an Output that also makes a record to be signed. id and issuedAt (RFC 3339, UTC,
// milliseconds) become members of the record. The Output makes the record from its own values,
// because a second computation would cost as much and its result could differ.
type Stater interface {
	Statement(id, issuedAt string) (record any)
}

type answer struct {
	output   any
	decision string
	state    func(id, issuedAt string) any
}

// Common has the members that a service accepts if it is not Bare. Input structs embed it.
type Common struct {
	Reference string `json:"reference,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"The caller's own reference, echoed in the answer."`
}

// Decider is an Output that contains a decision. The signed receipt repeats this decision.
type Decider interface{ ReceiptDecision() string }

// Declare completes a declaration with the types and the function of the service. It panics if the
// service signs a Statement and its Output does not implement Stater.
func Declare[I, O any](s Service, evaluate func(I) (O, error)) Service {
	if s.Operation == "" {
		s.Operation = strings.NewReplacer("/", "_", "-", "_").Replace(s.Name)
	}
	s.BodyLimit = cmp.Or(s.BodyLimit, ServiceBody)
	s.input, s.output = reflect.TypeFor[I](), reflect.TypeFor[O]()
	if s.Statement != nil && !s.output.Implements(reflect.TypeFor[Stater]()) {
		panic("policy: the output of " + s.Name + " must have the method Statement")
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

// Input returns the Go type of the request, from which its JSON Schema is made.
func (s Service) Input() reflect.Type { return s.input }

// Output returns the Go type of the answer, without the members that all services share.
func (s Service) Output() reflect.Type { return s.output }

// Answer is the answer to one request.
type Answer struct {
	Body       []byte // canonical JSON of the complete answer, except for receipt and workflow members
	InputHash  string // SHA-256 of the canonical request, hex
	OutputHash string // SHA-256 of Body without its outputHash, hex
	Decision   string // for the receipt; empty if the service makes no decision

	// State returns the record of the service's Statement, to be signed in addition to the
	// receipt; nil if the service has none.
	State func(id, issuedAt string) (record any)
}

// Evaluate answers one request, which must be a JSON object. It returns an *Error if the text is
// not strict JSON or if the service refuses the input.
func (s Service) Evaluate(body []byte) (Answer, error) {
	canonical, err := canon.Canonical(s.WithoutNUL(body))
	if err != nil {
		return Answer{}, err
	}
	return s.EvaluateCanonical(canonical)
}

// WithoutNUL returns body with every escaped NUL in the member named by TakesNUL replaced by
// U+FFFD. If TakesNUL is empty, it returns body unchanged.
func (s Service) WithoutNUL(body []byte) []byte {
	if s.TakesNUL == "" {
		return body
	}
	return canon.ReplaceNUL(body, s.TakesNUL)
}

// EvaluateCanonical is like Evaluate, for a body that is already canonical JSON and has no NUL.
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
		members["reference"] = jsontext.Value(canonical[start:end]) // part of a canonical body, so it is canonical; at most 200 characters
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

// Label returns the name of the service as answers contain it, for example "options-price".
func (s Service) Label() string { return strings.ReplaceAll(s.Name, "/", "-") }

// Finding is one observation about an input, with the rule that made it.
type Finding struct {
	ID       string `json:"id" jsonschema_description:"Name of the rule that made the finding."`
	Severity string `json:"severity" jsonschema:"enum=info,enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"Severity of the finding."`
	Message  string `json:"message" jsonschema_description:"What was found, in one sentence."`
	Path     string `json:"path,omitempty" jsonschema_description:"JSON pointer of the member concerned, if there is one."`
	Evidence string `json:"evidence,omitempty" jsonschema_description:"The part of the input concerned, shortened and with secrets masked."`
	DocPath  string `json:"docPath" jsonschema_description:"Path of the rule's page on this service."` // set by SortFindings, see RulePath
}

var severities = []string{"info", "low", "medium", "high", "critical"}

// SortFindings sorts findings by severity, highest first, then id, then path, and sets the page
// of each finding's rule. It returns an empty list rather than nil.
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

// Sig12 rounds to 12 significant decimal digits, so that a hash does not depend on the last bits,
// which differ between processors. It returns 0 for -0.
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
