//go:build unix

package files

import (
	"os"
	"syscall"
)

// tryLock takes the file unless somebody else holds it; closing it, or the end of the
// process, lets go.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Lock waits until nobody else holds the file; closing it lets go.
func Lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
