package files

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks the file, or fails if another process holds it. Closing the file or the end of the process
// unlocks it.
func tryLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
}

// Lock waits until no other process holds the file, and locks it. Closing the file unlocks it.
func Lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &windows.Overlapped{})
}
