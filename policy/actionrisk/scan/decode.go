package scan

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// Decode64 decodes base64 of either alphabet, with or without padding. It reports whether the text
// was valid base64.
func Decode64(s string) (string, bool) {
	s = strings.Join(strings.Fields(s), "")
	for _, enc := range [...]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(s); err == nil {
			return string(b), true
		}
	}
	return "", false
}

// decodeText64 decodes base64 that contains a text in UTF-8 or UTF-16LE.
func decodeText64(s string) (string, bool) {
	s, ok := Decode64(s)
	if len(s) >= 2 && s[1] == 0 {
		units := make([]uint16, len(s)/2)
		for i := range units {
			units[i] = uint16(s[2*i]) | uint16(s[2*i+1])<<8
		}
		s = string(utf16.Decode(units))
	}
	return s, ok && s != ""
}

// Decode32 decodes base32 and reports whether the text was valid base32.
func Decode32(s string) (string, bool) {
	b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(strings.Join(strings.Fields(s), ""), "="))
	return string(b), err == nil
}

// DecodeHex decodes hexadecimal digits and reports whether the text had nothing else.
func DecodeHex(s string) (string, bool) {
	s = strings.Join(strings.Fields(strings.TrimPrefix(strings.TrimSpace(s), "0x")), "")
	b, err := hex.DecodeString(s)
	return string(b), err == nil
}

// Reverse returns a text with its characters in reverse order. A final line end keeps its place.
// The second result is always true.
func Reverse(s string) (string, bool) {
	tail := strings.HasSuffix(s, "\n")
	r := []rune(strings.TrimSuffix(s, "\n"))
	slices.Reverse(r)
	if tail {
		return string(r) + "\n", true
	}
	return string(r), true
}

// PercentDecoded replaces each %XX with its byte, and reports whether all were valid.
func PercentDecoded(s string) (string, bool) {
	out, err := url.PathUnescape(s)
	return out, err == nil
}

// Rot13 replaces each ASCII letter with the one 13 letters further on. The second result is always
// true.
func Rot13(s string) (string, bool) {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+13)%26
		}
		return c
	}, s), true
}
