package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates limits how often one network address may do what costs us and not the
// caller. It lives in memory and forgets everybody when it is full: quotas are
// facts of the ledger, this only slows a flood down.
type rates struct {
	on    bool
	clock func() time.Time

	mu       sync.Mutex // guards limiters
	limiters map[string]*rate.Limiter
}

func newRates(on bool, clock func() time.Time) *rates {
	return &rates{on: on, clock: clock, limiters: map[string]*rate.Limiter{}}
}

func (r *rates) allow(address string) bool {
	if !r.on {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter := r.limiters[address]
	if limiter == nil {
		if len(r.limiters) >= rateLimitEntries {
			clear(r.limiters)
		}
		limiter = rate.NewLimiter(rate.Every(time.Minute/keysPerMinute), keysPerMinute)
		r.limiters[address] = limiter
	}
	return limiter.AllowN(r.clock(), 1)
}
