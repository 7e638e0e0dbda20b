package account

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// outboxShown is the data of the outbox page, which shows either the form for the code or the
// messages.
type outboxShown struct {
	Open, Wrong bool
	Messages    []mail.Message
}

// atOutbox refuses a request that does not come directly from this machine. It refuses a host name
// other than localhost (against DNS rebinding), a remote address, and the headers that proxies
// add.
func atOutbox(v *web.Visit) error {
	name, peer := v.Request.Host, v.Request.RemoteAddr
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if host, _, err := net.SplitHostPort(peer); err == nil {
		peer = host
	}
	for _, host := range []string{name, peer} {
		if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return ground.ErrNotFound
		}
	}
	for header := range v.Request.Header {
		if header == "Forwarded" || header == "Via" || header == "X-Real-Ip" || strings.HasPrefix(header, "X-Forwarded-") || strings.HasPrefix(header, "Cf-") {
			return ground.ErrNotFound
		}
	}
	return nil
}

func (r *Room) showOutbox(v *web.Visit) (web.View, error) {
	return web.View{Template: "outbox.html", Data: outboxShown{}}, atOutbox(v)
}

// openOutbox shows the messages to a caller who sends the code that the service printed.
func (r *Room) openOutbox(v *web.Visit) (web.View, error) {
	if err := atOutbox(v); err != nil {
		return web.View{}, err
	}
	if !r.SignIn.MayEnterCode() {
		return web.View{}, policy.Refuse(web.CodeRateLimited, "", "too many codes were entered, try again in a minute")
	}
	if !r.Outbox.Opens(v.Form.Get("code")) {
		return web.View{Template: "outbox.html", Data: outboxShown{Wrong: true}, Status: http.StatusForbidden}, nil
	}
	return web.View{Template: "outbox.html", Data: outboxShown{Open: true, Messages: r.Outbox.Messages()}}, nil
}
