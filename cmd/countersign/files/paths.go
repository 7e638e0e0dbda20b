package files

import (
	"os"
	"path/filepath"
)

// Exists reports whether a path names a file, a folder or a symbolic link, even one whose target
// does not exist.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Real resolves the symbolic links in a path, as far as the path exists.
func Real(path string) string {
	path = filepath.Clean(path)
	rest := ""
	for folder := path; ; {
		if Exists(folder) {
			if real, err := filepath.EvalSymlinks(folder); err == nil {
				return filepath.Join(real, rest)
			}
			if to, err := os.Readlink(folder); err == nil { // a link whose target does not exist
				if !filepath.IsAbs(to) {
					to = filepath.Join(filepath.Dir(folder), to)
				}
				if to != folder && len(rest) < 4096 {
					return Real(filepath.Join(to, rest))
				}
			}
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return path
		}
		folder, rest = parent, filepath.Join(filepath.Base(folder), rest)
	}
}
