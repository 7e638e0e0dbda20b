package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrClaimed is what another process holds, which still runs.
var ErrClaimed = errors.New("another process holds it")

// Claim makes a file that one process at a time can hold. What a killed one leaves is
// free; letGo removes it.
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
		// Whoever held it may have removed it meanwhile: then it keeps nobody out.
		if there, failed := os.Stat(path); failed != nil || !os.SameFile(held, there) {
			err = ErrClaimed
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		_ = os.Remove(path) // while it is held; one that stays is free
		_ = f.Close()
	}, nil
}

// Locked calls do while this process holds the lock of a file, which it makes where there
// is none, with its folder. Others who call Locked with the same file wait.
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
