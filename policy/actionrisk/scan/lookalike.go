package scan

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Invisible reports whether a character is invisible. Such a character changes what people see,
// not what runs.
func Invisible(r rune) bool {
	switch {
	case r == 0x00AD, r == 0x034F, r == 0x061C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x180E, r == 0xFEFF, r == 0x3164, r == 0xFFA0,
		r >= 0x200B && r <= 0x200F, r >= 0x2060 && r <= 0x2064, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF,
		Bidi(r):
		return true
	}
	return false
}

// Bidi reports whether a character is a control that reorders the displayed text.
func Bidi(r rune) bool { return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 }

// Plain reports whether a text has only printable ASCII, tabs and line ends, so that it needs no
// search for suspicious characters.
func Plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf || s[i] < ' ' && s[i] != '\n' && s[i] != '\t' && s[i] != '\r' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// Confusable maps Cyrillic, Greek and other characters that look like ASCII characters to these.
// NFKC has already replaced full-width and mathematical letters.
var Confusable = sync.OnceValue(func() map[rune]rune {
	return map[rune]rune{
		'а': 'a', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'һ': 'h', 'і': 'i', 'ј': 'j', 'ӏ': 'l', 'ո': 'n', 'о': 'o', 'р': 'p', 'ԛ': 'q', 'ѕ': 's',
		'ԝ': 'w', 'х': 'x', 'у': 'y', 'ѵ': 'v', 'ɡ': 'g', 'ɑ': 'a', 'ο': 'o', 'ν': 'v', 'α': 'a', 'ι': 'i', 'ρ': 'p', 'υ': 'u', 'κ': 'k', 'τ': 't', 'г': 'r',
		'к': 'k', 'м': 'm', 'т': 't', 'в': 'b', 'н': 'h', 'ⅼ': 'l', 'ｒ': 'r', 'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P',
		'С': 'C', 'Т': 'T', 'Х': 'X', 'Ѕ': 'S', 'І': 'I', 'Ј': 'J', '‐': '-', '‑': '-', '‒': '-', '–': '-', '—': '-', '−': '-', '﹣': '-', '∕': '/', '⁄': '/', '⧸': '/',
		'։': ':', '∶': ':', '∣': '|', '；': ';', ';': ';', '‘': '\'', '’': '\'', '“': '"', '”': '"',
	}
})

// Joins reports whether r is a variation selector or joiner in a legitimate place: in an emoji, or
// in a script that needs it.
func Joins(previous, r rune, rest string) bool {
	selects := r >= 0xFE00 && r <= 0xFE0F
	next, _ := utf8.DecodeRuneInString(rest)
	switch {
	case !selects && r != 0x200D && r != 0x200C:
		return false
	case previous > 0x2000 && !Invisible(previous), previous > 0x80 && next > 0x2000:
		return true
	case r == 0xFE0F && (previous == '#' || previous == '*' || previous >= '0' && previous <= '9'):
		return true
	}
	return unicode.In(previous, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Tamil)
}

// MixedWord finds a word that mixes ASCII letters with look-alikes of another script. At the start
// of the text, where the name of a program is, it also finds a word that has only look-alikes. It
// ignores words in prose, and words that contain any other letter of another script.
func MixedWord(text string) (from, to int, ok bool) {
	for i, looks := 0, 0; i < len(text) && looks < MaxLooks; {
		end, latin, alike, foreign := lettersAt(text, i)
		if end == i {
			_, size := utf8.DecodeRuneInString(text[i:])
			i += size
			continue
		}
		if alike && !foreign && (latin || strings.TrimSpace(text[:i]) == "") {
			if !prose(text, i, end) {
				return i, end, true
			}
			looks++
		}
		i = end
	}
	return 0, 0, false
}

// lettersAt returns the end of the word that begins at i, and which letters it has: ASCII,
// look-alikes of ASCII, and other non-Latin ones.
func lettersAt(text string, i int) (end int, latin, alike, foreign bool) {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !wordRune(r) {
			break
		}
		switch {
		case r < utf8.RuneSelf:
			latin = true
		case Confusable()[r] != 0 && unicode.IsLetter(r) || r >= 0xFF21 && r <= 0xFF5A || r >= 0x1D400 && r <= 0x1D7FF:
			alike = true
		case !unicode.In(r, unicode.Latin):
			foreign = true
		}
		i += size
	}
	return i, latin, alike, foreign
}

// prose reports whether a word is in a quoted text of several words, or after the first line of a
// here-document. If that text runs, its copy in ASCII is judged separately.
func prose(text string, from, to int) bool {
	if i := strings.LastIndexByte(text[:from], '\n'); i >= 0 && strings.Contains(text[:i], "<<") {
		return true
	}
	quote, open := byte(0), 0
	for i := 0; i < from; i++ {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, open = c, i
		}
	}
	if quote == 0 {
		return false
	}
	end := strings.IndexByte(text[to:], quote)
	return end >= 0 && strings.ContainsAny(text[open:to+end], " \t\n")
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.Is(unicode.Mn, r) }
