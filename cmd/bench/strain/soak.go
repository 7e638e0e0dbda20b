// Package strain measures the quick gate under difficult conditions: a load for a long time, and
// slow or expensive requests of other clients.
package strain

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/commands/accounts"
)

// Soak calls the quick gate for a long time at half of its maximum rate. It checks that memory,
// goroutines, connections and dead rows do not grow.
type Soak struct {
	During  time.Duration `help:"Length of the soak." default:"20m"`
	Every   time.Duration `help:"Time between two measurements of the service during the soak." default:"10s"`
	Share   float64       `help:"Load as a share of the maximum." default:"0.5"`
	MostP99 time.Duration `help:"Fail if more than one call in a hundred takes longer, counted from when it was due." default:"25ms"`
}

const (
	soakCallers = 64
	// Allowed growth from the second quarter to the last. Caches fill in the first quarter, which
	// is not compared. The heap may grow by a share plus a number of megabytes; goroutines and
	// connections by a number; dead rows by a factor, because PostgreSQL removes them at
	// intervals.
	heapMayGrow, heapMayGrowMB = 0.2, 16
	goroutinesMayGrow          = 20
	connectionsMayGrow         = 4
	deadMayGrow, deadMayBe     = 3, 20_000
)

// look has the measured resources at one moment.
type look struct {
	heapMB, goroutines, connections, dead int64
}

