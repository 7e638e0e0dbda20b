package files

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadAtMost reads all of r. Input longer than most bytes is an error: a part of a text must not be taken for
// all of it.
func ReadAtMost(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the input: %w", err)
	case int64(len(text)) > most:
		return nil, fmt.Errorf("the input is longer than %d bytes, the maximum; nothing was used", most)
	}
	return text, nil
}

// MaxInput is the maximum of ReadInput, in bytes. No document that the service accepts is longer.
const MaxInput = 8 << 20

// OpenInput opens the file that the user names, or standard input for "-".
func OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(name)
}

// ReadInput reads the file that the user names ("-": standard input) and refuses more than MaxInput bytes.
func ReadInput(name string) ([]byte, error) {
	in, err := OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return ReadAtMost(in, MaxInput)
}

// ReadRegular reads a regular file up to a size; a longer file is an error. It opens the file
// without waiting, so that a pipe in its place does not block.
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
