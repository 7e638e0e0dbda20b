package operate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/keeper"
)

// Top shows the current activity of a ledger: calls, decisions, and how far read models and signed
// heads are behind.
type Top struct {
	Every time.Duration `help:"Refresh interval on a terminal." default:"2s"`
	Once  bool          `help:"Print once and stop; the default in a pipe and with --json."`
	setting.Ledger
}

// topWindow is the longest period that is counted. topEvents is the number of events that are read
// at the start, so on a busy ledger the counts for that period are too low at first.
const (
	topWindow = 15 * time.Minute
	topEvents = 20000
)

// topCounts has the rows of top. A row counts events of the given types with the given member;
// without types it counts all events.
var topCounts = []struct {
	name  string
	types []string
	with  word
}{
	{name: "events"},
	{name: "calls", types: []string{"call.completed", "workflow.completed"}},
	{"allowed", []string{"decision.recorded"}, word{"decision", "allow"}},
	{"denied", []string{"decision.recorded"}, word{"decision", "deny"}},
	{"to review", []string{"decision.recorded"}, word{"decision", "needs_review"}},
	{"approved", []string{"approval.recorded"}, word{"verdict", "approved"}},
	{name: "receipts", types: []string{"receipt.recorded"}},
	{"violations", []string{"receipt.recorded"}, word{"conformance", "violation"}},
	{name: "payments", types: []string{"payment.settled"}},
}

// counted has the fields of an event that the counts need.
type counted struct {
	at   time.Time
	kind string
	told []word
}

// is reports whether a row counts an event.
func (e counted) is(types []string, with word) bool {
	return (types == nil || slices.Contains(types, e.kind)) && (with == word{} || slices.Contains(e.told, with))
}

// topState is what top keeps in memory between two refreshes.
type topState struct {
	after  []int64 // position of the last event read, by partition
	window []counted
}

// topCount is one row of the table of counts.
type topCount struct {
	Name     string `json:"name"`
	Minute   int    `json:"lastMinute"`
	Quarter  int    `json:"last15Minutes"`
	Newest   string `json:"newest,omitempty"`
	newestAt time.Time
}

// topLag shows how far a reader of the ledger is behind the head.
type topLag struct {
	Name     string `json:"name"`
	Position int64  `json:"position"`
	Behind   int64  `json:"behind"`
	State    string `json:"state"`
}

// topView is the content of one refresh.
type topView struct {
	Origin string     `json:"origin"`
	Head   int64      `json:"head"`
	Counts []topCount `json:"counts"`
	Lags   []topLag   `json:"lags"`
}

// Run refreshes until a signal, or prints once.
func (c *Top) Run(ctx context.Context, o *screen.Output) error {
	c.Unsigned = true
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	after, err := n.Ledger.Heads(ctx)
	if err != nil {
		return err
	}
	for p := range after {
		after[p] = max(after[p]-topEvents, 0)
	}
	state := topState{after: after}
	for {
		view, err := state.look(ctx, n.Ledger, time.Now())
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case c.Once || o.JSON || !o.Terminal:
			return o.Result(view, view.text(o))
		}
		if _, err := io.WriteString(o.Stdout, "\x1b[H\x1b[2J"+view.text(o)+"\nCtrl-C ends\n"); err != nil {
			return err
		}
		select {
		case <-time.After(c.Every):
		case <-ctx.Done():
			return nil
		}
	}
}

// look reads new events and counts those in the window.
func (s *topState) look(ctx context.Context, l *ledger.Ledger, now time.Time) (topView, error) {
	for {
		events, err := newest(ctx, l, s.after)
		if err != nil {
			return topView{}, err
		}
		for _, e := range events {
			s.window = append(s.window, counted{e.Occurred(), e.Type, told(e.Payload)})
		}
		if len(events) < tailBatch {
			break
		}
	}
	for len(s.window) > 0 && now.Sub(s.window[0].at) > topWindow {
		s.window = s.window[1:]
	}
	head := int64(0)
	for _, position := range s.after {
		head += position
	}
	lags, err := lagsOf(ctx, l, head)
	return topView{Origin: l.Origin(), Head: head, Counts: s.counts(now), Lags: lags}, err
}

func (s *topState) counts(now time.Time) []topCount {
	rows := make([]topCount, len(topCounts))
	for i, count := range topCounts {
		rows[i].Name = count.name
		for _, e := range s.window {
			if !e.is(count.types, count.with) {
				continue
			}
			rows[i].Quarter++
			rows[i].newestAt = e.at
			if now.Sub(e.at) <= time.Minute {
				rows[i].Minute++
			}
		}
		if rows[i].Quarter > 0 {
			rows[i].Newest = rows[i].newestAt.Format(time.RFC3339)
		}
	}
	return rows
}

// lagsOf returns the positions of the read models, the sinks and the signed heads.
func lagsOf(ctx context.Context, l *ledger.Ledger, head int64) (lags []topLag, err error) {
	rows, err := l.Pool().Query(ctx, `select name, sum(pos)::bigint, min(state) from projection_checkpoint group by name order by name`)
	if err != nil {
		return nil, err
	}
	var lag topLag
	_, err = pgx.ForEachRow(rows, []any{&lag.Name, &lag.Position, &lag.State}, func() error {
		lag.Behind = max(head-lag.Position, 0)
		lags = append(lags, lag)
		return nil
	})
	if err != nil {
		return nil, err
	}
	covered := int64(0)
	for _, p := range l.Partitions() {
		published, err := keeper.Newest(ctx, p)
		if err != nil {
			return nil, err
		}
		if published != nil {
			covered += published.Size
		}
	}
	if covered > 0 {
		lags = append(lags, topLag{"signed head", covered, max(head-covered, 0), "published"})
	}
	return lags, nil
}

func (v topView) text(o *screen.Output) string {
	counts := screen.Table{Heads: []string{"", "last minute", "15 minutes", "newest"}}
	for _, c := range v.Counts {
		counts.Add(c.Name, fmt.Sprint(c.Minute), fmt.Sprint(c.Quarter), c.Newest)
	}
	lags := screen.Table{Heads: []string{"", "position", "behind", "state"}}
	for _, l := range v.Lags {
		lags.Add(l.Name, fmt.Sprint(l.Position), fmt.Sprint(l.Behind), l.State)
	}
	return fmt.Sprintf("%s, head %d\n", v.Origin, v.Head) + o.Table(counts) + "\n" + o.Table(lags)
}
