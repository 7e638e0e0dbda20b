package normal

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text refuses a text with white space at an end, control characters, the line and paragraph
// separators of Unicode (which only some programs treat as line ends), or characters that are
// invisible or reorder others. If prose is true, line breaks and tabs are allowed.
func Text(text string, prose bool) error {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	if !utf8.ValidString(text) || text != "" && (isSpace(first) || isSpace(last)) {
		return ErrText
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		if prose && (r == '\n' || r == '\r' || r == '\t') {
			return false
		}
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || Invisible(r)
	}) {
		return ErrText
	}
	return nil
}

// isSpace reports whether ECMA-262 treats a character as white space. That is Unicode white space
// without U+0085, plus the byte order mark.
func isSpace(r rune) bool { return unicode.IsSpace(r) && r != 0x85 || r == 0xfeff }

// Invisible reports whether a character is not displayed or changes the direction of text:
// zero-width characters, bidirectional controls, tags and the soft hyphen.
func Invisible(r rune) bool {
	switch {
	case r == 0xad, r == 0x61c, r == 0x180e, r == 0xfeff:
		return true
	case 0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f:
		return true
	}
	return 0xe0000 <= r && r <= 0xe007f
}

// Timestamp parses an RFC 3339 time with a zone, of the years 1900 to 2199: 2026-01-02T03:04:05Z
// or 2026-01-02T03:04:05.123+01:00. A fraction may have up to nine digits. time.Parse alone would
// accept single-digit hours, a comma and any number of fraction digits, and refuse the lower-case
// t and z that RFC 3339 allows.
func Timestamp(text string) (time.Time, error) {
	const layout = "2006-01-02T15:04:05"
	text = strings.ToUpper(text)
	if len(text) <= len(layout) || !fixedDigits(text[:len(layout)]) {
		return time.Time{}, ErrTimestamp
	}
	rest := text[len(layout):]
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		zone := strings.TrimLeft(fraction, "0123456789")
		if digits := len(fraction) - len(zone); digits < 1 || digits > 9 {
			return time.Time{}, ErrTimestamp
		}
		rest = zone
	}
	if rest != "Z" && (len(rest) != 6 || !fixedZone(rest)) {
		return time.Time{}, ErrTimestamp
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < minYear || t.Year() > maxYear {
		return time.Time{}, ErrTimestamp
	}
	return t.UTC(), nil
}

// fixedDigits reports whether text has the form of a date and time without zone.
func fixedDigits(text string) bool { return sameShape(text, "0000-00-00T00:00:00") }

func fixedZone(zone string) bool {
	return sameShape(zone, "+00:00") && zone[1:3] < "24" && zone[4:6] < "60" ||
		sameShape(zone, "-00:00") && zone[1:3] < "24" && zone[4:6] < "60"
}

func sameShape(text, shape string) bool {
	if len(text) != len(shape) {
		return false
	}
	for i := range len(text) {
		if shape[i] == '0' && (text[i] < '0' || text[i] > '9') || shape[i] != '0' && text[i] != shape[i] {
			return false
		}
	}
	return true
}

// IsASCII reports whether a text consists only of ASCII characters.
func IsASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Hidden reports whether the character at i is invisible and not needed for display. A joiner is
// needed between Arabic or Indic letters, and between two emoji.
func Hidden(runes []rune, i int) bool {
	r := runes[i]
	if r == 0x200c || r == 0x200d {
		return !joinsLetters(runes, i) && !(r == 0x200d && joinsEmoji(runes, i))
	}
	return Invisible(r)
}

// joinsLetters reports whether the joiner at i is between two letters of Arabic or an Indic
// script, which need it.
func joinsLetters(runes []rune, i int) bool {
	return i > 0 && i+1 < len(runes) && needsJoiner(runes[i-1]) && needsJoiner(runes[i+1])
}

func needsJoiner(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
		unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala)
}

// joinsEmoji reports whether the joiner at i is between two emoji. Variation selectors and skin
// tones may precede the joiner.
func joinsEmoji(runes []rune, i int) bool {
	before := i - 1
	for before >= 0 && (runes[before] == 0xfe0f || runes[before] >= 0x1f3fb && runes[before] <= 0x1f3ff) {
		before--
	}
	return before >= 0 && i+1 < len(runes) && isEmoji(runes[before]) && isEmoji(runes[i+1])
}

func isEmoji(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff && unicode.IsSymbol(r)
}
