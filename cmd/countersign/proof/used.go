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

// usedDecisions is a file with the ids of the decisions that this user executed on this
// machine, and when. It detects a second use only while the file is there: another machine
// or another user has a file of its own. The ledger accepts one receipt for each decision,
// which holds everywhere.
type usedDecisions string

// keepUsed is how long an id is kept: far longer than a decision is valid.
const keepUsed = 7 * 24 * time.Hour

// ownUsedDecisions returns the file in the user's state folder. It does not depend on HOME.
func ownUsedDecisions(user guard.Account) (usedDecisions, error) {
	folder := user.State()
	if folder == "" {
		return "", errors.New("there is no state folder: name a file with --state")
	}
	return usedDecisions(filepath.Join(folder, "used.json")), nil
}

// add writes the id of a decision to the file before the call is made. first is false if the
// id was there already. A lock on a second file makes simultaneous checks take turns.
func (u usedDecisions) add(id string, now time.Time) (first bool, err error) {
	err = files.Locked(string(u)+".lock", func() (err error) {
		first, err = u.write(id, now)
		return err
	})
	return first, err
}

// write does what add promises. The caller holds the lock.
func (u usedDecisions) write(id string, now time.Time) (first bool, err error) {
	used := map[string]time.Time{}
	text, err := os.ReadFile(string(u))
	if err == nil {
		err = json.Unmarshal(text, &used)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%s cannot be read, so whether the decision was used is not known: %w", u, files.WithoutPath(err))
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
