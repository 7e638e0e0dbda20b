package scan

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Hole is in a Word's text for a part whose value is unknown.
const Hole = '\x00'

// Base is the last part of a path, without .exe.
func Base(path string) string {
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		path = path[i+1:]
	}
	if len(path) > 4 && strings.EqualFold(path[len(path)-4:], ".exe") {
		path = strings.ToLower(path[:len(path)-4])
	}
	return path
}

// Quote makes a shell word of a text; a hole becomes an unknown variable.
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

// Set is the set of the words of a text. Its map is made when it is first asked, because
// one start of a guard asks few of the engine's sets.
type Set struct {
	words string
	made  atomic.Pointer[map[string]bool]
}

// SetOf is the set of the words of a text. It is so short that a variable of a package that
// begins with it costs nothing at a start.
func SetOf(words string) *Set { return &Set{words: words} }

// Has tells whether a word is in the set. None is in no set.
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

// Words are the words of the set in their order.
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

// Put puts a value into a map, which it makes if there is none yet.
func Put[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}

// HasAny tells whether one of the parts is in a text.
func HasAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

// HasAnyPrefix tells whether a text begins with one of the parts.
func HasAnyPrefix(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(text, p) })
}

// HasAnySuffix tells whether a text ends in one of the parts.
func HasAnySuffix(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.HasSuffix(text, p) })
}

// Unescape resolves the escapes of $'…', echo -e and printf.
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

// plainEscapes are the escapes of one letter.
var plainEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'a': " ", 'b': " ", 'f': " ", 'v': " ", 'e': "\x1b", 'E': "\x1b"}

// escape is what stands for the escape that a text begins with, and how long that is.
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

// Digits reads at most n digits of a base, and gives their value and how many there were.
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

// OptionWords splits a list of options at blanks outside of quotes.
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
