package commands_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/timestamp"
	"github.com/countersign/countersign/ledger/timestamp/timestamptest"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/canon"
)

// A bundle with gate verdicts contains each rule set that they name, in a file named by its hash.
// The manifest also names the rule sets that this program does not have.
func TestABundleHoldsTheRuleSetsItsVerdictsName(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	key, caller := newKey(t, a, "ada@example.com")
	version, hash := actionrisk.Ruleset()
	want := map[string]string{hash: version, canon.Hash([]byte("gone")): "2026.10.1"}
	for hash, version := range want {
		call := quickCall(t, caller, "", "rm -rf /")
		call.Service = older(version, hash, actionrisk.Assess)
		if _, err := a.RunService(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	manifest, err := a.ExportHistory(t.Context(), evidence.Export{Tenant: a.Ledger.Service(key[5:17]), Actor: "operator", Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(manifest.RuleSets, want) {
		t.Errorf("the manifest names %v", manifest.RuleSets)
	}
	here, err := filepath.Glob(filepath.Join(folder, "rules", "*.json"))
	if err != nil || len(here) != 1 {
		t.Errorf("rules/ has %v, %v", here, err)
	}
	for _, name := range here {
		text, err := os.ReadFile(name)
		if err != nil || canon.Hash(text)+".json" != filepath.Base(name) || want[canon.Hash(text)] == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, err := bundle.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	keys := []bundle.Key{{Purpose: "record", Public: a.Signer.Public(), Partition: bundle.AnyPartition}}
	if r, err := bundle.Verify(t.Context(), b, bundle.Trust{Keys: keys}, nil); err != nil || !r.Valid {
		t.Errorf("%+v, %v", r, err)
	}
}

// A period without events has an export, too. It has the events around the period without their
// payloads, which show that nothing is between them.
func TestAPeriodWithoutEventsIsExported(t *testing.T) {
	t.Parallel()
	clock := newClock()
	a := openApp(t, ledgertest.New(t), clock)
	began := clock.Now()
	key, caller := newKey(t, a, "ada@example.com")
	tenant := a.Ledger.Service(key[5:17])
	clock.Add(10 * time.Hour)
	if _, err := a.RunService(t.Context(), quickCall(t, caller, "", "ls")); err != nil {
		t.Fatal(err)
	}
	keys := []bundle.Key{{Purpose: "record", Public: a.Signer.Public(), Partition: bundle.AnyPartition}}
	hours := func(n int) string { return began.Add(time.Duration(n) * time.Hour).UTC().Format(time.RFC3339) }
	for name, filters := range map[string]bundle.Filters{
		"before the first event": {From: hours(-9), To: hours(-8)},
		"between two events":     {From: hours(4), To: hours(5)},
		"after the last event":   {From: hours(14), To: hours(15)},
	} {
		folder := t.TempDir()
		m, err := a.ExportHistory(t.Context(), evidence.Export{Tenant: tenant, Actor: "operator", Folder: folder, Filters: filters})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := bundle.Open(t.Context(), folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if r, err := bundle.Verify(t.Context(), b, bundle.Trust{Keys: keys}, nil); err != nil || !r.Valid {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		lines, err := b.Text("events.jsonl")
		if err != nil || bytes.Contains(lines, []byte(`"payload":"`)) || int64(bytes.Count(lines, []byte("\n"))) != m.Count {
			t.Errorf("%s: %s, %v", name, lines, err)
		}
	}
}

// If a bundle cannot be stored, the ledger records no export.
func TestAnExportIsRecordedWhenItsBundleIsWhole(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	key, _ := newKey(t, a, "ada@example.com")
	tenant := a.Ledger.Service(key[5:17])
	before, err := a.Ledger.LastSequence(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	folder, full := t.TempDir(), errors.New("no space left on device")
	_, err = a.ExportHistory(t.Context(), evidence.Export{Tenant: tenant, Actor: "operator", Folder: folder, Ready: func() error {
		if _, err := os.Stat(filepath.Join(folder, "manifest.json")); err != nil {
			t.Errorf("not whole when it is packed: %v", err)
		}
		return full
	}})
	if after, failed := a.Ledger.LastSequence(t.Context(), tenant); !errors.Is(err, full) || failed != nil || after != before {
		t.Errorf("%v: sequence %d, then %d, %v", err, before, after, failed)
	}
}

// ExportAgain refuses an evidence pack before it writes any file.
func TestAnEvidencePackIsNotBuiltAgain(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	key, _ := newKey(t, a, "ada@example.com")
	tenant := a.Ledger.Service(key[5:17])
	pack := func(_ context.Context, _ bundle.Manifest, _ evidence.Found, put func(string, []byte) error) error {
		return put("cover.html", []byte("a page"))
	}
	made, err := a.ExportHistory(t.Context(), evidence.Export{Tenant: tenant, Actor: "operator", Folder: t.TempDir(), Pack: pack})
	if err != nil {
		t.Fatal(err)
	}
	again := t.TempDir()
	_, err = a.ExportAgain(t.Context(), tenant, made.ExportID, again)
	wantRefusal(t, err, organizations.CodeConflict, "an evidence pack or a recall cannot be built again; make a new one")
	if written, err := os.ReadDir(again); err != nil || len(written) != 0 {
		t.Errorf("%v, %v", written, err)
	}
}

// An export that contains a time stamp can be written again.
func TestAnExportWithATimeStampIsBuiltAgain(t *testing.T) {
	t.Parallel()
	a, authority := openApp(t, ledgertest.New(t), newClock()), timestamptest.Start(t)
	key, _ := newKey(t, a, "ada@example.com")
	tenant := a.Ledger.Service(key[5:17])
	keepCheckpoints(t, a, &timestamp.Authority{URL: authority.URL})
	for {
		folder, again := t.TempDir(), t.TempDir()
		made, err := a.ExportHistory(t.Context(), evidence.Export{Tenant: tenant, Actor: "operator", Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		if made.Files[bundle.StampFile] == "" {
			continue // the stamp is not stored yet
		}
		if _, err := a.ExportAgain(t.Context(), tenant, made.ExportID, again); err != nil {
			t.Error(err)
		}
		return
	}
}

// A note may get the lines of witnesses after an export. The export is built again with the note as
// it was.
func TestAnExportIsBuiltAgainAfterItsNoteWasWitnessed(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	key, _ := newKey(t, a, "ada@example.com")
	tenant := a.Ledger.Service(key[5:17])
	keepCheckpoints(t, a, nil)
	folder, again := t.TempDir(), t.TempDir()
	made, err := a.ExportHistory(t.Context(), evidence.Export{Tenant: tenant, Actor: "operator", Folder: folder})
	if err != nil || made.CheckpointSize == 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := a.Ledger.Pool().Exec(t.Context(), `update checkpoints set note = note || $1`, "— a.example AAAAAAAA\n— b.example BBBBBBBB\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ExportAgain(t.Context(), tenant, made.ExportID, again); err != nil {
		t.Error(err)
	}
}

// A bound that no manifest can state is refused: the year 10000 has another form, and no event is
// before 1970. An export without the bound would contain more than was requested.
func TestBoundsThatNoExportCanState(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	key, _ := newKey(t, a, "ada@example.com")
	for _, filters := range []bundle.Filters{{}, {Decision: "deny"}} {
		for to, message := range map[string]string{"9999-12-31T23:59:59-05:00": "to must be before the year 10000", "1969-12-31T23:59:59Z": "to must be after 1970-01-01T00:00:00Z"} {
			filters.To = to
			_, err := a.ExportHistory(t.Context(), evidence.Export{Tenant: a.Ledger.Service(key[5:17]), Filters: filters, Actor: "operator", Folder: t.TempDir()})
			wantRefusal(t, err, "invalid_value", message)
		}
	}
}
