package api

import (
	"net/http"
	"net/url"
	"reflect"

	"github.com/countersign/countersign/api/mail"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

type signInRequest struct {
	Email string `json:"email" jsonschema:"minLength=3,maxLength=254" jsonschema_description:"Where the link goes."`
	Next  string `json:"next,omitempty" jsonschema:"maxLength=500" jsonschema_description:"Local path to go to afterwards."`
}

type signInAnswer struct {
	Message string `json:"message"`
}

// linkSent is the one answer, whether anybody knows the address or not.
const linkSent = "if the address can receive mail, a sign-in link is on its way; it works once, for 10 minutes"

var requestSignIn = &op.Operation{
	ID: "request_sign_in", Method: http.MethodPost, Path: "/api/auth/sign-in",
	Summary: "Mail a sign-in link. The answer does not tell whether the address is known.",
	Input:   reflect.TypeFor[signInRequest](), Output: reflect.TypeFor[signInAnswer](),
	Example: `{"email":"ada@example.com"}`,
	Success: http.StatusAccepted, Errors: []int{400, 413, 429, 503},
}

func (s *Server) requestSignIn(c *op.Call) (op.Reply, error) {
	var in signInRequest
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	err := s.sendLink(c.Request, in.Email, in.Next)
	return op.Reply{Value: signInAnswer{linkSent}}, err
}

// sendLink makes a link and mails it.
func (s *Server) sendLink(r *http.Request, email, next string) error {
	if err := s.mayMail(r, email); err != nil {
		return err
	}
	link, err := s.app.RequestSignIn(r.Context(), email, next)
	if err != nil {
		return err
	}
	address := s.app.BaseURL + "/sign-in/confirm?token=" + url.QueryEscape(link.Token)
	return s.post(r, mail.Message{To: link.Address, At: s.app.Clock(), Subject: "Sign in to Countersign", Link: address,
		Text: "Open this link and press the button to sign in. It works once, for 10 minutes.\n\n" + address +
			"\n\nIf you did not ask for it, do nothing.\n"})
}

// mayMail says whether a link may be mailed to an address, of whatever kind:
// nobody fills another's mailbox with our letters.
func (s *Server) mayMail(r *http.Request, email string) error {
	if s.mail == nil {
		return policy.Refuse(op.CodeNoMail, "", "mail is not configured")
	}
	if !s.rates.Allow(op.ToMailFrom, s.network(r)) || !s.rates.Allow(op.ToMailTo, ground.Mailbox(email)) {
		return policy.Refuse(op.CodeRateLimited, "", "too many links were mailed, open the one in the last letter or try again later")
	}
	return nil
}

// post sends a letter.
func (s *Server) post(r *http.Request, l mail.Message) error {
	if err := s.mail.Send(r.Context(), l); err != nil {
		s.log.Warn("mail was not sent", "requestId", requestID(r.Context()))
		return policy.Refuse(ground.CodeUnavailable, "", "the mail could not be sent, try again")
	}
	return nil
}

var getSession = &op.Operation{
	ID: "get_session", Method: http.MethodGet, Path: "/api/auth/session",
	Summary: "Who is signed in, and the organizations the session can act for.",
	Access:  credential.Access{Kind: credential.Person}, Output: reflect.TypeFor[credential.SignedIn](), Errors: []int{401, 403, 503},
}

func (s *Server) getSession(c *op.Call) (op.Reply, error) {
	as, err := s.credentials.Describe(c.Request.Context(), c.Session)
	return op.Reply{Value: as}, err
}

// signOutRequest says how far signing out goes.
type signOutRequest struct {
	Everywhere bool `json:"everywhere,omitempty" jsonschema_description:"Every session of the customer ends, on whatever device: for a lost one."`
}

var signOut = &op.Operation{
	ID: "sign_out", Method: http.MethodPost, Path: "/api/auth/sign-out",
	Summary: "End the session, or every session of whoever is signed in.",
	Access:  credential.Access{Kind: credential.Person}, Input: reflect.TypeFor[signOutRequest](), Output: reflect.TypeFor[state](),
	Example: `{}`, Errors: []int{400, 401, 403, 413, 503},
}

func (s *Server) signOut(c *op.Call) (op.Reply, error) {
	var in signOutRequest
	if err := canon.DecodeChecked(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	if in.Everywhere {
		if err := s.sessions.EndAll(c.Request.Context(), c.Session.Customer); err != nil {
			return op.Reply{}, ground.Unreadable(err)
		}
	}
	if err := c.Session.End(); err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	return op.Reply{Value: state{c.Session.Customer, "signed out"}}, nil
}
