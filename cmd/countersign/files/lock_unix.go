//go:build unix

package files

import (
	"os"
	"syscall"
)

// tryLock locks the file, or fails at once if another process has locked it. The lock ends when
// the file is closed or the process ends.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Lock locks the file, and waits while another process has locked it. Closing the file unlocks it.
func Lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
