package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrClaimed is the error for a lock file that another running process holds.
var ErrClaimed = errors.New("another process has locked it")

// Claim creates a file and locks it; only one process can have the lock. letGo removes the file
// and the lock. If the process is killed, the lock is free.
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
		_ = os.Remove(path) // remove the file while we hold the lock; without a lock, a file that stays does no harm
		_ = f.Close()
	}, nil
}

// Locked holds the lock of a file while it calls the function do; other callers wait. It creates
// the file and its folder if they do not exist.
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
