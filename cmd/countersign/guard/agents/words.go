package agents

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk"
)

// ShellWord returns a text as one word of a shell, quoted if necessary.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@") == "" {
		return s
	}
	return QuotePath(s)
}

// QuotePath returns a path as one quoted word of a shell. A leading ~ still means the home folder.
func QuotePath(p string) string {
	home := ""
	if p == "~" || strings.HasPrefix(p, "~/") {
		home, p = p[:min(2, len(p))], p[min(2, len(p)):]
	}
	return home + "'" + strings.ReplaceAll(p, "'", `'\''`) + "'"
}

// GlobWord returns a file pattern as one word of a shell, in which *, ?, [] and {} keep their
// meaning. It quotes a pattern with other special characters.
func GlobWord(p string) string {
	rest := strings.TrimPrefix(p, "~/")
	if p != "" && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./*?[]{},@+") == "" {
		return p
	}
	return QuotePath(p)
}

// maxShown is the longest path in an answer, in code points.
const maxShown = 120

// ShownPath returns a path for an answer, with secrets masked, and shortened.
func ShownPath(p string) string {
	runes := []rune(actionrisk.Mask(p))
	if len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return string(runes)
}
