package commands_test

import (
	"errors"
	"testing"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// If a member is shown the addresses of others, the access history has an entry for it, one a day.
// If the ledger takes no appends, the addresses are still shown, without an entry.
func TestOpeningsAreNotedOnceADay(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openApp(t, ledgertest.New(t), c)
	orgID, operator := newOrganization(t, a, "team")
	if _, err := a.AddMember(t.Context(), operator, "carl@example.com", organizations.RoleAuditor); err != nil {
		t.Fatal(err)
	}
	owner := memberOf(t, a, orgID, "olga@example.com", organizations.RoleOwner)
	shown := func() {
		t.Helper()
		list, err := a.Members(t.Context(), owner)
		if err != nil || len(list) < 2 || list[0].Email == "" {
			t.Fatalf("%+v, %v", list, err)
		}
	}
	noted := func() int {
		t.Helper()
		history, err := a.Ledger.Read(t.Context(), orgID, "opened/"+owner.ActorID)
		if err != nil {
			t.Fatal(err)
		}
		return len(history.Events)
	}
	for range 3 {
		shown()
	}
	if n := noted(); n != 1 {
		t.Errorf("%d entries of one day", n)
	}
	c.Add(24 * 60 * 60e9)
	shown()
	if n := noted(); n != 2 {
		t.Errorf("%d entries of two days", n)
	}
	_ = a.Ledger.Refuse(errors.New("the database is not the one that it was"))
	c.Add(24 * 60 * 60e9)
	if shown(); noted() != 2 {
		t.Error("an opening is noted by a ledger that takes no appends")
	}
}
