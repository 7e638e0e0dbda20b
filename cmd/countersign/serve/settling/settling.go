// Package settling settles claimed payments in the background. It takes up payments that no
// request waits for: at the start, after a crash of any node, and repeatedly while it is
// unknown whether money has moved. The package decides when an attempt is made; package
// commands does what one attempt consists of. It answers no request.
package settling

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// Config holds the dependencies and settings of a reconciler.
type Config struct {
	App         *commands.App
	Projections *projections.Projections
	Log         *slog.Logger
	Service     func(id string) (policy.Service, bool) // by operation, to recompute a call
	Watch       Watch
}

// Watch receives counts for the metrics.
type Watch interface {
	// Settled counts an attempt by the state after it, "failed" if the attempt failed.
	Settled(state string, took time.Duration)
	// Irreproducible counts a settled call whose recomputation gives another output.
	Irreproducible()
}

// Reconciler settles payments. Each node has one.
type Reconciler struct {
	Config
	ctx   context.Context // ends when the reconciler is closed
	stop  context.CancelFunc
	work  sync.WaitGroup
	slots chan struct{} // limits the payments that Run settles at once

	mu     sync.Mutex // guards the members below
	closed bool
	active map[string]*attempts // by payment; at most one row of attempts each
	next   map[string]turn      // when this node tries an open payment again
}

// attempts is a row of attempts at one payment.
type attempts struct {
	ended chan struct{} // closed when the row ends
	now   chan struct{} // a caller waits: skip the pause
}

// turn is when an open payment is tried again.
type turn struct {
	at    time.Time
	pause time.Duration
}

// New returns a reconciler. App.Settling calls its Take for a payment that a request waits for;
// Run takes up the others.
func New(c Config) *Reconciler {
	r := &Reconciler{Config: c, slots: make(chan struct{}, atOnce), active: map[string]*attempts{}, next: map[string]turn{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Take starts attempts at a payment with this number, or skips the pause of a row that has
// started. The returned channel is closed when the row ends.
func (r *Reconciler) Take(id string, attempt int) <-chan struct{} {
	return r.begin(id, attempt, attemptsInRow, func() {})
}

// begin starts a row of attempts unless the payment has one, and calls done when it ends.
func (r *Reconciler) begin(id string, attempt, inRow int, done func()) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if under, ok := r.active[id]; ok {
		select {
		case under.now <- struct{}{}:
		default:
		}
		done()
		return under.ended
	}
	a := &attempts{ended: make(chan struct{}), now: make(chan struct{}, 1)}
	if r.closed {
		close(a.ended)
		done()
		return a.ended
	}
	r.active[id] = a
	r.work.Go(func() {
		defer done()
		r.row(id, attempt, inRow, a)
	})
	return a.ended
}

// row makes up to row attempts, with growing pauses, until the payment is settled or refused.
func (r *Reconciler) row(id string, attempt, row int, a *attempts) {
	open := true
	pause := firstPause
	for n := range row {
		if n > 0 && !r.rest(a, pause) {
			break
		}
		if n > 0 {
			pause *= 2
		}
		if open = r.once(id, attempt+n); !open {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.active, id)
	if open {
		t := r.next[id]
		t.pause = min(max(2*t.pause, pause), longestPause)
		t.at = r.App.Clock().Add(t.pause)
		r.next[id] = t
	} else {
		delete(r.next, id)
	}
	close(a.ended)
}

// rest waits until the pause ends or a caller is waiting. It returns false if the reconciler is
// closed.
func (r *Reconciler) rest(a *attempts, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.now:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// once makes one attempt and reports whether the payment is still open. The attempt has its own
// time limit: neither the request nor Close cuts it short.
func (r *Reconciler) once(id string, attempt int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	begun := time.Now()
	state, err := r.App.Settle(ctx, id, attempt)
	if err != nil {
		r.Log.Warn("a payment could not be settled", "paymentId", id, "state", state, "error", err)
		state = "failed"
	}
	r.Watch.Settled(state, time.Since(begun))
	return state != payments.PaymentIsSettled && state != payments.PaymentIsRefused
}

// Run takes up every open payment, and then tries each again when it is due, until ctx ends.
// One goroutine of the node runs it.
func (r *Reconciler) Run(ctx context.Context) {
	if r.App.Settler == nil {
		return
	}
	tick := time.NewTicker(firstPause)
	defer tick.Stop()
	sampled := time.Time{}
	for start := true; ; start = false {
		r.sweep(ctx, start)
		if now := r.App.Clock(); now.Sub(sampled) >= day {
			sampled = now
			r.Sample(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sample recomputes the newest settled calls once a day and raises the alarm for each call
// whose output differs: its payer would be entitled to a refund.
func (r *Reconciler) Sample(ctx context.Context) {
	settled, err := r.Projections.Payments(ctx, payments.PaymentIsSettled, sampledCalls)
	if err != nil {
		if ctx.Err() == nil {
			r.Log.Warn("settled payments cannot be listed", "error", err)
		}
		return
	}
	for _, p := range settled {
		good, err := r.App.Recheck(ctx, p.PaymentID, r.Service)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.Log.Warn("a settled call could not be recomputed", "paymentId", p.PaymentID, "error", err)
		case !good:
			r.Watch.Irreproducible()
			r.Log.Error("a settled call does not reproduce", "paymentId", p.PaymentID)
		}
	}
}

// sweep starts an attempt at each open payment that is due, a few at a time.
func (r *Reconciler) sweep(ctx context.Context, start bool) {
	open, err := r.Projections.OpenPayments(ctx, scanned)
	if err != nil {
		if ctx.Err() == nil {
			r.Log.Warn("open payments cannot be listed", "error", err)
		}
		return
	}
	r.forget(open)
	for _, p := range open {
		if !r.due(p, start) {
			continue
		}
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		r.begin(p.PaymentID, 2, 1, func() { <-r.slots })
	}
}

// forget drops the turns of payments that are no longer open, because another node has settled
// them.
func (r *Reconciler) forget(open []projections.Payment) {
	if len(open) == scanned {
		return // the list is cut: payments that it lacks may still be open
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.next {
		if !slices.ContainsFunc(open, func(p projections.Payment) bool { return p.PaymentID == id }) {
			delete(r.next, id)
		}
	}
}

// due reports whether an open payment must be tried now. The node that claimed a payment
// settles it; this node takes it up after a minute, when the other has finished or died.
func (r *Reconciler) due(p projections.Payment, start bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, under := r.active[p.PaymentID]; under {
		return false
	}
	now := r.App.Clock()
	age := now.Sub(p.ClaimedAt)
	t, tried := r.next[p.PaymentID]
	switch {
	case tried && age > day:
		return !now.Before(t.at.Add(hour - t.pause))
	case tried:
		return !now.Before(t.at)
	}
	return start || p.State == payments.PaymentIsUnknown || age >= claimIsOrphan
}

// Rests reports whether no attempt is running and a payment waits for its next turn.
func (r *Reconciler) Rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.active) == 0 && len(r.next) > 0
}

// Close ends the pauses and waits for running attempts until ctx ends. It may be called twice.
func (r *Reconciler) Close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	over := make(chan struct{})
	go func() {
		r.work.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
		r.Log.Warn("a payment is still being settled; the next start finds out its result")
	}
}
