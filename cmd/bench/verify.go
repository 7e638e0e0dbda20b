package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// verifyCmd measures the auditor's verify on a PostgreSQL of its own, beside a bare
// read of the same rows; what appends lose to it; what checkpoints cost; and how
// fast a read model is rebuilt.
type verifyCmd struct {
	Events []int64       `help:"Sizes at which chain and tree are verified; memory should not grow with them." default:"10000,100000,1000000"`
	Signed int           `help:"Signed decisions to verify with their signatures." default:"20000"`
	Agents int           `help:"Different agents whose ids are sealed, which takes a second signature; 0 for decisions without an agentId." default:"100"`
	Runs   int           `help:"Runs of each; the median counts." default:"3"`
	During time.Duration `help:"Length of each run with appends." default:"5s"`

	Profile string `help:"Write a CPU profile of the verification with signatures to this file."`
}

// Run prints a line per size, and then what the rest costs.
func (c *verifyCmd) Run(ctx context.Context) error {
	s, err := newScratch(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	l, err := openLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	notes, err := os.MkdirTemp("", "countersign-notes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(notes)
	if err := c.sizes(ctx, s, l, notes); err != nil {
		return err
	}
	if err := besideAppends(ctx, s, "verify", c.Runs, c.During, "audit", s.app, "--repeat"); err != nil {
		return err
	}
	if err := c.checkpoints(ctx, s, l); err != nil {
		return err
	}
	return c.signed(ctx)
}

// sizes verifies chain and tree of ledgers of growing size, on one core.
func (c *verifyCmd) sizes(ctx context.Context, s *scratch, l *ledger.Ledger, notes string) error {
	fmt.Printf("%-12s %14s %14s %8s %24s %14s\n", "events", "bare read/s", "verified/s", "ratio", "us of CPU, program + db", "peak MB")
	for _, size := range c.Events {
		head, err := fill(ctx, l, size)
		if err != nil {
			return err
		}
		if l.Home(ledger.ServiceTenant).Checkpoint() == nil {
			if err := keepCheckpoints(ctx, l, notes); err != nil {
				return err
			}
		}
		if l.Home(ledger.ServiceTenant).Covered(ctx, head) == nil {
			return errors.New("no checkpoint covers the events")
		}
		var reads, audits []run
		for range c.Runs {
			for kind, into := range map[string]*[]run{"read": &reads, "audit": &audits} {
				r, err := oneCore(ctx, s, kind, s.app)
				if err != nil {
					return err
				}
				*into = append(*into, r)
			}
		}
		read, audit := middle(reads), middle(audits)
		fmt.Printf("%-12d %14.0f %14.0f %8.2f %24s %14d\n", audit.Events, read.perSecond(), audit.perSecond(), audit.perSecond()/read.perSecond(),
			fmt.Sprintf("%.1f + %.1f", audit.perEvent(audit.cpu.process), audit.perEvent(audit.cpu.database)), audit.PeakMB)
	}
	return nil
}

// checkpoints compares 64 appends in flight without and with checkpoints, and both
// with the anchor; lag is how long an appended event waited for a signed note.
func (c *verifyCmd) checkpoints(ctx context.Context, s *scratch, l *ledger.Ledger) error {
	l.Close() // its keeper ends: from here on none runs but that of the measured ledger
	var anchors, without, with []sample
	var lags []time.Duration
	notes, err := os.MkdirTemp("", "countersign-notes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(notes)
	for range c.Runs {
		a, err := anchor(ctx, s, 64, c.During)
		if err != nil {
			return err
		}
		b, err := appendLoad(ctx, s, 1, 64, c.During, payload)
		if err != nil {
			return err
		}
		d, lag, err := checkpointed(ctx, s, c.During, notes)
		if err != nil {
			return err
		}
		anchors, without, with, lags = append(anchors, a), append(without, b), append(with, d), append(lags, lag...)
	}
	slices.Sort(lags)
	if len(lags) == 0 {
		return errors.New("no checkpoint was made in that time: give the runs more of it (--during)")
	}
	a, b, d := median(anchors), median(without), median(with)
	fmt.Printf("appends, 64 in flight: anchor %.0f/s, without checkpoints %.0f/s, with %.0f/s: cost %.0f %%, %.2f x the anchor; lag p50 %s s, max %s s\n",
		a.perSecond, b.perSecond, d.perSecond, 100*(1-d.perSecond/b.perSecond), d.perSecond/a.perSecond,
		seconds(lags[len(lags)/2]), seconds(lags[len(lags)-1]))
	return nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }

// checkpointed is a load of appends on a ledger that keeps checkpoints.
func checkpointed(ctx context.Context, s *scratch, during time.Duration, notes string) (sample, []time.Duration, error) {
	l, err := openLedger(ctx, s)
	if err != nil {
		return sample{}, nil, err
	}
	defer l.Close()
	if err := keepCheckpoints(ctx, l, notes); err != nil {
		return sample{}, nil, err
	}
	name := fmt.Sprint("bench/", time.Now().UnixNano())
	appended := func(caller, n int) (int64, error) {
		stream := fmt.Sprintf("%s/%d/%d", name, caller, n)
		r, err := l.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Drafts: []ledger.Draft{benchEvent(stream)}})
		if err != nil {
			return 0, err
		}
		return r.Events[0].Position, nil
	}
	const watchers = 8
	var mu sync.Mutex // guards lags
	var lags []time.Duration
	var watching sync.WaitGroup
	ends, stop := context.WithCancel(ctx)
	for watcher := range watchers {
		watching.Go(func() {
			for n := 0; ends.Err() == nil; n++ {
				position, err := appended(-1-watcher, n)
				began := time.Now()
				if err == nil && l.Home(ledger.ServiceTenant).Covered(ends, position) != nil {
					mu.Lock()
					lags = append(lags, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	result, err := load(64, during, func(caller, n int) error { _, err := appended(caller, n); return err })
	stop()
	watching.Wait()
	return result, lags, err
}

// signed verifies decisions with their signatures, and rebuilds their read model.
func (c *verifyCmd) signed(ctx context.Context) error {
	service, err := decided(ctx, c.Signed, c.Agents)
	if err != nil {
		return err
	}
	defer service.close()
	var audits []run
	for range c.Runs {
		r, err := oneCore(ctx, service.scratch, "audit", service.scratch.app, "--signatures", "--profile="+c.Profile)
		if err != nil {
			return err
		}
		audits = append(audits, r)
	}
	r := middle(audits)
	fmt.Printf("with signatures, openings and what the records say: %.0f events/s (%d events, signed %s), us of CPU %.1f + %.1f\n",
		r.perSecond(), r.Events, map[bool]string{true: "once", false: "twice"}[c.Agents == 0], r.perEvent(r.cpu.process), r.perEvent(r.cpu.database))
	for _, name := range []string{"history", "organizations"} {
		began := time.Now()
		position, err := projections.Rebuild(ctx, service.app.Ledger, slog.New(slog.DiscardHandler), name)
		if err != nil {
			return err
		}
		fmt.Printf("rebuild of %s: %.0f events/s (%d events)\n", name, float64(position)/time.Since(began).Seconds(), position)
	}
	return nil
}

// openLedger opens a scratch's ledger.
func openLedger(ctx context.Context, s *scratch) (*ledger.Ledger, error) {
	return ledger.Open(ctx, s.app, ledger.Options{Log: slog.New(slog.DiscardHandler)})
}

func keepCheckpoints(ctx context.Context, l *ledger.Ledger, notes string) error {
	signer, err := seal.NewSigner(append(make([]byte, 31), 1))
	if err != nil {
		return err
	}
	app := &commands.App{Ledger: l, Clock: time.Now}
	return l.KeepCheckpoints(ctx, ledger.Checkpoints{Signer: signer, Folder: checkpoint.Folder{Path: notes}}, func() string { return app.NewID("evt_") })
}

func benchEvent(stream string) ledger.Draft {
	return ledger.Draft{Stream: stream, Expect: ledger.New(), ID: "evt_" + stream, Type: "bench.happened", SchemaVersion: 1,
		Actor: "key_01JD3Z8W5T0000000000000000", Payload: payload}
}

// fill appends small events, 64 at a time, until there are so many, and returns the
// last position.
func fill(ctx context.Context, l *ledger.Ledger, size int64) (int64, error) {
	var head atomic.Int64
	start, err := l.Total(ctx)
	if err != nil {
		return 0, err
	}
	head.Store(start)
	const callers, each = 16, 64
	_, err = load(callers, time.Hour, func(caller, n int) error {
		if head.Load() >= size {
			return errFull
		}
		order := ledger.Append{Tenant: ledger.ServiceTenant}
		for i := range each {
			order.Drafts = append(order.Drafts, benchEvent(fmt.Sprintf("fill/%d/%d/%d/%d", start, caller, n, i)))
		}
		r, err := l.Append(ctx, order)
		if err != nil {
			return err
		}
		for last := r.Events[each-1].Position; ; {
			if seen := head.Load(); seen >= last || head.CompareAndSwap(seen, last) {
				break
			}
		}
		if caller == 0 {
			progress("appended", head.Load(), size)
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return head.Load(), err
}

var errFull = errors.New("there are enough events")

// progress is told on a terminal's standard error.
func progress(what string, done, total int64) {
	fmt.Fprintf(os.Stderr, "\r%s %d of %d  ", what, done, total)
	if done >= total {
		fmt.Fprintln(os.Stderr)
	}
}
