package projections_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/projections"
)

// newApp creates an app on a new ledger that can sign and encrypt. No projection runs yet.
func newApp(t *testing.T) (*commands.App, *ledgertest.DB) {
	t.Helper()
	return appOn(t, ledgertest.New(t))
}

// appOn creates an app on a database.
func appOn(t *testing.T, db *ledgertest.DB) (*commands.App, *ledgertest.DB) {
	t.Helper()
	l, err := ledger.Open(t.Context(), db.URL, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	signer, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Activate(t.Context(), signer, "evt_1"); err != nil {
		t.Fatal(err)
	}
	a := commands.New(&ground.Ground{Ledger: l, Signer: signer, Clock: time.Now})
	if a.Vault, err = vault.Open(t.Context(), l, bytes.Repeat([]byte{9}, 32)); err != nil {
		t.Fatal(err)
	}
	return a, db
}

// start starts the projections of a ledger until the test ends.
func start(t *testing.T, l *ledger.Ledger) *projections.Projections {
	t.Helper()
	p, err := projections.Start(t.Context(), l, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p.Patience = time.Minute // long enough for a busy machine
	t.Cleanup(p.Close)
	return p
}
