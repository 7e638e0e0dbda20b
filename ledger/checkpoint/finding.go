package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A folder also remembers what a verification found false in a ledger: outside of the
// database, where whoever changed that does not reach, and over a start of the node.

// findingOf is the name of the file for it, beside the notes.
func findingOf(ledger string) string { return LedgerName(ledger) + ".found-false" }

// Finding is what is remembered of a ledger, which is named without a partition; empty
// for nothing.
func (f Folder) Finding(ledger string) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.Path, findingOf(ledger)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(text), err
}

// KeepFinding remembers a finding.
func (f Folder) KeepFinding(ledger, finding string) error {
	return f.write(findingOf(ledger), []byte(finding), 0o755, 0o644)
}

// ForgetFinding is for a ledger that verifies again.
func (f Folder) ForgetFinding(ledger string) error {
	err := os.Remove(filepath.Join(f.Path, findingOf(ledger)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
