package scan

import (
	"strings"
)

// Hole stands in a Word's text for a part whose value is unknown.
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

// SetOf is the set of the words of a text.
func SetOf(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
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
		i++
		switch c := s[i]; {
		case c == 'n':
			b = append(b, '\n')
		case c == 't':
			b = append(b, '\t')
		case c == 'r':
			b = append(b, '\r')
		case c == 'a', c == 'b', c == 'f', c == 'v':
			b = append(b, ' ')
		case c == 'e' || c == 'E':
			b = append(b, 0x1b)
		case c == 'x':
			n, used := Digits(s[i+1:], 16, 2)
			b, i = append(b, byte(n)), i+used
		case c == 'u' || c == 'U':
			n, used := Digits(s[i+1:], 16, map[byte]int{'u': 4, 'U': 8}[c])
			b, i = append(b, string(rune(n))...), i+used
		case c >= '0' && c <= '7':
			n, used := Digits(s[i:], 8, 4)
			if c != '0' {
				n, used = Digits(s[i:], 8, 3)
			}
			b, i = append(b, byte(n)), i+used-1
		default:
			b = append(b, c)
		}
	}
	return strings.ReplaceAll(string(b), string(Hole), " ")
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
