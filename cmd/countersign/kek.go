package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/migrations"
)

// signerKEKCmd is about the key that wraps data keys.
type signerKEKCmd struct {
	Derived signerDerivedCmd   `cmd:"" default:"1" help:"Print the key that earlier versions derived from SIGNING_KEY: set it as DATA_KEK."`
	Rotate  signerRotateKEKCmd `cmd:"" help:"Wrap every data key anew, under another key."`
}

type signerDerivedCmd struct{ data }

// Run prints the derived key and nothing else, so that it can be piped into a
// secret store.
func (c *signerDerivedCmd) Run(o *output) error {
	kek, err := c.derivedKEK()
	if err != nil {
		return err
	}
	_, err = io.WriteString(o.stdout, kek+"\n")
	return err
}

type signerRotateKEKCmd struct {
	data
	Next string `help:"The new key, 64 hex digits; the data folder's is made." env:"NEXT_DATA_KEK" name:"next-data-kek" secret:"" placeholder:"KEY"`
}

// newKEK lies in the data folder from before the keys are wrapped under it until it
// is the one in use: whatever happens between, the other one is not the only one.
const newKEK = "data.kek.new"

// Run rotates.
func (c *signerRotateKEKCmd) Run(ctx context.Context, o *output) error {
	url, old, next := c.DatabaseURL, c.DataKEK, c.Next
	kept := filepath.Join(c.dir(), "data.kek")
	if c.private() {
		server, err := startPrivate(ctx, &c.data, slog.New(slog.DiscardHandler), func(string, ...any) {})
		if err != nil {
			return err
		}
		defer server.stop()
		url = server.url(migrations.OwnerRole)
		if old, err = readSecret(kept); err != nil {
			return fmt.Errorf("the key in use, data.kek in the data folder: %w", err)
		}
		if next == "" {
			octets := make([]byte, 32)
			rand.Read(octets)
			next = hex.EncodeToString(octets)
		}
		if next, err = keepSecret(filepath.Join(c.dir(), newKEK), next); err != nil {
			return err
		}
	}
	keys := map[string][]byte{}
	for name, text := range map[string]string{"DATA_KEK": old, "NEXT_DATA_KEK": next} {
		key, err := hex.DecodeString(text)
		if err != nil || len(key) != 32 {
			return errors.New(name + ": want 64 hex digits")
		}
		keys[name] = key
	}
	n, err := ledger.RotateKEK(ctx, url, keys["DATA_KEK"], keys["NEXT_DATA_KEK"])
	if err != nil {
		return err
	}
	then := "set NEXT_DATA_KEK as DATA_KEK and start the nodes with it"
	if c.private() {
		if err := os.Rename(filepath.Join(c.dir(), newKEK), kept); err != nil {
			return err
		}
		then = "it lies in the data folder"
	}
	return o.result(map[string]int{"wrapped": n}, fmt.Sprintf("%d data keys are wrapped under the new key: %s. Backups from before need the old key\n", n, then))
}
