package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/files"
)

// A file that is replaced keeps its rights; a new one is its owner's alone; and one
// that cannot be written leaves the old one and nothing else.
func TestReplace(t *testing.T) {
	folder := t.TempDir()
	place := filepath.Join(folder, "a")
	holds := func(text string, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(place)
		info, err2 := os.Stat(place)
		if err != nil || err2 != nil || string(got) != text || info.Mode().Perm() != mode {
			t.Errorf("%q, %v, %v, %v", got, info, err, err2)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
			t.Errorf("%v, %v", left, err)
		}
	}
	replace := func(text string) {
		t.Helper()
		if err := files.Replace(place, []byte(text)); err != nil {
			t.Error(err)
		}
	}
	replace("new")
	holds("new", 0o600)
	if err := os.Chmod(place, 0o644); err != nil {
		t.Fatal(err)
	}
	replace("newer")
	holds("newer", 0o644)

	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(place, "not empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := files.Replace(place, []byte("x")); err == nil {
		t.Errorf("over a folder: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := files.Replace(filepath.Join(folder, "nowhere", "a"), nil); err == nil || strings.Count(err.Error(), "nowhere") != 1 {
		t.Errorf("in no folder: %v", err)
	}
}
