package scan

import (
	"strconv"
	"strings"
	"unicode"
)

// Alnum reports whether a byte is an ASCII letter or digit.
func Alnum(c byte) bool { return IsNameByte(c) && c != '_' }

// Upper reports whether a byte is an ASCII capital letter.
func Upper(c byte) bool { return c >= 'A' && c <= 'Z' }

// IsASCII reports whether all bytes of a text are ASCII.
func IsASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// FirstLine returns a text up to its first line end.
func FirstLine(text string) string {
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		return text[:i]
	}
	return text
}

// LineEnd returns the end of the line that contains byte i.
func LineEnd(text string, i int) int {
	if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
		return i + j
	}
	return len(text)
}

// UnicodeEscape decodes u0072, u{72} or U00000072 at the start of a text. It returns the character
// and the number of bytes read, or 0 and 0 if there is no such escape.
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
