package manage

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// Payments has the commands that list and settle x402 payments.
type Payments struct {
	List      paymentsListCmd      `cmd:"" help:"List payments, the newest first."`
	Show      paymentsShowCmd      `cmd:"" help:"Show the state of a payment."`
	Reconcile paymentsReconcileCmd `cmd:"" help:"Find out the result of every open payment now. Exit code 1: some are still open."`
	Resolve   paymentsResolveCmd   `cmd:"" help:"Record the result of an open payment, after you found out the result by other means, such as on the chain."`
}

type paymentsListCmd struct {
	State string `help:"Only payments in this state: open, claimed, unknown, settled or refused." enum:",open,claimed,unknown,settled,refused" default:""`
	Limit int    `help:"Maximum number of payments." default:"50"`
	setting.Ledger
}

// Run prints a line for each payment.
func (c *paymentsListCmd) Run(ctx context.Context, o *screen.Output) error {
	list := func(p *projections.Projections) ([]projections.Payment, error) {
		return p.Payments(ctx, c.State, c.Limit)
	}
	return writePayments(ctx, o, &c.Ledger, list, []string{"payment", "state", "claimed", "price", "operation", "transaction or reason"}, func(p projections.Payment) []string {
		return []string{p.PaymentID, p.State, canon.Stamp(p.ClaimedAt), fmt.Sprintf("$%d.%02d", p.PriceCents/100, p.PriceCents%100),
			p.Operation, strings.TrimSpace(p.Transaction + " " + p.Reason)}
	})
}

// writePayments prints a row for each payment that the function list returns. The read model has
// no payer and no transaction, so they are read from each payment's stream.
func writePayments(ctx context.Context, o *screen.Output, l *setting.Ledger, list func(*projections.Projections) ([]projections.Payment, error), heads []string, row func(projections.Payment) []string) error {
	return node.WithReadModels(ctx, l, func(n *node.Node, p *projections.Projections) error {
		found, err := list(p)
		if err != nil {
			return err
		}
		rows, shown := screen.Table{Heads: heads}, []listedPayment{}
		for _, payment := range found {
			info, err := openPayment(ctx, n.App, payment.PaymentID)
			if err != nil {
				return err
			}
			payment.Payer, payment.Transaction = info.Payer, info.Transaction
			shown = append(shown, listedPayment{payment, canon.Stamp(payment.ClaimedAt)})
			rows.Add(row(payment)...)
		}
		return o.Result(shown, o.Table(rows))
	})
}

// listedPayment is a payment in the output of payments list.
type listedPayment struct {
	projections.Payment
	ClaimedAt string `json:"claimedAt"`
}

type paymentsShowCmd struct {
	ID string `arg:"" help:"Id of the payment, pay_..."`
	setting.Ledger
}

// Run prints the payment.
func (c *paymentsShowCmd) Run(ctx context.Context, o *screen.Output) error {
	return node.With(ctx, &c.Ledger, func(app *commands.App) error {
		info, err := openPayment(ctx, app, c.ID)
		if err != nil {
			return err
		}
		return o.Result(info, paymentText(info))
	})
}

// openPayment returns a payment for display, and records that the operator is shown the payer.
func openPayment(ctx context.Context, app *commands.App, id string) (payments.PaymentInfo, error) {
	info, err := app.Payment(ctx, id)
	if err != nil {
		return info, err
	}
	return info, noteOpened(ctx, app, info.Payer)
}

// noteOpened records that the operator is shown the address of a payer. If the payer was erased,
// the address is empty and nothing is recorded.
func noteOpened(ctx context.Context, app *commands.App, payer string) error {
	if payer == "" {
		return nil
	}
	return app.NotePersonalOpened(ctx, organizations.Principal{OrgID: ledger.ServiceTenant, ActorID: "operator"}, "payments")
}

func paymentText(p payments.PaymentInfo) string {
	var text strings.Builder
	for _, line := range [][2]string{{"payment", p.PaymentID}, {"state", p.State}, {"reason", p.Reason}, {"transaction", p.Transaction}, {"evidence", p.Evidence},
		{"mode", p.Mode}, {"operation", p.Operation}, {"amount", p.Amount + " of " + p.Asset + " on " + p.Network}, {"payer", p.Payer}, {"paid to", p.PayTo},
		{"nonce", p.Nonce}, {"claimed", p.ClaimedAt}, {"valid until", p.ValidBefore}, {"refund", p.Refund}} {
		if line[1] != "" {
			fmt.Fprintf(&text, "%-12s %s\n", line[0], line[1])
		}
	}
	return text.String()
}

type paymentsReconcileCmd struct {
	setting.X402
	setting.Ledger
}

// Run makes one attempt to settle each open payment, and prints the results.
func (c *paymentsReconcileCmd) Run(ctx context.Context, o *screen.Output) error {
	return node.WithReadModels(ctx, &c.Ledger, func(n *node.Node, p *projections.Projections) error {
		s, err := c.X402.Open(ctx, &c.Ledger, true, n.Log)
		if err != nil {
			return err
		}
		if n.App.Settler = s.Settler; s.Settler == nil {
			return errors.New("X402_MODE is off, so no facilitator can be asked")
		}
		open, err := p.Payments(ctx, "open", ReconcileAtOnce)
		if err != nil {
			return err
		}
		still, found := false, []payments.PaymentInfo{}
		rows := screen.Table{Heads: []string{"payment", "state", "transaction or reason"}}
		for _, payment := range open {
			if _, err := n.App.Settle(ctx, payment.PaymentID, 2); err != nil {
				fmt.Fprintf(o.Stderr, "countersign: %s: %v\n", payment.PaymentID, err)
			}
			info, err := openPayment(ctx, n.App, payment.PaymentID)
			if err != nil {
				return err
			}
			still = still || info.State == payments.PaymentIsClaimed || info.State == payments.PaymentIsUnknown
			found = append(found, info)
			rows.Add(info.PaymentID, info.State, strings.TrimSpace(info.Transaction+" "+info.Reason))
		}
		if err := o.Result(found, o.Table(rows)); err != nil || !still {
			return err
		}
		return screen.ErrNo
	})
}

// ReconcileAtOnce is the number of payments that one run of reconcile handles.
const ReconcileAtOnce = 1000

type paymentsResolveCmd struct {
	ID      string `arg:"" help:"Id of the payment, pay_..."`
	Settled string `help:"The transaction that settled the payment." placeholder:"TX" xor:"end" required:""`
	Refused bool   `help:"The payment will never settle: its time window has passed and its nonce is unused." xor:"end" required:""`
	setting.Ledger
}

// Run records the result of a payment.
func (c *paymentsResolveCmd) Run(ctx context.Context, o *screen.Output) error {
	if err := checkTransaction("--settled", c.Settled); !c.Refused && err != nil {
		return err
	}
	return node.With(ctx, &c.Ledger, func(app *commands.App) error {
		info, err := app.ResolvePayment(ctx, c.ID, c.Settled)
		if err != nil {
			return err
		}
		return o.Result(info, paymentText(info))
	})
}

var transactionForm = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`)

// checkTransaction refuses a text that is not a transaction hash. A recorded result cannot be
// changed, and an empty transaction would mean that the payment was refused.
func checkTransaction(flag, transaction string) error {
	if !transactionForm.MatchString(transaction) {
		return errors.New(flag + " must be a transaction hash: 0x and 64 hex digits")
	}
	return nil
}
