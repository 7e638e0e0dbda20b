package accounts

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy/canon"
)

type signInRequest struct {
	Email string `json:"email" jsonschema:"minLength=3,maxLength=254" jsonschema_description:"Address that the link is sent to."`
	Next  string `json:"next,omitempty" jsonschema:"maxLength=500" jsonschema_description:"Path of this site that opens after the sign-in."`
}

type signInAnswer struct {
	Message string `json:"message"`
}

// linkSent is the answer in every case, so that a caller cannot find out whether an address is
// known.
const linkSent = "if the address can receive e-mail, a sign-in link was sent to it; the link works once, for 10 minutes"

var requestSignIn = &op.Operation{
	ID: "request_sign_in", Method: http.MethodPost, Path: "/api/auth/sign-in",
	Summary: "Mail a sign-in link. The answer does not reveal whether the address is known.",
	Input:   reflect.TypeFor[signInRequest](), Output: reflect.TypeFor[signInAnswer](),
	Example: `{"email":"ada@example.com"}`,
	Success: http.StatusAccepted, Errors: []int{400, 413, 429, 503},
	Refuses: []string{"invalid_email"},
}

// SignIn starts and ends the sessions of customers.
type SignIn struct {
	Credentials *credential.Reader
	Mail        *Mail
}

// Operations lists the operations for sign-in and sign-out.
func (s *SignIn) Operations() []*op.Operation {
	return []*op.Operation{requestSignIn.Does(s.requestSignIn), getSession.Does(s.getSession), signOut.Does(s.signOut)}
}

func (s *SignIn) requestSignIn(c *op.Call) (op.Reply, error) {
	var in signInRequest
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	err := s.Mail.SendLink(c.Request, in.Email, in.Next)
	return op.Reply{Value: signInAnswer{linkSent}}, err
}

var getSession = &op.Operation{
	ID: "get_session", Method: http.MethodGet, Path: "/api/auth/session",
	Summary: "The signed-in customer, and the organizations that the session can act for.",
	Access:  credential.Access{Kind: credential.Person}, Output: reflect.TypeFor[credential.SignedIn](), Errors: []int{401, 403, 503},
}

func (s *SignIn) getSession(c *op.Call) (op.Reply, error) {
	as, err := s.Credentials.Describe(c.Request.Context(), c.Session)
	return op.Reply{Value: as}, err
}

// signOutRequest selects the sessions to end.
type signOutRequest struct {
	Everywhere bool `json:"everywhere,omitempty" jsonschema_description:"End all sessions of the customer on all devices, for example after one was lost."`
}

var signOut = &op.Operation{
	ID: "sign_out", Method: http.MethodPost, Path: "/api/auth/sign-out",
	Summary: "End this session, or all sessions of the customer.",
	Access:  credential.Access{Kind: credential.Person}, Input: reflect.TypeFor[signOutRequest](), Output: reflect.TypeFor[op.Ended](),
	Example: `{}`, Errors: []int{400, 401, 403, 413, 503},
}

func (s *SignIn) signOut(c *op.Call) (op.Reply, error) {
	var in signOutRequest
	if err := canon.DecodeChecked(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	if in.Everywhere {
		if err := s.Credentials.Sessions.EndAll(c.Request.Context(), c.Session.Customer); err != nil {
			return op.Reply{}, ground.Unreadable(err)
		}
	}
	if err := c.Session.End(); err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	return op.Reply{Value: op.Ended{ID: c.Session.Customer, State: "signed out"}}, nil
}
