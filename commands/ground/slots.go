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

// Bounds of what is computed at once.
const (
	// HeavyBody is the octets from which a request counts as heavy: reading and
	// judging a smaller one takes a few milliseconds at most.
	HeavyBody = 16 << 10

	heavyWaiting = 16              // for each heavy request that is computed; more are refused at once
	lightAtOnce  = 4               // small requests computed at once, for each processor
	lightWaiting = 1024            // as many as are worked for
	longestWait  = 2 * time.Second // then the caller is told to come back
)

var errBusy = policy.Refuse(CodeUnavailable, "", "busy with other computations, nothing was charged; retry with the same idempotencyKey")

// compute keeps computing within the processors. Heavy requests leave one of them
// to everybody else, and may not keep small ones waiting: each kind has its own
// places, and its own short queue in front of them.
type compute struct {
	once         sync.Once
	light, heavy places
}

type places struct {
	taken   chan struct{}
	waiting atomic.Int64
	most    int64 // that wait
}

// Compute waits for a place to compute a request of so many octets, and returns
// the function that leaves it. Where too many wait, or the wait is too long, it
// refuses: nothing is claimed or charged before.
func (a *Ground) Compute(ctx context.Context, octets int) (done func(), err error) {
	a.compute.once.Do(func() {
		processors := runtime.GOMAXPROCS(0)
		heavy := max(1, processors-1)
		a.compute.heavy = places{taken: make(chan struct{}, heavy), most: int64(heavy * heavyWaiting)}
		a.compute.light = places{taken: make(chan struct{}, processors*lightAtOnce), most: lightWaiting}
	})
	if octets >= HeavyBody {
		return a.compute.heavy.take(ctx)
	}
	return a.compute.light.take(ctx)
}

// Within computes something of so many octets in a place of its own. What it is given
// waits for nothing, and takes no further place.
func (a *Ground) Within(ctx context.Context, octets int, compute func() error) error {
	done, err := a.Compute(ctx, octets)
	if err != nil {
		return err
	}
	defer done()
	return compute()
}

func (p *places) take(ctx context.Context) (done func(), err error) {
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

// IsBusy says whether a computation was refused for want of a place.
func IsBusy(err error) bool { return errors.Is(err, errBusy) }

// Evaluate answers a call of a service, once it has a place to compute.
func (a *Ground) Evaluate(ctx context.Context, service policy.Service, canonical []byte) (policy.Answer, error) {
	done, err := a.Compute(ctx, len(canonical))
	if err != nil {
		return policy.Answer{}, err
	}
	defer done()
	return service.EvaluateCanonical(canonical)
}
