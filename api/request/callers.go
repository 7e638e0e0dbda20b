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

// Callers finds out where requests come from and counts them against the limits.
type Callers struct {
	Rates   *op.Rates
	Proxies []netip.Prefix // whose X-Forwarded-For counts
}

// Address returns the network address a request comes from: the peer's, or what configured
// proxies say of it.
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

// Network returns the network that a request is counted under: its address, and for IPv6
// the network of 64 bits, of which every caller has at least one.
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

// Allow counts one more time that the network of a request does something, and reports
// whether the limit allows it.
func (cs *Callers) Allow(l op.Limit, r *http.Request) bool { return cs.Rates.Allow(l, cs.Network(r)) }

// mayCall counts a call, or as many parts of its body as costs says, and refuses what the limits do
// not allow.
func (cs *Callers) mayCall(c *op.Call, costs int) error {
	if c.Op.Unlimited || cs.MayWork(c.Request, c.Caller, costs) {
		return nil
	}
	if c.Op.Knows429() {
		return policy.Refuse(op.CodeRateLimited, "", "too many requests, try again in a minute")
	}
	return policy.Refuse(ground.CodeUnavailable, "", "too many requests at a time, nothing was done; send fewer, and this one again")
}

// MayWork counts work for a caller, and reports whether the limits allow it.
func (cs *Callers) MayWork(r *http.Request, who credential.Caller, costs int) bool {
	if known := nameOf(who); known != "" {
		return cs.Rates.AllowN(op.ToCall, known, costs)
	}
	return cs.Rates.AllowN(op.ToCallUnknown, cs.Network(r), costs)
}

// nameOf returns the credential that a call is counted under, and nothing for a caller
// without a good one. A payment is good when it was verified, which comes later.
func nameOf(who credential.Caller) string {
	session := ""
	if who.Session != nil {
		session = who.Session.Customer
	}
	return cmp.Or(who.Key.KeyID, who.Agent.ClientID, who.Principal.ActorID, who.Client.ID(), session, who.Customer)
}

// MayAsk limits what a caller may have computed without a credential. A large body counts for
// as much as it costs.
func (cs *Callers) MayAsk(l op.Limit, c *op.Call) error {
	if cs.Rates.AllowN(l, cs.Network(c.Request), 1+(len(c.Body)+len(c.Text))/op.BodyCountsAs) {
		return nil
	}
	return policy.Refuse(op.CodeRateLimited, "", "too many requests from this network, try again in a minute")
}

// AsPage limits requests to paths that are not operations, such as pages and assets. It
// counts them by network address, also those of signed-in members.
func (p *Path) AsPage(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Callers.Allow(op.ToRead, r) {
			handler.ServeHTTP(w, r)
			return
		}
		p.Answers.Missed(w, r, policy.Refuse(op.CodeRateLimited, "", "too many requests from this network, try again in a minute"))
	})
}
