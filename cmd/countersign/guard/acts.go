package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionrisk/act"
)

// hole is the character that replaces the unknown part of a word.
const hole = "\x00"

// pathOf returns the absolute path of a name relative to a folder, without resolving links. It
// returns "" if the folder is unknown. "~" means the home folder of the user database.
func (a Account) pathOf(folder, name string) string {
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		name = a.Home + name[1:]
	case strings.HasPrefix(name, "file:///"):
		name = name[len("file://"):]
	}
	if !filepath.IsAbs(name) {
		if folder == "~" || strings.HasPrefix(folder, "~/") {
			folder = a.Home + folder[1:]
		}
		if !filepath.IsAbs(folder) {
			return ""
		}
		name = filepath.Join(folder, name)
	}
	return filepath.Clean(name)
}

// folderOf returns the folder in which a call runs. cwd is the folder in which the whole command
// starts. It returns "" if the folder is unknown.
func (a Account) folderOf(u *actionrisk.Use, cwd string) string {
	folder := u.Folder
	if folder == "" {
		return cwd
	}
	if strings.Contains(folder, hole) {
		return ""
	}
	return a.pathOf(cwd, folder)
}

// movesTo lists options that set a program's working folder.
var movesTo = []string{"-C", "--directory", "--cwd", "--prefix", "--dir", "-chdir", "--chdir", "--git-dir", "--work-tree", "--project-directory", "--manifest-path", "-R", "--repository"}

// movedTo returns the folders that the options and variables of a call set, and the last one of
// them. Each is relative to the one before: "git -C a -C b" runs in a/b.
func (a Account) movedTo(u *actionrisk.Use, folder string) (out []string, last string) {
	last = folder
	move := func(name string) {
		if strings.Contains(name, hole) {
			last = ""
		} else {
			last = a.pathOf(last, name)
		}
		out = append(out, last)
	}
	for i, w := range u.Words {
		option, value, given := strings.Cut(w.Text, "=")
		if i == 0 || !slices.Contains(movesTo, option) {
			continue
		}
		if given {
			move(value)
		} else if i+1 < len(u.Words) {
			move(u.Words[i+1].Text)
		}
	}
	for _, e := range u.Env {
		if e.Name == "GIT_DIR" || e.Name == "GIT_WORK_TREE" {
			move(e.Value.Text)
		}
	}
	return out, last
}

// actsIn returns the folders that a command affects: those in which its programs run, those that
// their options set, and those of the files in their arguments. An unknown folder is "". An
// exception for a path does not apply to it.
func (a Account) actsIn(trace actionrisk.Trace, cwd string) (acts []string) {
	add := func(folder string) {
		if !slices.Contains(acts, folder) {
			acts = append(acts, folder)
		}
	}
	for i := range trace.Uses {
		u := &trace.Uses[i]
		if u.Proven && !u.Carries || u.Remote {
			continue
		}
		folder := a.folderOf(u, cwd)
		moved, last := a.movedTo(u, folder)
		if u.Carries {
			for _, m := range moved { // from env -C
				add(m)
			}
			continue
		}
		if len(moved) == 0 {
			add(folder)
		}
		for _, m := range moved {
			add(m)
		}
		for _, w := range u.Words[min(1, len(u.Words)):] {
			if dir := a.elsewhere(last, w); dir != "" {
				add(dir)
			}
		}
	}
	return acts
}

// elsewhere returns the folder of a file that a word names, if it is outside of folder, or "".
func (a Account) elsewhere(folder string, w act.Word) string {
	if !w.Known() || !strings.Contains(w.Text, "/") && w.Text != ".." || strings.HasPrefix(w.Text, "-") || strings.Contains(w.Text, "://") {
		return ""
	}
	path := a.pathOf(folder, w.Text)
	if path == "" || within(path, folder) || strings.HasPrefix(path, "/dev/") || within(path, os.TempDir()) && !within(folder, os.TempDir()) {
		return ""
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return path
	}
	return filepath.Dir(path)
}
