package paths

import (
	"path"
	"strings"
)

// GlobMatch reports whether s matches a pattern with * and ?. Its time is proportional to the
// product of the lengths.
func GlobMatch(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i] && pattern[p] != '*'):
			p, i = p+1, i+1
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// FileKey returns a path relative to cwd as the key under which a written file is stored.
func FileKey(cwd, name string) string {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || cwd == "" {
		return path.Clean(name)
	}
	return path.Join(cwd, name)
}
