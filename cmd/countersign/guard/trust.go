package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/files"
)

// trusted is a project's settings file that the user has trusted: its bytes, at a path in one
// repository, in all worktrees. If the text changes, the user must trust it again.
type trusted struct {
	SHA256     string `json:"sha256"`
	Repository string `json:"repository"` // Git's common folder; without a repository, the folder of the file
	Below      string `json:"below"`      // path of the file's folder relative to the top of the worktree
	At         string `json:"at"`
}

// Limits, in bytes, of files that are read before a verdict.
const (
	maxSettings = 64 << 10 // one settings file
	maxTrusted  = 1 << 20  // the list of trusted files
)

func (a Account) trustFile() string { return inState(a, "trust.json") }

// allowedFile returns the file with the exceptions that end by themselves: one-time exceptions and
// those of a session.
func (a Account) allowedFile() string { return inState(a, "allowed.json") }

func inState(a Account, name string) string {
	if a.State() == "" {
		return ""
	}
	return filepath.Join(a.State(), name)
}

// identity returns the entry under which this text of a project's file would be trusted.
func identity(folder string, text []byte) trusted {
	sum := sha256.Sum256(text)
	folder = files.Real(folder)
	top, repository := repositoryOf(folder)
	if repository == "" {
		return trusted{SHA256: hex.EncodeToString(sum[:]), Repository: folder, Below: "."}
	}
	below, err := filepath.Rel(top, folder)
	if err != nil {
		below = folder
	}
	return trusted{SHA256: hex.EncodeToString(sum[:]), Repository: repository, Below: below}
}

// trusts reports whether the user has trusted this text of the project's file in this folder.
func (a Account) trusts(folder string, text []byte) bool {
	file := a.trustFile()
	list, err := readTrusted(file)
	if err != nil || len(list) == 0 || files.WrittenByOthers(file, a.UID) != "" {
		return false
	}
	want := identity(folder, text)
	return slices.ContainsFunc(list, func(t trusted) bool { t.At = ""; return t == want })
}

func readTrusted(file string) (list []trusted, err error) {
	text, err := files.ReadRegular(file, maxTrusted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	return list, err
}

// ProjectFile returns the nearest project's settings file in a folder or its parents, its text,
// and what it would relax.
func (a Account) ProjectFile(folder string) (file string, text []byte, asks string, err error) {
	for _, at := range upFrom(folder) {
		file = filepath.Join(at, projectFile)
		if slices.Contains(a.userFiles(), file) {
			continue
		}
		s, there, text, err := readSource(file)
		switch {
		case err != nil:
			return file, nil, "", err
		case there:
			if others := files.WrittenByOthers(file, a.UID); others != "" {
				return file, nil, "", fmt.Errorf("%s cannot be trusted: %s", file, others)
			}
			return file, text, s.asks(), nil
		}
	}
	return "", nil, "", errors.New("there is no " + projectFile + " in this folder or its parents")
}

// Trust records that the user trusts this text of a project's file.
func (a Account) Trust(file string, text []byte, now time.Time) error {
	if a.trustFile() == "" {
		return errors.New("the user database has no home folder for this user")
	}
	list, err := readTrusted(a.trustFile())
	if err != nil {
		return fmt.Errorf("read %s: %w", a.trustFile(), err)
	}
	t := identity(filepath.Dir(file), text)
	list = slices.DeleteFunc(list, func(old trusted) bool { return old.Repository == t.Repository && old.Below == t.Below })
	t.At = now.UTC().Format(time.RFC3339)
	whole, err := json.Marshal(append(list, t), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.State(), 0o700); err != nil {
		return err
	}
	return files.Replace(a.trustFile(), append(whole, '\n'))
}

// repositoryOf returns the top folder of the worktree that contains a folder, and Git's common
// folder, which all worktrees of a repository share. Both are "" if there is no repository. A .git
// file is accepted only if the repository that it names lists this worktree.
func repositoryOf(folder string) (top, common string) {
	for at := range slices.Values(upFrom(folder)) {
		path := filepath.Join(at, ".git")
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			continue
		case info.IsDir():
			return at, files.Real(path)
		case !info.Mode().IsRegular():
			return at, path
		}
		text, err := files.ReadRegular(path, 4096)
		dir, named := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if err != nil || !named {
			return at, path
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(at, dir)
		}
		back, err := files.ReadRegular(filepath.Join(dir, "gitdir"), 4096)
		shared, err2 := files.ReadRegular(filepath.Join(dir, "commondir"), 4096)
		if err != nil || err2 != nil || files.Real(strings.TrimSpace(string(back))) != files.Real(path) {
			return at, path // a submodule, or a false .git file
		}
		to := strings.TrimSpace(string(shared))
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		return at, files.Real(to)
	}
	return "", ""
}

// sameRepository reports whether two folders are in the same repository, or both in no repository.
func sameRepository(a, b string) bool {
	_, one := repositoryOf(files.Real(a))
	_, other := repositoryOf(files.Real(b))
	return one == other
}

func notAFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
