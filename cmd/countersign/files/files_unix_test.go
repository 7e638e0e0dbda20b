//go:build unix

package files_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/files"
)

// Text for a pipe or a device is written to it, and does not replace it.
func TestReplaceWritesToAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := files.Replace(pipe, []byte("text")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(reader); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
