package assurance

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// DecisionInput is the request of POST /api/assurance/decisions. The published schema is made from
// this type; ParseDecision checks the requests.
type DecisionInput struct {
	Protocol       string      `json:"protocol" jsonschema:"enum=x402,enum=mcp"`
	IdempotencyKey string      `json:"idempotencyKey" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"One idempotencyKey per purchase you intend. On every retry, also after a timeout or a 503, send the SAME key; never make a new key for the same purchase."`
	Subject        Subject     `json:"subject"`
	Policy         *Policy     `json:"policy,omitempty" jsonschema_description:"Your copy of the active policy. It must name the active policyId and version. Stricter members are also applied; weaker ones are refused with 409."`
	Intent         IntentInput `json:"intent" jsonschema_description:"The exact purchase or tool call, with the members of one protocol only. x402 needs resourceUrl and method, mcp needs serverId and toolName."`
}

// Subject names who acts, and for what purpose. Callers should send opaque ids and no personal
// text, because the hash of the subject remains after an erasure.
type Subject struct {
	RunID   string `json:"runId" jsonschema:"minLength=1,maxLength=200"`
	AgentID string `json:"agentId,omitempty" jsonschema:"minLength=1,maxLength=200"`
	Purpose string `json:"purpose,omitempty" jsonschema:"minLength=1,maxLength=1000"`
}

// IntentInput has the members of an x402 intent and of an MCP intent. A request has those of one
// protocol only.
type IntentInput struct {
	ResourceURL            string   `json:"resourceUrl,omitempty" jsonschema:"format=uri,maxLength=2048"`
	Method                 string   `json:"method,omitempty" jsonschema:"minLength=1"`
	Scheme                 string   `json:"scheme,omitempty" jsonschema:"minLength=1"`
	Network                string   `json:"network,omitempty" jsonschema:"minLength=1"`
	Asset                  string   `json:"asset,omitempty" jsonschema:"minLength=1"`
	PayTo                  string   `json:"payTo,omitempty" jsonschema:"minLength=1"`
	AmountUnits            string   `json:"amountUnits,omitempty" jsonschema:"minLength=1" jsonschema_description:"Amount in the token's smallest units."`
	AmountUSD              *float64 `json:"amountUsd,omitempty" jsonschema_description:"Amount in US dollars."`
	FacilitatorURL         string   `json:"facilitatorUrl,omitempty" jsonschema:"format=uri,maxLength=2048"`
	PaymentIdentifier      string   `json:"paymentIdentifier,omitempty" jsonschema:"minLength=1"`
	PaymentPayloadResource string   `json:"paymentPayloadResource,omitempty" jsonschema:"minLength=1"`
	PaymentPayloadMethod   string   `json:"paymentPayloadMethod,omitempty" jsonschema:"minLength=1"`

	ServerID          string `json:"serverId,omitempty" jsonschema:"minLength=1"`
	ServerURL         string `json:"serverUrl,omitempty" jsonschema:"format=uri,maxLength=2048"`
	ToolName          string `json:"toolName,omitempty" jsonschema:"minLength=1"`
	ToolArguments     any    `json:"toolArguments,omitempty" jsonschema_description:"Any JSON value. Only its hash is stored."`
	ToolArgumentsHash string `json:"toolArgumentsHash,omitempty" jsonschema:"minLength=1" jsonschema_description:"SHA-256 of the canonical JSON of the arguments, hex."`
	DeclaredRisk      string `json:"declaredRisk,omitempty" jsonschema:"enum=low,enum=medium,enum=high,enum=critical"`
}

// DecisionRequest is a request that was read, with its normal form and hashes.
type DecisionRequest struct {
	Protocol       string
	IdempotencyKey string
	Subject        Subject
	Assertion      *Assertion     // nil if the request has no policy
	Intent         jsontext.Value // as stored: canonical, URLs without credentials, toolArguments replaced by their hash
	Normalized     Intent
	Canonical      []byte         // the complete request
	Arguments      jsontext.Value // canonical arguments of an MCP tool; nil if none were sent. Records contain only their hash
	SubjectHash    string
	ActionHash     string
}

