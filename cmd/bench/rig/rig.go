// Package rig contains what several measurements use: an empty database or a complete service
// (StartService), a load and its results (Load, Sample), and the bare append and insert with which
// results are compared (AppendLoad, Anchor).
package rig

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/migrations"
)

// Scratch is the database of one run.
type Scratch struct {
	App, Owner string
	Dir        string // folder of the PostgreSQL that was started; empty for an existing database
	Close      func()
}

// NewScratch returns a database with an empty ledger of one partition. It starts a PostgreSQL for
// it, unless DATABASE_URL names a database.
func NewScratch(ctx context.Context) (*Scratch, error) { return NewPartitioned(ctx, 0) }

// NewPartitioned returns a database like NewScratch, with a ledger of several partitions. 0 means
// one partition, or the partitions that an existing ledger has.
func NewPartitioned(ctx context.Context, partitions int) (*Scratch, error) {
	if url := os.Getenv("DATABASE_URL"); url != "" {
		return &Scratch{App: url, Owner: url, Close: func() {}}, migrations.UpPartitioned(ctx, url, "", partitions)
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
	s := &Scratch{App: server.URL(migrations.AppRole), Owner: server.URL(migrations.OwnerRole), Dir: dir, Close: func() {
		_ = server.Stop()
		_ = os.RemoveAll(dir)
	}}
	if err := migrations.UpPartitioned(ctx, s.Owner, "", partitions); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Check verifies the ledger that the benchmark wrote, because a rate only counts if the chain is
// correct.
func Check(ctx context.Context, s *Scratch) error {
	l, err := OpenLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	began := time.Now()
	report, err := audit.Ledger(ctx, l, nil)
	if err != nil {
		return err
	}
	fmt.Printf("verified %d events in %s (%.0f/s), %d faults\n", report.Events, time.Since(began).Round(time.Millisecond),
		float64(report.Events)/time.Since(began).Seconds(), len(report.Faults))
	if len(report.Faults) > 0 {
		return report.Faults[0]
	}
	return nil
}

// OpenLedger opens the ledger of a scratch database.
func OpenLedger(ctx context.Context, s *Scratch) (*ledger.Ledger, error) {
	return ledger.Open(ctx, s.App, ledger.Options{Log: slog.New(slog.DiscardHandler)})
}
