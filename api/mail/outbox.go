package mail

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Outbox keeps messages on a machine that only its user can read, instead of sending them. It
// writes them to a file of the user and to the terminal of the service. It shows them on the page
// /outbox to a person who enters the code that the terminal printed. Without the code, an agent on
// the same machine could sign in as its own reviewer.
type Outbox struct {
	log  *slog.Logger
	code string
	to   []io.Writer

	mu       sync.Mutex // protects messages and serializes writes
	messages []Message  // newest first
}

// NewOutbox returns an empty outbox with a new code. It writes each message to every writer. The
// log notes that a message arrived, but not its content.
func NewOutbox(log *slog.Logger, to ...io.Writer) *Outbox {
	return &Outbox{log: log, code: rand.Text()[:outboxCode], to: to}
}

// Code returns the code that opens the page.
func (o *Outbox) Code() string { return o.code }

// Opens reports whether a text is the code. It ignores case and surrounding white space.
func (o *Outbox) Opens(code string) bool {
	return subtle.ConstantTimeCompare([]byte(strings.ToUpper(strings.TrimSpace(code))), []byte(o.code)) == 1
}

// Send stores a message in the outbox.
func (o *Outbox) Send(_ context.Context, m Message) error {
	if err := m.check(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages = append([]Message{m}, o.messages[:min(len(o.messages), maxOutbox-1)]...)
	for _, w := range o.to {
		if _, err := fmt.Fprintf(w, "\nTo: %s\nDate: %s\nSubject: %s\n\n%s\n", m.To, m.At.UTC().Format(time.RFC1123Z), m.Subject, m.Text); err != nil {
			return fmt.Errorf("write an e-mail: %w", err)
		}
	}
	o.log.Info("an e-mail was written to the outbox: open /outbox to read it")
	return nil
}

// Messages returns the messages of the outbox, the newest first.
func (o *Outbox) Messages() []Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Message{}, o.messages...)
}
