package assurance

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

const (
	actionDomain  = "svc-assurance-action-v1\n"
	bindingDomain = "svc-assurance-binding-v1\n"
)

// ActionHash returns the hash of the action: what will be done, but not who requests it or when.
// The executor can therefore compute it again from the pending call.
func ActionHash(protocol string, n Intent) string {
	a := map[string]jsontext.Value{}
	put := func(name, value string) {
		if value != "" {
			a[name] = quoted(value)
		}
	}
	if protocol == MCP {
		put("serverId", n.ServerID)
		put("serverUrl", n.ServerURL)
		put("toolName", n.ToolName)
		put("toolArgumentsHash", n.ToolArgumentsHash)
	} else {
		put("method", n.Method)
		put("resourceUrl", n.ResourceURL)
		put("scheme", n.Scheme)
		put("network", n.Network)
		put("asset", n.Asset)
		put("payTo", n.PayTo)
		put("amountUnits", n.AmountUnits)
		if n.AmountUnits == "" {
			put("amountUsd", n.AmountUSD)
		}
		put("paymentIdentifier", n.PaymentIdentifier)
	}
	action := canon.Object(map[string]jsontext.Value{"protocol": quoted(protocol), "intent": canon.Object(a)})
	return canon.Hash(append([]byte(actionDomain), action...))
}

// quoted returns a text as canonical JSON. Every text of a request was read strictly, so it has a
// canonical form.
func quoted(text string) jsontext.Value {
	b, _ := jsontext.AppendQuote(nil, text)
	return b
}

// Binding contains the values that a bindingHash binds to each other.
type Binding struct {
	V                   int    `json:"v"` // always 1
	OrgID               string `json:"orgId"`
	DecisionID          string `json:"decisionId"`
	Decision            string `json:"decision"`
	AssuranceActionHash string `json:"assuranceActionHash"`
	SubjectHash         string `json:"subjectHash"`
	PolicyHash          string `json:"policyHash"`
	PolicyID            string `json:"policyId"`
	Version             int64  `json:"version"`
}

// Hash returns the hash of a binding.
func (b Binding) Hash() (string, error) {
	b.V = 1
	return hashOf(bindingDomain, b)
}

// KeyHash returns the hash of an idempotency key. Records contain this hash instead of the key.
func KeyHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
