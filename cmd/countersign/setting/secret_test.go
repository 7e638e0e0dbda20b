package setting

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A secret's file is refused unless it belongs to the user and only its owner can read and change
// it.
func TestSecretFilesAreOursAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(strings.Repeat("07", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadOwnSecret(path); err != nil || text != strings.Repeat("07", 32) {
		t.Fatalf("%d characters, %v", len(text), err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o602, 0o644, 0o666, 0o610} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if text, err := ReadOwnSecret(path); err == nil || text != "" || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%v was read, %v", mode, err)
		}
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOwnSecret(path); err != nil {
		t.Errorf("read-only: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to somebody else")
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOwnSecret(path); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("a file of another user: %v", err)
	}
}
