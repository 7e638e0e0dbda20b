package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/projections"
)

type replayDiffCmd struct {
	Names []string `arg:"" optional:"" name:"name" help:"Read models to compare. Default: all."`
	setting.Ledger
}

// Run builds each read model again from the events and compares the rows. The exit code is 1 if a
// row differs.
func (c *replayDiffCmd) Run(ctx context.Context, o *screen.Output) error {
	n, err := node.Start(ctx, &c.Ledger, false, false, "", slog.New(slog.DiscardHandler), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	names := c.Names
	if len(names) == 0 {
		names = projections.Names()
	}
	var found []projections.Compared
	var b strings.Builder
	differs := false
	for _, name := range names {
		compared, err := projections.Diff(ctx, n.Ledger, n.Log, name)
		if err != nil {
			return err
		}
		found = append(found, compared)
		fmt.Fprintf(&b, "%-14s %d rows, events up to %d: ", name, compared.Rows, compared.Position)
		if len(compared.Differences) == 0 {
			b.WriteString("as the events say\n")
			continue
		}
		differs = true
		b.WriteString("NOT as the events say (countersign replay rebuild " + name + " repairs it)\n")
		for _, d := range compared.Differences {
			fmt.Fprintf(&b, "  %-14s %s: %s\n", d.What, d.Table, d.Key)
		}
		if compared.More {
			b.WriteString("  and more\n")
		}
	}
	if err := o.Result(found, b.String()); err != nil {
		return err
	}
	if differs {
		return screen.ErrNo
	}
	return nil
}

type replayAtCmd struct {
	When string `arg:"" name:"position-or-time" help:"A position, or an RFC 3339 time."`
	setting.Ledger
}

// Run builds the read models as they were at a position or a time.
func (c *replayAtCmd) Run(ctx context.Context, o *screen.Output) error {
	n, err := node.Start(ctx, &c.Ledger, false, false, "", slog.New(slog.DiscardHandler), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	positions, err := positionsAt(ctx, n, c.When)
	if err != nil {
		return err
	}
	schema, err := projections.At(ctx, n.Ledger, n.Log, positions)
	if err != nil {
		return err
	}
	return o.Result(map[string]any{"schema": schema, "position": positions[0], "positions": positions},
		fmt.Sprintf("schema %s has every read model as it was after position %s; run \"drop schema %s cascade\" when you are done\n",
			schema, strings.Trim(fmt.Sprint(positions), "[]"), schema))
}

// positionsAt returns a position for each partition. If text is a time, these are the positions of
// the last events before it. A single position is accepted only if the ledger has one partition,
// because each partition has its own positions.
func positionsAt(ctx context.Context, n *node.Node, text string) ([]int64, error) {
	heads, err := n.Ledger.Heads(ctx)
	if err != nil {
		return nil, err
	}
	if position, err := strconv.ParseInt(text, 10, 64); err == nil {
		if len(heads) > 1 {
			return nil, errors.New("this ledger has several partitions, each with positions of its own: name a time")
		}
		if position < 1 || position > heads[0] {
			return nil, fmt.Errorf("the ledger has the positions 1 to %d", heads[0])
		}
		return []int64{position}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, errors.New("name a position, or a time such as 2026-09-30T23:59:59Z")
	}
	positions := make([]int64, len(heads))
	for p, head := range heads {
		// Times increase with positions, except for differences between the clocks of nodes.
		var failed error
		positions[p] = int64(sort.Search(int(head), func(i int) bool {
			events, err := n.Ledger.Partition(int16(p)).After(ctx, int64(i), 1)
			failed = errors.Join(failed, err)
			return len(events) == 1 && !events[0].Occurred().Before(at)
		}))
		if failed != nil {
			return nil, failed
		}
	}
	return positions, nil
}

type replayDecisionsCmd struct {
	setting.Ledger
	Org    string `help:"Only this organization." placeholder:"ID"`
	From   string `help:"First position, or a time." placeholder:"POSITION|TIME"`
	To     string `help:"Last position, or a time." placeholder:"POSITION|TIME"`
	Policy string `help:"Evaluate the decisions under this policy instead, and list those that would differ." type:"existingfile" placeholder:"FILE"`
}

// Run evaluates recorded decisions again. The exit code is 1 if a result differs.
func (c *replayDecisionsCmd) Run(ctx context.Context, o *screen.Output) error {
	c.Unsigned = true
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	request := evidence.Replay{Tenant: c.Org, Services: services.List()}
	for text, into := range map[string]*[]int64{c.From: &request.From, c.To: &request.To} {
		if text == "" {
			continue
		}
		if *into, err = positionsAt(ctx, n, text); err != nil {
			return err
		}
	}
	if c.Policy != "" {
		if request.Policy, err = os.ReadFile(c.Policy); err != nil {
			return err
		}
	}
	report, err := n.App.ReplayDecisions(ctx, request)
	if err != nil {
		return err
	}
	if err := o.Result(report, inText(report, c.Policy != "")); err != nil {
		return err
	}
	if len(report.Different) > 0 {
		return screen.ErrNo
	}
	return nil
}

func inText(r evidence.Replayed, asked bool) string {
	var b strings.Builder
	if asked {
		fmt.Fprintf(&b, "%d decisions, of which %d would be the same\n", r.Decisions, r.Equal)
	} else {
		fmt.Fprintf(&b, "%d decisions, %d come out the same, byte for byte; %d of %d verdicts\n", r.Decisions, r.Equal, r.Verdicts.Equal, r.Verdicts.Verdicts)
	}
	if n := r.Verdicts.VerdictAlone; n > 0 {
		fmt.Fprintf(&b, "of %d of these verdicts risk, score and rules come out the same; the rest of the answer differs, because another program version wrote it\n", n)
	}
	for _, d := range r.Different {
		fmt.Fprintf(&b, "DIFFERENT       %s at position %d: %s was %s, comes out as %s %s\n", d.DecisionID, d.Position, d.What, d.Recorded, d.Replayed, strings.Join(d.RuleIDs, " "))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "DIFFERENT       and %d more\n", r.More)
	}
	for _, gap := range r.NotReplayable {
		fmt.Fprintf(&b, "NOT REPLAYABLE  %d times: %s\n", gap.Count, gap.Reason)
	}
	return b.String()
}
