package guard

import (
	"os"
	"path/filepath"
)

// Account is the user whose guard runs, with the paths that the guard trusts. The paths follow
// only from the user id of the process and the user database. HOME, XDG_* and PATH are ignored,
// because a project's settings can set the environment of an agent's hooks.
type Account struct {
	UID     int
	Home    string // empty if the user database does not know the user
	Machine string // the settings file of the machine's operator
	Program string // the guard's own executable, with links resolved
}

// OwnAccount returns the account of this process.
func OwnAccount() Account {
	a := Account{UID: os.Getuid(), Home: homeOf(os.Getuid()), Machine: machineFile()}
	if self, err := os.Executable(); err == nil {
		a.Program = realPath(self)
	}
	return a
}

// userFiles returns the user's settings files. gate allow writes to the first.
func (a Account) userFiles() []string {
	if a.Home == "" {
		return nil
	}
	return []string{filepath.Join(a.Home, ".config", "countersign.json"), filepath.Join(a.Home, projectFile)}
}

// State returns the folder of the guard's own data: its log, what is trusted, what is allowed
// for a time. It is empty if the user has no home folder; then nothing is stored.
func (a Account) State() string {
	if a.Home == "" {
		return ""
	}
	return filepath.Join(a.Home, ".local", "state", "countersign")
}

// Log returns the guard's log.
func (a Account) Log() Log { return Log(a.State()) }

// realPath resolves the links in the longest part of a path that exists.
func realPath(place string) string {
	place = filepath.Clean(place)
	rest := ""
	for folder := place; ; {
		if exists(folder) {
			if real, err := filepath.EvalSymlinks(folder); err == nil {
				return filepath.Join(real, rest)
			}
			if to, err := os.Readlink(folder); err == nil { // the link names a path that does not exist yet
				if !filepath.IsAbs(to) {
					to = filepath.Join(filepath.Dir(folder), to)
				}
				if to != folder && len(rest) < 4096 {
					return realPath(filepath.Join(to, rest))
				}
			}
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return place
		}
		folder, rest = parent, filepath.Join(filepath.Base(folder), rest)
	}
}
