package api

import (
	"cmp"
	"net/http"
	"net/netip"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

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
func (s *Server) mayCall(c *op.Call, costs int) error {
	if c.Op.Unlimited || s.mayWork(c.Request, c.Caller, costs) {
		return nil
	}
	if c.Op.Knows429() {
		return policy.Refuse(op.CodeRateLimited, "", "too many requests, try again in a minute")
	}
	return policy.Refuse(ground.CodeUnavailable, "", "too many requests at a time, nothing was done; send fewer, and this one again")
}

// asPage limits requests to paths that are not operations, such as pages and assets. It
// counts them by network address, also those of signed-in members.
func (s *Server) asPage(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.rates.Allow(op.ToRead, s.network(r)) {
			handler.ServeHTTP(w, r)
			return
		}
		err := policy.Refuse(op.CodeRateLimited, "", "too many requests from this network, try again in a minute")
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
		return s.rates.AllowN(op.ToCall, known, costs)
	}
	return s.rates.AllowN(op.ToCallUnknown, s.network(r), costs)
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
func (s *Server) mayAsk(l op.Limit, c *op.Call) error {
	if s.rates.AllowN(l, s.network(c.Request), 1+(len(c.Body)+len(c.Text))/op.BodyCountsAs) {
		return nil
	}
	return policy.Refuse(op.CodeRateLimited, "", "too many requests from this network, try again in a minute")
}
