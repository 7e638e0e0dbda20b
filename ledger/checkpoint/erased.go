package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A folder also records which data keys were destroyed. A database that is restored from a backup
// made before an erasure has the key again, and no record that it was destroyed.

// Erased identifies a data key that was destroyed. It contains no personal data.
type Erased struct{ Tenant, KeyID string }

func erasedOf(ledger string) string { return LedgerName(ledger) + ".erased" }

// Erased lists the recorded data keys of a ledger. ledger is the origin without a partition.
func (f Folder) Erased(ledger string) (list []Erased, err error) {
	text, err := os.ReadFile(filepath.Join(f.Path, erasedOf(ledger)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		tenant, keyID, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			return nil, fmt.Errorf("%s: each line must have a tenant and the id of a data key", erasedOf(ledger))
		}
		list = append(list, Erased{tenant, keyID})
	}
	return list, err
}

// KeepErased records a destroyed data key. The record is on disk when KeepErased returns.
func (f Folder) KeepErased(ledger string, e Erased) error {
	if err := os.MkdirAll(f.Path, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(f.Path, erasedOf(ledger)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %s\n", e.Tenant, e.KeyID)
	return errors.Join(err, file.Sync(), file.Close(), syncFolder(f.Path))
}
