package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrClaimed is returned when another running process holds the file.
var ErrClaimed = errors.New("another process holds it")

// Claim creates a lock file that one process at a time can hold. letGo removes it. The lock of a process that
// was killed is free.
func Claim(path string) (letGo func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	held, err := f.Stat()
	if err == nil && tryLock(f) != nil {
		err = ErrClaimed
	}
	if err == nil {
		// The process that held the lock may have removed the file after we opened it and before we
		// locked it. A lock on a removed file excludes no other process, so compare the two files.
		if there, failed := os.Stat(path); failed != nil || !os.SameFile(held, there) {
			err = ErrClaimed
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		_ = os.Remove(path) // while the lock is held; a file that stays is not locked
		_ = f.Close()
	}, nil
}

// Locked calls do while this process holds the lock of a file, and creates the file and its folder if they do
// not exist. Other callers with the same path wait.
func Locked(path string, do func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Lock(f); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return do()
}
