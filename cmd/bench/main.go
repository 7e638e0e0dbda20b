// Command bench measures countersign and prints ratios to a simpler operation measured in the same
// run (the anchor), because absolute figures of a busy machine mean little.
//
//	bench append    appends, compared with single-row inserts in the same PostgreSQL
//	bench quick     the quick gate over HTTP, compared with the bare append
//	bench decisions signed decisions over HTTP, compared with the bare append
//	bench services  every service without HTTP, and inputs at the contract's limits
//	bench feed      time from an answer to the read model
//	bench start     time from the start of the program to its first answers, on a long ledger
//	bench doors     the quick gate while slow or expensive requests occupy the service
//	bench verify    an auditor's verify, compared with a bare read of the same rows, and how
//	                much verify and checkpoints slow appends down
//	bench export    an organization's export, compared with a bare read, and how much it slows
//	                appends down
//	bench selection the export of all denied decisions, as the ledger grows
//	bench growth    single operations and complete reads as the ledger grows
//	bench soak      the quick gate for a long time at half of its maximum load
//	bench size      size of calls in the ledger
//	bench packing   samples of a ledger's contents, for a compression dictionary
//	bench faults    answers to clients, compared after each fault of a table
//	bench gate      the engine, per command and per category of a corpus
//	bench hook      the guard of a coding agent, from its start to its answer
//	bench picture   the picture of the README: the output of the demo
//
// The module in the folder peers compares countersign with programs of other people.
//
// bench starts its own PostgreSQL in a temporary folder, with fsync on, unless DATABASE_URL names
// a database. That database must have the roles of the service and must contain nothing of value.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/bench/compute"
	"github.com/countersign/countersign/cmd/bench/rate"
	"github.com/countersign/countersign/cmd/bench/scale"
	"github.com/countersign/countersign/cmd/bench/strain"
	"github.com/countersign/countersign/ledger/localpg"
)

// cli lists the commands of the program.
type cli struct {
	Append    rate.Append      `cmd:"" help:"Compare appends with single-row inserts of the same size."`
	Quick     rate.Quick       `cmd:"" help:"Compare the quick gate over HTTP with the bare append."`
	Decisions rate.Decisions   `cmd:"" help:"Compare signed decisions over HTTP with the bare append."`
	Feed      rate.Feed        `cmd:"" help:"Measure how soon a read model contains a decision."`
	Doors     strain.Doors     `cmd:"" help:"Measure the quick gate while slow or expensive requests occupy the service."`
	Start     scale.Start      `cmd:"" help:"Measure the time from the start of the program to its first answers, on a long ledger with empty read models."`
	Growth    scale.Growth     `cmd:"" help:"Repeat measurements while the ledger grows."`
	Soak      strain.Soak      `cmd:"" help:"Call the quick gate for a long time at half of its maximum load; no resource may grow."`
	Services  compute.Services `cmd:"" help:"Measure every service without HTTP, and inputs at the contract's limits."`
	Verify    scale.Verify     `cmd:"" help:"Measure verification of a database, how much verification and checkpoints slow appends down, and the rebuild of read models."`
	Export    scale.Export     `cmd:"" help:"Measure the export of an organization's history, and how much the export slows appends down."`
	Selection scale.Selection  `cmd:"" help:"Measure the export of all denied decisions and its verification, while the ledger grows."`
	Size      scale.Size       `cmd:"" help:"Measure the size of calls in the ledger, by type of event and by index."`
	Packing   packingCmd       `cmd:"" help:"Write samples of a ledger's contents, for a compression dictionary."`
	Faults    faultsCmd        `cmd:"" help:"Cause each fault that a table lists while clients call, and check that no answer is lost or changed."`
	Gate      compute.Gate     `cmd:"" help:"Measure the time that the gate's engine needs for a command. For a corpus file, also print how many commands of each source and category it stopped."`
	Hook      compute.Hook     `cmd:"" help:"Measure the process of the guard of a coding agent."`
	Picture   pictureCmd       `cmd:"" help:"Draw the picture of the README: the output of the demo in a terminal."`

	Audit      scale.AuditChild  `cmd:"" hidden:""`
	Read       scale.ReadChild   `cmd:"" hidden:""`
	MakeExport scale.ExportChild `cmd:"" hidden:""`

	CheckExport     scale.CheckExportChild `cmd:"" hidden:""`
	CheckSignatures scale.SignaturesChild  `cmd:"" hidden:""`
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
