package setting

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
)

// For each mode, the error names the setting that is missing or wrong.
func TestStartConditionsOfX402(t *testing.T) {
	t.Parallel()
	chain := x402test.NewChain(t, time.Now)
	facilitator := x402test.NewFacilitator(t, chain, time.Now)
	private, other := Ledger{}, Ledger{DatabaseURL: "postgres://x"}
	const here, everywhere = "127.0.0.1:8080", "0.0.0.0:8080"
	complete := X402{X402Mode: "facilitator", X402URL: facilitator.URL, X402Network: x402.DevNetwork, X402PayTo: x402.DevPayTo, X402RPC: chain.URL}
	with := func(change func(*X402)) X402 {
		x := complete
		change(&x)
		return x
	}
	for name, c := range map[string]struct {
		settings X402
		data     Ledger
		listen   string
		mode     string // mode with which the service starts; empty if it does not start
		names    string // setting that the error must name; empty if there must be no error
	}{
		"a newcomer's":                 {X402{}, private, here, "dev", ""},
		"where others can reach it":    {X402{}, private, everywhere, "off", ""},
		"with a database":              {X402{}, other, here, "off", ""},
		"off":                          {X402{X402Mode: "off"}, private, here, "off", ""},
		"off, with other settings":     {X402{X402Mode: "off", X402Network: "nonsense"}, private, here, "off", ""},
		"dev with a database":          {X402{X402Mode: "dev"}, other, here, "", "DATABASE_URL"},
		"dev where others can":         {X402{X402Mode: "dev"}, private, everywhere, "", "LISTEN"},
		"dev, allowed":                 {X402{X402Mode: "dev", X402Remote: true}, other, everywhere, "dev", ""},
		"dev on a real network":        {X402{X402Mode: "dev", X402Network: "eip155:8453"}, private, here, "", "X402_NETWORK"},
		"dev with a facilitator":       {X402{X402Mode: "dev", X402URL: facilitator.URL}, private, here, "", "X402_FACILITATOR_URL"},
		"a facilitator without a mode": {X402{X402URL: facilitator.URL}, private, here, "", "X402_MODE"},
		"facilitator":                  {complete, other, everywhere, "facilitator", ""},
		"facilitator without URL":      {with(func(x *X402) { x.X402URL = "" }), other, here, "", "X402_FACILITATOR_URL"},
		"facilitator in the clear":     {with(func(x *X402) { x.X402URL = "http://facilitator.example" }), other, here, "", "X402_FACILITATOR_URL"},
		"facilitator without network":  {with(func(x *X402) { x.X402Network = "" }), other, here, "", "X402_NETWORK"},
		"facilitator without payTo":    {with(func(x *X402) { x.X402PayTo = "" }), other, here, "", "X402_PAY_TO"},
		"payTo with a bad checksum":    {with(func(x *X402) { x.X402PayTo = strings.Replace(x402.DevPayTo, "9E", "9e", 1) }), other, here, "", "X402_PAY_TO"},
		"another chain's node":         {with(func(x *X402) { x.X402Network = "eip155:8453" }), other, here, "", "X402_RPC_URL"},
		"too long a time":              {with(func(x *X402) { x.X402MaxTimeout = 601 }), other, here, "", "X402_MAX_TIMEOUT_SECONDS"},
	} {
		s, err := c.settings.Open(t.Context(), &c.data, Loopback(c.listen), slog.New(slog.DiscardHandler))
		if c.names != "" {
			if err == nil || !strings.Contains(err.Error(), c.names) {
				t.Errorf("%s: %v, want an error that names %s", name, err, c.names)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		mode := "off"
		if s.Settler != nil {
			mode = s.Mode()
		}
		if mode != c.mode || !strings.HasPrefix(s.Said, c.mode) {
			t.Errorf("%s: mode %s, %q", name, mode, s.Said)
		}
	}
}

// Doctor reports a facilitator that does not support our payments.
func TestDoctorNamesAFacilitatorThatDoesNotSupportUs(t *testing.T) {
	t.Parallel()
	chain := x402test.NewChain(t, time.Now)
	facilitator := x402test.NewFacilitator(t, chain, time.Now)
	x := X402{X402Mode: "facilitator", X402URL: facilitator.URL, X402Network: x402.DevNetwork, X402PayTo: x402.DevPayTo, X402RPC: chain.URL}
	log := slog.New(slog.DiscardHandler)
	facilitator.Next("supported", x402test.Fault{Kind: x402test.NotSupported})
	for _, want := range []string{"bad", "ok"} {
		found := x.Supported(t.Context(), &Ledger{}, log)
		if len(found) != 1 || found[0].Name != "facilitator" || found[0].State != want || want == "bad" && !strings.Contains(found[0].Detail, "it does not support eip155:84532") {
			t.Errorf("%+v, want %s", found, want)
		}
	}
	x.X402Mode = "off"
	if found := x.Supported(t.Context(), &Ledger{}, log); found != nil {
		t.Errorf("%+v", found)
	}
}
