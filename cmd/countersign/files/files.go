// Package files replaces a file on the disk so that it is whole whatever happens.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file whole or not at all: on the disk under another name before it
// takes the place of the old one, whose rights it keeps. A new file is its owner's
// alone.
func Replace(place string, text []byte) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(place); err == nil {
		mode = info.Mode().Perm()
	}
	scratch, err := os.CreateTemp(filepath.Dir(place), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", place, WithoutPath(err))
	}
	_, err = scratch.Write(text)
	err = errors.Join(err, scratch.Chmod(mode), scratch.Sync(), scratch.Close())
	if err == nil {
		err = os.Rename(scratch.Name(), place)
	}
	if err != nil {
		_ = os.Remove(scratch.Name())
		return fmt.Errorf("write %s: %w", place, WithoutPath(err))
	}
	return nil
}

// WithoutPath is what went wrong with a file, for a message that names it already.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
