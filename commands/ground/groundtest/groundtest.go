// Package groundtest makes a Ground for the tests of the packages below commands.
package groundtest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/vault"
)

// New returns a ground with an empty ledger, a vault and no signer. The ledger is closed at the
// end of the test.
func New(t testing.TB) *ground.Ground {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledgertest.New(t).URL, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	g := &ground.Ground{Ledger: l, Clock: time.Now}
	if g.Vault, err = vault.Open(t.Context(), l, make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	return g
}
