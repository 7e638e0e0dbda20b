// Package mail writes and sends the e-mails of the service: over SMTP, or into an outbox that only
// the machine's own user can read. It also notifies an organization's reviewers of decisions that
// wait for them (Reviews), and its admins of drafts of the policy (Drafts).
package mail

import (
	"context"
	"errors"
	netmail "net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// Message is an e-mail to one address in plain text.
type Message struct {
	To, Subject, Text string
	Link              string // link in Text, which the outbox page makes clickable
	At                time.Time
}

// Sender sends messages. SMTP and the outbox implement it.
type Sender interface {
	Send(ctx context.Context, m Message) error
}

// check refuses a message whose address or subject could inject header lines, or name several
// addresses.
func (m Message) check() error {
	address, err := netmail.ParseAddress(m.To)
	if err != nil || address.Address != m.To || strings.ContainsFunc(m.To+m.Subject, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return errors.New("the address or subject of an e-mail has more than one line")
	}
	return nil
}

// smtpSender sends messages through a mail server.
type smtpSender struct {
	client *gomail.Client
	from   string
}

// NewSMTP parses smtp://user:password@host:587?from=ADDRESS or smtps://…:465, and returns a
// sender. With smtp it uses STARTTLS if the server offers it, and requires it if there is a
// password.
func NewSMTP(address string) (Sender, error) {
	bad := errors.New("SMTP_URL must look like smtps://user:password@host:465?from=sender@example.com")
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, bad // the cause is omitted, because it contains the password
	}
	from := u.Query().Get("from")
	if sender, err := netmail.ParseAddress(from); err != nil || sender.Address != from {
		return nil, bad
	}
	options := []gomail.Option{gomail.WithTimeout(smtpTimeout)}
	policy, port := gomail.TLSOpportunistic, 587
	if u.Scheme == "smtps" {
		options, port = append(options, gomail.WithSSL()), 465
	}
	if password, has := u.User.Password(); has {
		policy = gomail.TLSMandatory
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(u.User.Username()), gomail.WithPassword(password))
	}
	if u.Port() != "" {
		if port, err = strconv.Atoi(u.Port()); err != nil {
			return nil, bad
		}
	}
	client, err := gomail.NewClient(u.Hostname(), append(options, gomail.WithTLSPolicy(policy), gomail.WithPort(port))...)
	if err != nil {
		return nil, bad
	}
	return &smtpSender{client, from}, nil
}

// Send sends a message over SMTP.
func (s *smtpSender) Send(ctx context.Context, m Message) error {
	if err := m.check(); err != nil {
		return err
	}
	message := gomail.NewMsg()
	if err := errors.Join(message.From(s.from), message.To(m.To)); err != nil {
		return errors.New("the sender or recipient of an e-mail is not a valid address")
	}
	message.Subject(m.Subject)
	message.SetDateWithValue(m.At)
	message.SetMessageID()
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	return s.client.DialAndSendWithContext(ctx, message)
}
