package commands_test

import (
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// A node whose clock is a day ahead does not delete sessions and links of other nodes that have
// not expired by the database's clock.
func TestClockAheadSignsNobodyOut(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	right, ahead := newClock(), newClock()
	right.Set(time.Now())
	ahead.Set(time.Now().Add(24 * time.Hour))
	a, wrong := openApp(t, db, right), openApp(t, db, ahead)
	if _, err := a.Ledger.Pool().Exec(t.Context(), `insert into sessions (p, token_hash, customer, data, expires_at) values (0, 'somebody', 'cus_1', '\x00', $1)`, right.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	kept, err := a.RequestSignIn(t.Context(), "ada@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	link, err := wrong.RequestSignIn(t.Context(), "bob@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.ConfirmSignIn(t.Context(), link.Token); err != nil {
		t.Fatal(err)
	}
	var sessions int
	if err := a.Ledger.Pool().QueryRow(t.Context(), `select count(*) from sessions`).Scan(&sessions); err != nil || sessions != 1 {
		t.Errorf("%d sessions are left of 1: %v", sessions, err)
	}
	if _, err := a.ConfirmSignIn(t.Context(), kept.Token); err != nil {
		t.Errorf("another person's link: %v", err)
	}
}
