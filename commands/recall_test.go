package commands_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/timestamp"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/canon"
)

// keepCheckpoints starts the keeper of an app and returns the public keys of the ledger. authority
// may be nil.
func keepCheckpoints(t *testing.T, a *commands.App, authority *timestamp.Authority) []bundle.Key {
	t.Helper()
	signer, err := seal.NewSigner(bytes.Repeat([]byte{9}, 32))
	if err == nil {
		err = keeper.Start(t.Context(), a.Ledger, keeper.Options{Signer: signer, Folder: checkpoint.Folder{Path: t.TempDir()}, Authority: authority, Every: 10 * time.Millisecond},
			func() string { return a.NewID("evt_") })
	}
	if err != nil {
		t.Fatal(err)
	}
	return []bundle.Key{{Purpose: "record", Public: a.Signer.Public(), Partition: bundle.AnyPartition}, {Purpose: "checkpoint", Public: signer.Public(), Partition: bundle.AnyPartition}}
}

// opened verifies the bundle in a folder and returns it.
func opened(t *testing.T, folder string, keys []bundle.Key) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if r, err := bundle.Verify(t.Context(), b, bundle.Trust{Keys: keys}, nil); err != nil || !r.Valid {
		t.Fatalf("%+v, %v", r, err)
	}
	return b
}

// A recall lists the allowed decisions that another policy would deny or send to approval, also
// those of an erased agent. The bundle contains all allowed decisions and the policy, so anyone can
// evaluate them again; a false list is found.
func TestARecallListsWhatAnotherPolicyWouldHaveStopped(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	keys := keepCheckpoints(t, a, nil)
	orgID, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	p := decider(t, a, orgID)
	first := decided(t, a, p, "k1", "allow")
	decided(t, a, p, "k2", "deny")
	decided(t, a, p, "k3", "needs_review")
	second := decided(t, a, p, "k4", "allow")
	dataKey, err := a.Vault.Find(t.Context(), orgID, "agent:agent-7")
	if err != nil {
		t.Fatal(err)
	}
	erase(t, a, orgID, dataKey)
	for _, c := range []struct{ policy, now string }{
		{`{"policyId":"default","maxUsdPerTransaction":0.25,"allowedNetworks":["base"]}`, "deny"},
		{`{"policyId":"default","allowedNetworks":["base"]}`, ""},
	} {
		r, err := evidence.RecallWith([]byte(c.policy))
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		made, err := a.Recall(t.Context(), evidence.Export{Tenant: orgID, Actor: "operator", Folder: folder}, r)
		if err != nil {
			t.Fatal(err)
		}
		if made.Decisions != 2 || r.Found.Evaluated != 2 || len(r.Found.NotReplayed) != 0 {
			t.Errorf("%s: %+v", c.policy, r.Found)
		}
		var ids []string
		for _, s := range r.Found.Stopped {
			if ids = append(ids, s.ID); s.Now != c.now || len(s.RuleIDs) == 0 {
				t.Errorf("%+v", s)
			}
		}
		if want := []string{first.record.DecisionID, second.record.DecisionID}; c.now != "" && !reflect.DeepEqual(ids, want) || c.now == "" && ids != nil {
			t.Errorf("%s stops %v", c.policy, ids)
		}
		again, err := evidence.RecallAgain(t.Context(), opened(t, folder, keys))
		if err != nil || again.Fault != "" || !reflect.DeepEqual(again.Found, r.Found) {
			t.Errorf("%+v, %v", again, err)
		}
	}
	// The service signs a list without the second decision.
	r, err := evidence.RecallWith([]byte(`{"policyId":"default","maxUsdPerTransaction":0.25}`))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	short := func(_ context.Context, _ bundle.Manifest, _ evidence.Found, put func(string, []byte) error) error {
		found := r.Found
		found.Stopped = found.Stopped[:1]
		text, err := canon.Marshal(found)
		if err != nil {
			return err
		}
		return put("recall.json", text)
	}
	e := evidence.Export{Tenant: orgID, Actor: "operator", Folder: folder, Recall: r, Pack: short, Filters: bundle.Filters{Decision: "allow"}}
	if _, err := a.ExportHistory(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	again, err := evidence.RecallAgain(t.Context(), opened(t, folder, keys))
	if err != nil || !strings.Contains(again.Fault, "2 of 2") {
		t.Errorf("%+v, %v", again, err)
	}
}

// A recall with a rule set of the gate evaluates the verdicts of the service's own tenant again. A
// verdict whose command was erased or is left out is counted as not replayed.
func TestARecallListsWhatOtherRulesWouldHaveStopped(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	keys := keepCheckpoints(t, a, nil)
	key, caller := newKey(t, a, "ada@example.com")
	tenant := a.Ledger.Service(key[5:17])
	version, hash := actionrisk.Ruleset()
	lenient := func(actionrisk.Action) actionrisk.Assessment {
		return actionrisk.Assess(actionrisk.Action{Command: "ls"})
	}
	for _, c := range []struct {
		service policy.Service
		command string
	}{
		{older("2026.10.1", canon.Hash([]byte("gone")), lenient), "rm -rf /"}, // the earlier rules did not know it
		{older("2026.10.1", canon.Hash([]byte("gone")), lenient), "ls"},
		{actionrisk.Quick, "rm -rf /"}, // was not allowed
		{actionrisk.Quick, "ls -l"},
	} {
		call := quickCall(t, caller, "", c.command)
		call.Service = c.service
		if _, err := a.RunService(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	for _, without := range []bool{false, true} {
		r, err := evidence.RecallUnder(version)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if _, err := a.Recall(t.Context(), evidence.Export{Tenant: tenant, Actor: "operator", Folder: folder, Filters: bundle.Filters{NoPersonal: without}}, r); err != nil {
			t.Fatal(err)
		}
		switch f := r.Found; {
		case f.RulesetVersion != version || f.RulesetHash != hash:
			t.Errorf("%+v", f)
		case without && (f.Evaluated != 0 || len(f.Stopped) != 0 || len(f.NotReplayed) != 1 || f.NotReplayed[0].Count != 4):
			t.Errorf("without personal data: %+v", f)
		case !without && (f.Evaluated != 3 || len(f.Stopped) != 1 || f.Stopped[0].Now != "needs_review" || len(f.NotReplayed) != 0):
			t.Errorf("%+v", f)
		}
		if _, err := os.Stat(filepath.Join(folder, "rules", hash+".json")); err != nil {
			t.Error(err)
		}
		again, err := evidence.RecallAgain(t.Context(), opened(t, folder, keys))
		if err != nil || again.Fault != "" || !reflect.DeepEqual(again.Found, r.Found) {
			t.Errorf("%+v, %v", again, err)
		}
	}
	if _, err := evidence.RecallUnder("2026.10.1"); err == nil || !strings.Contains(err.Error(), version) {
		t.Errorf("a rule set that this program does not have: %v", err)
	}
}
