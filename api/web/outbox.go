package web

import (
	"net"
	"net/http"

	"github.com/countersign/countersign/api/mail"

	"net/netip"
	"strings"

	"github.com/countersign/countersign/policy"
)

// outboxShown is what the outbox page shows: a form for the code, or letters.
type outboxShown struct {
	Open, Wrong bool
	Letters     []mail.Message
}

// atOutbox refuses whoever is not at this machine: a name of somebody else's that
// was made to point here, an address that is not this machine's, and what any proxy
// has passed on.
func atOutbox(v *visit) error {
	name, peer := v.request.Host, v.request.RemoteAddr
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if host, _, err := net.SplitHostPort(peer); err == nil {
		peer = host
	}
	for _, host := range []string{name, peer} {
		if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return policy.Refuse(codeNotFound, "", "not found")
		}
	}
	for header := range v.request.Header {
		if header == "Forwarded" || header == "Via" || header == "X-Real-Ip" || strings.HasPrefix(header, "X-Forwarded-") || strings.HasPrefix(header, "Cf-") {
			return policy.Refuse(codeNotFound, "", "not found")
		}
	}
	return nil
}

func showOutbox(s *Handler, v *visit) (view, error) {
	return view{template: "outbox.html", data: outboxShown{}}, atOutbox(v)
}

// openOutbox shows the letters to who knows the code that the service has printed.
func openOutbox(s *Handler, v *visit) (view, error) {
	if err := atOutbox(v); err != nil {
		return view{}, err
	}
	if !s.MayEnterCode() {
		return view{}, policy.Refuse(codeRateLimited, "", "too many codes were entered, try again in a minute")
	}
	if !s.outbox.Opens(v.form.Get("code")) {
		return view{template: "outbox.html", data: outboxShown{Wrong: true}, status: http.StatusForbidden}, nil
	}
	return view{template: "outbox.html", data: outboxShown{Open: true, Letters: s.outbox.Messages()}}, nil
}
