package scan

import (
	"strconv"
	"strings"
	"unicode"
)

// Alnum tells whether a byte is an ASCII letter or a digit.
func Alnum(c byte) bool { return IsNameByte(c) && c != '_' }

// Upper tells whether a byte is an ASCII capital letter.
func Upper(c byte) bool { return c >= 'A' && c <= 'Z' }

// IsASCII tells whether a text holds nothing beyond ASCII.
func IsASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// FirstLine is a text up to its first line end.
func FirstLine(text string) string {
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		return text[:i]
	}
	return text
}

// LineEnd is where the line ends that byte i is in.
func LineEnd(text string, i int) int {
	if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
		return i + j
	}
	return len(text)
}

// UnicodeEscape reads u0072, u{72} and U00000072, and gives how many bytes they are.
func UnicodeEscape(text string) (rune, int) {
	digits, used := "", 0
	switch {
	case strings.HasPrefix(text, "u{"):
		digits, _, _ = strings.Cut(text[2:], "}")
		used = len("u{}") + len(digits)
	case strings.HasPrefix(text, "u") && len(text) > 4:
		digits, used = text[1:5], 5
	case strings.HasPrefix(text, "U") && len(text) > 8:
		digits, used = text[1:9], 9
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n == 0 || n > unicode.MaxRune || used > len(text) {
		return 0, 0
	}
	return rune(n), used
}
