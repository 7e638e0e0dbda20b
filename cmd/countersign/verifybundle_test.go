package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
)

// An export is verified from a file or standard input, with keys from a file or from flags. A
// pin that is missing or that the export does not continue is refused and stays unchanged. A
// check that was not possible is never reported as false.
func TestAnExportIsVerifiedOrRefusedInWords(t *testing.T) {
	t.Parallel()
	dir, files := dataDir(t), t.TempDir()
	s := serveIn(t, dir)
	a, bare := &auditor{t, []string{"--data", dir}}, &auditor{t, nil}
	token := organizationToken(t, dir)
	status, record, err := post(s.base+decisionsPath, token, purchase("k1"))
	if err != nil || status != 201 {
		t.Fatal(status, record, err)
	}
	in := func(name string) string { return filepath.Join(files, name) }
	keep := func(name string, text []byte) string {
		t.Helper()
		if err := os.WriteFile(in(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return in(name)
	}
	text, err := fetched(s.base + "/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	keys, export := keep("jwks.json", text), in("export.tar.gz")
	a.run(0, "", "export", "--out", export)
	set, err := setting.ReadKeySet(text)
	if err != nil {
		t.Fatal(err)
	}
	one := func(purpose, suffix string) string {
		k := set[slices.IndexFunc(set, func(k bundle.Key) bool { return k.Purpose == purpose })]
		return "--key=" + seal.KeyID(k.Public) + ":" + hex.EncodeToString(k.Public) + suffix
	}

	bare.run(0, "VALID", "verify", export, one("record", ""), one("checkpoint", ":checkpoint"))
	bare.run(2, "keys: none signs checkpoints", "verify", export, one("record", ""))
	bare.run(2, "no key to trust", "verify", export, one("checkpoint", ":checkpoint"))
	bare.run(2, "--key must be KEYID:HEX", "verify", export, one("record", ":other"))

	missing := in("missing.txt")
	bare.run(2, "make it with countersign pin", "verify", export, "--keys", keys, "--pin", missing)
	a.run(2, "make it with countersign pin", "verify", "--pin", missing)
	if _, err := os.Stat(missing); err == nil {
		t.Error("a pin that was mistyped was made")
	}
	bare.run(2, "a record alone says nothing", "verify", keep("record.json", []byte(record)), "--keys", keys, "--pin", keys)
	bare.run(2, "pin: want a checkpoint of this ledger", "verify", export, "--keys", keys, "--pin", keep("rubbish.txt", []byte("rubbish")))

	seed, err := os.ReadFile(filepath.Join(dir, "checkpoint.key"))
	if err != nil {
		t.Fatal(err)
	}
	private, err := setting.ParseSeed(strings.TrimSpace(string(seed)))
	if err != nil {
		t.Fatal(err)
	}
	head, err := fetched(s.base + "/api/ledger/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	origin, _, _ := strings.Cut(string(head), "\n")
	forked, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: origin, Size: 1, Root: tree.Hash{1}}, ed25519.NewKeyFromSeed(private))
	if err != nil {
		t.Fatal(err)
	}
	pin := keep("pin.txt", forked)
	bare.run(2, "has no proof that its", "verify", export, "--keys", keys, "--pin", pin)
	if now, err := os.ReadFile(pin); err != nil || !bytes.Equal(now, forked) {
		t.Errorf("a pin that nothing continues is now %q, %v", now, err)
	}

	for code, args := range map[int][]string{0: {"verify", "-", "--keys", keys}, 2: {"verify", "-"}} {
		cmd := program(args...)
		if cmd.Stdin, err = os.Open(export); err != nil {
			t.Fatal(err)
		}
		out, _ := cmd.CombinedOutput() // the exit code is checked below
		if got := cmd.ProcessState.ExitCode(); got != code || (code == 0) != strings.HasPrefix(string(out), "VALID\n") {
			t.Errorf("%v: exit %d: %s", args, got, out)
		}
	}
}