// ParseDecision reads a request strictly. It returns a *policy.Error for the first problem in the
// order of the text, with the message of the contract.
func ParseDecision(text []byte) (DecisionRequest, error) {
	var r DecisionRequest
	var subject value
	var asserted *statedPolicy
	var err error
	err = parse(text, []field{
		{"protocol", true, oneOf(&r.Protocol, X402, MCP)},
		{"idempotencyKey", true, text200(&r.IdempotencyKey)},
		{"subject", true, func(v value) error {
			subject = v
			return object(v, []field{
				{"runId", true, textID(&r.Subject.RunID)},
				{"agentId", false, textID(&r.Subject.AgentID)},
				{"purpose", false, prose(&r.Subject.Purpose, maxPurpose)},
			}, nil)
		}},
		{"policy", false, func(v value) error {
			asserted = &statedPolicy{}
			return asserted.read(true)(v)
		}},
		{"intent", true, func(v value) error {
			in := &intentReader{protocol: protocolOf(text, v)}
			if err := in.read(v); err != nil {
				return err
			}
			if err := in.finish(&r); err != nil || in.arguments == nil {
				return err
			}
			r.Arguments, err = canon.CanonicalChecked(in.arguments)
			return err
		}},
	})
	if err != nil {
		return DecisionRequest{}, err
	}
	// Compute the canonical forms and the hashes that the decision record contains.
	if asserted != nil {
		r.Assertion = &Assertion{asserted.PolicyID, asserted.Version, canon.Hash(asserted.canonical), asserted.rules, asserted.denied()}
	}
	if r.Canonical, err = canonicalOf(text); err != nil {
		return DecisionRequest{}, err
	}
	stated, err := canonicalOf(subject.raw)
	if err != nil {
		return DecisionRequest{}, err
	}
	r.SubjectHash = canon.Hash(stated)
	r.ActionHash = ActionHash(r.Protocol, r.Normalized)
	return r, nil
}

func text200(into *string) func(value) error { return text(into, maxIdempotencyKey) }

func textID(into *string) func(value) error { return text(into, maxID) }

// denied returns the names of the flags that an assertion sets to false.
func (p *statedPolicy) denied() []string {
	var names []string
	for name, b := range map[string]*bool{
		"requireExactScheme": p.RequireExactScheme, "requireHttps": p.RequireHTTPS,
		"requireResourceBinding": p.RequireResourceBinding, "requirePaymentIdentifier": p.RequirePaymentIdentifier,
		"requireMcpArgumentBinding": p.RequireMCPArgumentBinding,
	} {
		if b != nil && !*b {
			names = append(names, name)
		}
	}
	return names
}

// intentReader reads the intent of one protocol and normalizes it.
type intentReader struct {
	protocol                      string
	members                       map[string]jsontext.Value // the intent as it will be stored
	n                             Intent
	resource, facilitator, server normal.URL
	amountUSD                     string // amountUsd as written; empty if absent
	arguments                     jsontext.Value
}

func (r *intentReader) read(v value) error {
	own, others := r.x402Fields(), r.mcpFields()
	if r.protocol == MCP {
		own, others = others, own
	}
	for i := range own {
		name, read := own[i].name, own[i].read
		own[i].read = func(v value) error {
			r.members[name] = v.raw
			return read(v)
		}
	}
	r.members = map[string]jsontext.Value{}
	foreign := policy.Refuse("mutually_exclusive", "/intent", "intent does not match the protocol")
	return object(v, own, func(name string) error {
		if indexOf(others, name) >= 0 {
			return foreign
		}
		return nil
	})
}

