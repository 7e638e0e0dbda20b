package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/projections"
)

// x402Settings are on what terms payments are taken, and who settles them.
type x402Settings struct {
	X402Mode       string `help:"off, dev (signatures are checked, no money moves) or facilitator; default: dev on the private database, a loopback listener and a loopback base URL, else off." env:"X402_MODE" name:"x402-mode" enum:",off,dev,facilitator" default:""`
	X402Network    string `help:"Network of the payments, such as eip155:8453 (Base)." env:"X402_NETWORK" name:"x402-network" placeholder:"NETWORK"`
	X402PayTo      string `help:"Address that is paid." env:"X402_PAY_TO" name:"x402-pay-to" placeholder:"ADDRESS"`
	X402Asset      string `help:"Address of the asset; default: USDC, where it is known." env:"X402_ASSET" name:"x402-asset" placeholder:"ADDRESS" rare:""`
	X402AssetName  string `help:"Its EIP-712 name." env:"X402_ASSET_NAME" name:"x402-asset-name" placeholder:"NAME" rare:""`
	X402AssetVer   string `help:"Its EIP-712 version." env:"X402_ASSET_VERSION" name:"x402-asset-version" placeholder:"VERSION" rare:""`
	X402MaxTimeout int    `help:"Seconds a payment may take, 60 to 600." env:"X402_MAX_TIMEOUT_SECONDS" name:"x402-max-timeout-seconds" default:"300" rare:""`
	X402URL        string `help:"Facilitator that verifies and settles." env:"X402_FACILITATOR_URL" name:"x402-facilitator-url" placeholder:"URL"`
	X402Bearer     string `help:"Bearer token for it." env:"X402_FACILITATOR_BEARER" name:"x402-facilitator-bearer" secret:"" placeholder:"TOKEN" rare:""`
	X402KeyID      string `help:"Id of an API key of the Coinbase Developer Platform, where it is the facilitator: each request gets a token of its own." env:"X402_FACILITATOR_KEY_ID" name:"x402-facilitator-key-id" placeholder:"ID" rare:""`
	X402KeySecret  string `help:"Its secret." env:"X402_FACILITATOR_SECRET" name:"x402-facilitator-secret" secret:"" placeholder:"SECRET" rare:""`
	X402Minimal    bool   `help:"Send it only what every facilitator knows." env:"X402_FACILITATOR_MINIMAL" name:"x402-facilitator-minimal" rare:""`
	X402RPC        string `help:"JSON-RPC node of the network, which proves what became of a payment when the facilitator does not say. Recommended." env:"X402_RPC_URL" name:"x402-rpc-url" secret:"" placeholder:"URL" rare:""`
	X402Confirm    int    `help:"Blocks that must stand on a transfer, its own counted." env:"X402_CONFIRMATIONS" name:"x402-confirmations" default:"1" rare:""`
	X402Remote     bool   `help:"Allow X402_MODE=dev where others can reach the service: they get paid answers for nothing." name:"x402-dev-allow-remote" rare:""`
	X402DevLedger  bool   `help:"Allow X402_MODE=facilitator on a ledger that holds settlements of the dev mode." name:"accept-dev-ledger" rare:""`
}

// settler is who settles, and on what terms; nil with mode off.
type settler struct {
	commands.Settler
	terms x402.Terms
	run   func(context.Context) // beside the service; may be nil
	said  string                // for people
}

// open checks the settings of the mode; errors name the one that is wrong.
func (x *x402Settings) open(ctx context.Context, d *data, onThisMachine bool, log *slog.Logger) (*settler, error) {
	local := d.private() && onThisMachine
	mode := x.X402Mode
	if mode == "" {
		mode = commands.ModeOff
		if local {
			mode = commands.ModeDev
		}
		if x.X402URL != "" {
			return nil, errors.New("X402_FACILITATOR_URL is set: set X402_MODE=facilitator, too, or unset it")
		}
	}
	terms, err := x402.NewTerms(x402.Settings{Network: x.X402Network, PayTo: x.X402PayTo, Asset: x.X402Asset, AssetName: x.X402AssetName,
		AssetVersion: x.X402AssetVer, MaxTimeoutSeconds: x.X402MaxTimeout, Dev: mode == commands.ModeDev})
	switch {
	case mode == commands.ModeOff:
		return &settler{said: "off: use a free key (X402_MODE turns them on)"}, nil
	case err != nil:
		return nil, err
	case mode == commands.ModeFacilitator:
		return x.openFacilitator(ctx, terms, log)
	case x.X402URL != "":
		return nil, errors.New("X402_MODE=dev asks no facilitator: unset X402_FACILITATOR_URL, or set X402_MODE=facilitator")
	case !local && !x.X402Remote:
		return nil, errors.New("X402_MODE=dev moves no money, so it needs a loopback listener (LISTEN) and base URL (BASE_URL) and the private database (no DATABASE_URL), or --x402-dev-allow-remote")
	}
	return &settler{Settler: x402.Dev{}, terms: terms,
		said: "dev: signatures are checked, no money moves (" + terms.Network + ", to " + terms.PayTo + ")"}, nil
}

