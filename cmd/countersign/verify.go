package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// verifyCmd checks a record without trusting the server, or the whole ledger.
type verifyCmd struct {
	File string   `arg:"" optional:"" help:"A signed record, or an answer with a receipt in it; - for standard input. Nothing: the whole ledger."`
	Keys string   `help:"Keys you trust, as saved from /.well-known/jwks.json." placeholder:"FILE"`
	Key  []string `help:"A key you trust, as KEYID:HEX." placeholder:"KEYID:HEX"`
	data
}

// Run prints each check; a false one is exit code 1.
func (c *verifyCmd) Run(ctx context.Context, o *output) error {
	if c.File == "" {
		return c.ledger(ctx, o)
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
	var set struct {
		Keys []struct {
			KID, X, CRV string
			For         string `json:"svc_purpose"`
			From        int64  `json:"svc_from_position"`
			To          *int64 `json:"svc_to_position"`
		}
	}
	if err := canon.Check(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &set, json.MatchCaseInsensitiveNames(true)); err != nil {
		return errors.New("want a JSON Web Key Set")
	}
	for _, key := range set.Keys {
		public, err := base64.RawURLEncoding.DecodeString(key.X)
		if err != nil || key.CRV != "Ed25519" || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != key.KID {
			continue // a key of another kind
		}
		if key.For != "" && key.For != "record" {
			continue // a key for other things must not sign records
		}
		trusted := trustedKey{public: public, from: key.From}
		if key.To != nil {
			trusted.to = *key.To
		}
		k[key.KID] = trusted
	}
	return nil
}

// ledger verifies every event of the database.
func (c *verifyCmd) ledger(ctx context.Context, o *output) error {
	n, err := openNode(ctx, &c.data, false, false, "", slog.New(slog.DiscardHandler), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.close()
	report, err := n.ledger.VerifyDatabase(ctx, func(events, head int64) {
		if isTerminal(os.Stderr) {
			fmt.Fprintf(o.stderr, "\rverified %d of %d events", events, head)
		}
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %d events of %d tenants, %d signed records, head %s\n", report.Origin, report.Events, report.Tenants, report.Records, report.Hash)
	for _, fault := range report.Faults {
		fmt.Fprintf(&b, "FALSE  %s\n", fault)
	}
	b.WriteString("NOT PROVEN  that every action the agents took was submitted to the service\n")
	b.WriteString("NOT PROVEN  that history was not replaced before you first saw it: keep the head's hash\n")
	if len(report.Faults) == 0 {
		b.WriteString("VALID\n")
	} else {
		b.WriteString("NOT VALID\n")
	}
	if err := o.result(report, b.String()); err != nil {
		return err
	}
	if len(report.Faults) > 0 {
		return errNo
	}
	return nil
}
