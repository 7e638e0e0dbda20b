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

// Limits of how many requests are computed at once.
const (
	// HeavyBody is the size in bytes from which a request counts as heavy. A smaller request is
	// parsed and evaluated in a few milliseconds at most.
	HeavyBody = 16 << 10

	heavyWaiting = 16              // heavy requests that may wait, for each slot; more are refused at once
	lightAtOnce  = 4               // slots for small requests, for each processor
	lightWaiting = 1024            // small requests that may wait; more are refused at once
	longestWait  = 2 * time.Second // a request that has waited this long is refused
)

var errBusy = policy.Refuse(CodeUnavailable, "", "the service is busy and nothing was charged; retry with the same idempotencyKey")

// compute limits how many requests are computed at once. Heavy and small requests have separate
// slots and queues, so that heavy requests do not delay small ones. Heavy requests have one slot
// less than there are processors.
type compute struct {
	once         sync.Once
	light, heavy slots
}

// slots are the slots for one kind of request, with a queue.
type slots struct {
	taken   chan struct{}
	waiting atomic.Int64
	most    int64 // longest queue
}

// Compute waits for a slot for a request of this size in bytes and returns the function that frees
// the slot. If the queue is full or the wait too long, it refuses the request, before anything was
// claimed or charged.
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

// Within calls compute while it holds a slot for a request of this size in bytes. compute must not
// wait for another slot.
func (a *Ground) Within(ctx context.Context, bytes int, compute func() error) error {
	done, err := a.Compute(ctx, bytes)
	if err != nil {
		return err
	}
	defer done()
	return compute()
}

// take waits for a slot and returns the function that frees it.
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

// IsBusy reports whether err is the refusal of Compute.
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
