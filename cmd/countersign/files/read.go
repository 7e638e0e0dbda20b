package files

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadAtMost reads all of r. It returns an error if r is longer than the limit "most", in bytes, so
// that part of a text is never treated as the whole.
func ReadAtMost(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the input: %w", err)
	case int64(len(text)) > most:
		return nil, fmt.Errorf("the input is longer than the maximum of %d bytes; nothing was used", most)
	}
	return text, nil
}

// MaxInput is the limit of ReadInput in bytes. The service accepts no longer document.
const MaxInput = 8 << 20

// OpenInput opens the named file, or standard input if the name is "-".
func OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(name)
}

// ReadInput reads the named file, or standard input if the name is "-". It returns an error if
// there are more than MaxInput bytes.
func ReadInput(name string) ([]byte, error) {
	in, err := OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return ReadAtMost(in, MaxInput)
}

// ReadRegular reads a regular file. It returns an error if the file is longer than this number of
// bytes, or is not a regular file. It does not block if the file is a pipe.
func ReadRegular(file string, most int64) ([]byte, error) {
	f, err := openNow(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("the file is not a regular file")
	case info.Size() > most:
		return nil, fmt.Errorf("the file is longer than %d KiB", most>>10)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
