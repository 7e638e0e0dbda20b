// Command bench measures countersign against an anchor in the same run and
// prints ratios: absolute figures of a noisy machine mean little.
//
//	bench append     appends against single-row inserts in the same PostgreSQL
//	bench quick      the quick gate over HTTP against the bare append
//	bench decisions  signed decisions over HTTP against the bare append
//	bench services   every service alone, and inputs at the contract's edge
//	bench feed       from an answer to the read model, and catching up, against watermill-sql
//	bench start      from the start of the program to its first answers, on a long ledger
//	bench doors      the quick gate while slow bodies or heavy manifests hold the doors
//	bench verify     an auditor's verify against a bare read of the same rows, and
//	                 what appends lose to it and to checkpoints
//	bench export     an organization's export, likewise
//	bench growth     single operations, and what reads everything, as the ledger grows
//	bench soak       the quick gate for long at half of saturation
//	bench size       what calls take up in the ledger
//	bench faults     what clients were told, compared after each fault of a table
//	bench gate       the engine alone, per command and per category of a corpus
//	bench hook       the guard of a coding agent, from its start to its answer
//	bench picture    the picture of the README: the demo, run now
//
// It starts a PostgreSQL of its own in a scratch folder, with fsync on, unless
// DATABASE_URL names one (its roles must exist, and nothing of value in it).
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/migrations"
)

type cli struct {
	Append    appendCmd    `cmd:"" help:"Appends against single-row inserts of the same size."`
	Quick     quickCmd     `cmd:"" help:"The quick gate over HTTP with a key against the bare append."`
	Decisions decisionsCmd `cmd:"" help:"Signed decisions over HTTP against the bare append."`
	Feed      feedCmd      `cmd:"" help:"From an answer to the read model; catching up, against watermill-sql."`
	Doors     doorsCmd     `cmd:"" help:"The quick gate while slow bodies or heavy manifests hold the doors."`
	Start     startCmd     `cmd:"" help:"From the start of the program to its first answers, on a long ledger whose read models are at zero."`
	Growth    growthCmd    `cmd:"" help:"The same measurements on a ledger that grows."`
	Soak      soakCmd      `cmd:"" help:"The quick gate for long at half of saturation: nothing may grow."`
	Services  servicesCmd  `cmd:"" help:"Every service alone, and inputs at the contract's edge."`
	Verify    verifyCmd    `cmd:"" help:"Verification of a database, what appends lose to it and to checkpoints, and rebuilding."`
	Export    exportCmd    `cmd:"" help:"Export of an organization's history, and what appends lose to it."`
	Size      sizeCmd      `cmd:"" help:"What calls take up in the ledger, by type of event and by index."`
	Packing   packingCmd   `cmd:"" help:"Samples of what a ledger stores, for a dictionary by which payloads are packed."`
	Faults    faultsCmd    `cmd:"" help:"Every fault of the table while clients call; then everything they were told is compared."`
	Gate      gateCmd      `cmd:"" help:"Engine time per command, and a table per category of a corpus file."`
	Hook      hookCmd      `cmd:"" help:"The guard of a coding agent, the whole process."`
	Picture   pictureCmd   `cmd:"" help:"The picture of the README: the demo, run now, as a terminal shows it."`

	Audit      auditChild  `cmd:"" hidden:""`
	Read       readChild   `cmd:"" hidden:""`
	MakeExport exportChild `cmd:"" hidden:""`

	CheckExport     checkExportChild `cmd:"" hidden:""`
	CheckSignatures signaturesChild  `cmd:"" hidden:""`
}

func main() {
	localpg.DieWithGoRun()
	var c cli
	command := kong.Parse(&c, kong.Name("bench"), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// scratch is a database for one run.
type scratch struct {
	app, owner string
	dir        string // of the PostgreSQL it started; empty for one that was there
	close      func()
}

func newScratch(ctx context.Context) (*scratch, error) { return newPartitioned(ctx, 0) }

// newPartitioned is newScratch with a ledger of so many partitions; 0 for one, or as
// many as a ledger has that is there.
func newPartitioned(ctx context.Context, partitions int) (*scratch, error) {
	if url := os.Getenv("DATABASE_URL"); url != "" {
		return &scratch{app: url, owner: url, close: func() {}}, migrations.UpPartitioned(ctx, url, "", partitions)
	}
	dir, err := os.MkdirTemp("", "countersign-bench-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	server, err := localpg.Start(ctx, localpg.Options{DataDir: dir, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	s := &scratch{app: server.URL(migrations.AppRole), owner: server.URL(migrations.OwnerRole), dir: dir, close: func() {
		_ = server.Stop()
		_ = os.RemoveAll(dir)
	}}
	if err := migrations.UpPartitioned(ctx, s.owner, "", partitions); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// sample is what one run of something gave.
type sample struct {
	perSecond float64
	latencies []time.Duration // sorted
	used      cpu             // by all of them, where it was asked for
}

func (s sample) quantile(q float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[min(int(math.Ceil(q*float64(len(s.latencies)))), len(s.latencies))-1]
}

// load runs an operation from a number of callers for a while.
func load(callers int, during time.Duration, operation func(caller, n int) error) (sample, error) {
	type result struct {
		latencies []time.Duration
		err       error
	}
	results := make(chan result)
	start := time.Now()
	for caller := range callers {
		go func() {
			var r result
			for n := 0; time.Since(start) < during && r.err == nil; n++ {
				began := time.Now()
				r.err = operation(caller, n)
				r.latencies = append(r.latencies, time.Since(began))
			}
			results <- r
		}()
	}
	var s sample
	var err error
	for range callers {
		r := <-results
		s.latencies = append(s.latencies, r.latencies...)
		if r.err != nil {
			err = r.err
		}
	}
	s.perSecond = float64(len(s.latencies)) / time.Since(start).Seconds()
	slices.Sort(s.latencies)
	return s, err
}

// median of runs by throughput.
func median(runs []sample) sample {
	slices.SortFunc(runs, func(a, b sample) int { return int(a.perSecond - b.perSecond) })
	return runs[len(runs)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }
