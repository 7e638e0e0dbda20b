package tokens

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// CalledBefore is the last part of the name that is before an argument.
func CalledBefore(text string) string {
	text = strings.TrimRight(text, " \t([,")
	if label, ok := strings.CutSuffix(text, ":"); ok { // removeItem(atPath: "x")
		text = strings.TrimRight(strings.TrimRight(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), " \t([,")
	}
	i := len(text)
	for i > 0 && (scan.IsNameByte(text[i-1]) || strings.IndexByte("-!/", text[i-1]) >= 0) {
		i--
	}
	return text[i:]
}

// ClosingQuote is where the string that opens at i ends on its line, or -1.
func ClosingQuote(text string, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\\':
			j++
		case '\n':
			if text[i] == '\'' {
				return -1
			}
		case text[i]:
			return j
		}
	}
	return -1
}

// Balanced is the index of the bracket that closes the one a text begins with, or the
// text's length.
func Balanced(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
