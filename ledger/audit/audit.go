// Package audit verifies a ledger: every hash, chain, signature, tile and checkpoint, from
// the first event to the head. Database does it for an auditor, who trusts nothing that
// the database says about itself; SelfCheck does it for a node, once a day, and stops its
// appends if history is false.
//
// An audit reads the events in ranges, several at a time (walk.go, span.go), and joins the
// ranges in order. What needs all events at once is in set.go, the tree and its
// checkpoints in tree.go, what the auditor has kept in pins.go, and what a payload says in
// record.go. The rules are written a second time here: the audit uses no code of the
// append path.
package audit

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"runtime"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/migrations"
)

// Options say how a database is verified. The zero value takes origin and keys from the
// database itself, and the report says so.
type Options struct {
	Origin     string                       // without the partition: ledger.example.com/countersign
	Keys       map[string]ed25519.PublicKey // the auditor's keys of both purposes, by id; nil: the database's
	Pins       []Pin                        // notes that the auditor has kept
	Outside    []checkpoint.Store           // places whose newest notes are read in addition to Pins
	KEK        []byte                       // opens personal members; nil: they are not opened, and the report says so
	ChainOnly  bool                         // checks chain, tree and head, but no records and signatures
	Workers    int                          // 0: one for each core
	FullSpeed  bool                         // takes no rests while others append, so that appends slow down
	Archive    checkpoint.Files             // the objects of the archive; nil: an archived payload is an error
	Unarchived bool                         // reads no objects of the archive: of archived events only the chain is checked
	Progress   func(events, head int64)     // called after each range; may be nil

	spanEvents  int64 // length of a range; 0: spanLength
	spillOctets int   // size of a bucket before it goes to a file; 0: spillOctets
}

// Pin is a checkpoint.Pin that an auditor kept outside of the database.
type Pin struct {
	Name  string // where it came from, for the report
	Note  []byte // the pin's text: a note, and the last event seen of each tenant
	epoch int64  // of a note that was found in Outside; 0: unknown
}

// of says whether a note is of a partition. A note that names no partition counts as one of
// the first, whose audit reports it.
func (pin Pin) of(p int) bool {
	named := checkpoint.Partition(pin.Note)
	return named == p || named < 0 && p == 0
}

const (
	// spanLength is the number of events in a range: a whole number of tiles, read in one
	// short statement. No snapshot stays open over the walk: it would keep dead versions of
	// the head row, which slow every append down.
	spanLength = 32 * tree.Width
	// spansAhead is how many ranges per worker may be finished before their turn.
	spansAhead = 2
)

// Database verifies the ledger of a database, each partition from its first event to the
// head at the start of the audit. It writes nothing and needs only the right to select.
// What the options bring (origin, keys, notes) is not taken from the database. The error
// says what could not be read; what is false is in the report.
func Database(ctx context.Context, databaseURL string, o Options) (Report, error) {
	cfg, err := migrations.ParsePoolURL(databaseURL)
	if err != nil {
		return Report{}, err
	}
	cfg.MaxConns = max(cfg.MaxConns, int32(o.workers())+4)
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `set default_transaction_read_only = on; set enable_seqscan = off; set enable_bitmapscan = off`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return Report{}, fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	return On(ctx, pool, o)
}

// Ledger verifies the database of an open ledger. It trusts the origin and the keys that
// the database names, and checks them against the newest notes in outside. progress, if
// not nil, is called after each range.
func Ledger(ctx context.Context, l *ledger.Ledger, progress func(events, head int64), outside ...checkpoint.Store) (Report, error) {
	var report Report
	err := l.Reading(ctx, func() (err error) { // the pool may have connections to a server that was restarted
		// The ranges are short because statements of this pool end after 5 s.
		report, err = On(ctx, l.Pool(), Options{Origin: l.Base(), Archive: archive.Of(l).Files(), Outside: outside, Progress: progress, spanEvents: 8 * tree.Width})
		return err
	})
	return report, err
}

// On is Database on open connections. It verifies the partitions one after the other and
// adds up their reports.
func On(ctx context.Context, pool *pgxpool.Pool, o Options) (Report, error) {
	var n int
	if err := pool.QueryRow(ctx, `select count(*) from ledger_head where p >= 0`).Scan(&n); err != nil {
		return Report{}, fmt.Errorf("read ledger head: %w", err)
	}
	if n <= 1 { // a missing head row is a fault of the first partition
		return o.partition(ctx, pool, 0, 1)
	}
	total := Report{Faults: []Fault{}, Trusted: []string{}, Gaps: []string{}}
	progress, before := o.Progress, int64(0)
	pins := o.Pins
	for p := range n {
		if progress != nil {
			o.Progress = func(events, head int64) { progress(before+events, before+head) }
		}
		o.Pins = slices.DeleteFunc(slices.Clone(pins), func(pin Pin) bool { return !pin.of(p) })
		report, err := o.partition(ctx, pool, int16(p), n)
		if err != nil {
			return total, err
		}
		before += report.Events
		total.add(report)
	}
	return total, nil
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}
