package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/files"
)

// A replaced file keeps its permissions, a new file is readable by its owner only, and a failed
// write leaves the old file.
func TestReplace(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	holds := func(text string, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(path)
		info, err2 := os.Stat(path)
		if err != nil || err2 != nil || string(got) != text || info.Mode().Perm() != mode {
			t.Errorf("%q, %v, %v, %v", got, info, err, err2)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
			t.Errorf("%v, %v", left, err)
		}
	}
	replace := func(text string) {
		t.Helper()
		if err := files.Replace(path, []byte(text)); err != nil {
			t.Error(err)
		}
	}
	replace("new")
	holds("new", 0o600)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	replace("newer")
	holds("newer", 0o644)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "not empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := files.Replace(path, []byte("x")); err == nil {
		t.Errorf("over a folder: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := files.Replace(filepath.Join(folder, "nowhere", "a"), nil); err == nil || strings.Count(err.Error(), "nowhere") != 1 {
		t.Errorf("in no folder: %v", err)
	}
}

// A symbolic link is kept, and its target is replaced or created.
func TestReplaceWritesThroughALink(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	target, link, second := filepath.Join(elsewhere, "target"), filepath.Join(folder, "link"), filepath.Join(folder, "second")
	if err := errors.Join(os.Symlink(target, link), os.Symlink("link", second)); err != nil {
		t.Skip(err) // the system has no symbolic links
	}
	for _, text := range []string{"made", "replaced"} {
		if err := files.Replace(second, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(target); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, path := range []string{link, second} {
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", path, err)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	ring := filepath.Join(folder, "ring")
	if err := os.Symlink("ring", ring); err != nil {
		t.Fatal(err)
	}
	if err := files.Replace(ring, nil); err == nil {
		t.Error("a link to itself is written")
	}
}

// A write that fails halfway leaves the folder unchanged.
func TestNewIsWholeOrNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	f, err := files.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the cause")
	if err := f.Close(cause); err != cause {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