func (x *x402Settings) openFacilitator(ctx context.Context, terms x402.Terms, log *slog.Logger) (*settler, error) {
	if x.X402URL == "" {
		return nil, errors.New("X402_MODE=facilitator needs X402_FACILITATOR_URL")
	}
	f, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: x.X402URL, Bearer: x.X402Bearer, KeyID: x.X402KeyID, Secret: x.X402KeySecret, Minimal: x.X402Minimal,
		RPCURL: x.X402RPC, Confirmations: x.X402Confirm, Network: terms.Network, Log: log})
	if err == nil {
		err = f.Start(ctx)
	}
	if err != nil {
		return nil, err
	}
	said := fmt.Sprintf("facilitator, %s on %s to %s", terms.Symbol(), terms.Network, terms.PayTo)
	if !f.Configured() {
		said += "; off until the facilitator says that it supports this network: " + f.Problem()
	}
	if !f.Proves() {
		log.Warn("without X402_RPC_URL a payment whose settlement gets no answer stays unknown until an operator resolves it")
		said += "; set X402_RPC_URL, or lost settlements stay unknown"
	}
	return &settler{Settler: f, terms: terms, run: f.Run, said: said}, nil
}

// supported looks for a facilitator that does not settle our kind of payment: every
// unpaid call is 503 then.
func (x *x402Settings) supported(ctx context.Context, d *data, log *slog.Logger) []finding {
	if x.X402Mode != commands.ModeFacilitator {
		return nil
	}
	s, err := x.open(ctx, d, true, log)
	if err != nil {
		return []finding{{"facilitator", "bad", err.Error()}}
	}
	f, asks := s.Settler.(interface{ Problem() string })
	if problem := ""; asks {
		if problem = f.Problem(); problem != "" {
			return []finding{{"facilitator", "bad", "X402_FACILITATOR_URL: " + problem + ", so x402 is off"}}
		}
	}
	return []finding{{"facilitator", "ok", s.said}}
}

// rightLedger refuses a mode on a ledger of the other one: what was settled for
// nothing must not stand beside what was paid for.
func (x *x402Settings) rightLedger(ctx context.Context, s *settler, app *commands.App) error {
	if s.Settler == nil {
		return nil
	}
	dev, facilitator, err := app.SettledModes(ctx)
	switch {
	case err != nil:
		return err
	case facilitator && s.Mode() == commands.ModeDev:
		return errors.New("this ledger holds settlements on a chain, so X402_MODE=dev must not be used with it: set X402_MODE=facilitator or off")
	case dev && s.Mode() == commands.ModeFacilitator && !x.X402DevLedger:
		return errors.New("this ledger holds settlements of X402_MODE=dev, which moved no money: start with a new ledger, or with --accept-dev-ledger")
	}
	return nil
}

// paymentsCmd are payments as an operator sees them.
type paymentsCmd struct {
	List      paymentsListCmd      `cmd:"" help:"List payments, the newest first."`
	Show      paymentsShowCmd      `cmd:"" help:"Show what a payment has come to."`
	Reconcile paymentsReconcileCmd `cmd:"" help:"Find out now what became of every open payment. Exit 1: some are still open."`
	Resolve   paymentsResolveCmd   `cmd:"" help:"Record what you have found out about an open payment."`
}

