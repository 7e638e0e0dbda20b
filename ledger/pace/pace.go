// Package pace slows down reads of the whole history while there are appends.
package pace

import (
	"context"
	"io"
	"time"

	"github.com/countersign/countersign/ledger/internal/wait"
)

// Pace slows down a reader of the whole history, for example an audit or an export, in favour of
// appends. Without appends the reader works at full speed; otherwise it works a twentieth of the
// time, because on a busy machine its work delays appends. A Pace belongs to one goroutine. The
// zero value never pauses.
type Pace struct {
	head  func(context.Context) (int64, error)
	began time.Time // start of the work since the last Rest
	seen  int64     // number of events when at was set
	at    time.Time
}

const (
	paceShare = 20               // while there are appends, one part in paceShare of the time is work
	paceMost  = 15 * time.Second // longest pause
	paceBusy  = 20               // events per second above which the ledger counts as being appended to
)

// New returns a pace that calls head for the number of events in the ledger.
func New(head func(context.Context) (int64, error)) *Pace { return &Pace{head: head} }

// Rest pauses between two parts of the work. It returns at once if there are no appends or ctx
// ends.
func (p *Pace) Rest(ctx context.Context) error {
	if p.head == nil {
		return ctx.Err()
	}
	now, before := time.Now(), p.at
	worked := now.Sub(p.began)
	head, err := p.head(ctx)
	if err != nil {
		return err
	}
	appended := head - p.seen
	p.seen, p.at = head, now
	if !before.IsZero() && float64(appended) > paceBusy*now.Sub(before).Seconds() {
		wait.For(ctx, nil, min((paceShare-1)*worked, paceMost))
	}
	p.began = time.Now()
	return ctx.Err()
}

// Writer returns a writer that calls Rest after each 256 KiB, because compressing a history takes
// as much time as reading it.
func (p *Pace) Writer(ctx context.Context, to io.Writer) io.Writer {
	return &pacedWriter{p, ctx, to, 0}
}

type pacedWriter struct {
	pace  *Pace
	ctx   context.Context
	to    io.Writer
	since int
}

// Write implements io.Writer.
func (w *pacedWriter) Write(b []byte) (int, error) {
	const between = 256 << 10
	if w.since += len(b); w.since >= between {
		w.since = 0
		if err := w.pace.Rest(w.ctx); err != nil {
			return 0, err
		}
	}
	return w.to.Write(b)
}
