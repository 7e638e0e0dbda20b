package request

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// Callers determines the network address of requests and counts them against the limits.
type Callers struct {
	Rates   *op.Rates
	Proxies []netip.Prefix // proxies whose X-Forwarded-For header is trusted
}

// Address returns the network address of the caller: the address of the peer or, if the peer is a
// configured proxy, the address that the proxy reports.
func (cs *Callers) Address(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := peer.Addr().Unmap()
	trusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(cs.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && trusted(address); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = next.Unmap()
	}
	return address.String()
}

// Network returns the network under which a request is counted: its IPv4 address, or its IPv6 /64
// network, because every IPv6 caller has at least that many addresses.
func (cs *Callers) Network(r *http.Request) string {
	text := cs.Address(r)
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

// Allow counts one action of the request's network, and reports whether the limit allows it.
func (cs *Callers) Allow(l op.Limit, r *http.Request) bool { return cs.Rates.Allow(l, cs.Network(r)) }

// mayCall counts a call, weighted by costs, and returns an error if a limit refuses it.
func (cs *Callers) mayCall(c *op.Call, costs int) error {
	if c.Op.Unlimited || cs.MayWork(c.Request, c.Caller, costs) {
		return nil
	}
	if c.Op.Knows429() {
		return policy.Refuse(op.CodeRateLimited, "", "too many requests, try again in a minute")
	}
	return policy.Refuse(ground.CodeUnavailable, "", "too many requests at a time and nothing was done: send fewer, and repeat this one")
}

// MayWork counts work for a caller, weighted by costs, and reports whether the limits allow it.
func (cs *Callers) MayWork(r *http.Request, who credential.Caller, costs int) bool {
	if known := nameOf(who); known != "" {
		return cs.Rates.AllowN(op.ToCall, known, costs)
	}
	return cs.Rates.AllowN(op.ToCallUnknown, cs.Network(r), costs)
}

// nameOf returns the id of the valid credential under which a call is counted, or "" without one.
// A payment does not count as valid yet, because it is verified later.
func nameOf(who credential.Caller) string {
	session := ""
	if who.Session != nil {
		session = who.Session.Customer
	}
	return cmp.Or(who.Key.KeyID, who.Agent.ClientID, who.Principal.ActorID, who.Client.ID(), session, who.Customer)
}

// MayAsk limits computations without a credential. A large body counts as several requests.
func (cs *Callers) MayAsk(l op.Limit, c *op.Call) error {
	if cs.Rates.AllowN(l, cs.Network(c.Request), 1+(len(c.Body)+len(c.Text))/op.BodyCountsAs) {
		return nil
	}
	return policy.Refuse(op.CodeRateLimited, "", "too many requests from this network, try again in a minute")
}

// AsPage limits requests to paths that are not operations, such as pages and assets. It counts all
// of them by network, including those of signed-in members.
func (p *Path) AsPage(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Callers.Allow(op.ToRead, r) {
			handler.ServeHTTP(w, r)
			return
		}
		p.Answers.Missed(w, r, policy.Refuse(op.CodeRateLimited, "", "too many requests from this network, try again in a minute"))
	})
}
