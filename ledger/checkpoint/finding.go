package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A folder also records that a verification found a ledger altered. An attacker who has changed
// the database cannot reach this record, and it survives a restart of the node.

// findingOf returns the name of the file with the finding. The file is next to the notes.
func findingOf(ledger string) string { return LedgerName(ledger) + ".found-false" }

// Finding returns the recorded finding of a ledger, or an empty text. ledger is the origin without
// a partition.
func (f Folder) Finding(ledger string) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.Path, findingOf(ledger)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(text), err
}

// KeepFinding records a finding and replaces an earlier one.
func (f Folder) KeepFinding(ledger, finding string) error {
	return f.write(findingOf(ledger), []byte(finding), 0o755, 0o644)
}

// ForgetFinding removes the finding of a ledger that verifies again.
func (f Folder) ForgetFinding(ledger string) error {
	err := os.Remove(filepath.Join(f.Path, findingOf(ledger)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
