package ledger

import (
	"context"
	"io"
	"time"
)

// Pace lets appends go first. Whoever reads the whole history, to verify or export
// it, works at full speed while nobody appends, and for a twentieth of the time
// while somebody does: on a busy machine all of what it takes is lost to appends.
// It belongs to one goroutine; the zero value never rests.
type Pace struct {
	head  func(context.Context) (int64, error)
	began time.Time // of the work since the last Rest
	seen  int64     // the head, and when it was there
	at    time.Time
}

const (
	paceShare = 20               // of the time one part is work
	paceMost  = 15 * time.Second // of one rest
	paceBusy  = 20               // events a second that count as somebody at work
)

// Pace is for reading this ledger's own history.
func (l *Ledger) Pace() *Pace { return &Pace{head: l.Total} }

// Rest comes between two parts of the work: it returns at once while nobody appends,
// and when ctx ends.
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
		sleep(ctx, nil, min((paceShare-1)*worked, paceMost))
	}
	p.began = time.Now()
	return ctx.Err()
}

// Writer rests after each quarter of a megabyte that is written: what compresses a
// history works as hard as what reads it.
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
