package proof

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/policy/canon"
)

// usedDecisions is the path of a file with the ids of decisions that this user has executed on
// this machine, with the times. It detects a second use only here: other users and machines have
// other files. The ledger accepts only one receipt for each decision, even if several callers send
// one.
type usedDecisions string

// keepUsed is the time for which an id is kept. It is much longer than a decision is valid.
const keepUsed = 7 * 24 * time.Hour

// ownUsedDecisions returns the file in the user's state folder. The folder does not depend on
// HOME.
func ownUsedDecisions(user guard.Account) (usedDecisions, error) {
	folder := user.State()
	if folder == "" {
		return "", errors.New("there is no state folder: name a file with --state")
	}
	return usedDecisions(filepath.Join(folder, "used.json")), nil
}

// add records that a decision is used. It must be called before the call is made. first is false
// if the decision was recorded before. A lock on another file serializes concurrent checks.
func (u usedDecisions) add(id string, now time.Time) (first bool, err error) {
	err = files.Locked(string(u)+".lock", func() (err error) {
		first, err = u.write(id, now)
		return err
	})
	return first, err
}

// write is add without the lock, which the caller must hold.
func (u usedDecisions) write(id string, now time.Time) (first bool, err error) {
	used := map[string]time.Time{}
	text, err := os.ReadFile(string(u))
	if err == nil {
		err = json.Unmarshal(text, &used)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%s cannot be read, so it is not known whether the decision was used: %w", u, files.WithoutPath(err))
	}
	if _, is := used[id]; is {
		return false, nil
	}
	kept := map[string]string{id: canon.Stamp(now)}
	for id, at := range used {
		if now.Sub(at) < keepUsed {
			kept[id] = canon.Stamp(at)
		}
	}
	if text, err = json.Marshal(kept, json.Deterministic(true)); err != nil {
		return false, err
	}
	return true, files.Replace(string(u), append(text, '\n'))
}