// Run prints a line for each measurement. It returns an error if a resource has grown or calls
// were too slow.
func (c *Soak) Run(ctx context.Context) error {
	service, err := rig.StartService(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	owner, err := pgx.Connect(ctx, service.Scratch.Owner)
	if err != nil {
		return err
	}
	defer owner.Close(ctx)
	keys, err := service.QuickKeys(ctx, soakCallers, 5*time.Second)
	if err != nil {
		return err
	}
	full, err := service.Quick(keys, 5*time.Second)
	if err != nil {
		return err
	}
	perSecond := full.PerSecond * c.Share
	fmt.Printf("maximum %.0f calls per second; load of %.0f for %s\n", full.PerSecond, perSecond, c.During)
	fmt.Printf("%8s %10s %20s %8s %11s %12s %10s\n", "after", "calls/s", "gate p50/p99 ms", "heap MB", "goroutines", "connections", "dead rows")
	steady, stop := context.WithTimeout(ctx, c.During)
	defer stop()
	due := schedule(steady, perSecond)
	measured := make(chan time.Duration, 1<<16)
	ended := make(chan error, 1)
	go func() { ended <- soak(steady, service, due, measured) }()
	looks, whole, err := c.watch(steady, owner, measured, ended)
	if err != nil {
		return err
	}
	fmt.Printf("%d calls, p50 %s ms, p99 %s ms, p99.9 %s ms\n", whole.n, rig.MS(whole.quantile(.5)), rig.MS(whole.quantile(.99)), rig.MS(whole.quantile(.999)))
	err = grew(looks)
	if p99 := whole.quantile(.99); p99 > c.MostP99 {
		err = errors.Join(err, fmt.Errorf("p99 is %s, more than %s", p99, c.MostP99))
	}
	return errors.Join(err, rig.Check(ctx, service.Scratch))
}

// schedule sends the times at which calls are due, whether or not earlier calls have been
// answered. A client that waits for each answer before it makes the next call would leave the
// waiting time out of the measurement.
func schedule(ctx context.Context, perSecond float64) <-chan time.Time {
	due := make(chan time.Time, 1<<16)
	go func() {
		defer close(due)
		began := time.Now()
		for n := 0; ; {
			for ; float64(n) < time.Since(began).Seconds()*perSecond; n++ {
				select {
				case due <- began.Add(time.Duration(float64(n) / perSecond * float64(time.Second))):
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	}()
	return due
}

// soak makes a call at each due time, until the channel is closed.
func soak(ctx context.Context, b *rig.Service, due <-chan time.Time, measured chan<- time.Duration) error {
	ctx = context.WithoutCancel(ctx) // a call that has started is finished after ctx ends
	errs := make(chan error, soakCallers)
	for caller := range soakCallers {
		go func() { errs <- soakCaller(ctx, b, caller, due, measured) }()
	}
	var err error
	for range soakCallers {
		err = errors.Join(err, <-errs)
	}
	close(measured)
	return err
}

func soakCaller(ctx context.Context, b *rig.Service, caller int, due <-chan time.Time, measured chan<- time.Duration) error {
	c, err := b.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	key, n := "", 0
	for at := range due {
		if n%accounts.FreeCallsPerMonth == 0 {
			issued, err := b.App.IssueFreeKey(ctx, fmt.Sprintf("soak-%d-%d@example.com", caller, n), "")
			if err != nil {
				return err
			}
			key = issued.APIKey
		}
		n++
		if err := c.Quick(key); err != nil {
			return err
		}
		measured <- time.Since(at)
	}
	return nil
}

// watch collects the latencies and measures the resources at intervals, until the calls have
// ended.
func (c *Soak) watch(ctx context.Context, owner *pgx.Conn, measured <-chan time.Duration, ended <-chan error) (looks []look, all *histogram, err error) {
	began, next := time.Now(), time.After(c.Every)
	all, lately := &histogram{}, &histogram{}
	for {
		select {
		case took, more := <-measured:
			if !more {
				return looks, all, <-ended
			}
			all.add(took)
			lately.add(took)
		case <-next:
			l, err := lookAt(context.WithoutCancel(ctx), owner)
			if err != nil {
				return nil, nil, err
			}
			looks = append(looks, l)
			fmt.Printf("%8s %10.0f %20s %8d %11d %12d %10d\n", time.Since(began).Round(time.Second), float64(lately.n)/c.Every.Seconds(),
				rig.MS(lately.quantile(.5))+" / "+rig.MS(lately.quantile(.99)), l.heapMB, l.goroutines, l.connections, l.dead)
			*lately, next = histogram{}, time.After(c.Every)
		}
	}
}

// histogram counts latencies in steps of 0.1 ms, up to ten seconds. It has a constant size: a
// growing list of all latencies would disturb the measurement of memory.
type histogram struct {
	counts [100_001]int64
	n      int64
}

func (h *histogram) add(d time.Duration) {
	h.counts[min(int(d/(100*time.Microsecond)), len(h.counts)-1)]++
	h.n++
}

// quantile returns the upper bound of the step that contains the quantile.
func (h *histogram) quantile(q float64) time.Duration {
	seen, want := int64(0), int64(q*float64(h.n))
	for i, n := range h.counts {
		if seen += n; seen > want {
			return time.Duration(i+1) * 100 * time.Microsecond
		}
	}
	return 0
}

// lookAt measures the resources of the database and of this process, which runs service and
// clients.
func lookAt(ctx context.Context, owner *pgx.Conn) (l look, err error) {
	// This is the live heap of the last garbage collection. Starting a collection here would
	// change the measured latencies.
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	l.heapMB, l.goroutines = int64(live[0].Value.Uint64()>>20), int64(runtime.NumGoroutine())
	err = owner.QueryRow(ctx, `select (select count(*) from pg_stat_activity where datname = current_database()),
		(select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_user_tables)`).Scan(&l.connections, &l.dead)
	return l, err
}

// grew compares the highest values in the last quarter with those in the second quarter and
// returns an error for each that grew too much.
func grew(looks []look) error {
	if len(looks) < 8 {
		return errors.New("too few checks to say whether something grows: use a longer --during or a shorter --every")
	}
	quarter := len(looks) / 4
	early, late := looks[quarter:2*quarter], looks[len(looks)-quarter:]
	most := func(of []look, value func(look) int64) (most int64) {
		for _, l := range of {
			most = max(most, value(l))
		}
		return most
	}
	var err error
	for _, part := range []struct {
		name  string
		value func(look) int64
		may   func(early int64) int64
	}{
		{"heap (MB)", func(l look) int64 { return l.heapMB }, func(e int64) int64 { return e + int64(float64(e)*heapMayGrow) + heapMayGrowMB }},
		{"goroutines", func(l look) int64 { return l.goroutines }, func(e int64) int64 { return e + goroutinesMayGrow }},
		{"connections", func(l look) int64 { return l.connections }, func(e int64) int64 { return e + connectionsMayGrow }},
		{"dead rows", func(l look) int64 { return l.dead }, func(e int64) int64 { return max(deadMayGrow*e, deadMayBe) }},
	} {
		if was, is := most(early, part.value), most(late, part.value); is > part.may(was) {
			err = errors.Join(err, fmt.Errorf("%s grew from %d to %d", part.name, was, is))
		}
	}
	return err
}
