//go:build unix

package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// openNow opens a file for reading. If it is a pipe, it does not wait for a writer.
func openNow(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// WrittenByOthers returns how users other than uid and root could change or replace a file, or ""
// if they cannot. It checks all folders on the path.
func WrittenByOthers(file string, uid int) string {
	path := Real(file)
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return "its permissions cannot be read"
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !ok:
			return "its owner is not known"
		case int(owner.Uid) != uid && owner.Uid != 0:
			return at + " belongs to another user"
		case info.IsDir() && info.Mode()&fs.ModeSticky != 0: // in a sticky folder users cannot replace the files of others
		case info.Mode()&0o002 != 0:
			return "every user can write " + at
		case info.Mode()&0o020 != 0 && owner.Gid != 0 && othersIn(owner.Gid, uid):
			return "a group with other members can write " + at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// othersIn reports whether a group has members other than the user, or is unknown.
func othersIn(gid uint32, uid int) bool {
	users, err := os.ReadFile("/etc/passwd")
	groups, err2 := os.ReadFile("/etc/group")
	if err != nil || err2 != nil {
		return true
	}
	id, name := strconv.Itoa(int(gid)), ""
	for line := range strings.Lines(string(users)) {
		if f := strings.Split(line, ":"); len(f) > 3 && f[2] == strconv.Itoa(uid) {
			name = f[0]
		} else if len(f) > 3 && f[3] == id {
			return true
		}
	}
	known := false
	for line := range strings.Lines(string(groups)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[2] != id {
			continue
		}
		known = true
		for member := range strings.SplitSeq(f[3], ",") {
			if member != "" && member != name {
				return true
			}
		}
	}
	return !known
}
