package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// identity makes an age key pair and returns the public key and the file with the private key.
func identity(t *testing.T) (recipient, file string) {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(file, []byte(i.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return i.Recipient().String(), file
}

// After the loss of a disk, the ledger, the keys and the encrypted data are restored from the
// backup into another folder, and all of it verifies.
func TestLoseADiskAndGetItBack(t *testing.T) {
	t.Parallel()
	recipient, file := identity(t)
	lost := &operator{t, []string{"--data", dataDir(t)}}
	org := lost.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	lost.run(0, "webhooks", "create", "--org", org, "--url", "https://siem.example.com/in")
	token := lost.value("token", "org", "token", "issue", "--org", org)
	folder := filepath.Join(t.TempDir(), "backup")
	lost.run(0, "backup", folder, "--recipient", recipient)
	for _, path := range filesBelow(t, filepath.Dir(folder)) {
		text := unpacked(t, path)
		for _, secret := range []string{"ada@example.com", "siem.example.com/in", token, firstLine(t, filepath.Join(lost.base[1], "signing.key")), firstLine(t, filepath.Join(lost.base[1], "data.kek"))} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s holds a secret in the clear", filepath.Base(path))
			}
		}
	}
	found := &operator{t, []string{"--data", filepath.Join(reachable(t), "data")}}
	if text := found.run(0, "restore", folder, "--identity", file); !strings.Contains(text, " 0 faults") {
		t.Errorf("restore: %s", text)
	}
	if text := found.run(0, "org", "show", org); !strings.Contains(text, "ada@example.com") {
		t.Errorf("what was sealed stays closed: %s", text)
	}
	found.run(0, "verify")
	found.run(2, "restore", folder, "--identity", file) // refused: the folder contains a ledger
}

func firstLine(t *testing.T, path string) string {
	t.Helper()
	line, _, _ := strings.Cut(string(read(t, path)), "\n")
	return line
}

