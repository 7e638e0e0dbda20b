package setting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/payments"
)

// X402 has the settings of x402 payments: the terms, and how payments are settled.
type X402 struct {
	X402Mode       string `help:"off, dev (signatures are checked, no money moves) or facilitator. Default: dev on the private database with a loopback listener and base URL, otherwise off." env:"X402_MODE" name:"x402-mode" enum:",off,dev,facilitator" default:""`
	X402Network    string `help:"Network of the payments, such as eip155:8453 (Base)." env:"X402_NETWORK" name:"x402-network" placeholder:"NETWORK"`
	X402PayTo      string `help:"Address that receives the payments." env:"X402_PAY_TO" name:"x402-pay-to" placeholder:"ADDRESS"`
	X402Asset      string `help:"Address of the asset. Default: USDC, if known for the network." env:"X402_ASSET" name:"x402-asset" placeholder:"ADDRESS" rare:""`
	X402AssetName  string `help:"EIP-712 name of the asset." env:"X402_ASSET_NAME" name:"x402-asset-name" placeholder:"NAME" rare:""`
	X402AssetVer   string `help:"EIP-712 version of the asset." env:"X402_ASSET_VERSION" name:"x402-asset-version" placeholder:"VERSION" rare:""`
	X402MaxTimeout int    `help:"Maximum duration of a payment in seconds, 60 to 600." env:"X402_MAX_TIMEOUT_SECONDS" name:"x402-max-timeout-seconds" default:"300" rare:""`
	X402URL        string `help:"URL of the facilitator that verifies and settles payments." env:"X402_FACILITATOR_URL" name:"x402-facilitator-url" placeholder:"URL"`
	X402Bearer     string `help:"Bearer token for the facilitator." env:"X402_FACILITATOR_BEARER" name:"x402-facilitator-bearer" secret:"" placeholder:"TOKEN" rare:""`
	X402KeyID      string `help:"Id of an API key of the Coinbase Developer Platform, if that is the facilitator. The service then makes a token for each request to it." env:"X402_FACILITATOR_KEY_ID" name:"x402-facilitator-key-id" placeholder:"ID" rare:""`
	X402KeySecret  string `help:"Secret of the API key in X402_FACILITATOR_KEY_ID." env:"X402_FACILITATOR_SECRET" name:"x402-facilitator-secret" secret:"" placeholder:"SECRET" rare:""`
	X402Minimal    bool   `help:"Send the facilitator only the members that every facilitator supports." env:"X402_FACILITATOR_MINIMAL" name:"x402-facilitator-minimal" rare:""`
	X402RPC        string `help:"JSON-RPC node of the network, which proves the result of a payment if the facilitator does not answer. Recommended." env:"X402_RPC_URL" name:"x402-rpc-url" secret:"" placeholder:"URL" rare:""`
	X402Confirm    int    `help:"Confirmations that a transfer needs, including its own block." env:"X402_CONFIRMATIONS" name:"x402-confirmations" default:"1" rare:""`
	X402Remote     bool   `help:"Allow X402_MODE=dev although other machines can reach the service and get paid answers for free." name:"x402-dev-allow-remote" rare:""`
	X402DevLedger  bool   `help:"Allow X402_MODE=facilitator on a ledger that has settlements of the dev mode." name:"accept-dev-ledger" rare:""`
}

// Settler settles payments under its terms. If x402 is off, the embedded Settler is nil.
type Settler struct {
	payments.Settler
	Terms x402.Terms
	Run   func(context.Context) // background work to run until the service ends; may be nil
	Said  string                // text for the user that describes the mode
}

