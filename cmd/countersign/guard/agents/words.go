package agents

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk"
)

// ShellWord quotes a text for a shell if necessary.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@") == "" {
		return s
	}
	return QuotePath(s)
}

// QuotePath returns a path as one shell word. A leading ~ remains the home folder.
func QuotePath(p string) string {
	home := ""
	if p == "~" || strings.HasPrefix(p, "~/") {
		home, p = p[:min(2, len(p))], p[min(2, len(p)):]
	}
	return home + "'" + strings.ReplaceAll(p, "'", `'\''`) + "'"
}

// GlobWord returns a file pattern as one word that the shell expands. A pattern with other
// characters is quoted.
func GlobWord(p string) string {
	rest := strings.TrimPrefix(p, "~/")
	if p != "" && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./*?[]{},@+") == "" {
		return p
	}
	return QuotePath(p)
}

// maxShown is the maximum length of a path in an answer, in code points.
const maxShown = 120

// ShownPath masks the secrets in a path and shortens it for an answer.
func ShownPath(p string) string {
	runes := []rune(actionrisk.Mask(p))
	if len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return string(runes)
}
