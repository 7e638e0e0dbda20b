//go:build unix

package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// columnsOf returns the width that the terminal reports, or 0.
func columnsOf(terminal *os.File) int {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
