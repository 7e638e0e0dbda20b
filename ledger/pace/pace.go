// Package pace slows down reads of the whole history while there are appends.
package pace

import (
	"context"
	"io"
	"time"

	"github.com/countersign/countersign/ledger/internal/wait"
)

// Pace slows down a reader of the whole history, for example an audit or an export, in favour of
// appends. Without appends the reader works at full speed. Otherwise it works in short parts, and
// only a small share of the time: on a busy machine, an append that arrives during a part waits
// until the part ends. A Pace belongs to one goroutine. The zero value never pauses.
type Pace struct {
	share time.Duration // while there are appends, one part in share of the time is work
	head  func(context.Context) (int64, error)
	began time.Time // start of the work since the last Rest
	seen  int64     // number of events when at was set
	at    time.Time // time of the last look at the number of events; zero before the first
	until time.Time // end of the pauses, if the work has a deadline
	state state
}

// state says whether others append.
type state int

const (
	unknown state = iota
	quiet
	busy
)

const (
	paceMost = 15 * time.Second      // longest pause
	paceBusy = 20                    // events per second above which the ledger counts as being appended to
	paceLook = 20 * time.Millisecond // shortest time between two looks at the number of events
	pacePart = 64                    // events of a short part: less than a millisecond of work
)

// New returns a pace that calls head for the number of events in the ledger. While there are
// appends, the reader works for one part in share of the time.
func New(share int, head func(context.Context) (int64, error)) *Pace {
	return &Pace{share: time.Duration(share), head: head}
}

// Part returns how many events the reader should read until the next Rest: most, or fewer while
// there are appends or this is unknown.
func (p *Pace) Part(most int64) int64 {
	if p.head == nil || p.state == quiet {
		return most
	}
	return min(most, pacePart)
}

// Rest pauses between two parts of the work. It returns at once if there are no appends or ctx
// ends. If ctx has a deadline, as that of a request has, there are no pauses in the second half of
// the time.
func (p *Pace) Rest(ctx context.Context) error {
	if p.head == nil {
		return ctx.Err()
	}
	now := time.Now()
	worked := now.Sub(p.began)
	if deadline, has := ctx.Deadline(); has && p.at.IsZero() {
		p.until = now.Add(deadline.Sub(now) / 2)
	}
	if since := now.Sub(p.at); since >= paceLook {
		head, err := p.head(ctx)
		if err != nil {
			return err
		}
		switch appended := head - p.seen; {
		case p.at.IsZero():
		case float64(appended) > paceBusy*since.Seconds():
			p.state = busy
		default:
			p.state = quiet
		}
		p.seen, p.at = head, now
	}
	if p.state == busy && (p.until.IsZero() || now.Before(p.until)) {
		wait.For(ctx, nil, min((p.share-1)*worked, paceMost))
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
