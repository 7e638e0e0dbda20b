package assurance

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// Values of outcome, the result of an execution, and of conformance, the result of Conform.
const (
	Fulfilled = "fulfilled"
	Failed    = "failed"
	Rejected  = "rejected"

	Conforming   = "conforming"
	Inconclusive = "inconclusive"
	Violation    = "violation"
)

// ReceiptInput is the request of POST /api/assurance/receipts. The published schema is made from
// this type; ParseReceipt checks the requests.
type ReceiptInput struct {
	DecisionID         string   `json:"decisionId" jsonschema:"minLength=1"`
	DecisionRecordHash string   `json:"decisionRecordHash" jsonschema:"minLength=1" jsonschema_description:"integrity.recordHash of the decision."`
	BindingHash        string   `json:"bindingHash" jsonschema:"minLength=1" jsonschema_description:"record.bindingHash of the decision."`
	Protocol           string   `json:"protocol" jsonschema:"enum=x402,enum=mcp"`
	Outcome            string   `json:"outcome" jsonschema:"enum=fulfilled,enum=failed,enum=rejected" jsonschema_description:"Result of the execution; rejected means that it was not executed."`
	SettlementID       string   `json:"settlementId,omitempty" jsonschema:"minLength=1"`
	ObservedAt         string   `json:"observedAt,omitempty" jsonschema:"format=date-time"`
	EvidenceHashes     []string `json:"evidenceHashes,omitempty" jsonschema:"maxItems=100"`
	ResponseStatus     int64    `json:"responseStatus,omitempty" jsonschema:"minimum=100,maximum=599"`
	ResponseBodyHash   string   `json:"responseBodyHash,omitempty" jsonschema:"pattern=^[a-f0-9]{64}$"`
}

// ReceiptRequest is a request that was read and checked.
type ReceiptRequest struct {
	ReceiptInput
	Observed  time.Time // time of observedAt; zero if absent
	Canonical []byte
}

// ParseReceipt reads a request strictly. It returns a *policy.Error for the first problem in the
// order of the text.
func ParseReceipt(text []byte) (ReceiptRequest, error) {
	var r ReceiptRequest
	err := parse(text, []field{
		{"decisionId", true, plain(&r.DecisionID)},
		{"decisionRecordHash", true, plain(&r.DecisionRecordHash)},
		{"bindingHash", true, plain(&r.BindingHash)},
		{"protocol", true, oneOf(&r.Protocol, X402, MCP)},
		{"outcome", true, oneOf(&r.Outcome, Fulfilled, Failed, Rejected)},
		{"settlementId", false, plain(&r.SettlementID)},
		{"observedAt", false, func(v value) error {
			if err := plain(&r.ObservedAt)(v); err != nil {
				return err
			}
			t, err := normal.Timestamp(r.ObservedAt)
			if err != nil {
				return refuse("invalid_date", v.name, " is not an RFC 3339 date-time")
			}
			r.Observed = t
			return nil
		}},
		{"evidenceHashes", false, list(&r.EvidenceHashes, maxEvidence, maxEvidenceLength, nil)},
		{"responseStatus", false, integer(&r.ResponseStatus, 100, 599)},
		{"responseBodyHash", false, matching(&r.ResponseBodyHash, maxText, isHash, " must be 64 lower-case hex digits")},
	})
	if err != nil {
		return ReceiptRequest{}, err
	}
	r.Canonical, err = canonicalOf(text)
	return r, err
}

func plain(into *string) func(value) error { return text(into, maxText) }

