package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
)

// appendCmd compares appends to the ledger with inserts of the same PostgreSQL that nothing
// orders or chains.
type appendCmd struct {
	Runs   int           `help:"Runs of each; the median counts." default:"3"`
	During time.Duration `help:"Length of each run." default:"3s"`
	Nodes  bool          `help:"Also measure two nodes at once, with 32 callers each."`

	Partitions []int `help:"Compare instead ledgers with these numbers of partitions, each with the first; 64 callers on as many tenants." placeholder:"1,4,16"`
	Model      bool  `help:"After that, simulate one worker per group of partitions with the measured times."`
}

// payload makes a row of about 650 bytes, together with the ledger's other columns.
var payload = padded(240)

// padded returns a payload of a given size in bytes.
func padded(size int) []byte {
	const before, after = `{"pad":"`, `"}`
	return bytes.Join([][]byte{[]byte(before), bytes.Repeat([]byte("x"), size-len(before+after)), []byte(after)}, nil)
}

// Run prints one line per number of callers.
func (c *appendCmd) Run(ctx context.Context) error {
	if len(c.Partitions) > 0 {
		return c.partitions(ctx)
	}
	s, err := newScratch(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Printf("%-10s %12s %12s %8s %20s %20s\n", "in flight", "anchor/s", "appends/s", "ratio", "anchor p50/p99 ms", "append p50/p99 ms")
	for _, callers := range []int{1, 8, 64} {
		var anchors, appends []sample
		for range c.Runs {
			a, err := anchor(ctx, s, callers, c.During)
			if err != nil {
				return fmt.Errorf("anchor: %w", err)
			}
			b, err := appendLoad(ctx, s, 1, callers, c.During, payload)
			if err != nil {
				return fmt.Errorf("append: %w", err)
			}
			anchors, appends = append(anchors, a), append(appends, b)
		}
		line(fmt.Sprint(callers), median(anchors), median(appends))
	}
	if c.Nodes {
		var anchors, appends []sample
		for range c.Runs {
			a, err := anchor(ctx, s, 64, c.During)
			if err != nil {
				return err
			}
			b, err := appendLoad(ctx, s, 2, 64, c.During, payload)
			if err != nil {
				return err
			}
			anchors, appends = append(anchors, a), append(appends, b)
		}
		line("2 x 32", median(anchors), median(appends))
	}
	return check(ctx, s)
}

func line(name string, a, b sample) {
	fmt.Printf("%-10s %12.0f %12.0f %8.2f %20s %20s\n", name, a.perSecond, b.perSecond, b.perSecond/a.perSecond,
		ms(a.quantile(.5))+" / "+ms(a.quantile(.99)), ms(b.quantile(.5))+" / "+ms(b.quantile(.99)))
}

// anchor measures prepared inserts of single rows of the same size, each in its own commit,
// with one connection per caller.
func anchor(ctx context.Context, s *scratch, callers int, during time.Duration) (sample, error) {
	owner, err := pgx.Connect(ctx, s.owner)
	if err != nil {
		return sample{}, err
	}
	defer owner.Close(ctx)
	if _, err := owner.Exec(ctx, `drop table if exists public.bench_anchor;
		create table public.bench_anchor (id bytea primary key, tenant text, stream text, type text, actor text, at bigint,
			payload bytea, h1 bytea, h2 bytea, h3 bytea, k1 bytea, k2 bytea)`); err != nil {
		return sample{}, err
	}
	conns := make([]*pgx.Conn, callers)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, s.owner); err != nil {
			return sample{}, err
		}
		defer conns[i].Close(ctx)
	}
	hash := make([]byte, 32)
	result, err := load(callers, during, func(caller, n int) error {
		id := make([]byte, 16)
		rand.Read(id)
		_, err := conns[caller].Exec(ctx, `insert into public.bench_anchor values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			id, "service", fmt.Sprintf("bench/%d/%d", caller, n), "bench.happened", "key_01JD3Z8W5T0000000000000000",
			time.Now().UnixMicro(), payload, hash, hash, hash, hash, hash)
		return err
	})
	return result, err
}

// appendLoad appends one event per call, to a new stream each.
func appendLoad(ctx context.Context, s *scratch, nodes, callers int, during time.Duration, payload []byte) (sample, error) {
	ledgers := make([]*ledger.Ledger, nodes)
	for i := range ledgers {
		l, err := ledger.Open(ctx, s.app, ledger.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return sample{}, err
		}
		defer l.Close()
		ledgers[i] = l
	}
	run := time.Now().UnixNano()
	return load(callers, during, func(caller, n int) error {
		name := fmt.Sprintf("bench/%d/%d/%d", run, caller, n)
		_, err := ledgers[caller%nodes].Append(ctx, ledger.Append{Tenant: "service", Events: []ledger.Pending{{
			Stream: name, Expect: ledger.New(), ID: "evt_" + name, Type: "bench.happened", SchemaVersion: 1,
			Actor: "key_01JD3Z8W5T0000000000000000", Payload: payload}}})
		return err
	})
}

// check verifies what the benchmark wrote: speed that breaks the chain does not count.
func check(ctx context.Context, s *scratch) error {
	l, err := ledger.Open(ctx, s.app, ledger.Options{Log: slog.New(slog.DiscardHandler)})
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
