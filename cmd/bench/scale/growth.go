// Package scale measures what may depend on the length of a ledger: start, single operations,
// verification, export, and size.
package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/ledger"
)

// Growth repeats the same measurements while the ledger grows. The time of an operation on one
// event or one page should stay constant. The time of an operation on the complete ledger should
// be proportional to its length.
type Growth struct {
	Events []int64 `help:"Lengths of the ledger, in rising order." default:"10000,100000,1000000"`
	Folder string  `help:"Folder for the charts. Default: no charts." placeholder:"DIR"`
	Probes int     `help:"Number of single operations of each kind." default:"300"`
}

// grown has the measurements at one length of the ledger, in the order of eachNames and
// wholeNames.
type grown struct {
	events int64
	each   []float64 // median time of each single operation, in milliseconds
	whole  []float64 // time of each complete operation, in microseconds per event
	memory []int64   // peak memory of verify and export, in MB
}

// Names of the measurements, short enough for the legends of the charts. "rebuild" rebuilds all
// read models; "export" exports the history of an organization that has nearly all events.
var (
	eachNames  = []string{"append", "key look-up", "status", "history page", "start"}
	wholeNames = []string{"rebuild", "verify", "export"}
)

// Run prints one line for each length and draws two charts.
func (c *Growth) Run(ctx context.Context) error {
	s, err := rig.NewScratch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := rig.OpenLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	f, err := rig.NewFiller(ctx, l, make([]byte, 32), make([]byte, 32))
	if err != nil {
		return err
	}
	fmt.Printf("%10s  %s  | %s | %s\n", "events", strings.Join(eachNames, ", ")+" (ms, p50)", strings.Join(wholeNames, ", ")+" (us an event)", "memory of verify, export (MB)")
	var all []grown
	for _, events := range c.Events {
		g, err := c.measure(ctx, s, f, events)
		if err != nil {
			return fmt.Errorf("at %d events: %w", events, err)
		}
		fmt.Printf("%10d  %.2f  | %.1f | %d\n", g.events, g.each, g.whole, g.memory)
		all = append(all, g)
	}
	return c.draw(all)
}

func (c *Growth) measure(ctx context.Context, s *rig.Scratch, f *rig.Filler, events int64) (g grown, err error) {
	head, err := f.App.Ledger.Total(ctx)
	if err == nil {
		err = f.Fill(ctx, events-head)
	}
	if err == nil && events > c.Events[0] { // at the first length the service creates the read models, so none have to be reset
		err = readNothing(ctx, s)
	}
	if err != nil {
		return g, err
	}
	g.events = events
	began := time.Now()
	kept := *s
	kept.Close = func() {} // closing the service must not close the database
	service, err := rig.Serve(ctx, &kept)
	if err != nil {
		return g, err
	}
	defer service.Close()
	started := time.Since(began)
	if _, err := service.Measured(ctx, func() (rig.Sample, error) { return rig.Sample{}, nil }); err != nil { // waits until the read models contain all events
		return g, err
	}
	rebuilt := time.Since(began)
	for _, probe := range []func(context.Context, *rig.Service, *rig.Filler, int64) error{probeAppend, probeKey, probeStatus, probeHistory} {
		probed, err := probes(c.Probes, func() error { return probe(ctx, service, f, events) })
		if err != nil {
			return g, err
		}
		g.each = append(g.each, milliseconds(probed.Quantile(.5)))
	}
	g.each = append(g.each, milliseconds(started))
	verified, err := onCores(ctx, s, 2, "audit", s.App, "--signatures")
	if err != nil {
		return g, err
	}
	exported, err := onCores(ctx, s, 2, "make-export", s.App, "--org", f.Org)
	if err != nil {
		return g, err
	}
	g.whole = []float64{float64(rebuilt.Microseconds()) / float64(events), 1e6 / verified.perSecond(), 1e6 / exported.perSecond()}
	g.memory = []int64{verified.PeakMB, exported.PeakMB}
	return g, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// probes runs a single operation this number of times, one after the other.
func probes(times int, operation func() error) (s rig.Sample, err error) {
	for range times {
		began := time.Now()
		if err := operation(); err != nil {
			return s, err
		}
		s.Latencies = append(s.Latencies, time.Since(began))
	}
	slices.Sort(s.Latencies)
	return s, nil
}

func probeAppend(ctx context.Context, _ *rig.Service, f *rig.Filler, _ int64) error {
	return f.Append(ctx, 1)
}

// probeKey looks up a random event by its idempotency key.
func probeKey(ctx context.Context, b *rig.Service, _ *rig.Filler, events int64) error {
	var tenant string
	var key, content []byte
	err := b.App.Ledger.Pool().QueryRow(ctx, `select tenant, idem_key, content_hash from events where p = 0 and pos >= $1 and idem_key is not null order by pos limit 1`,
		1+rand.Int64N(events*9/10)).Scan(&tenant, &key, &content)
	if err != nil {
		return err
	}
	found, err := b.App.Ledger.ByKey(ctx, tenant, ledger.Hash(key), ledger.Hash(content))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("a key of the ledger is not found")
	}
	return err
}

// probeStatus reads the status of a random workflow.
func probeStatus(ctx context.Context, b *rig.Service, _ *rig.Filler, events int64) error {
	var stream string
	if err := b.App.Ledger.Pool().QueryRow(ctx, `select stream from events where p = 0 and pos >= $1 and type = 'workflow.completed' order by pos limit 1`,
		1+rand.Int64N(events*9/10)).Scan(&stream); err != nil {
		return err
	}
	_, err := b.Projections.Status(ctx, strings.TrimPrefix(stream, "workflow/"))
	return err
}

// probeHistory reads the newest page of the organization's history.
func probeHistory(ctx context.Context, b *rig.Service, f *rig.Filler, _ int64) error {
	_, err := b.Projections.History(ctx, f.Org, nil, 25, "")
	return err
}

// draw writes the two charts: one of the single operations, one of the complete operations.
func (c *Growth) draw(all []grown) error {
	if c.Folder == "" {
		return nil
	}
	var labels []string
	each, whole := make([][]float64, len(eachNames)), make([][]float64, len(wholeNames))
	for _, g := range all {
		labels = append(labels, strconv.FormatInt(g.events, 10))
		for i := range each {
			each[i] = append(each[i], g.each[i])
		}
		for i := range whole {
			whole[i] = append(whole[i], g.whole[i])
		}
	}
	for _, picture := range []struct {
		file, title string
		names       []string
		values      [][]float64
	}{
		{"growth-each.svg", "Milliseconds of single operations by events in the ledger", eachNames[:4], each[:4]},
		{"growth-whole.svg", "Microseconds per event of operations on the complete ledger, by events in it", wholeNames, whole},
	} {
		figure, err := plot.Growth(picture.title, picture.names, labels, picture.values)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.Folder, picture.file), []byte(figure.SVG), 0o644); err != nil {
			return err
		}
	}
	return nil
}
