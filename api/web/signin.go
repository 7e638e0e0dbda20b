package web

import (
	"net/http"
	"strings"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
)

// signInPage asks who somebody is, and knows where to go on, and what has not been
// sent.
type signInPage struct {
	Next string
	unsent
}

func showSignIn(_ *Handler, v *visit) (view, error) {
	return view{template: "sign-in.html", data: signInPage{Next: accounts.LocalPath(v.request.URL.Query().Get("next"))}}, nil
}

func postSignIn(s *Handler, v *visit) (view, error) {
	if err := s.SendLink(v.request, strings.TrimSpace(v.form.Get("email")), v.form.Get("next")); err != nil {
		return view{}, err
	}
	return view{template: "sent.html", data: s.outbox != nil, status: http.StatusAccepted}, nil
}

// showConfirm shows a button: programs that look at links must not use them up.
func showConfirm(_ *Handler, v *visit) (view, error) {
	return view{template: "confirm.html", data: v.request.URL.Query().Get("token")}, nil
}

func postConfirm(s *Handler, v *visit) (view, error) {
	who, err := s.app.ConfirmSignIn(v.request.Context(), v.form.Get("token"))
	if err != nil {
		return view{}, err
	}
	if v.session, err = s.sessions.Begin(v.request, who.CustomerID); err != nil {
		return view{}, err
	}
	return view{location: who.Next}, nil
}

// ConfirmAgentPath is where the link goes that verifies an agent.
const ConfirmAgentPath = "/agents/confirm"

func showConfirmAgent(_ *Handler, v *visit) (view, error) {
	return view{template: "agent-confirm.html", data: v.request.URL.Query().Get("token")}, nil
}

func postConfirmAgent(s *Handler, v *visit) (view, error) {
	agent, err := s.app.ConfirmAgent(v.request.Context(), v.form.Get("token"))
	return view{template: "agent-confirmed.html", data: agent}, err
}

func postSignOut(s *Handler, v *visit) (view, error) {
	if v.session != nil {
		if v.form.Get("everywhere") != "" {
			if err := s.sessions.EndAll(v.request.Context(), v.session.Customer); err != nil {
				return view{}, ground.Unreadable(err)
			}
		}
		if err := v.session.End(); err != nil {
			return view{}, ground.Unreadable(err)
		}
	}
	return view{location: "/sign-in"}, nil
}
