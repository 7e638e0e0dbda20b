package evidence

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
)

// Input is a bundle with the buyer's expectation and the time of the check.
type Input struct {
	policy.Common
	Body
}

// Body is the request without the members of policy.Common. Package spendassurance embeds it.
type Body struct {
	Bundle        *Bundle   `json:"bundle" jsonschema_description:"The artifacts of one purchase; each is optional, and missing ones are reported."`
	Expected      *Expected `json:"expected,omitempty" jsonschema_description:"What the buyer expected; compared with challenge and receipt."`
	AsOf          string    `json:"asOf,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"Time of the check, RFC 3339 with zone. Without it freshness cannot be judged."`
	MaxAgeSeconds *int      `json:"maxAgeSeconds,omitempty" jsonschema:"minimum=1,maximum=31536000" jsonschema_description:"Maximum age of the settlement in seconds. Default 86400."`
}

// Bundle contains the artifacts of a purchase. Each artifact also keeps its text as sent, because
// hashes cover that text.
type Bundle struct {
	Challenge      *Challenge      `json:"challenge,omitempty" jsonschema_description:"The seller's 402 answer."`
	Receipt        *Receipt        `json:"receipt,omitempty" jsonschema_description:"The settlement."`
	PolicyDecision *PolicyDecision `json:"policyDecision,omitempty" jsonschema_description:"The decision of the buyer's policy before the payment."`
	Response       *Response       `json:"response,omitempty" jsonschema_description:"The seller's response."`
	Source         *Source         `json:"source,omitempty" jsonschema_description:"How the artifacts were collected."`
	Hashes         *Hashes         `json:"hashes,omitempty" jsonschema_description:"SHA-256 of the canonical form of each artifact as sent."`

	raw jsontext.Value
}

// Challenge contains the seller's payment requirements.
type Challenge struct {
	Terms
	Scheme   string `json:"scheme,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"x402 scheme, for example exact."`
	IssuedAt string `json:"issuedAt,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"When the challenge was made, RFC 3339."`

	raw jsontext.Value
}

// Terms has the members in which challenge, receipt and expectation must agree.
type Terms struct {
	ResourceURL string `json:"resourceUrl,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Absolute http or https URL of the purchased resource."`
	Method      string `json:"method,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"HTTP method of the paid request."`
	Network     string `json:"network,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"CAIP-2 name, for example eip155:8453, or an x402 version 1 name, for example base."`
	Asset       string `json:"asset,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Contract of the token, or its symbol, for example USDC."`
	PayTo       string `json:"payTo,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Address of the recipient."`
	AmountUnits string `json:"amountUnits,omitempty" jsonschema:"minLength=1,maxLength=78,pattern=^(0|[1-9][0-9]{0\\,77})$" jsonschema_description:"Amount in the smallest units of the asset, in decimal digits: 1000000 is 1 USDC."`
}

// Expected contains the terms that the buyer expected before the purchase.
type Expected struct{ Terms }

// Receipt is the receipt of the settlement.
type Receipt struct {
	Terms
	Payer       string `json:"payer,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Address of the payer."`
	Transaction string `json:"transaction,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Hash or signature of the transaction."`
	Success     *bool  `json:"success,omitempty" jsonschema_description:"Whether the settlement succeeded."`
	SettledAt   string `json:"settledAt,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"When the payment was settled, RFC 3339."`

	raw jsontext.Value
}

// PolicyDecision is the decision of the buyer's policy before the payment.
type PolicyDecision struct {
	Decision   string `json:"decision,omitempty" jsonschema:"enum=allow,enum=deny,enum=needs_review" jsonschema_description:"Decision of the policy."`
	DecisionID string `json:"decisionId,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Id of the decision."`
	PolicyID   string `json:"policyId,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Name of the policy."`
	IssuedAt   string `json:"issuedAt,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"When the policy decided, RFC 3339."`

	raw jsontext.Value
}

// Response is the seller's response to the paid request.
type Response struct {
	Status      *int    `json:"status,omitempty" jsonschema:"minimum=100,maximum=599" jsonschema_description:"HTTP status of the answer."`
	BodyHash    string  `json:"bodyHash,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"SHA-256 of the body in hexadecimal digits, in either case."`
	Body        *string `json:"body,omitempty" jsonschema:"maxLength=65536" jsonschema_description:"The body as text; hashed and compared with bodyHash."`
	ContentType string  `json:"contentType,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Content-Type of the answer."`
	ReceivedAt  string  `json:"receivedAt,omitempty" jsonschema:"minLength=1,maxLength=64,format=date-time" jsonschema_description:"When the response arrived, RFC 3339."`

	raw jsontext.Value
}

