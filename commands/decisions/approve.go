package decisions

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// Approve records a reviewer's signed verdict on a decision that needs a review, at most once per
// decision. If the active policy denies the action, the reviewer can reject the decision but not
// approve it. The member who requested the decision cannot approve it, except on the plan team if
// no other member could; the record states that exception. Refusals: not_found, forbidden, conflict,
// idempotency_key_reused, signing_unavailable.
func (a *Decisions) Approve(ctx context.Context, p organizations.Principal, decisionID string, in assurance.ApprovalInput) (Recorded, error) {
	p, err := a.Permit(ctx, p, organizations.RightApprove)
	if err != nil {
		return Recorded{}, err
	}
	text, err := canon.Marshal([]any{p.Member, in}) // the same verdict by another member is a different request
	if err != nil {
		return Recorded{}, err
	}
	t := attempt{principal: &p, key: ledger.IdemKey("approval", decisionID), content: sha256.Sum256(text)}
	recorded, err := ground.Retry(ctx, a.Ground, a.Again(&p, organizations.RightApprove), func(ctx context.Context) (Recorded, error) {
		stored, last, err := a.Ledger.Lookup(ctx, p.OrgID, t.key, t.content)
		if err != nil || stored != nil {
			return a.stored(ctx, p, stored, err)
		}
		c, err := a.readCase(ctx, p.OrgID, decisionID)
		if err != nil {
			return Recorded{}, err
		}
		self, err := a.mayApprove(ctx, p, c)
		if err != nil {
			return Recorded{}, a.RefuseUnlessMoved(ctx, p, nil, err)
		}
		var preconditions []ledger.Precondition
		if in.Verdict == assurance.VerdictApproved {
			if preconditions, err = a.notDenied(ctx, p, c); err != nil {
				return Recorded{}, a.RefuseUnlessMoved(ctx, p, preconditions, err)
			}
		}
		return a.approve(ctx, t, in, c, self, last, preconditions)
	})
	return recorded, inWords(err, "decision was already resolved")
}

// mayApprove returns a refusal if the principal may not resolve the decision. self reports whether
// the principal is resolving an own request.
func (a *Decisions) mayApprove(ctx context.Context, p organizations.Principal, c decisionCase) (self bool, err error) {
	switch {
	case c.recordHash == "":
		return false, ground.ErrNotFound
	case c.decided.Decision != assurance.NeedsReview:
		return false, policy.Refuse(organizations.CodeConflict, "", "decision does not need a review")
	case c.receipt:
		return false, policy.Refuse(organizations.CodeConflict, "", "a receipt is already recorded for this decision")
	}
	if self, err = a.IsOwn(ctx, p, c.actor); err != nil {
		return false, err
	}
	if self = self || c.member == p.Member; self && !p.MayActAlone() {
		return false, organizations.Forbidden("another admin must resolve your own request")
	}
	return self, nil
}

// notDenied refuses to approve an intent that the active policy denies. The returned precondition
// is the policy's stream: if another policy is activated before the approval is appended, the
// approval is tried again.
func (a *Decisions) notDenied(ctx context.Context, p organizations.Principal, c decisionCase) ([]ledger.Precondition, error) {
	active, err := a.ActivePolicy(ctx, p.OrgID)
	if err != nil {
		return nil, err
	}
	preconditions := []ledger.Precondition{active.Precondition}
	stored, err := a.rules.of(active)
	if err != nil {
		return preconditions, err
	}
	j, err := JudgedOf(c.history.Events[0])
	if err == nil && j.nowUnder(stored) == assurance.Deny {
		err = errDenied
	}
	return preconditions, err
}

func (a *Decisions) approve(ctx context.Context, t attempt, in assurance.ApprovalInput, c decisionCase, self bool, last time.Time, preconditions []ledger.Precondition) (Recorded, error) {
	p := *t.principal
	signer, precondition, err := a.ActiveSigner(ctx, p.OrgID)
	if err != nil {
		return Recorded{}, err
	}
	now, _ := a.issueTime(last)
	envelope, err := signer.Sign(assurance.ApprovalType, in.Record(a.NewID("apr_"), c.record, c.recordHash, p.Member, self, now))
	if err != nil {
		return Recorded{}, err
	}
	payload, err := canon.Marshal(events.ApprovalRecorded{Record: envelope.Record, Integrity: envelope.Integrity, VerifyURL: a.VerifyURL()})
	if err != nil {
		return Recorded{}, err
	}
	return a.appendRecord(ctx, t, signedRecord{envelope, ledger.Pending{Stream: c.history.Stream, Expect: c.history.At(), ID: a.NewID("evt_"),
		Type: events.TypeApprovalRecorded, SchemaVersion: 1, Actor: p.ActorID, KeyID: signer.KeyID(), Payload: payload, Agent: c.agent},
		append(preconditions, precondition), now, ""})
}

// Record returns a signed record of a decision: the decision itself, its approval or its receipt,
// selected by the type of its event. It returns the refusal not_found if there is no such record,
// it belongs to another organization, or the principal may see only own records and this is not
// one.
func (a *Decisions) Record(ctx context.Context, p organizations.Principal, decisionID, eventType string) (seal.Envelope, error) {
	p, err := a.Confirm(ctx, p)
	if err != nil {
		return seal.Envelope{}, err
	}
	if err := p.May(organizations.RightRead); err != nil {
		return seal.Envelope{}, err
	}
	history, err := a.Ledger.Read(ctx, p.OrgID, decisionStream(decisionID))
	if err != nil {
		return seal.Envelope{}, ground.Refusal(err)
	}
	i := slices.IndexFunc(history.Events, func(e ledger.Event) bool { return e.Type == eventType })
	if i < 0 {
		return seal.Envelope{}, ground.ErrNotFound
	}
	if p.OwnOnly() {
		// An approval is visible to the actor who requested the decision.
		actor := history.Events[i].Actor
		if eventType == events.TypeApprovalRecorded {
			actor = history.Events[0].Actor
		}
		if own, err := a.IsOwn(ctx, p, actor); err != nil || !own {
			return seal.Envelope{}, errors.Join(err, ground.ErrNotFound)
		}
	}
	envelope, err := a.envelope(ctx, history.Events[i])
	if errors.Is(err, vault.ErrErased) {
		err = ground.ErrNotFound
	}
	if err == nil {
		err = a.noteOpened(ctx, p, history.Events[i], false)
	}
	return envelope, inWords(ground.Refusal(err), "")
}

// Reviewers returns the e-mail addresses to which a review is sent, for a decision that member has
// requested: those of all other members with the right to approve or, if there are none, that of
// member. Erased addresses are left out.
func (a *Decisions) Reviewers(ctx context.Context, orgID, member string) ([]string, error) {
	list, err := a.MembersOf(ctx, orgID)
	if err != nil {
		return nil, err
	}
	var others, own []string
	for _, m := range list {
		switch {
		case m.Email == "" || !slices.Contains(organizations.Grants[organizations.RightApprove].Roles, m.Role):
		case m.MemberID == member:
			own = append(own, m.Email)
		default:
			others = append(others, m.Email)
		}
	}
	if len(others) == 0 {
		return own, nil
	}
	return others, nil
}
