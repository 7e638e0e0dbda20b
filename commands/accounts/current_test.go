package accounts

import (
	"testing"

	"github.com/countersign/countersign/commands/ground/groundtest"
)

// If one caller is read again, the cached states of other callers stay in the cache.
func TestOnlyTheCallerItselfIsReadAgain(t *testing.T) {
	t.Parallel()
	a := &Accounts{Ground: groundtest.New(t)}
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
