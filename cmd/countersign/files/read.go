package files

import (
	"fmt"
	"io"
	"os"
)

// ReadAtMost reads all of r. More than most bytes are an error: half of a text must
// not be taken for the whole.
func ReadAtMost(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the input: %w", err)
	case int64(len(text)) > most:
		return nil, fmt.Errorf("longer than %d bytes, the most that is read: nothing of it was used", most)
	}
	return text, nil
}

// MaxInput is the most that ReadInput reads, in bytes: more than any document of the service
// has.
const MaxInput = 8 << 20

// OpenInput opens the file that the user names, or standard input for -.
func OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(name)
}

// ReadInput reads what the user names, - for standard input, and refuses more than MaxInput
// bytes.
func ReadInput(name string) ([]byte, error) {
	in, err := OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return ReadAtMost(in, MaxInput)
}
