// Package proof implements the commands of auditors: verify, check, pin, export, evidence, prove,
// recall, dispute, oversight, views and replay.
package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/seal"
)

// Verify verifies records or exports without trusting the server, or the complete ledger.
type Verify struct {
	Files []string `arg:"" optional:"" name:"file" help:"A signed record, an answer with a receipt in it, or an export (folder or .tar.gz); - for standard input. Two exports: also verify that the second begins where the first ends. Default: verify the whole ledger."`
	setting.TrustedKeys
	Pin  string `help:"File with the newest checkpoint that you have seen of this ledger, and the last event of each tenant whose export you verified; countersign pin creates the file. An export or a ledger that does not continue this checkpoint is refused; otherwise the file is updated." placeholder:"FILE"`
	With string `help:"Folder with signed answers that you have kept. Each answer that matches the filters of the export must be in the export with the same recordHash. Exit code 1: a decision is missing." placeholder:"FOLDER"`

	TSACA string `help:"For an export with a time stamp: file with the root certificates (PEM) of the time-stamp authority." name:"tsa-ca" placeholder:"FILE"`

	Sample int    `help:"For an export: select this number of its decisions by --nonce, namely those with the smallest SHA-256 of the nonce, a line feed and the sequence number." placeholder:"N"`
	Nonce  string `help:"For --sample: a text that you chose after the export was made, such as numbers of thrown dice." placeholder:"TEXT"`

	Views bool `help:"For an export: also create its views again from its events and compare them. Exit code 1: a view differs."`

	FullSpeed  bool `help:"Do not slow down while the service appends events." name:"full-speed"`
	Workers    int  `help:"Number of ranges of a database that are checked at the same time. Default: one per core." placeholder:"N"`
	ChainOnly  bool `help:"For a database: verify only chain, tree and head, not records and signatures." name:"chain-only"`
	Unarchived bool `help:"For a database: do not read the archive; of archived events only the chain is verified."`
	setting.Ledger
}

// Run prints the result of each check. The exit code is 1 if one fails.
func (c *Verify) Run(ctx context.Context, o *screen.Output) error {
	if len(c.Files) == 0 && c.With != "" {
		return errors.New("--with needs an export, which must contain the kept answers")
	}
	if len(c.Files) == 0 && c.Views {
		return errors.New("--views needs an export, whose views are compared")
	}
	if err := c.checkSample(); err != nil {
		return err
	}
	if len(c.Files) == 0 {
		return c.audit(ctx, o)
	}
	if len(c.Files) > 2 {
		return errors.New("give one file, or two exports of which the second begins where the first ends")
	}
	keys, err := c.Trusted()
	if err != nil {
		return err
	}
	export, text, err := openNamed(ctx, o, c.Files[0])
	if err != nil {
		return err
	}
	if export != nil {
		defer export.Close()
		return c.exports(ctx, o, export, keys)
	}
	switch {
	case len(c.Files) > 1:
		return errors.New("two files can be compared only if both are exports; verify each record alone")
	case c.Pin != "":
		return errors.New("--pin needs an export or the ledger: a record alone does not contain the ledger's head")
	case c.Views:
		return errors.New("--views needs an export: a record alone has no views")
	case c.Nonce != "":
		return errors.New("--sample needs an export: a record alone has no decisions to select from")
	case c.With != "":
		return errors.New("--with needs an export: a record alone shows nothing about other records")
	}
	found, err := seal.Examiner{Keys: setting.ForRecords(keys)}.Examine(text)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	return PrintExamination(o, found)
}

// PrintExamination prints whether the document is valid, each check, and the parts that no
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
