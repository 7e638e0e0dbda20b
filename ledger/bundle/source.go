package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// source gives access to the files of a bundle, on disk or in memory.
type source interface {
	open(name string) (f file, size int64, err error)
	io.Closer
}

// file is an open file of a source.
type file interface {
	io.ReadCloser
	io.ReaderAt
}

// onDisk is a source in a folder.
type onDisk struct{ *os.Root }

func (d onDisk) open(name string) (file, int64, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// inMemory is a source with the content of each file by name.
type inMemory map[string][]byte

func (m inMemory) open(name string) (file, int64, error) {
	content, has := m[name]
	if !has {
		return nil, 0, fs.ErrNotExist
	}
	return readable{bytes.NewReader(content)}, int64(len(content)), nil
}

// Close implements io.Closer.
func (inMemory) Close() error { return nil }

type readable struct{ *bytes.Reader }

// Close implements io.Closer.
func (readable) Close() error { return nil }

// maxMemory is the largest size of a bundle in memory, in bytes. WebAssembly has at most 4 GiB.
const maxMemory = 1 << 30

// UnpackInMemory does the same as Unpack for a program without a disk, such as the verifier on a
// web page.
func UnpackInMemory(ctx context.Context, packed io.Reader, progress Progress) (*Bundle, error) {
	files, names, left := inMemory{}, map[string]bool{}, int64(maxMemory)
	put := func(name string, from io.Reader) error {
		if !fs.ValidPath(name) || name == "." {
			return errNotOurs
		}
		content, err := io.ReadAll(io.LimitReader(from, left+1))
		if left -= int64(len(content)); err == nil && left < 0 {
			err = fmt.Errorf("the bundle has more than %d GiB: verify it with countersign verify", maxMemory>>30)
		}
		files[name], names[name] = content, true
		return err
	}
	if err := unpack(ctx, packed, put, progress); err != nil {
		return nil, err
	}
	return &Bundle{files: files, names: names}, nil
}
