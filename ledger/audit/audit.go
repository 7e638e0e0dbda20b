// Package audit verifies a ledger from the first event to the head: every hash, chain, signature,
// tile and checkpoint. Database is for an auditor, who need not trust the database. SelfCheck is
// for a node: it runs once a day and stops the node's appends if events were altered.
//
// An audit reads the events in ranges, several at a time (walk.go, span.go), and joins the ranges
// in order. Checks that need all events at once are in set.go, the tree and its checkpoints in
// tree.go, the auditor's own notes in pins.go, and the content of payloads in record.go. The audit
// implements the rules a second time and uses no code of the append path.
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

// Options are the parameters of an audit. With the zero value, the audit takes origin and keys
// from the database itself, and the report says so.
type Options struct {
	Origin     string                       // origin without the partition, such as ledger.example.com/countersign
	Keys       map[string]ed25519.PublicKey // trusted keys for records and checkpoints, by id; nil means those in the database
	Pins       []Pin                        // notes that the auditor has kept
	Outside    []checkpoint.Store           // stores whose newest notes are used in addition to Pins
	KEK        []byte                       // key-encryption key for personal members; if nil, they are not checked, and the report says so
	ChainOnly  bool                         // check chain, tree and head, but no records or signatures
	Workers    int                          // number of workers; 0 means one for each core
	FullSpeed  bool                         // do not pause while others append, which slows appends down
	Archive    checkpoint.Files             // store of the archive; if nil, an archived payload is an error
	Unarchived bool                         // do not read the archive: of archived events only the chain is checked
	Progress   func(events, head int64)     // called after each range with the events checked so far; may be nil

	spanEvents  int64 // events in a range; 0 means spanLength
	spillOctets int   // bytes of a bucket in memory; 0 means the constant spillOctets
}

// Pin is a checkpoint.Pin that an auditor has kept outside of the database.
type Pin struct {
	Name  string // source of the pin, for the report
	Note  []byte // text of the pin: a note, and the last event seen of each tenant
	epoch int64  // epoch of a note that was found in Outside; 0 if unknown
}

// of reports whether a note belongs to a partition. A note without a partition is assigned to the
// first one, whose audit reports the fault.
func (pin Pin) of(p int) bool {
	named := checkpoint.Partition(pin.Note)
	return named == p || named < 0 && p == 0
}

const (
	// spanLength is the number of events in a range: a whole number of tiles, read in one short
	// statement. The audit does not keep one snapshot open: that would keep dead versions of the
	// head row, which slow down every append.
	spanLength = 32 * tree.Width
	// spansAhead is the number of ranges per worker that may be finished before they are joined.
	spansAhead = 2
)

// Database verifies the ledger in a database: each partition from its first event to the head at
// the start of the audit. It writes nothing and needs only the right to select. It uses the
// origin, keys and notes in the options instead of those in the database. The error says what
// could not be read; faults are in the report.
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

// Ledger verifies the database of an open ledger. It trusts the origin and the keys in the
// database, and checks them against the newest notes in outside. If progress is not nil, it is
// called after each range.
func Ledger(ctx context.Context, l *ledger.Ledger, progress func(events, head int64), outside ...checkpoint.Store) (Report, error) {
	var report Report
	err := l.Reading(ctx, func() (err error) { // retries: the pool may have connections to a server that was restarted
		// The ranges are short because statements on this pool end after 5 s.
		report, err = On(ctx, l.Pool(), Options{Origin: l.Base(), Archive: archive.Of(l).Files(), Outside: outside, Progress: progress, spanEvents: 8 * tree.Width})
		return err
	})
	return report, err
}

// On does the same as Database, on open connections. It verifies one partition after the other and
// adds up their reports.
func On(ctx context.Context, pool *pgxpool.Pool, o Options) (Report, error) {
	var n int
	if err := pool.QueryRow(ctx, `select count(*) from ledger_head where p >= 0`).Scan(&n); err != nil {
		return Report{}, fmt.Errorf("read ledger head: %w", err)
	}
	if n <= 1 { // with no head row, the audit of partition 0 reports it
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
