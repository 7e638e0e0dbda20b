package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/ledger"
)

const (
	partitionCallers = 64
	partitionTenants = 256 // callers go round them, so that every partition has some
)

// partitioned is a ledger of so many partitions under load.
type partitioned struct {
	n       int
	scratch *scratch
	ledger  *ledger.Ledger
	samples []sample
	commits float64 // milliseconds of one batch, of all runs
	batch   float64 // events of one batch
}

// partitions compares ledgers by how many partitions they have. They take turns on one
// machine, so that what else it does is shared; there is one PostgreSQL for each, and
// only one of them works at a time.
func (c *appendCmd) partitions(ctx context.Context) error {
	var all []*partitioned
	for _, n := range c.Partitions {
		s, err := newPartitioned(ctx, n)
		if err != nil {
			return err
		}
		defer s.close()
		l, err := ledger.Open(ctx, s.app, ledger.Options{Log: slog.New(slog.DiscardHandler), Partitions: n})
		if err != nil {
			return err
		}
		defer l.Close()
		all = append(all, &partitioned{n: n, scratch: s, ledger: l})
	}
	for run := range c.Runs + 1 { // the first warms up
		for _, p := range all {
			result, err := p.load(ctx, c.During)
			if err != nil {
				return err
			}
			if run > 0 {
				p.samples = append(p.samples, result)
			}
		}
	}
	fmt.Printf("%-12s %12s %8s %20s %14s %10s\n", "partitions", "appends/s", "ratio", "p50/p99 ms", "events/batch", "ms/batch")
	first := median(all[0].samples).perSecond
	for _, p := range all {
		p.measure()
		m := median(p.samples)
		fmt.Printf("%-12d %12.0f %8.2f %20s %14.1f %10.2f\n", p.n, m.perSecond, m.perSecond/first, ms(m.quantile(.5))+" / "+ms(m.quantile(.99)), p.batch, p.commits)
	}
	for _, p := range all {
		if err := check(ctx, p.scratch); err != nil {
			return err
		}
	}
	if c.Model {
		fmt.Print(newScaling(all[0]).drawn())
	}
	return nil
}

func (p *partitioned) load(ctx context.Context, during time.Duration) (sample, error) {
	run := time.Now().UnixNano()
	var turn atomic.Int64
	return load(partitionCallers, during, func(caller, n int) error {
		name := fmt.Sprintf("bench/%d/%d/%d", run, caller, n)
		_, err := p.ledger.Append(ctx, ledger.Append{Tenant: fmt.Sprint("org_bench_", turn.Add(1)%partitionTenants), Drafts: []ledger.Draft{{
			Stream: name, Expect: ledger.New(), ID: "evt_" + name, Type: "bench.happened", SchemaVersion: 1,
			Actor: "key_01JD3Z8W5T0000000000000000", Payload: payload}}})
		return err
	})
}

// measure reads what a batch took and held.
func (p *partitioned) measure() {
	stats := p.ledger.Stats()
	batches, events, _ := stats.BatchEvents.Read(1)
	commits, seconds, _ := stats.Commits.Read(1e-3)
	if batches > 0 && commits > 0 {
		p.batch, p.commits = events/float64(batches), seconds/float64(commits)
	}
}

// scaling says what more workers would give, each a machine that holds its share of 16
// partitions: by simulation, from the time of one batch on this machine. A batch costs
// a fixed time (a commit, and the round trip) and a time per event; workers serve their
// partitions' batches one after the other, as one disk does. What limits it next is the
// program in front, whose time per append is measured here as well, on the same cores.
type scaling struct {
	fixed, perEvent, front float64 // milliseconds
}

const (
	modelPartitions = 16
	modelCallers    = 1024
	modelBatch      = 512 // events of a batch at most
	modelSeconds    = 20
)

func newScaling(p *partitioned) scaling {
	// One caller's append is a batch of one: its median is the fixed time and one event's.
	perSecond := median(p.samples).perSecond
	each := 1000 / perSecond // milliseconds of the whole machine for an append, under load
	perEvent := min(each, p.commits/max(p.batch, 1)) / 2
	return scaling{fixed: max(p.commits-perEvent*p.batch, 0.1), perEvent: perEvent, front: each - perEvent}
}

// rate simulates so many workers and fronts, and returns appends per second: callers
// wait for their answer and ask again, each time a tenant of another partition.
func (m scaling) rate(workers int) float64 {
	waiting := make([]int, modelPartitions)
	for i := range modelCallers {
		waiting[i%modelPartitions]++
	}
	done, next := 0, 0
	free := make([]float64, workers) // when a worker is free, in milliseconds
	turn := make([]int, workers)     // the partition that it looks at next
	for now := 0.0; now < modelSeconds*1000; {
		w := 0
		for i := range free { // the worker that is free first
			if free[i] < free[w] {
				w = i
			}
		}
		now = free[w]
		batch := 0
		for range (modelPartitions + workers - 1) / workers {
			p := (turn[w]*workers + w) % modelPartitions
			turn[w]++
			if p >= modelPartitions || waiting[p] == 0 {
				continue
			}
			batch = min(waiting[p], modelBatch)
			waiting[p] -= batch
			break
		}
		if batch == 0 {
			free[w] = now + m.fixed
			continue
		}
		free[w] = now + m.fixed + m.perEvent*float64(batch)
		done += batch
		for range batch {
			waiting[next%modelPartitions]++
			next++
		}
	}
	return float64(done) / modelSeconds
}

// drawn is a line for each number of workers, with what the programs in front allow.
func (m scaling) drawn() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model: a batch takes %.2f ms and %.4f ms for each event, a program in front %.4f ms of one machine for each append\n", m.fixed, m.perEvent, m.front)
	fmt.Fprintf(&b, "%-10s %12s %28s\n", "workers", "appends/s", "machines in front to keep up")
	counts := []int{1, 2, 4, 8, 16}
	most := m.rate(counts[len(counts)-1])
	for _, workers := range counts {
		rate := m.rate(workers)
		fmt.Fprintf(&b, "%-10d %12.0f %28.1f  %s\n", workers, rate, rate*m.front/1000, strings.Repeat("#", int(40*rate/most+0.5)))
	}
	fmt.Fprintln(&b, "next limits: the programs in front, which share nothing and are added; then a single tenant, which lives in one partition")
	return b.String()
}
