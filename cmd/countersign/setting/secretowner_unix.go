//go:build unix

package setting

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs reports whether a secret's file belongs to the user of this program or to root. The
// owner of a file can change it at any time, whatever its mode; root can change every file
// anyway.
func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}