func (r *intentReader) x402Fields() []field {
	return []field{
		{"resourceUrl", true, address(&r.n.ResourceURL, &r.resource)},
		{"method", true, matching(&r.n.Method, maxText, isToken, " is not an HTTP method")},
		{"scheme", false, text(&r.n.Scheme, maxText)},
		{"network", false, text(&r.n.Network, maxText)},
		{"asset", false, text(&r.n.Asset, maxText)},
		{"payTo", false, text(&r.n.PayTo, maxText)},
		{"amountUnits", false, text(&r.n.AmountUnits, maxText)},
		{"amountUsd", false, literal(&r.amountUSD)},
		{"facilitatorUrl", false, address(&r.n.FacilitatorURL, &r.facilitator)},
		{"paymentIdentifier", false, text(&r.n.PaymentIdentifier, maxText)},
		{"paymentPayloadResource", false, text(&r.n.PaymentPayloadResource, maxText)},
		{"paymentPayloadMethod", false, text(&r.n.PaymentPayloadMethod, maxText)},
	}
}

func (r *intentReader) mcpFields() []field {
	return []field{
		{"serverId", true, text(&r.n.ServerID, maxText)},
		{"serverUrl", false, address(&r.n.ServerURL, &r.server)},
		{"toolName", true, text(&r.n.ToolName, maxText)},
		{"toolArguments", false, func(v value) error { r.arguments = v.raw; return nil }},
		{"toolArgumentsHash", false, text(&r.n.ToolArgumentsGivenHash, maxText)},
		{"declaredRisk", false, oneOf(&r.n.DeclaredRisk, "low", "medium", "high", "critical")},
	}
}

// protocolOf returns the protocol that the request names, even if that member comes after the
// intent. If the request names none, protocolOf derives the protocol from the members of the
// intent.
func protocolOf(text []byte, intent value) string {
	if named := memberText(text, "protocol"); named == X402 || named == MCP {
		return named
	}
	if memberText(intent.raw, "serverId") != "" || memberText(intent.raw, "toolName") != "" {
		return MCP
	}
	return X402
}

// isToken reports whether s is a token (RFC 9110), the form of an HTTP method.
func isToken(s string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(marks, c)
	})
}

// finish normalizes the intent and stores it in the request.
func (r *intentReader) finish(into *DecisionRequest) error {
	var err error
	if r.protocol == MCP {
		err = r.finishMCP()
	} else {
		err = r.finishX402()
	}
	if err != nil {
		return err
	}
	for name, raw := range r.members {
		if r.members[name], err = canon.CanonicalChecked(raw); err != nil {
			return err
		}
	}
	into.Normalized, into.Intent = r.n, canon.Object(r.members)
	return nil
}

// keep removes credentials from the URL in the stored intent, because a record cannot be changed
// later.
func (r *intentReader) keep(name string, u normal.URL) error {
	if !u.UserInfo {
		return nil
	}
	text, err := canon.Marshal(u.String())
	r.members[name] = text
	return err
}

func (r *intentReader) finishMCP() error {
	if r.n.ServerURL != "" {
		r.n.ServerURL, r.n.ServerHasUserinfo, r.n.ServerHasFragment = r.server.String(), r.server.UserInfo, r.server.Fragment
		if err := r.keep("serverUrl", r.server); err != nil {
			return err
		}
	}
	given := r.n.ToolArgumentsGivenHash
	r.n.ToolArgumentsHashBroken = given != "" && !isHash(given)
	if given != "" && !r.n.ToolArgumentsHashBroken {
		r.n.ToolArgumentsHash = given
	}
	if r.arguments == nil {
		return nil
	}
	hash, err := hashOf("", r.arguments)
	if err != nil {
		return err
	}
	r.n.ToolArgumentsGiven, r.n.ToolArgumentsHash = true, hash
	r.members["toolArguments"], err = canon.Marshal(hash)
	return err
}

// isHash reports whether s is a SHA-256 hash in lower-case hex.
func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
