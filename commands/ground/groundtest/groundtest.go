// Package groundtest gives the tests of the commands' rooms a ground.
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

// New returns a ground on an empty ledger of its own, with a vault and without a signer. The
// test closes the ledger when it ends.
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
