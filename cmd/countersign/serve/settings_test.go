package serve

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/ledger/seal"
)

func seedOf(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func TestTokenKeyIsAnotherThanTheSigningKey(t *testing.T) {
	t.Parallel()
	signer, err := seal.NewSigner(seedOf(7))
	if err != nil {
		t.Fatal(err)
	}
	one, two := hex.EncodeToString(seedOf(8)), hex.EncodeToString(seedOf(9))
	for text, want := range map[string]string{
		hex.EncodeToString(seedOf(7)):             "TOKEN_KEY is the signing key",
		one + "," + hex.EncodeToString(seedOf(7)): "TOKEN_KEY is the signing key",
		"abc":     "TOKEN_KEY: the value must be an Ed25519 seed",
		one + ",": "TOKEN_KEY: the value must be an Ed25519 seed",
	} {
		c := Command{Service: setting.Service{TokenKey: text}, Ledger: setting.Ledger{DatabaseURL: "x"}}
		if _, err := c.tokenKeys(signer); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), one) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	c := Command{Service: setting.Service{TokenKey: one + ", " + two}}
	keys, err := c.tokenKeys(signer)
	if err != nil || len(keys) != 2 || accounts.TokenKeyID(keys[0]) != accounts.TokenKeyID(ed25519.NewKeyFromSeed(seedOf(8))) {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if keys, err := c.tokenKeys(nil); err != nil || len(keys) != 2 {
		t.Errorf("without a signing key: %d keys, %v", len(keys), err)
	}
}

// With the private database and a loopback listener, a missing key is created and stored. With
// another listener or database it stays missing.
func TestDevelopmentTokenKeyIsKept(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := Command{Service: setting.Service{Listen: "127.0.0.1:8080"}, Ledger: setting.Ledger{Data: folder, Begins: true}}
	first, err := c.tokenKeys(nil)
	if err != nil || len(first) != 1 {
		t.Fatalf("%d keys, %v", len(first), err)
	}
	again, err := c.tokenKeys(nil)
	if err != nil || accounts.TokenKeyID(again[0]) != accounts.TokenKeyID(first[0]) {
		t.Errorf("another key at the second start, %v", err)
	}
	path := filepath.Join(folder, "token.key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.tokenKeys(nil); err == nil || !strings.Contains(err.Error(), "open to others") {
		t.Errorf("a key that others may read: %v", err)
	}
	for _, none := range []Command{
		{Service: setting.Service{Listen: "0.0.0.0:8080"}, Ledger: setting.Ledger{Data: folder}},
		{Service: setting.Service{Listen: "127.0.0.1:8080"}, Ledger: setting.Ledger{Data: folder, DatabaseURL: "x"}},
	} {
		if keys, err := none.tokenKeys(nil); err != nil || len(keys) != 0 {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	}
}

func TestSupportClientsAreClientIDs(t *testing.T) {
	t.Parallel()
	good := []string{"agt_01KAAAAAAAAAAAAAAAAAAAAAAA"}
	c := Command{Service: setting.Service{SupportClients: good}}
	if got, err := c.supportClients(); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	c.SupportClients = append(good, "agt_x")
	if _, err := c.supportClients(); err == nil {
		t.Error("a client id that cannot be one was taken")
	}
}
