package guard

import (
	"os"
	"path/filepath"

	"github.com/countersign/countersign/cmd/countersign/files"
)

// Account is the user whose guard runs, with the paths that the guard trusts. The paths depend
// only on the process's user id and the user database. HOME, XDG_* and PATH are ignored, because a
// project's settings can set the environment of an agent's hooks.
type Account struct {
	UID     int
	Home    string // home folder; empty if the user database does not contain the user
	Machine string // path of the settings file of the machine's operator
	Program string // path of the guard's program, with links resolved
}

// OwnAccount returns the account of this process.
func OwnAccount() Account {
	a := Account{UID: os.Getuid(), Home: homeOf(os.Getuid()), Machine: machineFile()}
	if self, err := os.Executable(); err == nil {
		a.Program = files.Real(self)
	}
	return a
}

// userFiles returns the user's settings files. "gate allow" writes to the first.
func (a Account) userFiles() []string {
	if a.Home == "" {
		return nil
	}
	return []string{filepath.Join(a.Home, ".config", "countersign.json"), filepath.Join(a.Home, projectFile)}
}

// State returns the folder of the guard's own data: its log, the trusted files, and temporary
// exceptions. It is empty if the user has no home folder; then nothing is stored.
func (a Account) State() string {
	if a.Home == "" {
		return ""
	}
	return filepath.Join(a.Home, ".local", "state", "countersign")
}

// Log returns the guard's log.
func (a Account) Log() Log { return Log(a.State()) }
