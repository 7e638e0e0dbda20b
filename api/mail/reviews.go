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

// Reviews sends an e-mail to an organization's reviewers when a decision waits for
// them: at once for the first one, then at most one e-mail every 10 minutes, so that an
// agent in a loop does not fill a mailbox. Each e-mail says how many decisions wait in
// all. An e-mail may be lost with the process; the page /reviews lists every decision.
type Reviews struct {
	decisions   *decisions.Decisions
	projections *projections.Projections
	sender      Sender // nil: no e-mail is sent
	log         *slog.Logger

	mu      sync.Mutex // guards what follows
	waiting map[string]*waiting
	closed  bool
	running sync.WaitGroup // messages on their way
}

// waiting is an organization whose reviewers were written to less than 10 minutes ago.
type waiting struct {
	timer *time.Timer  // of the next message
	since []reviewNote // the newest decisions since the last message
}

// reviewNote is a decision that needs a review, and the member who asked for it.
type reviewNote struct {
	orgID, member string
	sequence      int64 // in the organization's chain
	record        jsontext.Value
}

// NewReviews makes a Reviews that sends with a sender. Without one it sends nothing.
func NewReviews(d *decisions.Decisions, p *projections.Projections, sender Sender, log *slog.Logger) *Reviews {
	return &Reviews{decisions: d, projections: p, sender: sender, log: log, waiting: map[string]*waiting{}}
}

// Tell takes a decision that waits and the principal who asked for it.
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

// later sends a message about the decisions since the last message, if there are any.
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

// Close stops the timers and waits, until ctx ends, for the messages that are on their way.
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

// send writes about the decisions since the last message. The caller holds the lock.
func (m *Reviews) send(since []reviewNote) {
	m.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), reviewsTimeout)
		defer cancel()
		if err := m.write(ctx, since); err != nil {
			m.log.Warn("reviewers were not told of a decision", "orgId", since[0].orgID, "error", err)
		}
	})
}

// write sends a message about the newest decision that still waits. It says how many wait in
// all. If every decision was resolved meanwhile it sends nothing.
func (m *Reviews) write(ctx context.Context, since []reviewNote) error {
	orgID := since[0].orgID
	open, err := m.projections.OpenReviews(ctx, orgID, projections.ReviewFilter{}, countedReviews)
	if err != nil {
		m.log.Warn("an e-mail to reviewers does not say how many decisions wait", "orgId", orgID, "error", err)
	}
	if err == nil && len(open) < countedReviews { // the list is complete
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

// Sent is for tests. It waits for the messages that are on their way; if it is given an
// organization, it first sends the organization's next message without waiting for its time.
func (m *Reviews) Sent(orgID string) {
	if orgID != "" {
		m.later(orgID)
	}
	m.running.Wait()
}