// withProjections runs do beside the read models, which may have to catch up.
func (d *data) withProjections(ctx context.Context, do func(*node, *projections.Projections) error) error {
	log := logs.New(slog.LevelWarn)
	n, err := openNode(ctx, d, false, true, "", log, func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.close()
	p, err := readModels(ctx, n.ledger, log)
	if err != nil {
		return err
	}
	defer p.Close()
	return do(n, p)
}

// catchUp is how long a command waits for read models. The service answers 503 after two
// seconds, so that the caller asks again. A command may be the first to look after many
// events, and whoever typed it can end it.
const catchUp = 5 * time.Minute

// readModels starts the read models for one command.
func readModels(ctx context.Context, l *ledger.Ledger, log *slog.Logger) (*projections.Projections, error) {
	p, err := projections.Start(ctx, l, log)
	if err == nil {
		p.Patience = catchUp
	}
	return p, err
}

type paymentsListCmd struct {
	State string `help:"Only open, claimed, unknown, settled or refused ones." enum:",open,claimed,unknown,settled,refused" default:""`
	Limit int    `help:"At most so many." default:"50"`
	data
}

// Run prints one line per payment.
func (c *paymentsListCmd) Run(ctx context.Context, o *output) error {
	return c.withProjections(ctx, func(n *node, p *projections.Projections) error {
		list, err := p.Payments(ctx, c.State, c.Limit)
		if err == nil {
			err = n.unseal(ctx, list)
		}
		if err != nil {
			return err
		}
		return o.result(listed(list), o.payments(list))
	})
}

// unseal puts into a list what no read model holds: who paid, and by what transaction.
func (n *node) unseal(ctx context.Context, list []projections.Payment) error {
	for i := range list {
		info, err := n.app.Payment(ctx, list[i].PaymentID)
		if err != nil {
			return err
		}
		list[i].Payer, list[i].Transaction = info.Payer, info.Transaction
	}
	return nil
}

// listedPayment is a payment with its time as everything else writes times.
type listedPayment struct {
	projections.Payment
	ClaimedAt string `json:"claimedAt"`
}

func listed(list []projections.Payment) []listedPayment {
	shown := []listedPayment{}
	for _, payment := range list {
		shown = append(shown, listedPayment{payment, commands.Stamp(payment.ClaimedAt)})
	}
	return shown
}

func (o *output) payments(list []projections.Payment) string {
	rows := screen.Table{Heads: []string{"payment", "state", "claimed", "price", "operation", "transaction or reason"}}
	for _, p := range list {
		rows.Add(p.PaymentID, p.State, commands.Stamp(p.ClaimedAt), fmt.Sprintf("$%d.%02d", p.PriceCents/100, p.PriceCents%100),
			p.Operation, strings.TrimSpace(p.Transaction+" "+p.Reason))
	}
	return o.table(rows)
}

type paymentsShowCmd struct {
	ID string `arg:"" help:"Id of the payment, pay_..."`
	data
}

// Run prints the payment.
func (c *paymentsShowCmd) Run(ctx context.Context, o *output) error {
	return c.withNode(ctx, func(app *commands.App) error {
		info, err := app.Payment(ctx, c.ID)
		if err != nil {
			return err
		}
		return o.result(info, paymentText(info))
	})
}

func paymentText(p commands.PaymentInfo) string {
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

// withNode runs do with the commands of the ledger.
func (d *data) withNode(ctx context.Context, do func(*commands.App) error) error {
	n, err := openNode(ctx, d, false, true, "", logs.New(slog.LevelWarn), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.close()
	return do(n.app)
}

type paymentsReconcileCmd struct {
	x402Settings
	data
}

// Run makes one attempt at each open payment and prints what it has come to.
func (c *paymentsReconcileCmd) Run(ctx context.Context, o *output) error {
	return c.withProjections(ctx, func(n *node, p *projections.Projections) error {
		s, err := c.x402Settings.open(ctx, &c.data, true, n.log)
		if err != nil {
			return err
		}
		if n.app.Settler = s.Settler; s.Settler == nil {
			return errors.New("X402_MODE is off: nobody can be asked")
		}
		open, err := p.Payments(ctx, "open", reconcileAtOnce)
		if err != nil {
			return err
		}
		still, found := false, []commands.PaymentInfo{}
		rows := screen.Table{Heads: []string{"payment", "state", "transaction or reason"}}
		for _, payment := range open {
			if _, err := n.app.Settle(ctx, payment.PaymentID, 2); err != nil {
				fmt.Fprintf(o.stderr, "countersign: %s: %v\n", payment.PaymentID, err)
			}
			info, err := n.app.Payment(ctx, payment.PaymentID)
			if err != nil {
				return err
			}
			still = still || info.State == commands.PaymentIsClaimed || info.State == commands.PaymentIsUnknown
			found = append(found, info)
			rows.Add(info.PaymentID, info.State, strings.TrimSpace(info.Transaction+" "+info.Reason))
		}
		if err := o.result(found, o.table(rows)); err != nil || !still {
			return err
		}
		return errNo
	})
}

// reconcileAtOnce bounds one run of reconcile.
const reconcileAtOnce = 1000

type paymentsResolveCmd struct {
	ID      string `arg:"" help:"Id of the payment, pay_..."`
	Settled string `help:"The transaction that settled it." placeholder:"TX" xor:"end" required:""`
	Refused bool   `help:"It never will be: its window has passed, and its nonce is unused." xor:"end" required:""`
	data
}

// Run records the end.
func (c *paymentsResolveCmd) Run(ctx context.Context, o *output) error {
	if err := checkTransaction("--settled", c.Settled); !c.Refused && err != nil {
		return err
	}
	return c.withNode(ctx, func(app *commands.App) error {
		info, err := app.ResolvePayment(ctx, c.ID, c.Settled)
		if err != nil {
			return err
		}
		return o.result(info, paymentText(info))
	})
}

var transactionForm = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`)

// checkTransaction refuses what cannot be a transaction of the chain: it is
// recorded for ever, and none at all would mean the opposite.
func checkTransaction(flag, transaction string) error {
	if !transactionForm.MatchString(transaction) {
		return errors.New(flag + ": want a transaction: 0x and 64 hex digits")
	}
	return nil
}
