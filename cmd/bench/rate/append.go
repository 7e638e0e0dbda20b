// Package rate measures how many calls per second the ledger and the service answer, and how much
// processor time each stage of a call uses.
package rate

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// Append compares appends to the ledger with plain inserts into the same PostgreSQL, which are
// neither ordered nor chained.
type Append struct {
	Runs   int           `help:"Number of runs of each measurement. The median is printed." default:"3"`
	During time.Duration `help:"Length of each run." default:"3s"`
	Nodes  bool          `help:"Also measure two nodes at once, with 32 callers each."`

	Partitions []int `help:"Measure ledgers with these numbers of partitions instead, with 64 callers, and compare each with the first one in this list." placeholder:"1,4,16"`
	Model      bool  `help:"With --partitions: then simulate ledgers on several workers with the measured times."`
}

// Run prints one line for each number of callers.
func (c *Append) Run(ctx context.Context) error {
	if len(c.Partitions) > 0 {
		return c.partitions(ctx)
	}
	s, err := rig.NewScratch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Printf("%-10s %12s %12s %8s %20s %20s\n", "in flight", "anchor/s", "appends/s", "ratio", "anchor p50/p99 ms", "append p50/p99 ms")
	for _, callers := range []int{1, 8, 64} {
		if err := c.compare(ctx, s, fmt.Sprint(callers), 1, callers); err != nil {
			return err
		}
	}
	if c.Nodes {
		if err := c.compare(ctx, s, "2 x 32", 2, 64); err != nil {
			return err
		}
	}
	return rig.Check(ctx, s)
}

// compare measures one number of nodes and callers and prints its line.
func (c *Append) compare(ctx context.Context, s *rig.Scratch, name string, nodes, callers int) error {
	var anchors, appends []rig.Sample
	for range c.Runs {
		a, err := rig.Anchor(ctx, s, callers, c.During)
		if err != nil {
			return fmt.Errorf("anchor: %w", err)
		}
		b, err := rig.AppendLoad(ctx, s, nodes, callers, c.During, rig.Payload)
		if err != nil {
			return fmt.Errorf("append: %w", err)
		}
		anchors, appends = append(anchors, a), append(appends, b)
	}
	a, b := rig.Median(anchors), rig.Median(appends)
	fmt.Printf("%-10s %12.0f %12.0f %8.2f %20s %20s\n", name, a.PerSecond, b.PerSecond, b.PerSecond/a.PerSecond, a.P50P99(), b.P50P99())
	return nil
}
