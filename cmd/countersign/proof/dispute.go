package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger/bundle"
)

// Dispute writes all events about one purchase or tool call, for the two parties of a dispute.
type Dispute struct {
	packed
	Payment  string `help:"Id of the payment over x402 to this service, pay_..." placeholder:"ID"`
	Decision string `help:"Id of the decision about a purchase or tool call of an agent of the organization, asd_..." placeholder:"ID"`
}

// Run writes the bundle.
func (c *Dispute) Run(ctx context.Context, o *screen.Output) error {
	switch {
	case (c.Payment == "") == (c.Decision == ""):
		return errors.New("name one decision or payment, with --decision or --payment")
	case c.Payment != "" && !strings.HasPrefix(c.Payment, "pay_"):
		return errors.New("--payment must be the id of a payment, which begins with pay_")
	case c.Decision != "" && !strings.HasPrefix(c.Decision, "asd_"):
		return errors.New("--decision must be the id of a decision, which begins with asd_")
	}
	m, err := c.write(ctx, o, c.Decision != "", func(n *node.Node, e evidence.Export) (evidence.Exported, error) {
		e.Filters = bundle.Filters{NoPersonal: c.NoPersonal}
		if c.Payment != "" {
			return n.App.ExportPayment(ctx, e, c.Payment)
		}
		e.Dispute = c.Decision
		return n.App.ExportHistory(ctx, e)
	})
	if err != nil || c.Out == "-" {
		return err
	}
	var streams strings.Builder
	for _, s := range m.Dispute.Streams {
		fmt.Fprintf(&streams, "%s: %d events\n", s.Stream, s.Events)
	}
	return o.Made(m, c.Out, o.Wrapped("%d events of %s, checkpoint of %d events\n%sread it: unpack it and open export/views/dispute.html\n%s",
		m.Count, m.Tenant, m.CheckpointSize, streams.String(), c.howToCheck()))
}
