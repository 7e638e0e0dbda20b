package scan

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Hole is the byte that stands for an unknown part of the text of a Word.
const Hole = '\x00'

// Base returns the last part of a path, without ".exe".
func Base(path string) string {
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		path = path[i+1:]
	}
	if len(path) > 4 && strings.EqualFold(path[len(path)-4:], ".exe") {
		path = strings.ToLower(path[:len(path)-4])
	}
	return path
}

// Quote quotes a text as one word of the shell. A hole becomes a variable.
func Quote(text string) string {
	if text == "" {
		return "''"
	}
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+*?~") == "" {
		return text
	}
	text = "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	return strings.ReplaceAll(text, string(Hole), `'${_}'`)
}

// Set is a set of words. Its map is built at the first lookup, because one run of the guard uses
// few of the engine's sets.
type Set struct {
	words string
	made  atomic.Pointer[map[string]bool]
}

// SetOf returns the set of the blank-separated words of a text. It is short enough for the
// compiler to inline, so that package variables with sets cost nothing when the program starts.
func SetOf(words string) *Set { return &Set{words: words} }

// Has reports whether a word is in the set. A nil set is empty.
func (s *Set) Has(word string) bool {
	if s == nil {
		return false
	}
	m := s.made.Load()
	if m == nil {
		m = s.make()
	}
	return (*m)[word]
}

// Words returns the words of the set in the order in which they were given.
func (s *Set) Words() []string { return strings.Fields(s.words) }

func (s *Set) make() *map[string]bool {
	words := s.Words()
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	s.made.Store(&m)
	return &m
}

// Put sets a key of a map, and creates the map if it is nil.
func Put[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}

// HasAny reports whether a text contains one of the parts.
func HasAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

// HasAnyPrefix reports whether a text begins with one of the parts.
func HasAnyPrefix(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(text, p) })
}

// HasAnySuffix reports whether a text ends with one of the parts.
func HasAnySuffix(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.HasSuffix(text, p) })
}

// Unescape replaces the escapes of $'…', echo -e and printf with their characters.
func Unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		text, used := escape(s[i+1:])
		b, i = append(b, text...), i+used
	}
	return strings.ReplaceAll(string(b), string(Hole), " ")
}

// plainEscapes maps the letter of an escape to its text, for escapes of one letter.
var plainEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'a': " ", 'b': " ", 'f': " ", 'v': " ", 'e': "\x1b", 'E': "\x1b"}

// escape returns the text of the escape at the start of s (after the backslash), and the number of
// bytes read.
func escape(s string) (string, int) {
	if text, ok := plainEscapes[s[0]]; ok {
		return text, 1
	}
	switch c := s[0]; c {
	case 'x':
		n, used := Digits(s[1:], 16, 2)
		return string([]byte{byte(n)}), 1 + used
	case 'u', 'U':
		n, used := Digits(s[1:], 16, map[byte]int{'u': 4, 'U': 8}[c])
		return string(rune(n)), 1 + used
	case '0':
		n, used := Digits(s, 8, 4)
		return string([]byte{byte(n)}), used
	case '1', '2', '3', '4', '5', '6', '7':
		n, used := Digits(s, 8, 3)
		return string([]byte{byte(n)}), used
	}
	return s[:1], 1
}

// Digits parses digits in a base, and stops after a given number of them (most). It returns their
// value, and how many were read.
func Digits(s string, radix, most int) (value, used int) {
	for used < most && used < len(s) {
		d := strings.IndexByte("0123456789abcdef", s[used]|0x20)
		if s[used] < 'A' {
			d = int(s[used]) - '0'
		}
		if d < 0 || d >= radix {
			break
		}
		value, used = value*radix+d, used+1
	}
	return value, used
}

// OptionWords splits a text at blanks outside of quotes, and removes the quotes.
func OptionWords(text string) []string {
	var out []string
	var b strings.Builder
	quote := rune(0)
	for _, r := range text + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && (r == ' ' || r == '\t'):
			if b.Len() > 0 {
				out = append(out, b.String())
				b.Reset()
			}
		default:
			b.WriteRune(r)
		}
	}
	return out
}
