// Package pace lets appends go first while something reads the whole history.
package pace

import (
	"context"
	"io"
	"time"

	"github.com/countersign/countersign/ledger/internal/wait"
)

// Pace lets appends go first. A reader of the whole history, for example an audit or an
// export, works at full speed while there are no appends, and for a twentieth of the time
// while there are: on a busy machine appends lose all the time that the reader takes.
// A Pace belongs to one goroutine; the zero value never rests.
type Pace struct {
	head  func(context.Context) (int64, error)
	began time.Time // of the work since the last Rest
	seen  int64     // the head, and when it was there
	at    time.Time
}

const (
	paceShare = 20               // of the time one part is work
	paceMost  = 15 * time.Second // of one rest
	paceBusy  = 20               // events a second from which others count as appending
)

// New returns a pace that learns from head how many events there are.
func New(head func(context.Context) (int64, error)) *Pace { return &Pace{head: head} }

// Rest is called between two parts of the work. It returns at once while there are no
// appends, and when ctx ends.
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

// Writer returns a writer that rests after each quarter of a megabyte: compressing a
// history takes as much time as reading it.
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
