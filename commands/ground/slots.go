package ground

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/policy"
)

// Limits of what is computed at once.
const (
	// HeavyBody is the size in bytes from which a request counts as heavy. Reading and
	// judging a smaller one takes a few milliseconds at most.
	HeavyBody = 16 << 10

	heavyWaiting = 16              // heavy requests that may wait for each one that is computed; more are refused at once
	lightAtOnce  = 4               // small requests that are computed at once, for each processor
	lightWaiting = 1024            // small requests that may wait; more are refused at once
	longestWait  = 2 * time.Second // after which a waiting request is refused
)

var errBusy = policy.Refuse(CodeUnavailable, "", "busy with other computations, nothing was charged; retry with the same idempotencyKey")

// compute limits what is computed at once. Heavy and small requests have slots and queues
// of their own, so that heavy ones do not keep small ones waiting; heavy requests leave one
// processor to all others.
type compute struct {
	once         sync.Once
	light, heavy slots
}

// slots are the slots of one kind of request, and the queue for them.
type slots struct {
	taken   chan struct{}
	waiting atomic.Int64
	most    int64 // requests that may wait
}

// Compute waits for a slot for a request of a size in bytes, and returns the function that
// frees the slot. If too many requests wait, or this one waits too long, Compute refuses it:
// nothing has been claimed or charged.
func (a *Ground) Compute(ctx context.Context, bytes int) (done func(), err error) {
	a.compute.once.Do(func() {
		processors := runtime.GOMAXPROCS(0)
		heavy := max(1, processors-1)
		a.compute.heavy = slots{taken: make(chan struct{}, heavy), most: int64(heavy * heavyWaiting)}
		a.compute.light = slots{taken: make(chan struct{}, processors*lightAtOnce), most: lightWaiting}
	})
	if bytes >= HeavyBody {
		return a.compute.heavy.take(ctx)
	}
	return a.compute.light.take(ctx)
}

// Within calls compute, which works on a request of a size in bytes, while it holds a slot.
// compute must not wait for another slot.
func (a *Ground) Within(ctx context.Context, bytes int, compute func() error) error {
	done, err := a.Compute(ctx, bytes)
	if err != nil {
		return err
	}
	defer done()
	return compute()
}

// take waits for a slot.
func (p *slots) take(ctx context.Context) (done func(), err error) {
	leave := func() { <-p.taken }
	select {
	case p.taken <- struct{}{}:
		return leave, nil
	default:
	}
	if p.waiting.Add(1) > p.most {
		p.waiting.Add(-1)
		return nil, errBusy
	}
	defer p.waiting.Add(-1)
	wait := time.NewTimer(longestWait)
	defer wait.Stop()
	select {
	case p.taken <- struct{}{}:
		return leave, nil
	case <-wait.C:
	case <-ctx.Done():
	}
	return nil, errBusy
}

// IsBusy reports whether Compute has refused a request.
func IsBusy(err error) bool { return errors.Is(err, errBusy) }

// Evaluate waits for a slot and evaluates a request to a service.
func (a *Ground) Evaluate(ctx context.Context, service policy.Service, canonical []byte) (policy.Answer, error) {
	done, err := a.Compute(ctx, len(canonical))
	if err != nil {
		return policy.Answer{}, err
	}
	defer done()
	return service.EvaluateCanonical(canonical)
}
