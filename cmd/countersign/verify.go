package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
)

// verifyCmd checks a record without trusting the server, or the whole ledger.
type verifyCmd struct {
	File string   `arg:"" optional:"" help:"A signed record, an answer with a receipt in it, or an export (folder or .tar.gz); - for standard input. Nothing: the whole ledger."`
	Keys string   `help:"Keys you trust, as saved from /.well-known/jwks.json." placeholder:"FILE"`
	Key  []string `help:"A key you trust, as KEYID:HEX." placeholder:"KEYID:HEX"`
	Pin  string   `help:"File with the newest checkpoint you have seen of this ledger: what does not continue it is refused, and it is brought up to date." placeholder:"FILE"`

	FullSpeed bool `help:"Do not go slower while others append." name:"full-speed"`
	Workers   int  `help:"Ranges of a database that are checked at once; default: one per core." placeholder:"N"`
	ChainOnly bool `help:"Of a database, only chain, tree and head: no records and signatures." name:"chain-only"`
	data
}

// Run prints each check; a false one is exit code 1.
func (c *verifyCmd) Run(ctx context.Context, o *output) error {
	if c.File == "" {
		return c.audit(ctx, o)
	}
	if c.File != "-" && isBundle(c.File) {
		return c.bundle(o)
	}
	text, err := readInput(c.File)
	if err != nil {
		return err
	}
	keys, err := c.trusted()
	if err != nil {
		return err
	}
	found, err := seal.Examiner{Keys: keys}.Examine(text)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	return printExamination(o, found)
}

// printExamination says first what is valid, then why, then what nothing covers.
func printExamination(o *output, found seal.Examination) error {
	var b strings.Builder
	fmt.Fprintln(&b, found.Says)
	for _, check := range found.Checks {
		fmt.Fprintf(&b, "%-11s %-14s %s%s\n", check.Result, check.Name, check.Detail, at(check.Path))
	}
	for _, gap := range found.NotCovered {
		fmt.Fprintf(&b, "%-11s %-14s %s\n", "not covered", gap.Path, gap.Detail)
	}
	if err := o.result(found, b.String()); err != nil {
		return err
	}
	if !found.Valid {
		return errNo
	}
	return nil
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return " (" + path + ")"
}

func readInput(name string) ([]byte, error) {
	const most = 8 << 20
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	return text, nil
}

// keyFile is a set of keys that the verifier trusts, whatever a record says.
type keyFile map[string]trustedKey

type trustedKey struct {
	public   ed25519.PublicKey
	from, to int64
}

// Find implements seal.Keys.
func (k keyFile) Find(id string, position int64) (ed25519.PublicKey, string) {
	key, known := k[id]
	switch {
	case !known:
		return nil, "the key is not among those you trust"
	case position > 0 && position < key.from:
		return nil, fmt.Sprintf("the key is valid from position %d", key.from)
	case position > 0 && key.to > 0 && position >= key.to:
		return nil, fmt.Sprintf("the key is valid below position %d", key.to)
	}
	return key.public, ""
}

func (c *verifyCmd) trusted() (keyFile, error) {
	keys := keyFile{}
	if c.Keys != "" {
		text, err := os.ReadFile(c.Keys)
		if err != nil {
			return nil, err
		}
		if err := keys.addJWKS(text); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Keys, err)
		}
	}
	for _, k := range c.Key {
		id, digits, _ := strings.Cut(k, ":")
		public, err := hex.DecodeString(digits)
		if err != nil || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != id {
			return nil, errors.New("--key: want KEYID:HEX, where KEYID begins the SHA-256 of the key")
		}
		keys[id] = trustedKey{public: public}
	}
	if len(keys) == 0 {
		return nil, errors.New("no key to trust: give --keys FILE (save it once from /.well-known/jwks.json of the service) or --key KEYID:HEX")
	}
	return keys, nil
}

func (k keyFile) addJWKS(text []byte) error {
	set, err := readKeySet(text)
	for _, key := range set {
		if key.purpose == ledger.PurposeRecord { // a key for other things must not sign records
			k[key.id] = trustedKey{public: key.public, from: key.from, to: key.to}
		}
	}
	return err
}
