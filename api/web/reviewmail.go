package web

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// ReviewMail sends an e-mail to an organization's reviewers when a decision waits for
// them: at once for the first one, then at most one e-mail every 10 minutes, so that an
// agent in a loop does not fill a mailbox. Each e-mail says how many decisions wait in
// all. An e-mail may be lost with the process; the page /reviews lists every decision.
type ReviewMail struct {
	app         *commands.App
	projections *projections.Projections
	mail        Mailer // nil: nobody is told
	log         *slog.Logger

	mu      sync.Mutex // guards what follows
	waiting map[string]*waiting
	closed  bool
	running sync.WaitGroup // letters on their way
}

// waiting is an organization that was written to a short time ago.
type waiting struct {
	timer *time.Timer  // of the next letter
	since []reviewNote // the newest decisions since the last one
}

// reviewNote is a decision that needs a review, and the member who asked for it.
type reviewNote struct {
	orgID, member string
	sequence      int64 // in the organization's chain
	record        jsontext.Value
}

// NewReviewMail sends by a mailer; by none, nobody is told.
func NewReviewMail(app *commands.App, p *projections.Projections, mail Mailer, log *slog.Logger) *ReviewMail {
	return &ReviewMail{app: app, projections: p, mail: mail, log: log, waiting: map[string]*waiting{}}
}

// Tell is told of a decision that waits, and of who asked for it.
func (m *ReviewMail) Tell(p organizations.Principal, decision seal.Envelope) {
	if m.mail == nil {
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
	m.waiting[n.orgID] = &waiting{timer: time.AfterFunc(reviewMailEvery, func() { m.later(n.orgID) })}
	m.send([]reviewNote{n})
}

// later writes about the decisions since the last letter, if there are any.
func (m *ReviewMail) later(orgID string) {
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
		w.timer.Reset(reviewMailEvery)
	}
}

// Close ends the timers and waits, until ctx ends, for the letters that are on
// their way.
func (m *ReviewMail) Close(ctx context.Context) {
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

// send is called with the lock held, with what came since the last letter.
func (m *ReviewMail) send(since []reviewNote) {
	m.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), reviewMailTimeout)
		defer cancel()
		if err := m.write(ctx, since); err != nil {
			m.log.Warn("reviewers were not told of a decision", "orgId", since[0].orgID, "error", err)
		}
	})
}

// write tells of the newest decision that still waits, and how many wait in all. What was
// resolved meanwhile needs no letter.
func (m *ReviewMail) write(ctx context.Context, since []reviewNote) error {
	orgID := since[0].orgID
	open, err := m.projections.OpenReviews(ctx, orgID, projections.ReviewFilter{}, countedReviews)
	if err != nil {
		m.log.Warn("an e-mail to reviewers does not say how many decisions wait", "orgId", orgID, "error", err)
	}
	if err == nil && len(open) < countedReviews { // the list is whole
		since = slices.DeleteFunc(since, func(n reviewNote) bool {
			return !slices.ContainsFunc(open, func(row projections.DecisionRow) bool { return row.Sequence == n.sequence })
		})
	}
	if len(since) == 0 {
		return nil
	}
	n := since[len(since)-1]
	reviewers, err := m.app.Reviewers(ctx, n.orgID, n.member)
	if err != nil {
		return err
	}
	org, err := m.app.Organization(ctx, n.orgID)
	if err != nil {
		return err
	}
	letter, err := ReviewLetter(n.record, org.Name, len(open), m.app.BaseURL)
	if err != nil {
		return err
	}
	letter.At = m.app.Clock()
	for _, letter.To = range reviewers {
		if err = m.mail.Send(ctx, letter); err != nil {
			return err
		}
	}
	return nil
}

// Sent waits for the letters that are on their way; with an organization, the time
// of its next letter has come first.
func (m *ReviewMail) Sent(orgID string) {
	if orgID != "" {
		m.later(orgID)
	}
	m.running.Wait()
}
