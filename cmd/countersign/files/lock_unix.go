//go:build unix

package files

import (
	"os"
	"syscall"
)

// tryLock locks the file, or fails if another process holds it. Closing the file or the end of the process
// unlocks it.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Lock waits until no other process holds the file, and locks it. Closing the file unlocks it.
func Lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
