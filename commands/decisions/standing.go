package decisions

import (
	"context"
	"slices"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// The activation of a policy ends all earlier permissions for the actions that it denies. A
// permission is an approval, or a decision "allow". A decision that waits for an approval cannot
// be approved while the policy denies its action. The emergency stop denies every action. A
// permission that has ended stays ended when the policy is loosened again: the action needs a new
// decision or approval.

// errDenied refuses to approve an action that the active policy denies.
var errDenied = policy.Refuse(organizations.CodeConflict, "", "the active policy denies this action")

// nowUnder returns the result of a policy for a recorded action. If this program does not have the
// engine version of the decision, the result is deny.
func (j Judged) nowUnder(p assurance.StoredPolicy) string {
	if e, ok := j.Under(p.Rules); ok {
		return e.Decision
	}
	return assurance.Deny
}

// permittedAt returns the sequence number of the event that permits the action: the approval if
// there is one, otherwise the decision.
func (c decisionCase) permittedAt() int64 {
	i := slices.IndexFunc(c.history.Events, func(e ledger.Event) bool { return e.Type == events.TypeApprovalRecorded })
	return c.history.Events[max(i, 0)].Sequence
}

// stopOf returns the time at which the permission of a case ended, because a policy that denies
// its action was activated. It returns zero if the permission has not ended. The precondition is
// the stream of the policies that it has read.
func (a *Decisions) stopOf(ctx context.Context, orgID string, c decisionCase) (stopped time.Time, precondition ledger.Precondition, err error) {
	active, err := a.ActivePolicy(ctx, orgID)
	if err != nil || active.ActivatedSequence < c.permittedAt() {
		return time.Time{}, active.Precondition, err
	}
	s, err := a.readPolicies(ctx, orgID)
	if err != nil {
		return time.Time{}, ledger.Precondition{}, err
	}
	j, err := JudgedOf(c.history.Events[0])
	if err != nil {
		return time.Time{}, ledger.Precondition{}, err
	}
	stopped, err = a.firstStop(s, c, j)
	return stopped, s.history.Precondition(), err
}

// firstStop returns the activation time of the first policy that denies the action and was
// activated after its permission, or zero if there is none.
func (a *Decisions) firstStop(s policies, c decisionCase, j Judged) (time.Time, error) {
	for _, v := range s.activations {
		if v.ActivatedSequence < c.permittedAt() {
			continue
		}
		stored, err := a.rules.of(v.ActivePolicy)
		if err != nil || j.nowUnder(stored) == assurance.Deny {
			return v.activated, err
		}
	}
	return time.Time{}, nil
}

// Standing reports whether the action of a decision may be executed now, and why not.
type Standing struct {
	DecisionID         string  `json:"decisionId"`
	OrgID              string  `json:"orgId"`
	DecisionRecordHash string  `json:"decisionRecordHash"`
	Decision           string  `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review"`
	ApprovalID         *string `json:"approvalId" jsonschema:"nullable"`
	ActiveDecision     string  `json:"activeDecision" jsonschema:"enum=allow,enum=deny,enum=needs_review" jsonschema_description:"Decision of the active policy on the same action."`
	Holds              bool    `json:"holds" jsonschema_description:"Whether the action may be executed now."`
	Ended              bool    `json:"-"` // the action was permitted, and a later policy has ended the permission
	Reason             *string `json:"reason" jsonschema:"nullable" jsonschema_description:"Reason why the action may not be executed; null if it may."`
	ValidUntil         *string `json:"validUntil" jsonschema:"nullable" jsonschema_description:"Until when the decision allow, or the approval, is valid."`
	CheckedAt          string  `json:"checkedAt" jsonschema:"format=date-time"`
}

// Standing reports whether the action of a decision may be executed now. Its refusals are those of
// ExplainDecision.
func (a *Decisions) Standing(ctx context.Context, p organizations.Principal, decisionID string) (Standing, error) {
	p, err := a.Confirm(ctx, p) // nothing is appended that would check the principal
	if err != nil {
		return Standing{}, err
	}
	p, history, err := a.readDecision(ctx, p, decisionID)
	if err != nil {
		return Standing{}, err
	}
	return a.standing(ctx, p.OrgID, history)
}

// standing reads the policies from the ledger and not from the cache, and after the decision was
// read. So an emergency stop takes effect immediately.
func (a *Decisions) standing(ctx context.Context, orgID string, history ledger.History) (Standing, error) {
	c, err := caseOf(history)
	if err != nil {
		return Standing{}, err
	}
	s, err := a.readPolicies(ctx, orgID)
	if err != nil {
		return Standing{}, ground.Refusal(err)
	}
	j, err := JudgedOf(history.Events[0])
	if err != nil {
		return Standing{}, err
	}
	stopped, err := a.firstStop(s, c, j)
	if err != nil {
		return Standing{}, err
	}
	active, err := a.rules.of(s.activations[len(s.activations)-1].ActivePolicy)
	if err != nil {
		return Standing{}, err
	}
	now := a.Now()
	standing := Standing{DecisionID: c.record.DecisionID, OrgID: orgID, DecisionRecordHash: c.recordHash, Decision: j.Decision,
		ActiveDecision: j.nowUnder(active), ValidUntil: c.record.ValidUntil, CheckedAt: canon.Stamp(now)}
	if approved := c.decided.Approval; approved != nil {
		standing.ApprovalID = &approved.ApprovalID
		if approved.Verdict == assurance.VerdictApproved {
			until := canon.Stamp(approved.ValidUntil)
			standing.ValidUntil = &until
		}
	}
	standing.Ended = !stopped.IsZero() && standing.ValidUntil != nil
	if whyNot := c.whyNot(!stopped.IsZero(), standing.ActiveDecision, now); whyNot != "" {
		standing.Reason = &whyNot
	}
	standing.Holds = standing.Reason == nil
	return standing, nil
}

// whyNot returns the reason why an action may not be executed, or "" if it may.
func (c decisionCase) whyNot(stopped bool, active string, now time.Time) string {
	approved, until := c.decided.Approval, c.decided.ValidUntil
	reviewed := c.decided.Decision == assurance.NeedsReview
	switch {
	case c.decided.Decision == assurance.Deny:
		return "the decision is deny"
	case c.receipt:
		return "a receipt is already recorded for this decision"
	case stopped && active == assurance.Deny:
		return errDenied.Error()
	case reviewed && approved == nil:
		return "the decision needs an approval"
	case reviewed && approved.Verdict != assurance.VerdictApproved:
		return "a reviewer rejected the decision"
	case stopped:
		return "a policy that denies this action was activated after the action was permitted"
	case reviewed:
		until = approved.ValidUntil
	}
	if now.After(until) {
		return "the decision or approval has expired"
	}
	return ""
}

// DeniedNow returns for each decision whether the active policy denies its action. If it does, no
// member can approve the decision. Decisions are named by their sequence number in the
// organization.
func (a *Decisions) DeniedNow(ctx context.Context, p organizations.Principal, sequences []int64) (map[int64]bool, error) {
	if err := p.May(organizations.RightRead); err != nil || len(sequences) == 0 {
		return nil, err
	}
	active, err := a.ActivePolicy(ctx, p.OrgID)
	if err != nil {
		return nil, err
	}
	stored, err := a.rules.of(active)
	if err != nil {
		return nil, err
	}
	found, err := a.Ledger.BySequence(ctx, p.OrgID, sequences)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	denied := make(map[int64]bool, len(found))
	for sequence, e := range found {
		j, err := JudgedOf(e)
		if err != nil {
			return nil, err
		}
		denied[sequence] = j.nowUnder(stored) == assurance.Deny
	}
	return denied, nil
}
