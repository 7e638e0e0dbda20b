package decisions

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// DecisionCase has all records and states of one decision.
type DecisionCase struct {
	Explanation
	Record   assurance.DecisionRecord
	Decided  seal.Envelope
	Erased   bool // agent and purpose were erased, so Record has neither
	Approved *seal.Envelope
	Approval *assurance.ApprovalRecord
	Bound    *seal.Envelope
	Receipt  *assurance.ReceiptRecord
	// Arguments are the arguments of the tool in canonical form, if they were stored and match the
	// signed hash.
	Arguments jsontext.Value
	Own       bool // the principal requested the decision, so another member must resolve it
	Standing  Standing
}

// ShowDecision returns all that is stored about a decision. Its refusals are those of
// ExplainDecision.
func (a *Decisions) ShowDecision(ctx context.Context, p organizations.Principal, decisionID string) (DecisionCase, error) {
	p, history, err := a.readDecision(ctx, p, decisionID)
	if err != nil {
		return DecisionCase{}, err
	}
	var c DecisionCase
	if c.Explanation, err = a.explain(ctx, p, history.Events[0]); err != nil {
		return c, err
	}
	for _, e := range history.Events {
		if err := c.add(ctx, a, e); err != nil {
			return c, inWords(ground.Refusal(err), "")
		}
	}
	if c.Standing, err = a.standing(ctx, p.OrgID, history); err != nil {
		return c, err
	}
	if c.Own, err = a.IsOwn(ctx, p, history.Events[0].Actor); err != nil {
		return c, err
	}
	return c, a.noteOpened(ctx, p, history.Events[0], c.Erased)
}

// noteOpened records that the personal data in a decision was decrypted for a principal. If the
// decision contains no personal data, or it was erased, it records nothing.
func (a *Decisions) noteOpened(ctx context.Context, p organizations.Principal, e ledger.Event, erased bool) error {
	if erased || !vault.Sealed(e) {
		return nil
	}
	return a.NotePersonalOpened(ctx, p, "decisions")
}

func (c *DecisionCase) add(ctx context.Context, a *Decisions, e ledger.Event) error {
	if e.Type == events.TypeDecisionRecorded {
		return c.decided(ctx, a, e)
	}
	envelope, err := a.envelope(ctx, e)
	if err != nil {
		return err
	}
	switch e.Type {
	case events.TypeApprovalRecorded:
		record, err := assurance.ReadApproval(envelope.Record)
		c.Approved, c.Approval = &envelope, &record
		return err
	case events.TypeReceiptRecorded:
		c.Bound, c.Receipt = &envelope, &assurance.ReceiptRecord{}
		return canon.Decode(envelope.Record, c.Receipt)
	}
	return nil
}

func (c *DecisionCase) decided(ctx context.Context, a *Decisions, e ledger.Event) error {
	s, err := a.Open(ctx, e)
	erased := errors.Is(err, vault.ErrErased)
	if err != nil && !erased {
		return err
	}
	c.Decided, c.Erased = envelopeOf(e, events.Signed{Record: s.Record, Integrity: s.Integrity, VerifyURL: s.VerifyURL}), erased
	if c.Record, err = readable(s.Record, erased); err != nil {
		return err
	}
	if s.ToolArguments != nil && canon.Hash(s.ToolArguments) == c.Record.Normalized.ToolArgumentsHash {
		c.Arguments = s.ToolArguments
	}
	return nil
}

// readable parses a decision record. If its subject was erased, it replaces the commitments to
// agent and purpose by empty texts.
func readable(record jsontext.Value, erased bool) (assurance.DecisionRecord, error) {
	if erased {
		record = canon.Put(record, []byte(`""`), "subject", "agentId")
		record = canon.Put(record, []byte(`""`), "subject", "purpose")
	}
	return assurance.ReadDecision(record)
}

// DecisionRecords returns decision records by their sequence number in the organization, for a
// list. It checks only the right to read: the caller passes sequence numbers from a read model,
// which has selected the decisions that the principal may see.
func (a *Decisions) DecisionRecords(ctx context.Context, p organizations.Principal, sequences []int64) (map[int64]assurance.DecisionRecord, error) {
	if err := p.May(organizations.RightRead); err != nil {
		return nil, err
	}
	found, err := a.Ledger.BySequence(ctx, p.OrgID, sequences)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	records := make(map[int64]assurance.DecisionRecord, len(found))
	for sequence, e := range found {
		s, err := a.Open(ctx, e)
		erased := errors.Is(err, vault.ErrErased)
		if err != nil && !erased {
			return nil, ground.Refusal(err)
		}
		if records[sequence], err = readable(s.Record, erased); err != nil {
			return nil, err
		}
		if err := a.noteOpened(ctx, p, e, erased); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// AgentKey returns the id of an agent's data key, which identifies the agent in events and read
// models. It is empty if the agent has none.
func (a *Decisions) AgentKey(ctx context.Context, p organizations.Principal, agentID string) (string, error) {
	if err := p.May(organizations.RightRead); err != nil || a.Vault == nil {
		return "", err
	}
	key, err := a.Vault.Find(ctx, p.OrgID, subjectName(assurance.Subject{AgentID: agentID}))
	return key, ground.Refusal(err)
}

// SequenceAt returns the sequence number of the organization's first event at or after a time.
func (a *Decisions) SequenceAt(ctx context.Context, p organizations.Principal, t time.Time) (int64, error) {
	sequence, err := a.sequenceAt(ctx, p.OrgID, t)
	return sequence, ground.Refusal(err)
}
