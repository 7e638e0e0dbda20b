package op

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limit is how often one address, client or mailbox may do something: a number of times at once
// (the burst), and once more after every interval.
type Limit struct {
	what  string
	every time.Duration
	burst int
}

// The limits. Everything that costs us something is limited, also charged calls. A caller with a
// valid credential is counted under that credential alone, independent of other callers at the same
// address. All other callers (without a credential, with an invalid one, or with a payment that is
// not verified yet) are counted under their network. A request counts once, and once more for every
// 16 KiB of its body. An MCP message that calls a tool counts as a message and as a call. A refusal
// says when to try again.
var (
	ToCall         = Limit{"call", time.Minute / CallsPerMinute, CallsPerMinute}
	ToCallUnknown  = Limit{"call unknown", time.Minute / StrangersPerMinute, StrangersPerMinute}
	ToRead         = Limit{"read", time.Minute / PagesPerMinute, PagesPerMinute}
	ToIssueKeys    = Limit{"issue keys", time.Minute / KeysPerMinute, KeysPerMinute}
	ToIssueAllDay  = Limit{"issue keys all day", 24 * time.Hour / KeysPerDay, KeysPerDay}
	ToMailFrom     = Limit{"mail from", time.Minute / KeysPerMinute, KeysPerMinute}
	ToMailTo       = Limit{"mail to", linksPeriod / linksPerMailbox, linksPerMailbox}
	ToRegister     = Limit{"register", time.Minute / KeysPerMinute, KeysPerMinute}
	ToRevoke       = Limit{"revoke", time.Minute / KeysPerMinute, KeysPerMinute}
	ToClaim        = Limit{"claim", time.Minute / KeysPerMinute, KeysPerMinute}
	ToResync       = Limit{"resync", time.Minute / KeysPerMinute, KeysPerMinute}
	ToEnterCode    = Limit{"enter code", time.Minute / KeysPerMinute, KeysPerMinute}
	ToVerify       = Limit{"verify", time.Minute / VerifiesPerMinute, VerifiesPerMinute}
	ToTry          = Limit{"try", time.Minute / KeysPerMinute, KeysPerMinute}
	ToAskForRefund = Limit{"refund", time.Minute / RefundsPerMinute, RefundsPerMinute}
)

// RateLimits returns the limits as the OpenAPI document declares them.
func RateLimits() []any {
	of := func(l Limit, per, what string) Object {
		return Object{"what": what, "per": per, "requests": l.burst, "seconds": int(l.every * time.Duration(l.burst) / time.Second)}
	}
	return []any{
		of(ToCall, "credential", "requests"), of(ToCallUnknown, "network", "requests without a good credential"),
		of(ToIssueKeys, "network", "free keys"), of(ToIssueAllDay, "network", "free keys"), of(ToRegister, "network", "registrations of agents"),
		of(ToVerify, "network", "records verified"), of(ToAskForRefund, "network", "refunds asked for"),
	}
}

// Rates counts what callers do against the limits. The counts are in memory and of this
// process only, since they are there to slow a flood down; quotas are facts of the ledger.
// When it is full, it forgets the caller that it has not seen for the longest time.
type Rates struct {
	on    bool
	clock func() time.Time

	mu       sync.Mutex // guards the fields below
	limiters map[string]*list.Element
	recent   list.List // of *limited, the most recent first
}

type limited struct {
	key     string
	limiter *rate.Limiter
}

// NewRates makes rates with the clock that they count by. If on is false, nothing is limited.
func NewRates(on bool, clock func() time.Time) *Rates {
	return &Rates{on: on, clock: clock, limiters: map[string]*list.Element{}}
}

// Allow counts one more time that a caller does something, and reports whether the limit allows it.
func (r *Rates) Allow(l Limit, who string) bool { return r.AllowN(l, who, 1) }

// AllowN is Allow for what counts n times.
func (r *Rates) AllowN(l Limit, who string, n int) bool {
	if !r.on {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := l.what + " " + who
	e := r.limiters[key]
	if e == nil {
		if len(r.limiters) >= RateLimitEntries {
			oldest := r.recent.Back()
			delete(r.limiters, r.recent.Remove(oldest).(*limited).key)
		}
		e = r.recent.PushFront(&limited{key, rate.NewLimiter(rate.Every(l.every), l.burst)})
		r.limiters[key] = e
	}
	r.recent.MoveToFront(e)
	return e.Value.(*limited).limiter.AllowN(r.clock(), min(n, l.burst))
}
