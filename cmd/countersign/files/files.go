// Package files reads and writes files safely. A replaced file has either the old content or the
// complete new content.
package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes text to a file. If it fails, the file is unchanged.
func Replace(path string, text []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return f.Close(err)
}

// New writes the new content of a file. It writes to a temporary file in the same folder, and
// Close renames that over the old file. The permissions of the old file are kept; without an old
// file, only the owner can read the new one. If the path is a symbolic link, its target is
// replaced. A device or a pipe cannot be replaced, so the text is written to it directly.
type New struct {
	path   string // path that the caller gave
	target string // path after resolving symbolic links
	file   *os.File
	mode   fs.FileMode
	Direct bool // true if the file is a device or a pipe
}

// Create opens the temporary file. It fails at once if the folder is not writable, so that the
// caller does no work for nothing. A full disk is noticed only later.
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
		return errors.New("the path is a folder: name a file")
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

// maxLinks is the number of symbolic links that are followed, the same as in the Linux kernel.
const maxLinks = 40

// Write implements io.Writer.
func (n *New) Write(b []byte) (int, error) {
	written, err := n.file.Write(b)
	return written, n.failed(err)
}

// Close completes the file. err is the result of the code that wrote the text. If it is nil, Close
// renames the temporary file over the old one. Otherwise it removes the temporary file and returns
// err.
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

// failed adds the path that the caller gave to err.
func (n *New) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", n.path, WithoutPath(err))
}

// WithoutPath returns the cause of a file error without the path, for messages that name the file.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError // error of os.Rename
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
