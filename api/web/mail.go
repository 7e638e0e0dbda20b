package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// Letter is a mail to one address, as plain text.
type Letter struct {
	To, Subject, Text string
	Link              string // the one in the text; the outbox page makes it clickable
	At                time.Time
}

// Mailer sends letters: by SMTP, or into the local outbox.
type Mailer interface {
	Send(ctx context.Context, l Letter) error
}

// check refuses what would be more than one header line or more than one
// address.
func (l Letter) check() error {
	address, err := mail.ParseAddress(l.To)
	if err != nil || address.Address != l.To || strings.ContainsFunc(l.To+l.Subject, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return errors.New("a letter's address or subject is not one line")
	}
	return nil
}

// smtpMailer sends through a mail server.
type smtpMailer struct {
	client *gomail.Client
	from   string
}

// NewSMTP reads smtp://user:password@host:587?from=ADDRESS (STARTTLS if the
// server has it; demanded with a password) or smtps://…:465.
func NewSMTP(address string) (Mailer, error) {
	bad := errors.New("SMTP_URL must look like smtps://user:password@host:465?from=sender@example.com")
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, bad // without the cause, which repeats the password
	}
	from := u.Query().Get("from")
	if sender, err := mail.ParseAddress(from); err != nil || sender.Address != from {
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
	return &smtpMailer{client, from}, nil
}

// Send implements Mailer.
func (m *smtpMailer) Send(ctx context.Context, l Letter) error {
	if err := l.check(); err != nil {
		return err
	}
	message := gomail.NewMsg()
	if err := errors.Join(message.From(m.from), message.To(l.To)); err != nil {
		return errors.New("a letter's address is not accepted")
	}
	message.Subject(l.Subject)
	message.SetDateWithValue(l.At)
	message.SetMessageID()
	message.SetBodyString(gomail.TypeTextPlain, l.Text)
	return m.client.DialAndSendWithContext(ctx, message)
}

// Outbox keeps letters on a machine where nobody else can look, instead of a mail
// server: it writes them to a file of their owner and to the terminal of the
// service, and shows them on /outbox to who enters the code printed there. Without
// the code an agent on the same machine could sign in as its own reviewer.
type Outbox struct {
	log  *slog.Logger
	code string
	to   []io.Writer

	mu      sync.Mutex // guards letters, and writing to the writers
	letters []Letter   // the newest first
}

// NewOutbox makes an empty one with a new code. What arrives is written to each
// writer, and announced in the log without its content.
func NewOutbox(log *slog.Logger, to ...io.Writer) *Outbox {
	return &Outbox{log: log, code: rand.Text()[:outboxCode], to: to}
}

// Code is what opens the page.
func (o *Outbox) Code() string { return o.code }

// opens says whether a text is the code.
func (o *Outbox) opens(code string) bool {
	return subtle.ConstantTimeCompare([]byte(strings.ToUpper(strings.TrimSpace(code))), []byte(o.code)) == 1
}

// Send implements Mailer.
func (o *Outbox) Send(_ context.Context, l Letter) error {
	if err := l.check(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.letters = append([]Letter{l}, o.letters[:min(len(o.letters), maxOutbox-1)]...)
	for _, w := range o.to {
		if _, err := fmt.Fprintf(w, "\nTo: %s\nDate: %s\nSubject: %s\n\n%s\n", l.To, l.At.UTC().Format(time.RFC1123Z), l.Subject, l.Text); err != nil {
			return fmt.Errorf("write a letter: %w", err)
		}
	}
	o.log.Info("a letter lies in the outbox: open /outbox")
	return nil
}

// Letters are what the outbox holds, the newest first.
func (o *Outbox) Letters() []Letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Letter{}, o.letters...)
}
