package client

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// poll is the interval at which the client checks whether a person has given a verdict.
const poll = 3 * time.Second

// Decision is a signed decision about one intent. The only way to act on it is Execute.
type Decision struct {
	Receipt *assurance.ReceiptRecord // signed receipt; nil until Execute has received it

	client   *Client
	signed   jsontext.Value // record as signed
	record   assurance.DecisionRecord
	hash     string
	intent   []byte // canonical JSON
	approval *assurance.ApprovalRecord
}

// Record returns a copy of the signed record.
func (d *Decision) Record() (r assurance.DecisionRecord) {
	_ = json.Unmarshal(d.signed, &r) // no error: Decide has parsed it already
	return r
}

// Evidence contains the members of a receipt other than the outcome. The function passed to Execute
// may fill it.
type Evidence struct {
	Failed           bool // the action failed, although the function returned no error
	SettlementID     string
	EvidenceHashes   []string
	ResponseStatus   int
	ResponseBodyHash string
}

// Approved waits until a person has approved the decision, if it requires approval. It returns an
// error if the person rejects it, or if nobody answers before the time-out.
func (d *Decision) Approved(ctx context.Context, timeout time.Duration) error {
	if d == nil {
		return misused("there is no decision")
	}
	if d.record.Decision == assurance.Allow {
		return nil
	}
	if err := d.notDenied(); err != nil {
		return err
	}
	t := d.client.http
	end := t.now().Add(timeout)
	text, err := d.said(ctx)
	for err == nil && text == nil {
		if t.now().Add(poll).After(end) { // check: approval-timeout
			return d.needsApproval(", and no person has answered in time", nil)
		}
		if err := t.sleep(ctx, poll); err != nil {
			return d.needsApproval(", and the program did not wait", err)
		}
		text, err = d.said(ctx)
	}
	if err != nil {
		return err
	}
	var said assurance.ApprovalRecord
	if _, _, err := d.client.verified(text, assurance.ApprovalType, &said); err != nil {
		return err
	}
	if said.DecisionRecordHash != d.hash { // check: approval-decision
		return notVerified("the approval is for another decision")
	}
	if said.Verdict != assurance.VerdictApproved { // check: approval-verdict
		return &Error{Code: Rejected, Message: "nothing was run: a person rejected the decision: " + shown(said.Reason)}
	}
	d.approval = &said
	return nil
}

// said returns the answer of the person, or nil if there is none yet.
func (d *Decision) said(ctx context.Context) ([]byte, error) {
	status, text, err := d.client.send(ctx, http.MethodGet, d.path("approval"), d.client.bearer(), nil, http.StatusOK, http.StatusNotFound)
	if status == http.StatusNotFound {
		return nil, err
	}
	return text, err
}

func (d *Decision) path(last string) string {
	return "/api/assurance/decisions/" + url.PathEscape(d.record.DecisionID) + "/" + last
}

// Execute calls a function with the intent that was decided, and sends the receipt even if the
// function returns an error or panics. It returns an error without calling the function unless the
// decision is allow or was approved, is still valid, was not executed before, and was not revoked
// by a later policy.
func (d *Decision) Execute(ctx context.Context, fn func(context.Context, Intent, *Evidence) error) error {
	if d == nil || d.client == nil {
		return misused("nothing was run: there is no decision")
	}
	if err := d.permitted(); err != nil {
		return err
	}
	if !d.client.use(d.record.DecisionID) { // check: used
		return &Error{Code: Used, Message: "nothing was run: the decision was executed before"}
	}
	err := d.holds(ctx)
	if err == nil {
		err = d.permitted() // check: still-permitted
	}
	var intent Intent
	if err == nil {
		intent, err = d.copied()
	}
	if err != nil {
		d.client.release(d.record.DecisionID)
		return err
	}
	return d.run(ctx, fn, intent)
}

// run calls the function and reports the outcome. It reports even if the context was cancelled,
// because the function may have acted by then.
func (d *Decision) run(ctx context.Context, fn func(context.Context, Intent, *Evidence) error, intent Intent) error {
	evidence := Evidence{}
	returned := false
	defer func() {
		if !returned { // the panic propagates after the report
			_ = d.report(context.WithoutCancel(ctx), assurance.Failed, evidence)
		}
	}()
	failure := fn(ctx, intent, &evidence)
	returned = true
	outcome := assurance.Fulfilled
	if failure != nil || evidence.Failed {
		outcome = assurance.Failed
	}
	if err := d.report(context.WithoutCancel(ctx), outcome, evidence); err != nil {
		return &Error{Code: ReceiptMissing, Message: "the function ran, but its receipt was not recorded: " + err.Error(), Err: cmp.Or(failure, err)}
	}
	return failure
}

