package rate

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/ledger"
)

const (
	partitionCallers = 64
	partitionTenants = 256 // callers use these tenants in turn; there are enough of them that every partition has several
)

// partitioned is a ledger with a given number of partitions and the results of its load.
type partitioned struct {
	n       int
	scratch *rig.Scratch
	ledger  *ledger.Ledger
	samples []rig.Sample
}

// partitions compares ledgers with different numbers of partitions. Each has its own PostgreSQL.
// Their runs alternate, so that other work on the machine affects all of them.
func (c *Append) partitions(ctx context.Context) error {
	var all []*partitioned
	for _, n := range c.Partitions {
		s, err := rig.NewPartitioned(ctx, n)
		if err != nil {
			return err
		}
		defer s.Close()
		l, err := ledger.Open(ctx, s.App, ledger.Options{Log: slog.New(slog.DiscardHandler), Partitions: n})
		if err != nil {
			return err
		}
		defer l.Close()
		all = append(all, &partitioned{n: n, scratch: s, ledger: l})
	}
	for run := range c.Runs + 1 { // the first run is a warm-up and is not counted
		for _, p := range all {
			result, err := p.load(ctx, partitionCallers, c.During)
			if err != nil {
				return err
			}
			if run > 0 {
				p.samples = append(p.samples, result)
			}
		}
	}
	fmt.Printf("%-12s %12s %8s %20s %14s %10s\n", "partitions", "appends/s", "ratio", "p50/p99 ms", "events/batch", "ms/batch")
	first := rig.Median(all[0].samples).PerSecond
	for _, p := range all {
		m := rig.Median(p.samples)
		batch, took := p.batches().each()
		fmt.Printf("%-12d %12.0f %8.2f %20s %14.1f %10.2f\n", p.n, m.PerSecond, m.PerSecond/first, m.P50P99(), batch, took)
	}
	for _, p := range all {
		if err := rig.Check(ctx, p.scratch); err != nil {
			return err
		}
	}
	if !c.Model {
		return nil
	}
	model, err := all[0].scaling(ctx, c.Runs, c.During)
	fmt.Print(model.drawn())
	return err
}

func (p *partitioned) load(ctx context.Context, callers int, during time.Duration) (rig.Sample, error) {
	run := time.Now().UnixNano()
	var turn atomic.Int64
	return rig.Load(callers, during, func(caller, n int) error {
		name := fmt.Sprintf("bench/%d/%d/%d", run, caller, n)
		_, err := p.ledger.Append(ctx, ledger.Append{Tenant: fmt.Sprint("org_bench_", turn.Add(1)%partitionTenants), Events: []ledger.Pending{rig.Event(name, rig.Payload)}})
		return err
	})
}

// batches counts batches, the events in them, and the milliseconds that writing them took.
type batches struct{ count, events, took float64 }

func (p *partitioned) batches() batches {
	n, events, _ := p.ledger.Stats().BatchEvents.Read(1)
	_, took, _ := p.ledger.Stats().Commits.Read(1e-3)
	return batches{float64(n), events, took}
}

func (b *batches) add(after, before batches) {
	b.count, b.events, b.took = b.count+after.count-before.count, b.events+after.events-before.events, b.took+after.took-before.took
}

// each returns the average events and milliseconds per batch.
func (b batches) each() (events, took float64) {
	return b.events / max(b.count, 1), b.took / max(b.count, 1)
}

// scaling models a ledger of 16 partitions on several machines (workers). Writing a batch takes a
// fixed time, for the commit and the round trip, plus a time per event. A worker writes the
// batches of its partitions one after the other, as one disk does. The service programs in front
// of the workers need processor time for each append.
type scaling struct {
	fixed, perEvent, front float64 // milliseconds: per batch, per event, and of the service per append
}

