package accounts

import (
	"log/slog"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/vault"
)

// A stream that has moved under one caller says nothing of the others: what is known of
// them is not read again.
func TestOnlyTheCallerItselfIsReadAgain(t *testing.T) {
	t.Parallel()
	l, err := ledger.Open(t.Context(), ledgertest.New(t).URL, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	a := &Accounts{Ground: &ground.Ground{Ledger: l, Clock: time.Now}}
	if a.Vault, err = vault.Open(t.Context(), l, make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	var callers []Caller
	for _, email := range []string{"ada@example.com", "bob@example.com"} {
		issued, err := a.IssueFreeKey(t.Context(), email, "")
		if err != nil {
			t.Fatal(err)
		}
		caller, err := a.Authenticate(t.Context(), issued.APIKey)
		if err != nil {
			t.Fatal(err)
		}
		callers = append(callers, caller)
	}
	for _, caller := range callers {
		a.keys.Put(caller.ID, knownKey{caller: Caller{KeyID: "stale", ID: caller.ID}})
	}
	now, err := a.Current(t.Context(), Caller{KeyID: "stale", ID: callers[0].ID})
	if err != nil || now.KeyID != callers[0].KeyID {
		t.Errorf("%+v, %v", now, err)
	}
	if known, ok := a.keys.Get(callers[1].ID); !ok || known.caller.KeyID != "stale" {
		t.Errorf("the other caller was forgotten: %v, %+v", ok, known)
	}
	if err := a.RevokeKey(t.Context(), callers[0].ID, "test"); err != nil {
		t.Fatal(err)
	}
	if _, ok := a.keys.Get(callers[1].ID); !ok {
		t.Error("the other caller was forgotten when a key was revoked")
	}
}
