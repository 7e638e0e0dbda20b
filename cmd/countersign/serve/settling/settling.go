// Package settling settles claimed payments in the background. It takes up payments that no
// request waits for: at the start, after a node has crashed, and as long as it is unknown whether
// money has moved. The package decides when to make an attempt; package commands makes it.
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

// Config has the dependencies of a reconciler.
type Config struct {
	App         *commands.App
	Projections *projections.Projections
	Log         *slog.Logger
	Service     func(id string) (policy.Service, bool) // returns the service of an operation, to compute a call again
	Watch       Watch
}

// Watch counts results for the metrics.
type Watch interface {
	// Settled counts an attempt. state is the payment's state after it, or "failed" if the attempt
	// returned an error.
	Settled(state string, took time.Duration)
	// Irreproducible counts a settled call whose answer is different when it is computed again.
	Irreproducible()
}

// Reconciler settles open payments. Each node has one.
type Reconciler struct {
	Config
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	work  sync.WaitGroup
	slots chan struct{} // limits how many payments Run settles at a time

	mu     sync.Mutex // guards the fields below
	closed bool
	active map[string]*attempts // by payment: the series of attempts that is running
	next   map[string]turn      // by payment: when this node tries an open payment again
}

// attempts is a series of attempts to settle one payment, with pauses.
type attempts struct {
	ended chan struct{} // closed when the series ends
	now   chan struct{} // receives a value if a request waits, to skip the pause
}

// turn is the time at which an open payment is tried again, and the last pause.
type turn struct {
	at    time.Time
	pause time.Duration
}

// New returns a reconciler. App.Settling must be its method Take, for payments that a request
// waits for. Run settles all others.
func New(c Config) *Reconciler {
	r := &Reconciler{Config: c, slots: make(chan struct{}, atOnce), active: map[string]*attempts{}, next: map[string]turn{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Take starts a series of attempts to settle a payment. attempt is the number of the first one. If
// a series is already running for the payment, Take ends its pause. The returned channel is closed
// when the series ends.
func (r *Reconciler) Take(id string, attempt int) <-chan struct{} {
	return r.begin(id, attempt, attemptsInRow, func() {})
}

// begin starts a series of attempts, unless one is running for the payment. It calls the function
// done when it has nothing more to do for this call.
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

// row makes attempts with growing pauses until the payment is settled or refused, or r is closed.
// The parameter "row" is the largest number of attempts.
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

// rest waits until the pause is over or a request waits for the payment. It returns false if the
// reconciler is closed.
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
// time limit, and ends neither with the request nor with Close.
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

// Run settles all open payments, and tries each again when it is due, until ctx ends. Each node
// runs it in one goroutine.
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

// Sample computes the newest settled calls again. For each call whose answer is different it logs
// an error and counts it, because its payer may demand a refund. Run calls it once a day.
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
			r.Log.Error("a settled call has another result when it is computed again", "paymentId", p.PaymentID)
		}
	}
}

// sweep starts an attempt for each open payment that is due, a few at a time.
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

// forget removes the turns of payments that are not open any more, because another node has
// settled them.
func (r *Reconciler) forget(open []projections.Payment) {
	if len(open) == scanned {
		return // there are more open payments than the list contains
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.next {
		if !slices.ContainsFunc(open, func(p projections.Payment) bool { return p.PaymentID == id }) {
			delete(r.next, id)
		}
	}
}

// due reports whether this node must try an open payment now. A claimed payment is left to the
// node that claimed it for one minute; by then that node has settled it or crashed.
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

// Close ends the pauses and waits for running attempts until ctx ends. It can be called twice.
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
