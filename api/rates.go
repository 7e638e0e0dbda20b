package api

import (
	"container/list"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/countersign/countersign/policy"
)

// limit is how often one address, client or mailbox may do something: burst times
// at once, and once more after every so long.
type limit struct {
	what  string
	every time.Duration
	burst int
}

// What is limited: what costs us and not the caller.
var (
	toIssueKeys    = limit{"issue keys", time.Minute / keysPerMinute, keysPerMinute}
	toIssueAllDay  = limit{"issue keys all day", 24 * time.Hour / keysPerDay, keysPerDay}
	toMailFrom     = limit{"mail from", time.Minute / keysPerMinute, keysPerMinute}
	toMailTo       = limit{"mail to", lettersPeriod / lettersPerAddress, lettersPerAddress}
	toRegister     = limit{"register", time.Minute / keysPerMinute, keysPerMinute}
	toRevoke       = limit{"revoke", time.Minute / keysPerMinute, keysPerMinute}
	toClaim        = limit{"claim", time.Minute / keysPerMinute, keysPerMinute}
	toResync       = limit{"resync", time.Minute / keysPerMinute, keysPerMinute}
	toEnterCode    = limit{"enter code", time.Minute / keysPerMinute, keysPerMinute}
	toVerify       = limit{"verify", time.Minute / verifiesPerMinute, verifiesPerMinute}
	toTry          = limit{"try", time.Minute / keysPerMinute, keysPerMinute}
	toAskForRefund = limit{"refund", time.Minute / refundsPerMinute, refundsPerMinute}
)

// rates remembers who did what. It lives in memory and forgets whoever was not
// heard of for the longest time when it is full: quotas are facts of the ledger,
// this only slows a flood down.
type rates struct {
	on    bool
	clock func() time.Time

	mu       sync.Mutex // guards what follows
	limiters map[string]*list.Element
	recent   list.List // of *limited, the most recent first
}

type limited struct {
	key     string
	limiter *rate.Limiter
}

func newRates(on bool, clock func() time.Time) *rates {
	return &rates{on: on, clock: clock, limiters: map[string]*list.Element{}}
}

// allow says whether somebody may do something once more.
func (r *rates) allow(l limit, who string) bool { return r.allowN(l, who, 1) }

// allowN is allow for what costs as much as n.
func (r *rates) allowN(l limit, who string, n int) bool {
	if !r.on {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := l.what + " " + who
	e := r.limiters[key]
	if e == nil {
		if len(r.limiters) >= rateLimitEntries {
			oldest := r.recent.Back()
			delete(r.limiters, r.recent.Remove(oldest).(*limited).key)
		}
		e = r.recent.PushFront(&limited{key, rate.NewLimiter(rate.Every(l.every), l.burst)})
		r.limiters[key] = e
	}
	r.recent.MoveToFront(e)
	return e.Value.(*limited).limiter.AllowN(r.clock(), min(n, l.burst))
}

// network is whose a request is, for limits: its address, and for IPv6 the network
// of 64 bits, of which everybody has at least one.
func (s *Server) network(r *http.Request) string {
	text := s.clientAddress(r)
	address, err := netip.ParseAddr(text)
	if err != nil || address.Is4() {
		return text
	}
	network, err := address.WithZone("").Prefix(64)
	if err != nil {
		return text
	}
	return network.String()
}

// mayAsk limits what anybody may have computed without a credential. A large body
// counts for as much as it costs.
func (s *Server) mayAsk(l limit, c *call) error {
	if s.rates.allowN(l, s.network(c.request), 1+(len(c.body)+len(c.text))/bodyCountsAs) {
		return nil
	}
	return policy.Refuse(codeRateLimited, "", "too many requests from this network, try again in a minute")
}
