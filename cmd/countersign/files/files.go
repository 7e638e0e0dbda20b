// Package files replaces a file on disk so that readers see the old text or the new one, never a part.
package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes text to a file through New: the file then holds all of it or is unchanged.
func Replace(path string, text []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return f.Close(err)
}

// New is a file being written. Its text goes to a temporary file in the same folder, which Close renames over
// the old file; the old file's permissions are kept. A file that did not exist is readable by its owner only.
// If the name is a symbolic link, the link stays and its target is replaced. A device or a pipe cannot be
// replaced: the text is written to it directly.
type New struct {
	path   string // the name that the caller gave
	target string // the file it names, with links resolved
	file   *os.File
	mode   fs.FileMode
	Direct bool // a device or a pipe
}

// Create opens the temporary file. A folder that cannot be written to is reported here, before any work is
// done; only a full disk is found later.
func Create(path string) (*New, error) {
	n := &New{path: path, target: path, mode: 0o600}
	err := n.create()
	if err != nil {
		return nil, n.failed(err)
	}
	return n, nil
}

func (n *New) create() (err error) {
	for range maxLinks {
		next, err := os.Readlink(n.target)
		if err != nil {
			break // not a link
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(n.target), next)
		}
		n.target = next
	}
	info, err := os.Lstat(n.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a folder: name a file")
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("too many symbolic links")
	case !info.Mode().IsRegular():
		n.Direct = true
		n.file, err = os.OpenFile(n.target, os.O_WRONLY, 0)
		return err
	default:
		n.mode = info.Mode().Perm()
	}
	n.file, err = os.CreateTemp(filepath.Dir(n.target), ".new-*")
	return err
}

// maxLinks is how many symbolic links are followed: the limit of the Linux kernel.
const maxLinks = 40

// Write implements io.Writer.
func (n *New) Write(b []byte) (int, error) {
	written, err := n.file.Write(b)
	return written, n.failed(err)
}

// Close ends the write. If err, the error of the code that wrote the text, is nil, the temporary file
// replaces the old one. Otherwise the temporary file is removed, the old file stays as it was, and Close
// returns err.
func (n *New) Close(err error) error {
	switch {
	case n.Direct:
		return cmp.Or(err, n.failed(n.file.Close()))
	case err != nil:
		_ = n.file.Close()
	default:
		err = n.failed(errors.Join(n.file.Chmod(n.mode), n.file.Sync(), n.file.Close()))
	}
	if err == nil {
		err = n.failed(os.Rename(n.file.Name(), n.target))
	}
	if err != nil {
		_ = os.Remove(n.file.Name())
	}
	return err
}

// failed adds the file name that the caller gave to err.
func (n *New) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", n.path, WithoutPath(err))
}

// WithoutPath returns the cause of a file error without its path, for messages that name the file already.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError // of a rename
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
