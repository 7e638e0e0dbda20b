package guard

import (
	"os"
	"path/filepath"
)

// Account is whose guard it is: the places that it believes. They follow from the user id
// of the process and the user database alone. HOME, XDG_* and PATH say nothing here, since
// a project's settings can set the environment of an agent's hooks.
type Account struct {
	UID     int
	Home    string // empty: the user database does not know the user
	Machine string // the file of the machine's operator
	Program string // the guard's own executable, links resolved
}

// OwnAccount is that of this process.
func OwnAccount() Account {
	a := Account{UID: os.Getuid(), Home: homeOf(os.Getuid()), Machine: machineFile()}
	if self, err := os.Executable(); err == nil {
		a.Program = realPath(self)
	}
	return a
}

// userFiles are the user's own settings. The first is where gate allow writes.
func (a Account) userFiles() []string {
	if a.Home == "" {
		return nil
	}
	return []string{filepath.Join(a.Home, ".config", "countersign.json"), filepath.Join(a.Home, projectFile)}
}

// State is the folder of what the guard itself keeps: its log, what is trusted, what was
// allowed for a time. Empty: there is none, and nothing is kept.
func (a Account) State() string {
	if a.Home == "" {
		return ""
	}
	return filepath.Join(a.Home, ".local", "state", "countersign")
}

// Log is the guard's log.
func (a Account) Log() Log { return Log(a.State()) }

// realPath resolves the links of the longest part of a path that exists.
func realPath(place string) string {
	place = filepath.Clean(place)
	rest := ""
	for folder := place; ; {
		if exists(folder) {
			if real, err := filepath.EvalSymlinks(folder); err == nil {
				return filepath.Join(real, rest)
			}
			if to, err := os.Readlink(folder); err == nil { // it leads to what does not exist yet
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