// copied returns a copy of the intent for the function, so that no other code can change it in the
// meantime.
func (d *Decision) copied() (intent Intent, err error) {
	if err := json.Unmarshal(d.intent, &intent); err != nil {
		return Intent{}, &Error{Code: Misused, Message: "nothing was run: the intent cannot be decoded", Err: err}
	}
	if start, end, found := canon.Find(d.intent, "toolArguments"); found {
		intent.ToolArguments = jsontext.Value(d.intent[start:end]).Clone()
	}
	return intent, nil
}

func (d *Decision) notDenied() error {
	if d.record.Decision != assurance.Deny {
		return nil
	}
	return &Error{Code: Stopped, Message: "Countersign stopped this and nothing was run: the organization's policy denies it: " + d.because(assurance.Deny) +
		". Do not try to do the same in another way; ask a person if it is needed."}
}

// needsApproval returns the error of a decision that no person has approved. It names the
// decision, so that a person can find it, and the rules that require the approval.
func (d *Decision) needsApproval(why string, cause error) *Error {
	return &Error{Code: NeedsApproval, Message: "nothing was run: a person has to approve decision " + d.record.DecisionID + why + ": " + d.because(assurance.NeedsReview), Err: cause}
}

// because lists the findings that had this effect on the decision.
func (d *Decision) because(effect string) string {
	var why []string
	for _, f := range d.record.Findings {
		if f.Effect == effect {
			why = append(why, shown(f.RuleID)+" ("+shown(f.Message)+")")
		}
	}
	return strings.Join(why, ", ")
}

// permitted returns nil if the decision, or its approval, permits the execution now.
func (d *Decision) permitted() error {
	if err := d.notDenied(); err != nil {
		return err
	}
	until := d.record.ValidUntil
	if d.record.Decision != assurance.Allow {
		if d.approval == nil { // check: permission
			return d.needsApproval(" first", nil)
		}
		until = &d.approval.ValidUntil
	}
	if end := stamp(until); d.client.http.now().After(end) { // check: expiry
		return &Error{Code: Expired, Message: "nothing was run: the decision is no longer valid"}
	}
	return nil
}

// stamp parses the end of validity of a decision or an approval. It returns the zero time if the
// text is missing or invalid, so that the decision counts as expired.
func stamp(text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	t, _ := assurance.ReadStamp(*text)
	return t
}

// holds returns nil if the service confirms that no later policy revoked the decision.
func (d *Decision) holds(ctx context.Context) error {
	_, text, err := d.client.send(ctx, http.MethodGet, d.path("standing"), d.client.bearer(), nil, http.StatusOK)
	if err != nil {
		return err
	}
	var s struct {
		DecisionID         string         `json:"decisionId"`
		DecisionRecordHash string         `json:"decisionRecordHash"`
		Holds              jsontext.Value `json:"holds"`
		Reason             string         `json:"reason"`
	}
	if err := json.Unmarshal(text, &s); err != nil || s.DecisionID != d.record.DecisionID || s.DecisionRecordHash != d.hash { // check: standing-decision
		return notVerified("the service answered the question about this decision with another decision")
	}
	if string(s.Holds) != "true" { // check: standing
		return &Error{Code: Ended, Message: "nothing was run: the decision is no longer in effect: " + shown(s.Reason)}
	}
	return nil
}

// report sends the receipt, and verifies the signed receipt in the answer.
func (d *Decision) report(ctx context.Context, outcome string, e Evidence) error {
	receipt := map[string]any{
		"decisionId": d.record.DecisionID, "decisionRecordHash": d.hash, "bindingHash": d.record.BindingHash, "protocol": d.record.Protocol,
		"outcome": outcome, "observedAt": canon.Stamp(d.client.http.now()),
	}
	if e.SettlementID != "" {
		receipt["settlementId"] = e.SettlementID
	}
	if len(e.EvidenceHashes) > 0 {
		receipt["evidenceHashes"] = e.EvidenceHashes
	}
	if e.ResponseStatus != 0 {
		receipt["responseStatus"] = e.ResponseStatus
	}
	if e.ResponseBodyHash != "" {
		receipt["responseBodyHash"] = e.ResponseBodyHash
	}
	body, err := canon.Marshal(receipt)
	if err != nil {
		return misused("the evidence cannot be encoded as JSON")
	}
	_, text, err := d.client.send(ctx, http.MethodPost, receiptsPath, d.client.bearer(), body, http.StatusOK, http.StatusCreated)
	if err != nil {
		return err
	}
	var said assurance.ReceiptRecord
	if _, _, err := d.client.verified(text, assurance.ReceiptType, &said); err != nil {
		return err
	}
	if said.DecisionRecordHash != d.hash { // check: receipt-decision
		return notVerified("the receipt is for another decision")
	}
	if said.Outcome != outcome { // check: receipt-outcome
		return notVerified("the receipt has another outcome")
	}
	d.Receipt = &said
	return nil
}