// scaling measures the parameters of the model on this machine. The difference between batches of
// one caller and batches of many callers gives the time per event.
func (p *partitioned) scaling(ctx context.Context, runs int, during time.Duration) (scaling, error) {
	var few, many batches
	var processor time.Duration
	for range runs {
		for _, callers := range []int{1, partitionCallers} {
			before, used := p.batches(), p.scratch.CPUNow()
			if _, err := p.load(ctx, callers, during); err != nil {
				return scaling{}, err
			}
			if callers == 1 {
				few.add(p.batches(), before)
				continue
			}
			many.add(p.batches(), before)
			processor += p.scratch.CPUNow().Process - used.Process
		}
	}
	one, tookOne := few.each()
	more, tookMore := many.each()
	perEvent := max((tookMore-tookOne)/max(more-one, 1), 0.001)
	return scaling{fixed: max(tookOne-perEvent*one, 0.01), perEvent: perEvent, front: processor.Seconds() * 1000 / max(many.events, 1)}, nil
}

const (
	modelPartitions = 16
	modelCallers    = 1024
	modelBatch      = 512 // largest number of events in a batch
	modelSeconds    = 20
)

// rate simulates the model with this number of workers and returns the appends per second. A
// caller waits for its answer and then appends again, for a tenant of a random partition.
func (m scaling) rate(workers int) float64 {
	random := rand.New(rand.NewPCG(1, 2)) // fixed seed: every call simulates the same sequence
	waiting := make([]int, modelPartitions)
	for i := range modelCallers {
		waiting[i%modelPartitions]++
	}
	free := make([]float64, workers) // time in milliseconds at which each worker has written its batch
	serving := make([]int, workers)  // number of callers whose appends each worker is writing
	turn := make([]int, workers)     // partition that each worker serves next
	held := (modelPartitions + workers - 1) / workers
	done := 0
	for {
		w := 0
		for i := range free { // find the worker that is free first
			if free[i] < free[w] {
				w = i
			}
		}
		if free[w] >= modelSeconds*1000 {
			return float64(done) / modelSeconds
		}
		done += serving[w]
		for range serving[w] {
			waiting[random.IntN(modelPartitions)]++
		}
		serving[w] = 0
		for looked := 0; looked < held && serving[w] == 0; looked++ {
			if p := turn[w]*workers + w; p < modelPartitions {
				serving[w] = min(waiting[p], modelBatch)
				waiting[p] -= serving[w]
			}
			turn[w] = (turn[w] + 1) % held
		}
		free[w] += m.perEvent
		if serving[w] > 0 {
			free[w] += m.fixed + m.perEvent*float64(serving[w]-1)
		}
	}
}

// paper calculates the rate of the model without randomness. The waiting appends of a partition
// grow evenly from zero to one batch while the worker serves its other partitions, so on average
// half a batch waits. The waiting appends and the batch that is being written together are all
// callers.
func (m scaling) paper(workers int) float64 {
	callers, held := float64(modelCallers/modelPartitions), float64(modelPartitions/workers)
	batch := min(callers/(1./2+1/held), modelBatch)
	return float64(workers) * 1000 * batch / (m.fixed + m.perEvent*batch)
}

// drawn returns a table with a line for each number of workers: the calculated and the simulated
// rate, and the processor cores that the service needs for that rate.
func (m scaling) drawn() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model: a batch takes %.2f ms and %.4f ms for each event, the service %.4f ms of a core for each append; %d callers, %d partitions\n",
		m.fixed, m.perEvent, m.front, modelCallers, modelPartitions)
	fmt.Fprintf(&b, "%-10s %12s %12s %16s\n", "workers", "on paper", "simulated", "service cores")
	counts := []int{1, 2, 4, 8, 16}
	most := m.rate(counts[len(counts)-1])
	for _, workers := range counts {
		rate := m.rate(workers)
		fmt.Fprintf(&b, "%-10d %12.0f %12.0f %16.1f  %s\n", workers, m.paper(workers), rate, rate*m.front/1000, strings.Repeat("#", int(40*rate/most+0.5)))
	}
	fmt.Fprintln(&b, "next limits: the service processes, which share nothing, so more can be added; then a single tenant, whose events are in one partition")
	return b.String()
}
