package proof

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/projections"
)

// Replay has the commands that rebuild or compare data derived from the events: read models and
// decisions.
type Replay struct {
	Diff      replayDiffCmd      `cmd:"" help:"Build every read model again from the events and compare it row by row. Exit code 1: a row differs."`
	Decisions replayDecisionsCmd `cmd:"" help:"Evaluate recorded decisions again, or under another policy. Exit code 1: a result differs."`
	At        replayAtCmd        `cmd:"" help:"Build the read models as they were after a position or before a time, in a separate schema."`
	Rebuild   replayRebuildCmd   `cmd:"" help:"Rebuild a read model. Queries use the old one until the new one replaces it."`
}

type replayRebuildCmd struct {
	Name string `arg:"" help:"One of ${readmodels}."`
	setting.Ledger
}

// Run rebuilds one read model. The service may be running.
func (c *replayRebuildCmd) Run(ctx context.Context, o *screen.Output) error {
	say := func(format string, args ...any) { fmt.Fprintf(o.Stderr, "countersign: "+format+"\n", args...) }
	log := logs.New(slog.LevelWarn)
	n, err := node.Start(ctx, &c.Ledger, false, false, "", log, say)
	if err != nil {
		return err
	}
	defer n.Close()
	position, err := projections.Rebuild(ctx, n.Ledger, log, c.Name)
	if err != nil {
		return err
	}
	return o.Result(map[string]any{"name": c.Name, "position": position},
		fmt.Sprintf("%s is rebuilt from the events up to position %d\n", c.Name, position))
}
