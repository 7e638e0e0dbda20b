package account

import (
	"net/http"
	"strings"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
)

func (r *Room) showSignIn(v *web.Visit) (web.View, error) {
	return web.View{Template: "sign-in.html", Data: web.SignIn{Next: accounts.LocalPath(v.Request.URL.Query().Get("next"))}}, nil
}

func (r *Room) postSignIn(v *web.Visit) (web.View, error) {
	if err := r.SignIn.SendLink(v.Request, strings.TrimSpace(v.Form.Get("email")), v.Form.Get("next")); err != nil {
		return web.View{}, err
	}
	return web.View{Template: "sent.html", Data: r.Outbox != nil, Status: http.StatusAccepted}, nil
}

// showConfirm shows a button that signs in. Opening the link does not consume it, because mail
// scanners open links, too.
func (r *Room) showConfirm(v *web.Visit) (web.View, error) {
	token := v.Request.URL.Query().Get("token")
	if token == "" {
		return web.View{Location: "/sign-in"}, nil
	}
	return web.View{Template: "confirm.html", Data: token}, nil
}

func (r *Room) postConfirm(v *web.Visit) (web.View, error) {
	who, err := r.Commands.ConfirmSignIn(v.Request.Context(), v.Form.Get("token"))
	if err != nil {
		return web.View{}, err
	}
	if v.Session, err = r.Credentials.Sessions.Begin(v.Request, who.CustomerID); err != nil {
		return web.View{}, err
	}
	return web.View{Location: who.Next}, nil
}

func (r *Room) showConfirmAgent(v *web.Visit) (web.View, error) {
	return web.View{Template: "agent-confirm.html", Data: v.Request.URL.Query().Get("token")}, nil
}

func (r *Room) postConfirmAgent(v *web.Visit) (web.View, error) {
	agent, err := r.Commands.ConfirmAgent(v.Request.Context(), v.Form.Get("token"))
	return web.View{Template: "agent-confirmed.html", Data: agent}, err
}

func (r *Room) postSignOut(v *web.Visit) (web.View, error) {
	if v.Session != nil {
		if v.Form.Get("everywhere") != "" {
			if err := r.Credentials.Sessions.EndAll(v.Request.Context(), v.Session.Customer); err != nil {
				return web.View{}, ground.Unreadable(err)
			}
		}
		if err := v.Session.End(); err != nil {
			return web.View{}, ground.Unreadable(err)
		}
	}
	return web.View{Location: "/sign-in"}, nil
}
