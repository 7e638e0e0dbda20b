// Package proof has the commands of auditors: verify, check, pin, export and replay.
package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
)

// Verify checks a record or an export without trusting the server, or the whole ledger.
type Verify struct {
	File string `arg:"" optional:"" help:"A signed record, an answer with a receipt in it, or an export (folder or .tar.gz); - for standard input. Nothing: the whole ledger."`
	setting.TrustedKeys
	Pin string `help:"File with the newest checkpoint you have seen of this ledger, and the last event of each tenant whose export you verified (countersign pin makes it). An export or a ledger that does not continue it is refused; else the file is brought up to date." placeholder:"FILE"`

	FullSpeed  bool `help:"Do not go slower while others append." name:"full-speed"`
	Workers    int  `help:"Ranges of a database that are checked at once; default: one per core." placeholder:"N"`
	ChainOnly  bool `help:"Of a database, only chain, tree and head: no records and signatures." name:"chain-only"`
	Unarchived bool `help:"Of a database, leave out what is in the archive: of archived events only the chain is checked."`
	setting.Ledger
}

// Run prints each check. A check that fails is exit code 1.
func (c *Verify) Run(ctx context.Context, o *screen.Output) error {
	if c.File == "" {
		return c.audit(ctx, o)
	}
	keys, err := c.Trusted()
	if err != nil {
		return err
	}
	var pin []byte
	if c.Pin != "" {
		if pin, err = readPin(c.Pin); err != nil {
			return err
		}
	}
	export, text, err := openNamed(ctx, o, c.File)
	if err != nil {
		return err
	}
	if export != nil {
		defer export.Close()
		return c.bundle(ctx, o, export, bundle.Trust{Keys: keys, Pin: pin})
	}
	if c.Pin != "" {
		return errors.New("--pin: a record alone says nothing of the ledger's head; verify an export, or the ledger")
	}
	found, err := seal.Examiner{Keys: setting.ForRecords(keys)}.Examine(text)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	return PrintExamination(o, found)
}

// PrintExamination prints first whether the document is valid, then each check, then what no
// signature covers.
func PrintExamination(o *screen.Output, found seal.Examination) error {
	var b strings.Builder
	fmt.Fprintln(&b, found.Says)
	for _, check := range found.Checks {
		fmt.Fprintf(&b, "%-11s %-14s %s%s\n", check.Result, check.Name, check.Detail, at(check.Path))
	}
	for _, gap := range found.NotCovered {
		fmt.Fprintf(&b, "%-11s %-14s %s\n", "not covered", gap.Path, gap.Detail)
	}
	if err := o.Result(found, o.Wrapped("%s", b.String())); err != nil {
		return err
	}
	if !found.Valid {
		return screen.ErrNo
	}
	return nil
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return " (" + path + ")"
}
