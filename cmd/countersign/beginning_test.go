package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/localpg"
)

// fails runs a subcommand that must fail, and checks a part of its error.
func (o *operator) fails(words string, args ...string) {
	o.t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(append(args, o.base...), &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), words) {
		o.t.Errorf("%v: exit %d, want 2 and %q: %s%s", args, code, words, stdout.String(), stderr.String())
	}
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

const (
	earlier      = `comment on table ledger_head is null; update schema_migrations set version = 11`
	whatToDo     = "start with an empty database or data folder, or use the program that made this one"
	ofItsOwn     = "restore it with the program that made it"
	lostDataKeys = "data.kek is missing in the data folder, and this ledger has data keys"
)

// All commands refuse a database with a schema from before the first release, and say what to do.
func TestADatabaseOfAnEarlierDayIsRefused(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	o := newOperator(t)
	o.base[1] = db.URL
	o.run(0, "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	execute(t, db.SuperURL, earlier)
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0"}, {"serve", "--migrate", "--listen", "127.0.0.1:0"}, {"org", "list"}, {"verify"}, {"replay", "diff"},
		{"backup", filepath.Join(t.TempDir(), "backup"), "--without-keys"}, {"signer", "list"},
		{"signer", "kek", "rotate", "--next-data-kek", strings.Repeat("09", 32)},
	} {
		o.fails(whatToDo, args...)
	}
	owner := &operator{t, []string{"--database-url", db.OwnerURL}}
	for _, args := range [][]string{{"status"}, {"up"}, {"down"}, {"force", "1"}, {"distribute"}} {
		owner.fails(whatToDo, append([]string{"migrate"}, args...)...)
	}
}

// All commands also refuse a data folder with such a schema, from before the first release, and
// one without the key that encrypts its data keys.
func TestADataFolderOfAnEarlierDayIsRefused(t *testing.T) {
	t.Parallel()
	o := &operator{t, []string{"--data", dataDir(t)}}
	o.run(0, "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	kek := filepath.Join(o.base[1], "data.kek")
	kept, err := os.ReadFile(kek)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(kek); err != nil {
		t.Fatal(err)
	}
	o.fails(lostDataKeys, "org", "create", "--name", "Beta", "--plan", "team", "--owner", "ada@example.com")
	if _, err := os.Stat(kek); err == nil {
		t.Error("another key was made")
	}
	if err := os.WriteFile(kek, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	o.run(0, "org", "list")
	s, err := localpg.Start(t.Context(), localpg.Options{DataDir: o.base[1]})
	if err != nil {
		t.Fatal(err)
	}
	execute(t, s.URL(localpg.Superuser), earlier)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"org", "list"}, {"verify"}, {"signer", "kek", "rotate"}} {
		o.fails(whatToDo, args...)
	}
}

// Restore refuses a backup with a schema from before the first release.
func TestABackupOfAnEarlierDayIsRefused(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run(0, "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	folder := filepath.Join(t.TempDir(), "backup")
	o.run(0, "backup", folder, "--without-keys")
	manifest := filepath.Join(folder, "manifest.json")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := bytes.Cut(text, []byte(`"beginning":"`))
	if !found {
		t.Fatalf("the manifest names no beginning: %s", text)
	}
	text = append(append(bytes.Clone(before), `"beginning":"`...), append([]byte(strings.Repeat("0", 64)), rest[64:]...)...)
	if err := os.WriteFile(manifest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := newOperator(t)
	empty.fails(ofItsOwn, "restore", folder, "--without-keys")
}
