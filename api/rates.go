package api

import (
	"cmp"
	"container/list"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/countersign/countersign/commands/ground"

	"golang.org/x/time/rate"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/policy"
)

// limit is how often one address, client or mailbox may do something: burst times
// at once, and once more after every so long.
type limit struct {
	what  string
	every time.Duration
	burst int
}

// What is limited: everything that costs us, charged calls included. Whoever shows a
// credential that is found good is counted under that credential alone, whatever
// strangers behind the same address do. All others (no credential, a bad one, a payment
// that nobody has verified yet) are counted under their network. A request counts
// once, and once more for every 16 KiB of its body; a message to the MCP door that
// calls a tool counts for both. What is refused says when to come back.
var (
	toCall         = limit{"call", time.Minute / callsPerMinute, callsPerMinute}
	toCallUnknown  = limit{"call unknown", time.Minute / strangersPerMinute, strangersPerMinute}
	toRead         = limit{"read", time.Minute / pagesPerMinute, pagesPerMinute}
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

// rateLimits are the limits as the contract declares them.
func rateLimits() []any {
	of := func(l limit, per, what string) object {
		return object{"what": what, "per": per, "requests": l.burst, "seconds": int(l.every * time.Duration(l.burst) / time.Second)}
	}
	return []any{
		of(toCall, "credential", "requests"), of(toCallUnknown, "network", "requests without a good credential"),
		of(toIssueKeys, "network", "free keys"), of(toIssueAllDay, "network", "free keys"), of(toRegister, "network", "registrations of agents"),
		of(toVerify, "network", "records verified"), of(toAskForRefund, "network", "refunds asked for"),
	}
}

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

// mayCall counts a call, or so many octets of its body, as costs says.
func (s *Server) mayCall(c *call, costs int) error {
	if c.op.id == health.id || s.mayWork(c.request, c.Caller, costs) {
		return nil
	}
	if c.op.knows429() {
		return policy.Refuse(codeRateLimited, "", "too many requests, try again in a minute")
	}
	return policy.Refuse(ground.CodeUnavailable, "", "too many requests at a time, nothing was done; send fewer, and this one again")
}

// asPage limits requests to paths that are not operations, such as pages and assets. It
// counts them by network address, also those of signed-in members.
func (s *Server) asPage(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.rates.allow(toRead, s.network(r)) {
			handler.ServeHTTP(w, r)
			return
		}
		err := policy.Refuse(codeRateLimited, "", "too many requests from this network, try again in a minute")
		if forPeople(r) {
			s.web.ShowError(w, r, err)
			return
		}
		s.fail(w, r, bareErrors(r), err)
	})
}

// mayWork says whether whoever calls may have so much more done.
func (s *Server) mayWork(r *http.Request, who credential.Caller, costs int) bool {
	if known := nameOf(who); known != "" {
		return s.rates.allowN(toCall, known, costs)
	}
	return s.rates.allowN(toCallUnknown, s.network(r), costs)
}

// nameOf is the credential a call is counted under: empty for a stranger's. A payment
// is good when it was verified, which comes later.
func nameOf(who credential.Caller) string {
	session := ""
	if who.Session != nil {
		session = who.Session.Customer
	}
	return cmp.Or(who.Key.KeyID, who.Agent.ClientID, who.Principal.ActorID, who.Client.ID(), session, who.Customer)
}

// mayAsk limits what anybody may have computed without a credential. A large body
// counts for as much as it costs.
func (s *Server) mayAsk(l limit, c *call) error {
	if s.rates.allowN(l, s.network(c.request), 1+(len(c.body)+len(c.text))/bodyCountsAs) {
		return nil
	}
	return policy.Refuse(codeRateLimited, "", "too many requests from this network, try again in a minute")
}
