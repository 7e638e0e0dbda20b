package rate

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// Quick compares calls of the quick gate over loopback HTTP, which append one durable event each,
// with the bare append.
type Quick struct {
	Runs    int           `help:"Number of runs of each measurement. The median is printed." default:"3"`
	During  time.Duration `help:"Length of each run." default:"3s"`
	Callers []int         `help:"Numbers of callers." default:"1,8,64"`
	Profile string        `help:"Write a CPU profile of all calls to this file."`
}

// Run prints one line for each number of callers, and then the processor time of the stages of a
// call.
func (c *Quick) Run(ctx context.Context) error {
	service, err := rig.StartService(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	fmt.Printf("%-10s %10s %10s %7s %7s %20s %20s   %s\n", "in flight", "appends/s", "calls/s", "ratio", "p50", "append p50/p99 ms", "call p50/p99 ms",
		"us of CPU of each, program + database")
	for _, callers := range c.Callers {
		var appends, calls []rig.Sample
		for range c.Runs {
			a, err := service.Measured(ctx, func() (rig.Sample, error) {
				return rig.AppendLoad(ctx, service.Scratch, 1, callers, c.During, rig.Payload)
			})
			if err != nil {
				return err
			}
			keys, err := service.QuickKeys(ctx, callers, c.During)
			if err != nil {
				return err
			}
			b, err := service.Measured(ctx, func() (rig.Sample, error) {
				defer rig.Profiled(c.Profile)()
				return service.Quick(keys, c.During)
			})
			if err != nil {
				return err
			}
			appends, calls = append(appends, a), append(calls, b)
		}
		a, b := rig.Median(appends), rig.Median(calls)
		fmt.Printf("%-10d %10.0f %10.0f %7.2f %7.2f %20s %20s   %s; %s\n", callers, a.PerSecond, b.PerSecond, b.PerSecond/a.PerSecond,
			float64(b.Quantile(.5))/float64(a.Quantile(.5)), a.P50P99(),
			b.P50P99(), a.Used.Per(len(a.Latencies)), b.Used.Per(len(b.Latencies)))
	}
	for _, callers := range c.Callers {
		if err := stages(ctx, service, callers, c.During); err != nil {
			return err
		}
	}
	return rig.Check(ctx, service.Scratch)
}
