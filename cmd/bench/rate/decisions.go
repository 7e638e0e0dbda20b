package rate

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/ledger/events"
)

// Decisions compares signed decisions over loopback HTTP, which append one durable event each,
// with bare appends in the same run.
type Decisions struct {
	Runs    int           `help:"Number of runs of each measurement. The median is printed." default:"3"`
	During  time.Duration `help:"Length of each run." default:"3s"`
	Callers []int         `help:"Numbers of callers." default:"1,32"`
	Agents  int           `help:"Number of agents, whose ids are encrypted; 0 for decisions without an agentId." default:"100"`
	Profile string        `help:"Write a CPU profile of all decisions to this file."`
}

// Run prints one line for each number of callers. It compares decisions with bare appends of a
// payload of the same size, and with the small appends of the other benchmarks.
func (c *Decisions) Run(ctx context.Context) error {
	service, token, err := rig.StartOrganization(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	// Make one decision to learn the size of its payload.
	if _, err := service.Decide(token, 1, c.Agents, time.Millisecond); err != nil {
		return err
	}
	decision, err := last(ctx, service, events.TypeDecisionRecorded)
	if err != nil {
		return err
	}
	sized := fmt.Appendf(nil, `{"decision":%s}`, decision.Payload) // the record is a member of the payload, so that the append does not treat it as a signed record
	fmt.Printf("%-10s %10s %10s %12s %8s %9s %20s %20s   %s\n", "in flight", "small/s", "appends/s", "decisions/s", "ratio", "to small",
		"append p50/p99 ms", "decision p50/p99 ms", "us of CPU of each, program + database")
	// For each number of callers, measure small appends, appends as large as a decision, and
	// decisions.
	for _, callers := range c.Callers {
		var appends, large, decisions []rig.Sample
		for range c.Runs {
			a, err := service.Measured(ctx, func() (rig.Sample, error) {
				return rig.AppendLoad(ctx, service.Scratch, 1, callers, c.During, rig.Payload)
			})
			if err != nil {
				return err
			}
			b, err := service.Measured(ctx, func() (rig.Sample, error) {
				return rig.AppendLoad(ctx, service.Scratch, 1, callers, c.During, sized)
			})
			if err != nil {
				return err
			}
			d, err := service.Measured(ctx, func() (rig.Sample, error) {
				defer rig.Profiled(c.Profile)()
				return service.Decide(token, callers, c.Agents, c.During)
			})
			if err != nil {
				return err
			}
			appends, large, decisions = append(appends, a), append(large, b), append(decisions, d)
		}
		a, b, d := rig.Median(appends), rig.Median(large), rig.Median(decisions)
		fmt.Printf("%-10d %10.0f %10.0f %12.0f %8.2f %9.2f %20s %20s   %s; %s; %s\n", callers, a.PerSecond, b.PerSecond, d.PerSecond,
			d.PerSecond/b.PerSecond, d.PerSecond/a.PerSecond,
			b.P50P99(), d.P50P99(),
			a.Used.Per(len(a.Latencies)), b.Used.Per(len(b.Latencies)), d.Used.Per(len(d.Latencies)))
	}
	return rig.Check(ctx, service.Scratch)
}
