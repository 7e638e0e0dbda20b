package tokens

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// CalledBefore returns the last part of the name of the function whose argument begins after text.
func CalledBefore(text string) string {
	text = strings.TrimRight(text, " \t([,")
	if label, ok := strings.CutSuffix(text, ":"); ok { // the argument may have a label: removeItem(atPath: "x")
		text = strings.TrimRight(strings.TrimRight(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), " \t([,")
	}
	i := len(text)
	for i > 0 && (scan.IsNameByte(text[i-1]) || strings.IndexByte("-!/", text[i-1]) >= 0) {
		i--
	}
	return text[i:]
}

// ClosingQuote returns the offset of the quote that closes the string opened at i, or -1. A string
// in single quotes must end on its line.
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

// Balanced returns the offset of the bracket that closes the first one of the text, or the length
// of the text if none does.
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
