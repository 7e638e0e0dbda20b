package op

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limit is how often an address, client or mailbox may do something: burst times at once, and once
// more after every interval.
type Limit struct {
	what  string
	every time.Duration
	burst int
}

// The limits. Everything that costs us something is limited, including paid calls. A caller with a
// valid credential is counted by the credential, independent of other callers at the same address.
// All other callers (without a credential, with an invalid one, or with a payment that is not
// verified yet) are counted by network. A request counts once, and once more for every 16 KiB of
// its body. An MCP message that calls a tool counts as a message and as a call. A refusal contains
// the time to wait.
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

// RateLimits returns the limits for the OpenAPI document.
func RateLimits() []any {
	of := func(l Limit, per, what string) Object {
		return Object{"what": what, "per": per, "requests": l.burst, "seconds": int(l.every * time.Duration(l.burst) / time.Second)}
	}
	return []any{
		of(ToCall, "credential", "requests"), of(ToCallUnknown, "network", "requests without a valid credential"),
		of(ToIssueKeys, "network", "free keys"), of(ToIssueAllDay, "network", "free keys"), of(ToRegister, "network", "registrations of agents"),
		of(ToVerify, "network", "records verified"), of(ToAskForRefund, "network", "refund requests"),
	}
}

// Rates counts the actions of callers against the limits. The counts are in memory and per
// process, because they only slow down floods; quotas are recorded in the ledger. When the memory
// is full, the caller with the oldest action is removed.
type Rates struct {
	on    bool
	clock func() time.Time

	mu       sync.Mutex // protects the fields below
	limiters map[string]*list.Element
	recent   list.List // elements are *limited, most recent first
}

type limited struct {
	key     string
	limiter *rate.Limiter
}

// NewRates returns counters that use this clock. If on is false, nothing is limited.
func NewRates(on bool, clock func() time.Time) *Rates {
	return &Rates{on: on, clock: clock, limiters: map[string]*list.Element{}}
}

// Allow counts one action of a caller, and reports whether the limit allows it.
func (r *Rates) Allow(l Limit, who string) bool { return r.AllowN(l, who, 1) }

// AllowN is like Allow for an action that counts n times.
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
