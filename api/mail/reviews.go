package mail

import (
	"context"
	"log/slog"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// Reviews e-mails an organization's reviewers when a decision waits for them, at most once per 10
// minutes (see paced). Each e-mail states the number of waiting decisions. The page /reviews always
// lists every decision.
type Reviews struct {
	paced[reviewNote]
	decisions   *decisions.Decisions
	projections *projections.Projections
	sender      Sender // nil means that no e-mail is sent
	log         *slog.Logger
}

// reviewNote is a decision that requires a review, with the member who requested it.
type reviewNote struct {
	orgID, member string
	sequence      int64 // sequence number in the organization
	record        jsontext.Value
}

// NewReviews returns a Reviews that uses this sender. If the sender is nil, it sends nothing.
func NewReviews(d *decisions.Decisions, p *projections.Projections, sender Sender, log *slog.Logger) *Reviews {
	m := &Reviews{decisions: d, projections: p, sender: sender, log: log}
	m.paced.write = m.write
	m.failed = func(n reviewNote, err error) {
		log.Warn("reviewers could not be notified of a decision", "orgId", n.orgID, "error", err)
	}
	return m
}

// Tell announces a decision that waits for a review. p is the principal who requested it. That
// member is notified only if no other member may review the decision.
func (m *Reviews) Tell(p organizations.Principal, decision seal.Envelope) {
	if m.sender != nil {
		m.tell(p.OrgID, reviewNote{p.OrgID, p.Member, decision.Ledger.Sequence, decision.Record})
	}
}

// write sends a message about the newest of these decisions that still waits, with the total
// number of waiting decisions. If all of them are resolved, it sends nothing.
func (m *Reviews) write(ctx context.Context, since []reviewNote) error {
	orgID := since[0].orgID
	open, err := m.projections.OpenReviews(ctx, orgID, projections.ReviewFilter{}, countedReviews)
	if err != nil {
		m.log.Warn("an e-mail to reviewers omits the number of waiting decisions, which could not be read", "orgId", orgID, "error", err)
	}
	if err == nil && len(open) < countedReviews { // open contains all waiting decisions
		since = slices.DeleteFunc(since, func(n reviewNote) bool {
			return !slices.ContainsFunc(open, func(row projections.DecisionRow) bool { return row.Sequence == n.sequence })
		})
	}
	if len(since) == 0 {
		return nil
	}
	n := since[len(since)-1]
	reviewers, err := m.decisions.Reviewers(ctx, n.orgID, n.member)
	if err != nil {
		return err
	}
	org, err := m.decisions.Organization(ctx, n.orgID)
	if err != nil {
		return err
	}
	message, err := reviewMessage(n.record, org.Name, len(open), m.decisions.BaseURL)
	if err != nil {
		return err
	}
	message.At = m.decisions.Clock()
	return sendEach(ctx, m.sender, message, reviewers)
}