// ReceiptFinding is one observation about an execution.
type ReceiptFinding struct {
	RuleID  string `json:"ruleId" jsonschema_description:"Id of the rule; its page on this service is /rules/ID."`
	Effect  string `json:"effect" jsonschema:"enum=info,enum=inconclusive,enum=violation"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Decided contains the values that Conform compares a receipt with: the decision, and its
// approval, if there is one.
type Decided struct {
	Decision   string
	IssuedAt   time.Time
	ValidUntil time.Time // zero if the decision is not allow
	Approval   *Approved

	// Stopped is the time at which a policy that denies the action was activated, if that was
	// after the decision and after its approval; otherwise zero.
	Stopped time.Time
}

// Approved is the recorded verdict of a person on a decision.
type Approved struct {
	ApprovalID           string
	Verdict              string // approved or rejected
	IssuedAt, ValidUntil time.Time
}

// Conformance is the result of Conform.
type Conformance struct {
	Is       string // conforming, inconclusive or violation: the worst effect of the findings
	Findings []ReceiptFinding
	Late     bool // true if the receipt arrived more than lateAfter after the expiry of the decision, or after its issue if it allows nothing
}

// Conform compares a receipt that arrives at the time received with a decision. It never refuses a
// receipt: evidence of a violation must be recorded too.
func Conform(d Decided, r ReceiptRequest, received time.Time) Conformance {
	c := &conformer{Conformance{Is: Conforming, Findings: []ReceiptFinding{}}}
	observed := r.Observed
	if observed.IsZero() {
		observed = received
		c.say("info", "receipt.observed_at_missing", "observedAt", "the time when the receipt arrived is used as the time of execution")
	} else if observed.After(received.Add(skew)) {
		c.say(Inconclusive, "receipt.observed_in_future", "observedAt", "the time of execution is after the time of the report")
	}
	if observed.Before(d.IssuedAt.Add(-skew)) {
		c.say(Inconclusive, "receipt.observed_before_decision", "observedAt", "the time of execution is before the decision")
	}
	if r.Outcome != Rejected {
		c.executed(d, observed)
	}
	c.response(r)
	from := d.IssuedAt
	if !d.ValidUntil.IsZero() {
		from = d.ValidUntil
	}
	c.Late = received.After(from.Add(lateAfter))
	slices.SortStableFunc(c.Findings, func(a, b ReceiptFinding) int {
		return cmp.Or(cmp.Compare(grade(b.Effect), grade(a.Effect)), cmp.Compare(a.RuleID, b.RuleID))
	})
	return c.Conformance
}

type conformer struct{ Conformance }

func (c *conformer) say(effect, ruleID, field, message string) {
	c.Findings = append(c.Findings, ReceiptFinding{ruleID, effect, field, message})
	if effect != "info" && grade(effect) > grade(c.Is) {
		c.Is = effect
	}
}

func grade(effect string) int {
	return max(0, slices.Index([]string{Conforming, Inconclusive, Violation}, effect))
}

// executed adds the findings about an action that was executed, with success or not.
func (c *conformer) executed(d Decided, observed time.Time) {
	until := d.ValidUntil
	switch {
	case d.Decision == Deny || d.Stopped.IsZero():
	case observed.Before(d.Stopped):
		c.say("info", "receipt.reported_after_stop", "observedAt", "the action was reported after the activation of a policy that denies it, and its claimed time of execution is before that")
	default:
		c.say(Violation, "receipt.executed_after_stop", "observedAt", "the action was executed after the activation of a policy that denies it")
	}
	switch d.Decision {
	case Deny:
		c.say(Violation, "receipt.executed_after_deny", "outcome", "the action was executed although the decision is deny")
		return
	case NeedsReview:
		a := d.Approval
		if a == nil || a.Verdict != "approved" || observed.Before(a.IssuedAt.Add(-skew)) {
			c.say(Violation, "receipt.executed_without_approval", "outcome", "the action was executed without a valid approval")
			return
		}
		until = a.ValidUntil
	}
	if observed.After(until) {
		c.say(Violation, "receipt.after_expiry", "observedAt", "the action was executed after the decision had expired")
	}
}

func (c *conformer) response(r ReceiptRequest) {
	status := r.ResponseStatus
	switch {
	case r.Outcome == Fulfilled && status >= 400:
		c.say(Inconclusive, "receipt.status_mismatch", "responseStatus", "the outcome is fulfilled, and the status is "+strconv.FormatInt(status, 10))
	case r.Outcome == Failed && status >= 200 && status < 300:
		c.say(Inconclusive, "receipt.status_mismatch", "responseStatus", "the outcome is failed, and the status is "+strconv.FormatInt(status, 10))
	}
	if r.Outcome == Fulfilled && (status == 0 || r.ResponseBodyHash == "") {
		c.say("info", "receipt.response_unbound", "responseBodyHash", "the receipt does not have both status and hash of the response")
	}
}

// ReceiptRecord is the signed record of a receipt.
type ReceiptRecord struct {
	Schema             string           `json:"schema"`
	ReceiptID          string           `json:"receiptId"`
	OrgID              string           `json:"orgId"`
	DecisionID         string           `json:"decisionId"`
	DecisionRecordHash string           `json:"decisionRecordHash"`
	BindingHash        string           `json:"bindingHash"`
	Protocol           string           `json:"protocol" jsonschema:"enum=x402,enum=mcp"`
	Decision           string           `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review"`
	Outcome            string           `json:"outcome" jsonschema:"enum=fulfilled,enum=failed,enum=rejected"`
	Conformance        string           `json:"conformance" jsonschema:"enum=conforming,enum=violation,enum=inconclusive"`
	Findings           []ReceiptFinding `json:"findings"`
	SettlementID       *string          `json:"settlementId" jsonschema:"nullable"`
	ObservedAt         *string          `json:"observedAt" jsonschema:"nullable"` // as sent by the executor
	ReceivedAt         string           `json:"receivedAt" jsonschema:"format=date-time"`
	Late               bool             `json:"late"`
	EvidenceHashes     []string         `json:"evidenceHashes"`
	ResponseStatus     *int64           `json:"responseStatus" jsonschema:"nullable"`
	ResponseBodyHash   *string          `json:"responseBodyHash" jsonschema:"nullable"`
	ApprovalID         *string          `json:"approvalId" jsonschema:"nullable"`
	SubmittedBy        Submitter        `json:"submittedBy"`
}

// Submitter identifies who submitted the receipt: an API token, or a member in a browser session.
type Submitter struct {
	TokenID  string `json:"tokenId,omitempty"`
	MemberID string `json:"memberId,omitempty"`
}

// Record returns the record of a receipt for a decision.
func (r ReceiptRequest) Record(receiptID, orgID string, d Decided, c Conformance, received time.Time, by Submitter) ReceiptRecord {
	record := ReceiptRecord{
		Schema: ReceiptSchema, ReceiptID: receiptID, OrgID: orgID, DecisionID: r.DecisionID,
		DecisionRecordHash: r.DecisionRecordHash, BindingHash: r.BindingHash, Protocol: r.Protocol,
		Decision: d.Decision, Outcome: r.Outcome, Conformance: c.Is, Findings: c.Findings,
		SettlementID: orNull(r.SettlementID), ObservedAt: orNull(r.ObservedAt), ReceivedAt: canon.Stamp(received), Late: c.Late,
		EvidenceHashes: append([]string{}, r.EvidenceHashes...), ResponseBodyHash: orNull(r.ResponseBodyHash), SubmittedBy: by,
	}
	if r.ResponseStatus != 0 {
		record.ResponseStatus = &r.ResponseStatus
	}
	if d.Approval != nil {
		record.ApprovalID = &d.Approval.ApprovalID
	}
	return record
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
