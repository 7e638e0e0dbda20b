// Package files replaces a file on the disk so that it is whole whatever happens.
package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file whole or not at all, as New does.
func Replace(place string, text []byte) error {
	f, err := Create(place)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return f.Close(err)
}

// New is a file that is being written: on the disk under another name, until it takes
// the place of the old one, whose rights it keeps. A new file is its owner's alone. A
// link stays one, and what it leads to is replaced. A device or a pipe is no file to
// be replaced: it is written to.
type New struct {
	place  string // as it was named
	target string // behind links
	file   *os.File
	mode   fs.FileMode
	Direct bool // a device or a pipe
}

// Create begins a file. What cannot be written is found here, where nothing has
// happened yet, but for a disk that gets full.
func Create(place string) (*New, error) {
	n := &New{place: place, target: place, mode: 0o600}
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
			break // it is none
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
		return errors.New("it is a link that leads to no end")
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

// maxLinks is how many links are followed, as by the kernel.
const maxLinks = 40

// Write implements io.Writer.
func (n *New) Write(b []byte) (int, error) {
	written, err := n.file.Write(b)
	return written, n.failed(err)
}

// Close ends the file: it takes its place if err, of who wrote it, is nil. Else
// nothing of it stays, the place is as it was, and err comes back.
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

// failed names the file as it was asked for.
func (n *New) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", n.place, WithoutPath(err))
}

// WithoutPath is what went wrong with a file, for a message that names it already.
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
