package rig

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
)

// Sample is the result of one load run.
type Sample struct {
	PerSecond float64
	Latencies []time.Duration // in ascending order
	Used      CPU             // processor time of the run; zero if not measured
}

// Quantile returns the latency that a share q of the calls did not exceed (0.5 is the median).
func (s Sample) Quantile(q float64) time.Duration {
	if len(s.Latencies) == 0 {
		return 0
	}
	return s.Latencies[min(int(math.Ceil(q*float64(len(s.Latencies)))), len(s.Latencies))-1]
}

// Load calls an operation from several concurrent callers for a time. Each caller stops at its
// first error.
func Load(callers int, during time.Duration, operation func(caller, n int) error) (Sample, error) {
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
	var s Sample
	var err error
	for range callers {
		r := <-results
		s.Latencies = append(s.Latencies, r.latencies...)
		if r.err != nil {
			err = r.err
		}
	}
	s.PerSecond = float64(len(s.Latencies)) / time.Since(start).Seconds()
	slices.Sort(s.Latencies)
	return s, err
}

// Offer starts an operation at a fixed rate, whether or not earlier ones have ended, and measures
// each from the time at which it was due. So a pause of the ledger delays all operations that were
// due meanwhile. Offer returns the first error after all operations have ended.
func Offer(perSecond int, during time.Duration, operation func(n int) error) (Sample, error) {
	var s Sample
	var mu sync.Mutex // guards s and failed
	var failed error
	var running sync.WaitGroup
	start, interval := time.Now(), time.Second/time.Duration(perSecond)
	for n := range int(during / interval) {
		due := start.Add(time.Duration(n) * interval)
		time.Sleep(time.Until(due))
		running.Go(func() {
			err := operation(n)
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			s.Latencies = append(s.Latencies, took)
			if failed == nil {
				failed = err
			}
		})
	}
	running.Wait()
	s.PerSecond = float64(len(s.Latencies)) / time.Since(start).Seconds()
	slices.Sort(s.Latencies)
	return s, failed
}

// Median returns the run that has the median rate.
func Median(runs []Sample) Sample {
	slices.SortFunc(runs, func(a, b Sample) int { return int(a.PerSecond - b.PerSecond) })
	return runs[len(runs)/2]
}

// P50P99 formats the median and the 99th percentile of the latency in milliseconds.
func (s Sample) P50P99() string { return MS(s.Quantile(.5)) + " / " + MS(s.Quantile(.99)) }

// MS formats a duration in milliseconds.
func MS(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

// Payload has a size at which a row of the ledger has about 650 bytes.
var Payload = Padded(240)

// Padded returns a JSON payload of this size in bytes.
func Padded(size int) []byte {
	const before, after = `{"pad":"`, `"}`
	return bytes.Join([][]byte{[]byte(before), bytes.Repeat([]byte("x"), size-len(before+after)), []byte(after)}, nil)
}

// AppendLoad appends from several callers through several nodes. Each append writes one event to a
// new stream.
func AppendLoad(ctx context.Context, s *Scratch, nodes, callers int, during time.Duration, payload []byte) (Sample, error) {
	ledgers := make([]*ledger.Ledger, nodes)
	for i := range ledgers {
		l, err := OpenLedger(ctx, s)
		if err != nil {
			return Sample{}, err
		}
		defer l.Close()
		ledgers[i] = l
	}
	run := time.Now().UnixNano()
	return Load(callers, during, func(caller, n int) error {
		name := fmt.Sprintf("bench/%d/%d/%d", run, caller, n)
		_, err := ledgers[caller%nodes].Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{Event(name, payload)}})
		return err
	})
}

// AppendOffered appends at a fixed rate. Each append writes one event to a new stream.
func AppendOffered(ctx context.Context, s *Scratch, perSecond int, during time.Duration) (Sample, error) {
	l, err := OpenLedger(ctx, s)
	if err != nil {
		return Sample{}, err
	}
	defer l.Close()
	run := time.Now().UnixNano()
	return Offer(perSecond, during, func(n int) error {
		_, err := l.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{Event(fmt.Sprintf("bench/%d/%d", run, n), Payload)}})
		return err
	})
}

// Event returns an event that creates a new stream.
func Event(stream string, payload []byte) ledger.Pending {
	return ledger.Pending{Stream: stream, Expect: ledger.New(), ID: "evt_" + stream, Type: "bench.happened", SchemaVersion: 1,
		Actor: "key_01JD3Z8W5T0000000000000000", Payload: payload}
}

// Progress prints a progress line to standard error.
func Progress(what string, done, total int64) {
	fmt.Fprintf(os.Stderr, "\r%s %d of %d  ", what, done, total)
	if done >= total {
		fmt.Fprintln(os.Stderr)
	}
}

// Anchor measures inserts of single rows, as large as a ledger's row with Payload, by prepared
// statements. Each insert has its own commit, and each caller has its own connection.
func Anchor(ctx context.Context, s *Scratch, callers int, during time.Duration) (Sample, error) {
	owner, err := pgx.Connect(ctx, s.Owner)
	if err != nil {
		return Sample{}, err
	}
	defer owner.Close(ctx)
	if _, err := owner.Exec(ctx, `drop table if exists public.bench_anchor;
		create table public.bench_anchor (id bytea primary key, tenant text, stream text, type text, actor text, at bigint,
			payload bytea, h1 bytea, h2 bytea, h3 bytea, k1 bytea, k2 bytea)`); err != nil {
		return Sample{}, err
	}
	conns := make([]*pgx.Conn, callers)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, s.Owner); err != nil {
			return Sample{}, err
		}
		defer conns[i].Close(ctx)
	}
	hash := make([]byte, 32)
	result, err := Load(callers, during, func(caller, n int) error {
		id := make([]byte, 16)
		rand.Read(id)
		_, err := conns[caller].Exec(ctx, `insert into public.bench_anchor values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			id, "service", fmt.Sprintf("bench/%d/%d", caller, n), "bench.happened", "key_01JD3Z8W5T0000000000000000",
			time.Now().UnixMicro(), Payload, hash, hash, hash, hash, hash)
		return err
	})
	return result, err
}
