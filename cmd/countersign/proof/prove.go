package proof

import (
	"context"
	"errors"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger/bundle"
)

// Prove writes a statement about what an agent did in a period, with the events from which anyone
// can count again.
type Prove struct {
	packed
	Agent   string `help:"The agent's id, exactly as it was sent." required:"" placeholder:"ID"`
	Between string `help:"The first moment of the period and the first moment after it, each as an RFC 3339 time or a date: --between 2026-07-01 2026-10-01." placeholder:"FROM"`
	Until   string `arg:"" optional:"" name:"to" help:"With --between: the first moment after the period."`
	Period  string `help:"Instead of two times: a quarter, month or year, such as 2026Q3, 2026-09 or 2026." placeholder:"PERIOD"`
}

// Run writes the statement and its events.
func (c *Prove) Run(ctx context.Context, o *screen.Output) error {
	if (c.Between == "") != (c.Until == "") {
		return errors.New("--between needs two times: --between 2026-07-01 2026-10-01")
	}
	if c.Between == "" && c.Period == "" {
		return errors.New("name the period: --between 2026-07-01 2026-10-01, or --period 2026Q3")
	}
	from, to, err := span(c.Period, bound{"--between", c.Between}, bound{"TO", c.Until})
	if err != nil {
		return err
	}
	m, err := c.write(ctx, o, true, func(n *node.Node, e evidence.Export) (evidence.Exported, error) {
		e.Filters, e.Statement = bundle.Filters{From: from, To: to, Agent: c.Agent, NoPersonal: c.NoPersonal}, true
		return n.App.ExportHistory(ctx, e)
	})
	if err != nil || c.Out == "-" {
		return err
	}
	return o.Made(m, c.Out, o.Wrapped("agent %s of %s, %s to %s\n%s\n%s\nread it: unpack it and open export/views/statement.html\n%s",
		words.Quote(c.Agent), m.Tenant, from, to, words.Unverified, m.Statement.Says(), c.howToCheck()+notEnded(to, m.IssuedAt)))
}