// Source states how the artifacts were collected.
type Source struct {
	Kind      string `json:"kind" jsonschema:"minLength=1,enum=live,enum=replay,enum=synthetic,enum=test,enum=unknown" jsonschema_description:"Source of the artifacts; synthetic and test are rejected."`
	Collector string `json:"collector,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Person or program that collected the artifacts."`
}

// Hashes contains the hashes that the caller states for the artifacts.
type Hashes struct {
	Challenge      string `json:"challenge,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"SHA-256 of the canonical challenge as sent, in hexadecimal digits of either case."`
	Receipt        string `json:"receipt,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"SHA-256 of the canonical receipt as sent."`
	PolicyDecision string `json:"policyDecision,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"SHA-256 of the canonical policyDecision as sent."`
	Response       string `json:"response,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"SHA-256 of the canonical response as sent."`
}

// Output is the verdict with the result of each rule.
type Output struct {
	Verdict    string           `json:"verdict" jsonschema:"enum=verified,enum=needs_review,enum=rejected,enum=insufficient_evidence" jsonschema_description:"Result by the strictest effect of a rule: rejected, then insufficient_evidence, then needs_review; verified if no rule has an effect."`
	Rules      []Rule           `json:"rules" jsonschema_description:"Result of every rule, in order."`
	Confidence float64          `json:"confidence" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Number of rules that passed, divided by the number of rules that were not skipped."`
	BundleHash string           `json:"bundleHash" jsonschema_description:"SHA-256 of the canonical bundle."`
	Findings   []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Decision returns the decision for the verdict: allow for verified, deny for rejected, otherwise
// needs_review.
func (o Output) Decision() string {
	switch o.Verdict {
	case "verified":
		return "allow"
	case "rejected":
		return "deny"
	}
	return "needs_review"
}

// Rule is the result of one rule. Expected and Actual contain no secret, no query string and no
// complete address.
type Rule struct {
	ID       string `json:"id" jsonschema_description:"Name of the rule."`
	Outcome  string `json:"outcome" jsonschema:"enum=pass,enum=fail,enum=missing,enum=skipped" jsonschema_description:"skipped: there was nothing to compare."`
	Effect   string `json:"effect" jsonschema:"enum=none,enum=review,enum=insufficient,enum=reject" jsonschema_description:"Effect on the verdict."`
	Expected string `json:"expected" jsonschema_description:"What was expected."`
	Actual   string `json:"actual" jsonschema_description:"What was found."`
	Detail   string `json:"detail" jsonschema_description:"The result in one sentence."`
}

// Each artifact has its own UnmarshalJSONFrom, which also keeps the text.

// UnmarshalJSONFrom decodes a bundle and keeps its text.
func (b *Bundle) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Bundle
	return keep(dec, (*plain)(b), &b.raw)
}

// UnmarshalJSONFrom decodes a challenge and keeps its text.
func (c *Challenge) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Challenge
	return keep(dec, (*plain)(c), &c.raw)
}

// UnmarshalJSONFrom decodes a receipt and keeps its text.
func (r *Receipt) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Receipt
	return keep(dec, (*plain)(r), &r.raw)
}

// UnmarshalJSONFrom decodes a policy decision and keeps its text.
func (d *PolicyDecision) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain PolicyDecision
	return keep(dec, (*plain)(d), &d.raw)
}

// UnmarshalJSONFrom decodes a response and keeps its text.
func (r *Response) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Response
	return keep(dec, (*plain)(r), &r.raw)
}

// keep decodes the next value and copies its text to raw. It uses the decoder's own options, so
// that errors about unknown members have their usual paths.
func keep(dec *jsontext.Decoder, into any, raw *jsontext.Value) error {
	start := dec.InputOffset()
	rest := bytes.Clone(dec.UnreadBuffer())
	if err := json.UnmarshalDecode(dec, into); err != nil {
		return err
	}
	length := dec.InputOffset() - start
	if length < 0 || length > int64(len(rest)) {
		*raw = nil // the decoder reads from a stream and does not have the complete text
		return nil
	}
	*raw = jsontext.Value(bytes.TrimLeft(rest[:length], " \t\r\n:,"))
	return nil
}
