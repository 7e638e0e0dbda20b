package files

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks the file, or fails at once if another process has locked it. The lock ends when
// the file is closed or the process ends.
func tryLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
}

// Lock locks the file, and waits while another process has locked it. Closing the file unlocks it.
func Lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &windows.Overlapped{})
}
