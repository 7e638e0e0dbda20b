// Command bench measures countersign, compares it with an anchor in the same run, and prints
// ratios: absolute figures of a noisy machine mean little.
//
//	bench append    appends, compared with single-row inserts in the same PostgreSQL
//	bench quick     the quick gate over HTTP, compared with the bare append
//	bench decisions signed decisions over HTTP, compared with the bare append
//	bench services  every service without HTTP, and inputs at the contract's limits
//	bench feed      time from an answer to the read model, and catching up, compared with
//	                watermill-sql
//	bench start     time from the start of the program to its first answers, on a long ledger
//	bench doors     the quick gate while slow or expensive requests occupy the service
//	bench verify    an auditor's verify, compared with a bare read of the same rows, and how
//	                much it and checkpoints slow appends down
//	bench export    an organization's export, likewise
//	bench growth    single operations and complete reads as the ledger grows
//	bench soak      the quick gate for a long time at half of saturation
//	bench size      size of calls in the ledger
//	bench faults    answers to clients, compared after each fault of a table
//	bench gate      the engine, per command and per category of a corpus
//	bench hook      the guard of a coding agent, from its start to its answer
//	bench picture   the picture of the README: the output of the demo
//
// It starts its own PostgreSQL in a temporary folder, with fsync on, unless DATABASE_URL names
// a database (whose roles must exist, and which must contain nothing of value).
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
	Append    appendCmd    `cmd:"" help:"Compare appends with single-row inserts of the same size."`
	Quick     quickCmd     `cmd:"" help:"Compare the quick gate over HTTP with the bare append."`
	Decisions decisionsCmd `cmd:"" help:"Compare signed decisions over HTTP with the bare append."`
	Feed      feedCmd      `cmd:"" help:"Measure the time from an answer to the read model, and catching up, compared with watermill-sql."`
	Doors     doorsCmd     `cmd:"" help:"Measure the quick gate while slow or expensive requests occupy the service."`
	Start     startCmd     `cmd:"" help:"Measure the time from the start of the program to its first answers, on a long ledger with empty read models."`
	Growth    growthCmd    `cmd:"" help:"Repeat measurements while the ledger grows."`
	Soak      soakCmd      `cmd:"" help:"Call the quick gate for a long time at half of saturation; no resource may grow."`
	Services  servicesCmd  `cmd:"" help:"Measure every service without HTTP, and inputs at the contract's limits."`
	Verify    verifyCmd    `cmd:"" help:"Measure verification of a database, how much it and checkpoints slow appends down, and rebuilding."`
	Export    exportCmd    `cmd:"" help:"Measure the export of an organization's history, and how much it slows appends down."`
	Size      sizeCmd      `cmd:"" help:"Measure the size of calls in the ledger, by type of event and by index."`
	Packing   packingCmd   `cmd:"" help:"Write samples of a ledger's contents, for a compression dictionary."`
	Faults    faultsCmd    `cmd:"" help:"Cause every fault of a table while clients call, then compare their answers with the ledger."`
	Gate      gateCmd      `cmd:"" help:"Measure the engine per command, and print a table per category of a corpus file."`
	Hook      hookCmd      `cmd:"" help:"Measure the process of the guard of a coding agent."`
	Picture   pictureCmd   `cmd:"" help:"Draw the picture of the README: the output of the demo in a terminal."`

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
	dir        string // folder of the PostgreSQL it started; empty for an existing one
	close      func()
}

func newScratch(ctx context.Context) (*scratch, error) { return newPartitioned(ctx, 0) }

// newPartitioned is newScratch with a ledger of a number of partitions. 0 is one partition, or
// the number of an existing ledger.
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

// sample is the result of one run of a load.
type sample struct {
	perSecond float64
	latencies []time.Duration // sorted
	used      cpu             // total, if measured
}

func (s sample) quantile(q float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[min(int(math.Ceil(q*float64(len(s.latencies)))), len(s.latencies))-1]
}

// load calls an operation from a number of concurrent callers for a while.
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

// median returns the run with the median throughput.
func median(runs []sample) sample {
	slices.SortFunc(runs, func(a, b sample) int { return int(a.perSecond - b.perSecond) })
	return runs[len(runs)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }
