package commands

import (
	"context"
	"testing"

	"github.com/countersign/countersign/ledger"
)

// A stream that has moved under one caller says nothing of the others: what is
// known of them is not read again.
func TestRetryForgetsOnlyWhoseAttemptItIs(t *testing.T) {
	t.Parallel()
	a := newTestApp(t)
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
	forged := Caller{KeyID: "stale", id: callers[0].id}
	for i, caller := range callers { // what a retry reads again is put right
		a.keys.put(caller.id, knownKey{caller: Caller{KeyID: "stale", id: callers[i].id}})
	}
	call, tries := Call{Caller: forged}, 0
	_, err := retry(t.Context(), a, attempt{call: &call}, func(context.Context) (struct{}, error) {
		if tries++; tries == 1 {
			return struct{}{}, ledger.ErrMoved
		}
		return struct{}{}, nil
	})
	if err != nil || tries != 2 || call.Caller.KeyID != callers[0].KeyID {
		t.Errorf("tries %d, caller %+v, %v", tries, call.Caller, err)
	}
	if known, ok := a.keys.get(callers[1].id); !ok || known.caller.KeyID != "stale" {
		t.Errorf("the other caller was forgotten: %v, %+v", ok, known)
	}
	if err := a.RevokeKey(t.Context(), callers[0].id, "test"); err != nil {
		t.Fatal(err)
	}
	if _, ok := a.keys.get(callers[1].id); !ok {
		t.Error("the other caller was forgotten when a key was revoked")
	}
}