// Open checks the settings and returns the settler of the mode that they select. Errors name the
// wrong setting.
func (x *X402) Open(ctx context.Context, d *Ledger, onThisMachine bool, log *slog.Logger) (*Settler, error) {
	local := d.Private() && onThisMachine
	mode := x.X402Mode
	if mode == "" {
		mode = payments.ModeOff
		if local {
			mode = payments.ModeDev
		}
		if name := x.forFacilitator(); name != "" {
			return nil, fmt.Errorf("%s is set: also set X402_MODE=facilitator, or unset it", name)
		}
	}
	terms, err := x402.NewTerms(x402.Settings{Network: x.X402Network, PayTo: x.X402PayTo, Asset: x.X402Asset, AssetName: x.X402AssetName,
		AssetVersion: x.X402AssetVer, MaxTimeoutSeconds: x.X402MaxTimeout, Dev: mode == payments.ModeDev})
	switch {
	case mode == payments.ModeOff:
		return &Settler{Said: "off: callers use a free key (set X402_MODE to turn payments on)"}, nil
	case err != nil:
		return nil, err
	case mode == payments.ModeFacilitator:
		return x.openFacilitator(ctx, terms, log)
	case x.forFacilitator() != "":
		return nil, fmt.Errorf("X402_MODE=dev asks no facilitator and no chain: unset %s, or set X402_MODE=facilitator", x.forFacilitator())
	case !local && !x.X402Remote:
		return nil, errors.New("X402_MODE=dev moves no money, so it needs a loopback listener (LISTEN) and base URL (BASE_URL) and the private database (no DATABASE_URL), or --x402-dev-allow-remote")
	}
	return &Settler{Settler: x402.Dev{}, Terms: terms,
		Said: "dev: signatures are checked, no money moves (" + terms.Network + ", to " + terms.PayTo + ")"}, nil
}

// forFacilitator returns the name of a setting that is set and that only X402_MODE=facilitator
// uses, or "".
func (x *X402) forFacilitator() string {
	switch {
	case x.X402URL != "":
		return "X402_FACILITATOR_URL"
	case x.X402Bearer != "":
		return "X402_FACILITATOR_BEARER"
	case x.X402KeyID != "":
		return "X402_FACILITATOR_KEY_ID"
	case x.X402KeySecret != "":
		return "X402_FACILITATOR_SECRET"
	case x.X402RPC != "":
		return "X402_RPC_URL"
	case x.X402Confirm > 1 || x.X402Confirm < 0:
		return "X402_CONFIRMATIONS"
	}
	return ""
}

func (x *X402) openFacilitator(ctx context.Context, terms x402.Terms, log *slog.Logger) (*Settler, error) {
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
		said += "; off until the facilitator reports that it supports this network: " + f.Problem()
	}
	if !f.Proves() {
		log.Warn("without X402_RPC_URL a payment whose settlement gets no answer stays unknown until an operator resolves it")
		said += "; set X402_RPC_URL, or a payment whose settlement gets no answer stays unknown"
	}
	return &Settler{Settler: f, Terms: terms, Run: f.Run, Said: said}, nil
}

// Supported returns doctor's findings about the facilitator. If the facilitator does not support
// our payments, every unpaid call gets 503.
func (x *X402) Supported(ctx context.Context, d *Ledger, log *slog.Logger) []screen.Finding {
	if x.X402Mode != payments.ModeFacilitator {
		return nil
	}
	s, err := x.Open(ctx, d, true, log)
	if err != nil {
		return []screen.Finding{screen.Bad("facilitator", err.Error())}
	}
	f, asks := s.Settler.(interface{ Problem() string })
	if problem := ""; asks {
		if problem = f.Problem(); problem != "" {
			return []screen.Finding{screen.Bad("facilitator", "X402_FACILITATOR_URL: "+problem+", so x402 is off")}
		}
	}
	return []screen.Finding{screen.OK("facilitator", s.Said)}
}

// RightLedger refuses a mode if the ledger has payments of the other mode, because payments
// without money must not be mixed with real ones.
func (x *X402) RightLedger(ctx context.Context, s *Settler, app *commands.App) error {
	if s.Settler == nil {
		return nil
	}
	dev, facilitator, err := app.SettledModes(ctx)
	switch {
	case err != nil:
		return err
	case facilitator && s.Mode() == payments.ModeDev:
		return errors.New("this ledger holds settlements on a chain, so X402_MODE=dev must not be used with it: set X402_MODE=facilitator or off")
	case dev && s.Mode() == payments.ModeFacilitator && !x.X402DevLedger:
		return errors.New("this ledger holds settlements of X402_MODE=dev, which moved no money: start with a new ledger, or with --accept-dev-ledger")
	}
	return nil
}
