package proof

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/migrations"
)

// audit verifies a database: the one of DATABASE_URL, with any role that can read it, or the
// private one.
func (c *Verify) audit(ctx context.Context, o *screen.Output) error {
	a, err := c.auditor()
	if err != nil {
		return err
	}
	a.Progress = func(events, head int64) { o.Progress.Say("verified %d of %d events", events, head) }
	url, leave, err := node.Database(ctx, &c.Ledger, migrations.AppRole)
	if err != nil {
		return err
	}
	defer leave()
	report, err := audit.Database(ctx, url, a)
	if err != nil {
		return err
	}
	if len(report.Faults) == 0 {
		if err := c.keepPin(ctx, url, report); err != nil {
			return err
		}
		if err := c.forgetFinding(report); err != nil {
			return err
		}
	}
	return printReport(o, report)
}

// forgetFinding removes the note that this ledger was altered, so that nodes append again. It
// affects the nodes that use the checkpoint folder of this command's settings.
func (c *Verify) forgetFinding(report audit.Report) error {
	outside, err := node.Checkpoints(&c.Ledger, false)
	if err != nil || c.ChainOnly {
		return err
	}
	return outside.Folder.ForgetFinding(strings.TrimSuffix(report.Origin, "/0")) // a ledger with one partition has the suffix /0
}

// auditor returns the options of the verification: trusted keys, pins, and checkpoints outside the
// database.
func (c *Verify) auditor() (audit.Options, error) {
	a := audit.Options{Workers: c.Workers, ChainOnly: c.ChainOnly, FullSpeed: c.FullSpeed, Unarchived: c.Unarchived}
	var err error
	if a.Archive, err = c.Archive(); err != nil {
		return a, err
	}
	if c.Origin != "" {
		a.Origin = c.Origin
	}
	if c.Keys != "" || len(c.Key) > 0 {
		keys, err := c.trustedOfEveryPurpose()
		if err != nil {
			return a, err
		}
		a.Keys = keys
	}
	kek := c.DataKEK
	if kek == "" && c.Private() {
		var err error
		if kek, err = setting.ReadSecret(filepath.Join(c.Dir(), "data.kek")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return a, err
		}
	}
	if kek != "" {
		var err error
		if a.KEK, err = setting.ParseKEK("DATA_KEK", kek); err != nil {
			return a, err
		}
	}
	for p := 0; c.Pin != ""; p++ {
		if _, err := os.Stat(pinOf(c.Pin, p)); p > 0 && errors.Is(err, fs.ErrNotExist) {
			break // only the database shows how many partitions there are
		}
		text, err := readPin(pinOf(c.Pin, p))
		if err != nil {
			return a, err
		}
		a.Pins = append(a.Pins, audit.Pin{Name: pinOf(c.Pin, p), Note: text})
	}
	outside, err := node.Checkpoints(&c.Ledger, false)
	a.Outside = outside.Stores()
	return a, err
}

// pinOf returns the pin file of a partition. For partition 0 it is the file that the user names;
// for partition N it is that name followed by .N.
func pinOf(path string, partition int) string {
	if partition == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, partition)
}

// trustedOfEveryPurpose returns the keys that the user trusts, for records and for checkpoints, by
// key id.
func (c *Verify) trustedOfEveryPurpose() (map[string]ed25519.PublicKey, error) {
	all, err := c.Trusted()
	keys := map[string]ed25519.PublicKey{}
	for _, key := range all {
		if key.Purpose == ledger.PurposeRecord || key.Purpose == ledger.PurposeCheckpoint {
			keys[seal.KeyID(key.Public)] = key.Public
		}
	}
	return keys, err
}

// keepPin writes the newest checkpoint of a verified ledger to the pin file, so that the user's
// next verification can detect a rollback.
func (c *Verify) keepPin(ctx context.Context, url string, report audit.Report) error {
	if c.Pin == "" || report.Checkpoints == 0 {
		return nil
	}
	notes, err := audit.NewestNotes(ctx, url, report.Heads())
	if err != nil {
		return err
	}
	for _, text := range notes {
		if err := replacePin(pinOf(c.Pin, checkpoint.Partition(text)), text); err != nil {
			return err
		}
	}
	return nil
}

// replacePin replaces the note in a pin file and keeps the tenants that are listed in it.
func replacePin(path string, note []byte) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	pin, err := checkpoint.ParsePin(old)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	pin.Note = note
	if text := pin.Text(); !bytes.Equal(old, text) {
		return files.Replace(path, text)
	}
	return nil
}

func printReport(o *screen.Output, report audit.Report) error {
	var b bytes.Buffer
	if len(report.Faults) == 0 {
		b.WriteString("VALID\n")
	} else {
		b.WriteString("NOT VALID\nALTERED     " + ledger.SaysAltered + "\n")
	}
	head := "head " + report.Hash
	if n := len(report.Partitions); n > 0 {
		head = fmt.Sprintf("%d partitions:", n)
	}
	fmt.Fprintf(&b, "%s: %d events of %d tenants, %d signed records, %d checkpoints, %s\n",
		report.Origin, report.Events, report.Tenants, report.Records, report.Checkpoints, head)
	for _, p := range report.Partitions {
		fmt.Fprintf(&b, "PARTITION   %s: %d events, head %s\n", p.Origin, p.Events, p.Hash)
	}
	for _, fault := range report.Faults {
		fmt.Fprintf(&b, "FALSE       %s\n", fault)
	}
	if report.More {
		b.WriteString("FALSE       and more, which are not listed\n")
	}
	if report.FalseHistory() != "" {
		b.WriteString("READ ONLY: a node that finds this appends nothing to the ledger, and serves what can be read\n")
	}
	for _, text := range report.Trusted {
		fmt.Fprintf(&b, "TRUSTED     %s\n", text)
	}
	for _, text := range append(report.Gaps, "that every action the agents took was submitted to the service",
		"that evidence supplied by a caller is true", "the time of any event; only the order of positions is proven (times are from the server's clock)") {
		fmt.Fprintf(&b, "NOT PROVEN  %s\n", text)
	}
	b.WriteString("READ MODELS countersign replay diff compares them; sessions and links are not part of the ledger\n")
	if err := o.Result(report, o.Wrapped("%s", b.String())); err != nil {
		return err
	}
	if len(report.Faults) > 0 {
		return screen.ErrNo
	}
	return nil
}
