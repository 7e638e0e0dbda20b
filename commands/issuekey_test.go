package commands_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/canon"
)

// newKey issues a free key and authenticates with it.
func newKey(t testing.TB, a *commands.App, email string) (string, accounts.Caller) {
	t.Helper()
	issued, err := a.IssueFreeKey(t.Context(), email, "")
	if err != nil {
		t.Fatal(err)
	}
	caller, err := a.Authenticate(t.Context(), issued.APIKey)
	if err != nil || caller.KeyID != issued.KeyID {
		t.Fatalf("%s authenticates as %s, %v", issued.KeyID, caller.KeyID, err)
	}
	return issued.APIKey, caller
}

// quickCall returns a call of the quick gate; runCall returns one of the workflow.
func quickCall(t testing.TB, c accounts.Caller, key, command string) services.Call {
	t.Helper()
	body, err := canon.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return services.Call{Service: actionrisk.Quick, Caller: c, Body: body, IdempotencyKey: key}
}

func runCall(t testing.TB, c accounts.Caller, key, command string) services.Call {
	t.Helper()
	call := quickCall(t, c, key, command)
	call.Service = actionsafety.Run
	return call
}

// everything returns all events of the ledger, one partition after the other.
func everything(t testing.TB, a *commands.App) []ledger.Event {
	t.Helper()
	return since(t, a, make([]int64, len(a.Ledger.Partitions())))
}

// heads returns the last position of each partition, for since.
func heads(t testing.TB, a *commands.App) []int64 {
	t.Helper()
	heads, err := a.Ledger.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return heads
}

// since returns the events after the given positions, one partition after the other.
func since(t testing.TB, a *commands.App, heads []int64) (list []ledger.Event) {
	t.Helper()
	for _, p := range a.Ledger.Partitions() {
		for position := heads[p.Number()]; ; {
			batch, err := p.After(t.Context(), position, 500)
			if err != nil {
				t.Fatal(err)
			}
			if len(batch) == 0 {
				break
			}
			list, position = append(list, batch...), batch[len(batch)-1].Position
		}
	}
	return list
}

// Issuing a key appends two events at once. One counts the key for its mailbox and month, in a
// stream whose name does not contain the address. The other contains the hash of the key's secret.
func TestIssueFreeKeyStoresAHashAndASealedAddress(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	before := heads(t, a)
	key, caller := newKey(t, a, "Ada@Example.com")
	added := since(t, a, before)
	if len(added) != 2 || added[0].Type != events.TypeKeyRequested || added[1].Type != events.TypeKeyIssued || added[0].More != 1 {
		t.Fatalf("%d events", len(added))
	}
	if !strings.HasPrefix(added[0].Stream, "free_keys/") || !strings.HasSuffix(added[0].Stream, "/2026-11") || added[1].Stream != "key/"+key[5:17] {
		t.Errorf("streams %s, %s", added[0].Stream, added[1].Stream)
	}
	var issued events.KeyIssued
	if err := a.Vault.Open(t.Context(), added[1], &issued); err != nil || issued.Email != "ada@example.com" || issued.KeyID != caller.KeyID || issued.Plan != "free" {
		t.Errorf("%+v, %v", issued, err)
	}
	secret, err := base64.RawURLEncoding.DecodeString(key[18:61])
	if err != nil || len(secret) != 32 {
		t.Fatalf("%d bytes, %v", len(secret), err)
	}
	for _, e := range added {
		text := strings.ToLower(string(e.Payload) + e.Stream + e.Actor)
		for _, hidden := range []string{key[18:61], hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret), "ada@", "example.com"} {
			if strings.Contains(text, strings.ToLower(hidden)) {
				t.Errorf("%s shows %s", e.Type, hidden)
			}
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	seen := map[string]bool{}
	for i := range 20 {
		key, caller := newKey(t, a, fmt.Sprintf("caller%d@example.com", i))
		for _, part := range []string{key[5:17], key[18:61], caller.KeyID} {
			if seen[part] {
				t.Fatal("a part of a key comes twice")
			}
			seen[part] = true
		}
	}
}

func TestRevokeKey(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	defer clean(t, a)
	key, caller := newKey(t, a, "ada@example.com")
	wantRefusal(t, a.RevokeKey(t.Context(), "000000000000", "why"), "not_found", "key not found")
	for range 2 { // revoking a second time changes nothing
		if err := a.RevokeKey(t.Context(), key[5:17], "leaked"); err != nil {
			t.Fatal(err)
		}
	}
	history, err := a.Ledger.Read(t.Context(), a.Ledger.Service(key[5:17]), "key/"+key[5:17])
	if err != nil || history.Version() != 2 || history.Events[1].Type != events.TypeKeyRevoked {
		t.Errorf("version %d, %v", history.Version(), err)
	}
	_, err = a.Authenticate(t.Context(), key)
	wantRefusal(t, err, "unauthorized", accounts.ErrUnauthorized.Error())
	// A caller who was authenticated before the revocation is refused, too.
	_, err = a.RunService(t.Context(), quickCall(t, caller, "", "ls"))
	wantRefusal(t, err, "unauthorized", accounts.ErrUnauthorized.Error())
	_, err = a.Usage(t.Context(), caller)
	wantRefusal(t, err, "unauthorized", accounts.ErrUnauthorized.Error())
}

// While nodes handle calls at the same time, no call is appended after the revocation of its key.
func TestNoCallAfterTheRevocation(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a, b := openApp(t, db, c), openApp(t, db, c)
	defer clean(t, a)
	key, caller := newKey(t, a, "ada@example.com")
	var all sync.WaitGroup
	var answered, refused atomic.Int64
	for i := range 8 {
		node := []*commands.App{a, b}[i%2]
		all.Go(func() {
			for range 25 {
				_, err := node.RunService(t.Context(), quickCall(t, caller, "", "ls"))
				var p *policy.Error
				switch {
				case err == nil:
					answered.Add(1)
				case errors.As(err, &p) && p.Code == ground.CodeUnauthorized:
					refused.Add(1)
				default:
					t.Error(err)
				}
				if i == 0 && answered.Load() > 20 {
					if err := b.RevokeKey(t.Context(), key[5:17], "leaked"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	revoked, calls := false, int64(0)
	for _, e := range everything(t, a) {
		switch {
		case e.Type == events.TypeKeyRevoked:
			revoked = true
		case e.Type == events.TypeCallCompleted && revoked:
			t.Errorf("a call at %d follows the revocation", e.Position)
		case e.Type == events.TypeCallCompleted:
			calls++
		}
	}
	if !revoked || calls != answered.Load() || refused.Load() == 0 {
		t.Errorf("revoked %v, %d calls for %d answers, %d refused", revoked, calls, answered.Load(), refused.Load())
	}
}
