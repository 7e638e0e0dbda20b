package api

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// settling takes claimed payments to their end behind the calls that claimed them,
// and takes up those that nobody settles: at the start, after a crash of any node,
// and again and again while it is not known whether the money has moved.
type settling struct {
	app         *commands.App
	projections *projections.Projections
	log         *slog.Logger
	metrics     *metrics
	ctx         context.Context // ends when settling is closed
	stop        context.CancelFunc
	work        sync.WaitGroup
	slots       chan struct{} // one per payment that nobody waits for

	mu     sync.Mutex // over all that follows
	closed bool
	active map[string]*attempts // by payment: one at a time
	next   map[string]turn      // of open payments that had an attempt here
}

// attempts at one payment that are under way.
type attempts struct {
	ended chan struct{} // closed when they are over
	now   chan struct{} // somebody waits: no pause
}

// turn is when an open payment is due again.
type turn struct {
	at    time.Time
	pause time.Duration
}

func newSettling(app *commands.App, p *projections.Projections, log *slog.Logger, m *metrics) *settling {
	s := &settling{app: app, projections: p, log: log, metrics: m, slots: make(chan struct{}, settlingAtOnce),
		active: map[string]*attempts{}, next: map[string]turn{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// take makes attempts at a payment from this one on, or hurries those that are
// under way. The channel is closed when they are over.
func (s *settling) take(id string, attempt int) <-chan struct{} {
	return s.begin(id, attempt, attemptsInRow, func() {})
}

// begin starts a row of attempts unless there is one already.
func (s *settling) begin(id string, attempt, row int, done func()) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if under, ok := s.active[id]; ok {
		select {
		case under.now <- struct{}{}:
		default:
		}
		done()
		return under.ended
	}
	a := &attempts{ended: make(chan struct{}), now: make(chan struct{}, 1)}
	if s.closed {
		close(a.ended)
		done()
		return a.ended
	}
	s.active[id] = a
	s.work.Go(func() {
		defer done()
		s.row(id, attempt, row, a)
	})
	return a.ended
}

// row makes some attempts, with pauses that grow, until the payment has ended.
func (s *settling) row(id string, attempt, row int, a *attempts) {
	open := true
	pause := firstSettlingPause
	for n := range row {
		if n > 0 && !s.rest(a, pause) {
			break
		}
		if n > 0 {
			pause *= 2
		}
		if open = s.once(id, attempt+n); !open {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, id)
	if open {
		t := s.next[id]
		t.pause = min(max(2*t.pause, pause), longestSettlingPause)
		t.at = s.app.Clock().Add(t.pause)
		s.next[id] = t
	} else {
		delete(s.next, id)
	}
	close(a.ended)
}

// rest waits, unless somebody hurries; false when settling is over.
func (s *settling) rest(a *attempts, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.now:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// once makes one attempt, which has its own time whatever ends meanwhile, and says
// whether the payment is still open.
func (s *settling) once(id string, attempt int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), settlingTimeout)
	defer cancel()
	begun := time.Now()
	state, err := s.app.Settle(ctx, id, attempt)
	if err != nil {
		s.log.Warn("a payment could not be settled", "paymentId", id, "state", state, "error", err)
		state = "failed"
	}
	s.metrics.settled(state, time.Since(begun))
	return state != commands.PaymentIsSettled && state != commands.PaymentIsRefused
}

// Reconcile takes up every open payment, and then each when it is due, until the
// context ends. One goroutine of the server's owner runs it.
func (s *Server) Reconcile(ctx context.Context) {
	if s.app.Settler == nil {
		return
	}
	tick := time.NewTicker(firstSettlingPause)
	defer tick.Stop()
	sampled := time.Time{}
	for start := true; ; start = false {
		s.settling.sweep(ctx, start)
		if now := s.app.Clock(); now.Sub(sampled) >= settlingDay {
			sampled = now
			s.sample(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sample recomputes the newest settled calls once a day and raises the alarm for
// each that gives another output: whoever paid for it would get a refund.
func (s *Server) sample(ctx context.Context) {
	settled, err := s.projections.Payments(ctx, commands.PaymentIsSettled, sampledCalls)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("settled payments cannot be listed", "error", err)
		}
		return
	}
	for _, p := range settled {
		good, err := s.app.Recheck(ctx, p.PaymentID, func(id string) (policy.Service, bool) {
			op := s.operation(id)
			if op == nil || op.service == nil {
				return policy.Service{}, false
			}
			return *op.service, true
		})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("a settled call could not be recomputed", "paymentId", p.PaymentID, "error", err)
		case !good:
			s.metrics.irreproducible.Inc()
			s.log.Error("a settled call does not reproduce", "paymentId", p.PaymentID)
		}
	}
}

// sweep begins an attempt at each open payment that is due, a few at a time.
func (s *settling) sweep(ctx context.Context, start bool) {
	open, err := s.projections.OpenPayments(ctx, settlingScan)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("open payments cannot be listed", "error", err)
		}
		return
	}
	s.forget(open)
	for _, p := range open {
		if !s.due(p, start) {
			continue
		}
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		s.begin(p.PaymentID, 2, 1, func() { <-s.slots })
	}
}

// forget drops the turns of payments that are open no more: others have ended them.
func (s *settling) forget(open []projections.Payment) {
	if len(open) == settlingScan {
		return // there are more, and their turns count
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.next {
		if !slices.ContainsFunc(open, func(p projections.Payment) bool { return p.PaymentID == id }) {
			delete(s.next, id)
		}
	}
}

// due says whether an open payment has its turn. One that another node has just
// claimed is that node's, which is done with it after a minute or gone.
func (s *settling) due(p projections.Payment, start bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, under := s.active[p.PaymentID]; under {
		return false
	}
	now := s.app.Clock()
	age := now.Sub(p.ClaimedAt)
	t, tried := s.next[p.PaymentID]
	switch {
	case tried && age > settlingDay:
		return !now.Before(t.at.Add(settlingHour - t.pause))
	case tried:
		return !now.Before(t.at)
	}
	return start || p.State == commands.PaymentIsUnknown || age >= claimIsOrphan
}

// Close ends what goes on behind the answers: the pauses of settling and of
// letters to reviewers. It waits, until ctx ends, for what is under way. It may be
// called twice.
func (s *Server) Close(ctx context.Context) {
	s.reviews.close(ctx)
	s.settling.mu.Lock()
	s.settling.closed = true
	s.settling.mu.Unlock()
	s.settling.stop()
	over := make(chan struct{})
	go func() {
		s.settling.work.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
		s.log.Warn("a payment is still being settled; the next start finds out what became of it")
	}
}
