package mail

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// Reviews e-mails an organization's reviewers when a decision waits for them. The first decision
// is announced at once. Then it sends at most one e-mail per 10 minutes, so that an agent in a
// loop does not flood a mailbox. Each e-mail states the number of waiting decisions. An e-mail is
// lost if the process stops before sending it. The page /reviews always lists every decision.
type Reviews struct {
	decisions   *decisions.Decisions
	projections *projections.Projections
	sender      Sender // nil means that no e-mail is sent
	log         *slog.Logger

	mu      sync.Mutex // protects the fields below, except running
	waiting map[string]*waiting
	closed  bool
	running sync.WaitGroup // counts the messages that are being sent
}

// waiting contains the decisions of an organization that was e-mailed less than 10 minutes ago.
type waiting struct {
	timer *time.Timer  // triggers the next message
	since []reviewNote // newest decisions since the last message
}

// reviewNote is a decision that requires a review, with the member who requested it.
type reviewNote struct {
	orgID, member string
	sequence      int64 // sequence number in the organization
	record        jsontext.Value
}

// NewReviews returns a Reviews that uses this sender. If the sender is nil, it sends nothing.
func NewReviews(d *decisions.Decisions, p *projections.Projections, sender Sender, log *slog.Logger) *Reviews {
	return &Reviews{decisions: d, projections: p, sender: sender, log: log, waiting: map[string]*waiting{}}
}

// Tell announces a decision that waits for a review. p is the principal who requested it. That
// member is notified only if no other member may review the decision.
func (m *Reviews) Tell(p organizations.Principal, decision seal.Envelope) {
	if m.sender == nil {
		return
	}
	n := reviewNote{p.OrgID, p.Member, decision.Ledger.Sequence, decision.Record}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.waiting[n.orgID]; w != nil {
		if w.since = append(w.since, n); len(w.since) > keptNotes {
			w.since = slices.Delete(w.since, 0, 1)
		}
		return
	}
	if m.closed {
		return
	}
	m.waiting[n.orgID] = &waiting{timer: time.AfterFunc(reviewsEvery, func() { m.later(n.orgID) })}
	m.send([]reviewNote{n})
}

// later sends a message about the decisions since the last message. If there are none, it removes
// the organization from waiting.
func (m *Reviews) later(orgID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.waiting[orgID]
	switch {
	case w == nil || m.closed:
	case len(w.since) == 0:
		delete(m.waiting, orgID)
	default:
		m.send(w.since)
		w.since = nil
		w.timer.Reset(reviewsEvery)
	}
}

// Close stops the timers. It waits until the messages in progress are sent, or ctx ends.
func (m *Reviews) Close(ctx context.Context) {
	m.mu.Lock()
	m.closed = true
	for _, w := range m.waiting {
		w.timer.Stop()
	}
	m.mu.Unlock()
	over := make(chan struct{})
	go func() {
		m.running.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// send sends a message about these decisions in the background. The caller holds the lock.
func (m *Reviews) send(since []reviewNote) {
	m.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), reviewsTimeout)
		defer cancel()
		if err := m.write(ctx, since); err != nil {
			m.log.Warn("reviewers could not be notified of a decision", "orgId", since[0].orgID, "error", err)
		}
	})
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
	for _, message.To = range reviewers {
		if err = m.sender.Send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// Sent is for tests. It waits until the messages in progress are sent. If orgID is not empty, it
// first sends that organization's next message immediately.
func (m *Reviews) Sent(orgID string) {
	if orgID != "" {
		m.later(orgID)
	}
	m.running.Wait()
}
