package proof

import (
	"context"
	"fmt"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/projections"
)

// Oversight prints figures about human reviews, computed from the events.
type Oversight struct {
	Org    string `help:"Organization. Default: the one that you set with countersign org use, or the only one." env:"COUNTERSIGN_ORG" placeholder:"ORG"`
	Period string `help:"The quarter, month or year in which the decisions were recorded: 2026Q4, 2026-11 or 2026." required:"" placeholder:"PERIOD"`
	setting.Ledger
}

// Run prints the figures.
func (c *Oversight) Run(ctx context.Context, o *screen.Output) error {
	from, to, err := period(c.Period)
	if err != nil {
		return err
	}
	return node.WithReadModels(ctx, &c.Ledger, func(n *node.Node, p *projections.Projections) error {
		org, err := n.Organization(ctx, c.Org)
		if err != nil {
			return err
		}
		found, err := p.Oversight(ctx, org, from, to, n.App.Now())
		if err != nil {
			return err
		}
		return o.Result(found, o.Wrapped("%s", oversightText(found)))
	})
}

// oversightText returns the figures and the reviewers, one per line.
func oversightText(o projections.Oversight) string {
	var text strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "%-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	share := func(part, whole int64) string {
		return fmt.Sprintf("%d (%.1f%%)", part, projections.Share(part, whole))
	}
	line("decisions that needed a review", "%d", o.Asked)
	line("answered", "%s", share(o.Answered, o.Asked))
	line("without a verdict", "%d, of which the agent ended %d without waiting", o.Unanswered, o.Unawaited)
	line("time to a verdict, median", "%g s", o.MedianSeconds)
	line("time to a verdict, 95th percentile", "%g s", o.P95Seconds)
	line("decided in under five seconds", "%s", share(o.Instant, o.Answered))
	line("overruled (the verdict is rejected)", "%s", share(o.Overruled, o.Answered))
	line("approvals that expired unused", "%s", share(o.Expired, o.Approved))
	for _, r := range o.Reviewers {
		never := ""
		if r.Overruled == 0 {
			never = ", never rejected"
		}
		line("reviewer "+r.MemberID, "%d verdicts, %d rejected, %d in under five seconds, median %g s%s", r.Answered, r.Overruled, r.Instant, r.MedianSeconds, never)
	}
	return text.String()
}
