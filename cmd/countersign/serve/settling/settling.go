// Package settling takes claimed payments to their end behind the calls that
// claimed them, and takes up those that nobody settles: at the start, after a crash
// of any node, and again and again while it is not known whether the money has
// moved. It answers no request: commands says what one attempt does, this package
// when it is made.
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

// Config is what a reconciler works with.
type Config struct {
	App         *commands.App
	Projections *projections.Projections
	Log         *slog.Logger
	Service     func(id string) (policy.Service, bool) // by operation, to compute a call again
	Watch       Watch
}

// Watch is told what happens, for the metrics.
type Watch interface {
	// Settled counts an attempt by the state afterwards, "failed" if it had none.
	Settled(state string, took time.Duration)
	// Irreproducible counts a settled call that gives another output now.
	Irreproducible()
}

// Reconciler brings payments to their end. One belongs to each node.
type Reconciler struct {
	Config
	ctx   context.Context // ends when the reconciler is closed
	stop  context.CancelFunc
	work  sync.WaitGroup
	slots chan struct{} // one per payment that nobody waits for

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

// New makes a reconciler that waits to be asked: App.Settling is its Take, and Run
// takes up what nobody asks for.
func New(c Config) *Reconciler {
	r := &Reconciler{Config: c, slots: make(chan struct{}, atOnce), active: map[string]*attempts{}, next: map[string]turn{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Take makes attempts at a payment from this one on, or hurries those that are
// under way. The channel is closed when they are over.
func (r *Reconciler) Take(id string, attempt int) <-chan struct{} {
	return r.begin(id, attempt, attemptsInRow, func() {})
}

// begin starts a row of attempts unless there is one already.
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

// row makes some attempts, with pauses that grow, until the payment has ended.
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

// rest waits, unless somebody hurries; false when settling is over.
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

// once makes one attempt, which has its own time whatever ends meanwhile, and says
// whether the payment is still open.
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

// Run takes up every open payment, and then each when it is due, until the
// context ends. One goroutine of the node runs it.
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

// Sample recomputes the newest settled calls once a day and raises the alarm for
// each that gives another output: whoever paid for it would get a refund.
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

// sweep begins an attempt at each open payment that is due, a few at a time.
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

// forget drops the turns of payments that are open no more: others have ended them.
func (r *Reconciler) forget(open []projections.Payment) {
	if len(open) == scanned {
		return // there are more, and their turns count
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.next {
		if !slices.ContainsFunc(open, func(p projections.Payment) bool { return p.PaymentID == id }) {
			delete(r.next, id)
		}
	}
}

// due says whether an open payment has its turn. One that another node has just
// claimed is that node's, which is done with it after a minute or gone.
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

// Rests says that nothing is being settled here, and something is due again.
func (r *Reconciler) Rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.active) == 0 && len(r.next) > 0
}

// Close ends the pauses and waits, until ctx ends, for the attempts under way. It
// may be called twice.
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
		r.Log.Warn("a payment is still being settled; the next start finds out what became of it")
	}
}
