package accounts

import (
	"log/slog"
	"net/http"
	"net/url"

	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/web/account"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// Mail sends the links that prove control of a mailbox.
type Mail struct {
	Accounts *accounts.Accounts
	Mailer   mail.Sender // nil means that requests for e-mail are answered with 503
	Callers  *request.Callers
	Log      *slog.Logger
}

// SendLink e-mails a sign-in link.
func (s *Mail) SendLink(r *http.Request, email, next string) error {
	if err := s.mayMail(r, email); err != nil {
		return err
	}
	link, err := s.Accounts.RequestSignIn(r.Context(), email, next)
	if err != nil {
		return err
	}
	address := s.Accounts.BaseURL + "/sign-in/confirm?token=" + url.QueryEscape(link.Token)
	return s.post(r, mail.Message{To: link.Address, At: s.Accounts.Clock(), Subject: "Sign in to Countersign", Link: address,
		Text: "Open this link and press the button to sign in. It works once, for 10 minutes.\n\n" + address +
			"\n\nIf you did not ask for it, do nothing.\n"})
}

// mayMail limits the links per network and per mailbox, for all kinds of links together. So an
// attacker cannot flood another person's mailbox.
func (s *Mail) mayMail(r *http.Request, email string) error {
	if s.Mailer == nil {
		return policy.Refuse(op.CodeNoMail, "", "mail is not configured: the operator must set SMTP_URL")
	}
	if !s.Callers.Allow(op.ToMailFrom, r) || !s.Callers.Rates.Allow(op.ToMailTo, ground.Mailbox(email)) {
		return policy.Refuse(op.CodeRateLimited, "", "too many links were mailed: open the link in the last e-mail or try again later")
	}
	return nil
}

// post sends an e-mail.
func (s *Mail) post(r *http.Request, m mail.Message) error {
	if err := s.Mailer.Send(r.Context(), m); err != nil {
		s.Log.Warn("an e-mail could not be sent", "requestId", request.RequestID(r.Context()))
		return policy.Refuse(ground.CodeUnavailable, "", "the e-mail could not be sent: try again")
	}
	return nil
}

// sendAgentLink e-mails the link that verifies an agent. The e-mail contains no text of the agent,
// because anybody can register an agent with another person's address.
func (s *Mail) sendAgentLink(r *http.Request, made accounts.RegisteredAgent) error {
	link, err := s.Accounts.RequestAgentLink(r.Context(), made.Address, made.ClientID)
	if err != nil {
		return err
	}
	address := s.Accounts.BaseURL + account.ConfirmAgentPath + "?token=" + url.QueryEscape(link.Token)
	return s.post(r, mail.Message{To: link.Address, At: s.Accounts.Clock(), Subject: "Verify an agent for Countersign", Link: address,
		Text: "An agent, " + made.ClientID + ", was registered with your address.\nOpen this link and press the button if it is yours. It works once, for 10 minutes.\n\n" +
			address + "\n\nIf you know nothing of it, do nothing.\n"})
}
