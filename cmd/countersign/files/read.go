package files

import (
	"fmt"
	"io"
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
