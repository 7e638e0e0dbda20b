package manage

import (
	"context"
	"fmt"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/projections"
)

// Refunds has the commands that show and record refunds. The operator pays them by other means; no
// command moves money.
type Refunds struct {
	List    refundsListCmd    `cmd:"" help:"List payments with a refund, the oldest first."`
	Show    refundsShowCmd    `cmd:"" help:"Show a refund: each amount and who receives it."`
	Request refundsRequestCmd `cmd:"" help:"Request the refund of any settled payment over x402, also of a purchase that was downloaded. Afterwards its file cannot be downloaded any more. The next step is to approve the refund."`
	Approve refundsApproveCmd `cmd:"" help:"Approve a requested refund. Then pay it and record the transaction with refunds sent."`
	Sent    refundsSentCmd    `cmd:"" help:"Record the transaction by which an approved refund was paid."`
}

type refundsListCmd struct {
	State string `help:"Only refunds in this state: requested, approved or sent." enum:",requested,approved,sent" default:""`
	Limit int    `help:"Maximum number of refunds." default:"50"`
	setting.Ledger
}

// Run prints a line for each refund.
func (c *refundsListCmd) Run(ctx context.Context, o *screen.Output) error {
	list := func(p *projections.Projections) ([]projections.Payment, error) {
		return p.Refunds(ctx, c.State, c.Limit)
	}
	return writePayments(ctx, o, &c.Ledger, list, []string{"payment", "refund", "amount", "payer", "operation"}, func(p projections.Payment) []string {
		return []string{p.PaymentID, p.Refund, p.Amount, p.Payer, p.Operation}
	})
}

type refundsShowCmd struct {
	ID string `arg:"" help:"Id of the payment, pay_..."`
	setting.Ledger
}

// Run prints the refund.
func (c *refundsShowCmd) Run(ctx context.Context, o *screen.Output) error {
	return node.With(ctx, &c.Ledger, func(app *commands.App) error {
		r, err := app.Refund(ctx, c.ID)
		if err != nil {
			return err
		}
		return writeRefund(ctx, app, o, c.ID, r)
	})
}

// writeRefund prints one refund. Before that it records that the operator is shown the address to
// which the refund goes.
func writeRefund(ctx context.Context, app *commands.App, o *screen.Output, paymentID string, r payments.Refund) error {
	if err := noteOpened(ctx, app, r.To); err != nil {
		return err
	}
	text := fmt.Sprintf("%s of %s on %s to %s  %s", r.Amount, r.Asset, r.Network, r.To, r.State)
	return o.Result(map[string]string{"paymentId": paymentID, "state": r.State, "amount": r.Amount, "asset": r.Asset, "network": r.Network,
		"to": r.To, "transaction": r.Transaction}, strings.TrimSpace(text+"  "+r.Transaction)+"\n")
}

type refundsRequestCmd struct {
	ID string `arg:"" help:"Id of the payment, pay_..."`
	setting.Ledger
}

// Run requests the refund.
func (c *refundsRequestCmd) Run(ctx context.Context, o *screen.Output) error {
	return node.With(ctx, &c.Ledger, func(app *commands.App) error {
		r, err := app.RequestRefundAsOperator(ctx, c.ID)
		if err != nil {
			return err
		}
		return writeRefund(ctx, app, o, c.ID, r)
	})
}

type refundsApproveCmd struct {
	ID     string `arg:"" help:"Id of the payment, pay_..."`
	Reason string `help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	setting.Ledger
}

// Run approves the refund.
func (c *refundsApproveCmd) Run(ctx context.Context, o *screen.Output) error {
	return node.With(ctx, &c.Ledger, func(app *commands.App) error {
		r, err := app.ApproveRefund(ctx, c.ID, c.Reason)
		if err != nil {
			return err
		}
		return writeRefund(ctx, app, o, c.ID, r)
	})
}

type refundsSentCmd struct {
	ID          string `arg:"" help:"Id of the payment, pay_..."`
	Transaction string `required:"" help:"The transaction that paid the refund." placeholder:"TX"`
	setting.Ledger
}

// Run records the transaction that paid the refund.
func (c *refundsSentCmd) Run(ctx context.Context, o *screen.Output) error {
	if err := checkTransaction("--transaction", c.Transaction); err != nil {
		return err
	}
	return node.With(ctx, &c.Ledger, func(app *commands.App) error {
		r, err := app.SendRefund(ctx, c.ID, c.Transaction)
		if err != nil {
			return err
		}
		return writeRefund(ctx, app, o, c.ID, r)
	})
}
