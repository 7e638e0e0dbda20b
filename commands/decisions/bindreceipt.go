package decisions

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// CodeNoMatch is the code for a receipt that matches no decision of the organization.
const CodeNoMatch = "receipt_mismatch"

// errNoMatch refuses a receipt for an unknown decision, for a decision of another organization, or
// with wrong hashes or protocol. The text is always the same, so that it does not reveal the
// decisions of other organizations.
var errNoMatch = policy.Refuse(CodeNoMatch, "", "receipt does not match a decision of this organization")

// BindReceipt binds evidence of an execution to its decision and records the signed receipt, at
// most one per decision. Evidence that contradicts the decision is recorded, too, and not refused.
// Refusals: receipt_mismatch, idempotency_key_reused (the decision has another receipt),
// signing_unavailable, temporarily_unavailable, and those of Permit.
func (a *Decisions) BindReceipt(ctx context.Context, p organizations.Principal, r assurance.ReceiptRequest) (Recorded, error) {
	p, err := a.Permit(ctx, p, organizations.RightReceipt)
	if err != nil {
		return Recorded{}, err
	}
	t := attempt{principal: &p, key: ledger.IdemKey("receipt", r.DecisionID), content: sha256.Sum256(r.Canonical)}
	recorded, err := ground.Retry(ctx, a.Ground, a.Again(&p, organizations.RightReceipt), func(ctx context.Context) (Recorded, error) {
		stored, last, err := a.Ledger.Lookup(ctx, p.OrgID, t.key, t.content)
		if err != nil || stored != nil {
			return a.stored(ctx, p, stored, err)
		}
		c, err := a.readCase(ctx, p.OrgID, r.DecisionID)
		if err != nil {
			return Recorded{}, err
		}
		if !c.matches(r) {
			return Recorded{}, a.RefuseUnlessMoved(ctx, p, nil, errNoMatch)
		}
		return a.bindReceipt(ctx, t, r, c, last)
	})
	return recorded, inWords(err, "a receipt with different content is already recorded for this decision")
}

// decisionCase is the state of a decision's stream: the decision, its approval and its receipt.
type decisionCase struct {
	record     assurance.DecisionRecord // without members that contain personal data
	recordHash string
	actor      string // member or token that requested the decision
	agent      string // id of the data key of the decision's agent; empty if the decision names no agent
	member     string
	decided    assurance.Decided
	receipt    bool
	history    ledger.History
}

// readCase reads a decision's stream. If the stream is empty, it returns a case that matches no
// receipt.
func (a *Decisions) readCase(ctx context.Context, orgID, decisionID string) (decisionCase, error) {
	c, history, err := ground.Fold(ctx, a.Ground, orgID, decisionStream(decisionID), decisionCase{})
	c.history = history
	return c, err
}

// caseOf returns the state of a decision's stream.
func caseOf(history ledger.History) (decisionCase, error) {
	return ground.Folded(history, decisionCase{history: history})
}

// Apply returns the state after one more event of the stream.
func (c decisionCase) Apply(e ledger.Event) (decisionCase, error) {
	stored, err := e.Stored()
	switch fact := stored.(type) {
	case events.DecisionRecorded:
		return c.decide(e, fact)
	case events.ApprovalRecorded:
		record, err := assurance.ReadApproval(fact.Record)
		if err != nil {
			return c, err
		}
		issued, err1 := assurance.ReadStamp(record.IssuedAt)
		until, err2 := assurance.ReadStamp(record.ValidUntil)
		c.decided.Approval = &assurance.Approved{ApprovalID: record.ApprovalID, Verdict: record.Verdict, IssuedAt: issued, ValidUntil: until}
		return c, errors.Join(err1, err2)
	case events.ReceiptRecorded:
		c.receipt = true
	}
	return c, err
}

func (c decisionCase) decide(e ledger.Event, stored events.DecisionRecorded) (decisionCase, error) {
	var record struct {
		assurance.DecisionRecord
		Subject any `json:"subject"` // used instead of the record's field, because a subject may contain commitments instead of text
	}
	if err := json.Unmarshal(stored.Record, &record); err != nil {
		return c, err
	}
	c.record, c.recordHash, c.actor, c.agent, c.member = record.DecisionRecord, stored.Integrity.RecordHash, e.Actor, e.Agent, stored.Member
	c.decided.Decision = c.record.Decision
	var err error
	if c.decided.IssuedAt, err = assurance.ReadStamp(c.record.IssuedAt); err != nil || c.record.ValidUntil == nil {
		return c, err
	}
	c.decided.ValidUntil, err = assurance.ReadStamp(*c.record.ValidUntil)
	return c, err
}

func (c decisionCase) matches(r assurance.ReceiptRequest) bool {
	return c.recordHash != "" && c.record.DecisionID == r.DecisionID && c.recordHash == r.DecisionRecordHash &&
		c.record.BindingHash == r.BindingHash && c.record.Protocol == r.Protocol
}

func (a *Decisions) bindReceipt(ctx context.Context, t attempt, r assurance.ReceiptRequest, c decisionCase, last time.Time) (Recorded, error) {
	p := *t.principal
	signer, precondition, err := a.ActiveSigner(ctx, p.OrgID)
	if err != nil {
		return Recorded{}, err
	}
	// The policies' stream is a precondition: if an emergency stop is activated before the append,
	// the command tries again.
	stopped, policies, err := a.stopOf(ctx, p.OrgID, c)
	if err != nil {
		return Recorded{}, err
	}
	c.decided.Stopped = stopped
	received, _ := a.issueTime(last)
	by := assurance.Submitter{MemberID: p.ActorID}
	if p.Role == organizations.RoleToken {
		by = assurance.Submitter{TokenID: p.ActorID}
	}
	record := r.Record(a.NewID("asr_"), p.OrgID, c.decided, assurance.Conform(c.decided, r, received), received, by)
	envelope, err := signer.Sign(assurance.ReceiptType, record)
	if err != nil {
		return Recorded{}, err
	}
	payload, err := canon.Marshal(events.ReceiptRecorded{Record: envelope.Record, Integrity: envelope.Integrity, VerifyURL: a.VerifyURL(), Member: p.Member})
	if err != nil {
		return Recorded{}, err
	}
	return a.appendRecord(ctx, t, signedRecord{envelope, ledger.Pending{Stream: c.history.Stream, Expect: c.history.At(), ID: a.NewID("evt_"),
		Type: events.TypeReceiptRecorded, SchemaVersion: 1, Actor: p.ActorID, KeyID: signer.KeyID(), Payload: payload, Agent: c.agent},
		[]ledger.Precondition{precondition, policies}, received, ""})
}
