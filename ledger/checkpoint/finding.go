package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A folder also remembers what a verification found false in a ledger. It is outside of the
// database, so that an attacker who changed the database does not reach it, and it outlasts a
// restart of the node.

// findingOf returns the name of the file with the finding. It is next to the notes.
func findingOf(ledger string) string { return LedgerName(ledger) + ".found-false" }

// Finding returns what is remembered of a ledger, or an empty text. ledger is the origin
// without a partition.
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

// ForgetFinding removes the finding of a ledger that verifies again.
func (f Folder) ForgetFinding(ledger string) error {
	err := os.Remove(filepath.Join(f.Path, findingOf(ledger)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
