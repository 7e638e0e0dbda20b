package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
)

// Commands move old payloads to an archive folder and back. Verify and restore read the archived
// events, too. A backup does not contain them, and its output says so.
func TestArchiveByCommand(t *testing.T) {
	t.Parallel()
	db := ledgertest.NewPartitioned(t, 1)
	place := filepath.Join(t.TempDir(), "cold")
	o := &operator{t, []string{"--database-url", db.URL, "--signing-key", strings.Repeat("07", 32), "--data-kek", strings.Repeat("08", 32)}}
	asOwner := &operator{t, append([]string{"--database-url", db.OwnerURL, "--archive-store", place}, o.base[2:]...)}
	with := &operator{t, append(o.base, "--archive-store", place)}
	org := o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	l, err := ledger.Open(t.Context(), db.URL, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := range 17 {
		var pending []ledger.Pending
		for i := range 64 {
			id := fmt.Sprintf("%d_%d", n, i)
			pending = append(pending, ledger.Pending{Stream: "usage/" + id, Expect: ledger.New(), ID: "evt_" + id, Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: "system",
				Payload: fmt.Appendf(nil, `{"service":"%s"}`, strings.Repeat("x", 3000))})
		}
		if _, err := l.Append(t.Context(), ledger.Append{Tenant: org, Events: pending}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("events without a checkpoint stay in the database", func(t *testing.T) {
		asOwner := asOwner.in(t)
		asOwner.run(2, "archive", "move", "--older-than", "0h") // no checkpoint covers the events
	})
	heads, err := seal.NewSigner([]byte(strings.Repeat("h", 32)))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = keeper.Start(t.Context(), l, keeper.Options{Signer: heads, Folder: checkpoint.Folder{Path: t.TempDir()}, Every: 10 * time.Millisecond},
		func() string { n++; return fmt.Sprint("evt_head", n) })
	if err != nil {
		t.Fatal(err)
	}
	total, err := l.Total(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keeper.Covered(t.Context(), l.Partition(0), total)

	if !t.Run("only the owner moves old events", func(t *testing.T) {
		o, asOwner, with := o.in(t), asOwner.in(t), with.in(t)
		if text := asOwner.run(0, "archive", "move", "--older-than", "400d"); !strings.Contains(text, "moved 0 events") {
			t.Errorf("young events: %s", text)
		}
		o.run(2, "archive", "move", "--older-than", "0h")    // ARCHIVE_STORE is not set
		with.run(2, "archive", "move", "--older-than", "0h") // the database role of the service may not move payloads
		if text := asOwner.run(0, "archive", "move", "--older-than", "0h"); !strings.Contains(text, "moved 1024 events") {
			t.Errorf("move: %s", text)
		}
	}) {
		return
	}
	objects, err := filepath.Glob(filepath.Join(place, "*", "*.jsonl.gz"))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%v, %v", objects, err)
	}
	t.Run("verify says whether it read the archive", func(t *testing.T) {
		o, with := o.in(t), with.in(t)
		if text := with.run(0, "verify"); !strings.Contains(text, "VALID") {
			t.Errorf("verify: %s", text)
		}
		o.run(2, "verify") // no fault was found, but a part could not be checked
		if text := o.run(0, "verify", "--unarchived"); !strings.Contains(text, "archived events, which were not read") {
			t.Errorf("verify without the archive: %s", text)
		}
	})
	t.Run("doctor says whether it found the archive", func(t *testing.T) {
		o, with := o.in(t), with.in(t)
		if text := with.run(0, "doctor"); !strings.Contains(text, "1024 events in 1 objects") {
			t.Errorf("doctor: %s", text)
		}
		if text := o.run(1, "doctor"); !strings.Contains(text, filepath.Base(objects[0])) || !strings.Contains(text, "ARCHIVE_STORE") {
			t.Errorf("doctor without the archive: %s", text)
		}
	})
	records, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	key := func(s *seal.Signer) string { return fmt.Sprintf("--key=%s:%x", s.KeyID(), []byte(s.Public())) }
	t.Run("an object is checked with both keys", func(t *testing.T) {
		check := []string{"archive", "check", objects[0], key(heads) + ":checkpoint"}
		if text := checked(t, 0, append(check, key(records))...); !strings.Contains(text, "VALID") {
			t.Errorf("check with both keys: %s", text)
		}
		if text := checked(t, 1, append(check, key(heads))...); !strings.Contains(text, "FALSE") {
			t.Errorf("check with another key: %s", text)
		}
		checked(t, 2, "archive", "check", objects[0], key(records)) // no fault was found, but a key is missing
	})
	// A backup contains only what is in the database; restoring needs the archive, too.
	folder := filepath.Join(t.TempDir(), "backup")
	recipient, file := identity(t) // faster than a passphrase, which takes a second each time
	if !t.Run("a backup says that it lacks the archive", func(t *testing.T) {
		with := with.in(t)
		var said bytes.Buffer
		code := run(append([]string{"backup", folder, "--recipient", recipient}, with.base...), io.Discard, &said)
		if code != 0 || !strings.Contains(said.String(), "NOT in the backup: the archive, 1024 events in 1 objects") {
			t.Errorf("backup: exit %d, %s", code, said.String())
		}
	}) {
		return
	}
	other := ledgertest.NewPartitioned(t, 1)
	again := &operator{t, append([]string{"--database-url", other.OwnerURL}, with.base[2:]...)}
	if !t.Run("a restored ledger takes its events back", func(t *testing.T) {
		again := again.in(t)
		if text := again.run(0, "restore", folder, "--identity", file); !strings.Contains(text, " 0 faults") {
			t.Errorf("restore: %s", text)
		}
		if text := again.run(0, "archive", "back"); !strings.Contains(text, "moved back 1024 events") || !strings.Contains(text, "has 0 events") {
			t.Errorf("back: %s", text)
		}
	}) {
		return
	}
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	t.Run("only the ledger that took its events back needs no archive", func(t *testing.T) {
		again, with := again.in(t), with.in(t)
		again.run(0, "verify")
		with.run(2, "verify")
	})
}

// checked runs a command that needs no ledger, checks the exit code and returns the output.
func checked(t *testing.T, code int, args ...string) string {
	t.Helper()
	return (&operator{t: t}).run(code, args...)
}