func filesBelow(t *testing.T, folder string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 5 {
		t.Fatalf("%v, %v", paths, err)
	}
	return paths
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	text := read(t, path)
	if packed, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		if text, err = io.ReadAll(packed); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

func TestBackupRefusesWhatWouldBeNone(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	folder := filepath.Join(t.TempDir(), "backup")
	o.run(2, "backup", folder)                                    // refused: without a recipient the keys cannot be encrypted
	o.run(2, "backup", folder, "--recipient", "ssh-ed25519 AAAA") // not an age key
	o.run(2, "backup", o.file("{}"), "--without-keys")            // the file exists
	o.run(0, "backup", folder, "--passphrase", "correct horse battery staple")
	db := ledgertest.New(t)
	other := &operator{t, append([]string{"--database-url", db.OwnerURL}, o.base[2:]...)}
	other.run(2, "restore", folder, "--passphrase", "wrong")
	other.run(2, "restore", folder, "--keys", folder+".none", "--passphrase", "correct horse battery staple")
	// If a file of the backup was changed, restore refuses before it restores anything.
	path := filepath.Join(folder, "tables", "events.copy.gz")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := gzipped(t, bytes.Replace(unpacked(t, path), []byte("signing_key"), []byte("signing_kez"), 1))
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	other.run(2, "restore", folder, "--passphrase", "correct horse battery staple")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	other.run(0, "restore", folder, "--passphrase", "correct horse battery staple")
}

// While a backup is written, a second one to the same folder is refused and changes nothing. The
// next run replaces the unfinished files of a killed backup. If the folder has other files, the
// next run is refused and names the folder.
func TestABackupThatWasKilledIsMadeAgain(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	folder := filepath.Join(t.TempDir(), "new", "backup")
	secret := []string{"--passphrase", "correct horse battery staple"}
	const halfKeys = "keys.age"
	half, keys := folder+".part", folder+".keys.age"
	if err := os.Mkdir(filepath.Dir(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	end, err := files.Claim(half + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"tables/events.copy.gz", halfKeys} {
		path = filepath.Join(half, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("half"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(words string) {
		t.Helper()
		var said bytes.Buffer
		if code := run(append(append([]string{"backup", folder}, secret...), o.base...), io.Discard, &said); code != 2 || !strings.Contains(said.String(), words) {
			t.Errorf("exit %d: %s, want %s", code, said.String(), words)
		}
	}
	refused("another backup is writing " + folder)
	for _, path := range []string{"tables/events.copy.gz", halfKeys} {
		if _, err := os.Stat(filepath.Join(half, path)); err != nil {
			t.Errorf("the refused backup touched the other's: %v", err)
		}
	}
	end() // the lock of a killed process is free, too
	foreign := filepath.Join(half, "letter.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(half + " exists already: remove it")
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keys, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(keys + " exists")
	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	o.run(0, append([]string{"backup", folder}, secret...)...)
	refused(folder + " exists: name a new folder")
	beside, err := os.ReadDir(filepath.Dir(folder))
	if err != nil || len(beside) != 2 {
		t.Errorf("beside the backup and its keys: %v, %v", beside, err)
	}
	if _, err := os.Stat(filepath.Join(folder, halfKeys)); err == nil {
		t.Error("the keys lie in the folder")
	}
	found := &operator{t, []string{"--data", filepath.Join(reachable(t), "data")}}
	found.run(0, append([]string{"restore", folder}, secret...)...)
}

func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Each table is in the backup or in the list of tables that are left out, so that no table of a
// later migration is forgotten.
func TestBackupHoldsEveryTableThatIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	o := newOperator(t)
	o.base[1] = db.URL
	o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	folder := filepath.Join(t.TempDir(), "backup")
	o.run(0, "backup", folder, "--without-keys")
	conn, err := pgx.Connect(t.Context(), db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `select tablename from pg_tables where schemaname = 'public' order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	madeAgain := " schema_migrations projection_dead sessions signin_links download_links subject_keys "
	for _, table := range tables {
		_, err := os.Stat(filepath.Join(folder, "tables", table+".copy.gz"))
		if (err == nil) == strings.Contains(madeAgain, " "+table+" ") {
			t.Errorf("table %s: %v", table, err)
		}
	}
}

// After the loss of a disk, a base copy and the write-ahead log restore the ledger to the end of
// the log, to a time, or to a position.
func TestLoseADiskAndGetAMomentBack(t *testing.T) {
	t.Parallel()
	recipient, file := identity(t)
	elsewhere := t.TempDir()
	if err := os.Chmod(filepath.Dir(elsewhere), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(elsewhere, 0o711); err != nil {
		t.Fatal(err)
	}
	log, folder := filepath.Join(elsewhere, "log"), filepath.Join(elsewhere, "base")
	lost := &operator{t, []string{"--data", dataDir(t), "--ledger-partitions", "2"}}
	create := func(name string) {
		lost.run(0, "org", "create", "--name", name, "--plan", "team", "--owner", "ada@example.com")
	}
	create("Before")
	lost.run(2, "backup", folder, "--base", "--recipient", recipient) // refused: the write-ahead log is not archived
	lost.base = append(lost.base, "--wal-dir", log)
	began := time.Now()
	lost.run(0, "backup", folder, "--base", "--recipient", recipient)
	t.Logf("base copy in %v", time.Since(began))
	lost.base = lost.base[:2] // --wal-dir is not needed again: the data folder stores it
	create("Within")
	var middle struct{ Partition, Position int64 }
	events := strings.Split(strings.TrimSpace(lost.run(0, "--json", "tail", "--once")), "\n")
	if err := json.Unmarshal([]byte(events[len(events)-1]), &middle); err != nil {
		t.Fatal(err)
	}
	moment := time.Now().UTC().Format(time.RFC3339Nano)
	create("After")
	if err := os.RemoveAll(lost.base[1]); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		to    []string
		after bool
	}{
		"end of the log": {nil, true}, "moment": {[]string{"--at", moment}, false},
		"position": {[]string{"--position", fmt.Sprint(middle.Partition, ":", middle.Position)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := &operator{t, []string{"--data", filepath.Join(reachable(t), "data")}}
			began := time.Now()
			text := found.run(0, append([]string{"restore", folder, "--identity", file, "--wal", log}, c.to...)...)
			t.Logf("restored in %v", time.Since(began))
			if !strings.Contains(text, " 0 faults") {
				t.Errorf("restore: %s", text)
			}
			orgs := found.run(0, "org", "list")
			if !strings.Contains(orgs, "Before") || !strings.Contains(orgs, "Within") || strings.Contains(orgs, "After") != c.after {
				t.Errorf("organizations:\n%s", orgs)
			}
			found.run(0, "org", "create", "--name", "Later", "--plan", "team", "--owner", "bob@example.com")
			found.run(2, "restore", folder, "--identity", file, "--wal", log) // refused: the folder contains a ledger
		})
	}
	refused := func(words string, args ...string) {
		t.Helper()
		var said bytes.Buffer
		code := run(append([]string{"restore", folder, "--identity", file, "--data", filepath.Join(reachable(t), "data")}, args...), io.Discard, &said)
		if code != 2 || !strings.Contains(said.String(), words) {
			t.Errorf("%v: exit %d: %s", args, code, said.String())
		}
	}
	refused("name its folder with --wal")
	refused("the log ends before", "--wal", log, "--at", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	refused("before the base copy", "--wal", log, "--at", "2020-01-01T00:00:00Z")
	refused("before the base copy", "--wal", log, "--at", began.Add(-time.Minute).UTC().Format(time.RFC3339))
	refused("before the base copy", "--wal", log, "--position", "0:1")
	refused("not both", "--wal", log, "--at", moment, "--position", "1")
	refused("partition", "--wal", log, "--position", "1") // refused: a position needs a partition
	refused("partition", "--wal", log, "--position", "2:1")
	refused("WAL_DIR is the folder", "--wal", log, "--wal-dir", log)
}
