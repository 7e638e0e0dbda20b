package scan

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// Format is the text that a format of printf and arguments give, and how many of them it
// took; missing stands for those that are not there. A shell's %c is the first character
// of its argument, that of all others the one with this number, and only a shell quotes.
func Format(format string, args []string, missing string, shell bool) (string, int) {
	var b strings.Builder
	used := 0
	for i := 0; i < len(format) && b.Len() <= MaxDecoded; i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		d := readDirective(format[i+1:])
		i += d.length
		if d.verb == '%' {
			b.WriteByte('%')
			continue
		}
		text := missing
		if used < len(args) {
			text = args[used]
			used++
		}
		b.WriteString(d.apply(text, shell))
	}
	return b.String(), used
}

// format prints texts as the first of them says; what is missing is not known.
func format(args []string) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	text, _ := Format(args[0], args[1:], string(Hole), false)
	return text, true
}

// fill puts texts in the place of their numbers in braces: {1}, {0:x}, {{.
func fill(args []string) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	text, args := args[0], args[1:]
	var b strings.Builder
	for text != "" && b.Len() < MaxDecoded {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			break
		}
		b.WriteString(text[:i])
		text = text[i:]
		if text[0] == '}' || strings.HasPrefix(text, "{{") {
			b.WriteByte(text[0])
			text = strings.TrimPrefix(text[1:], text[:1])
			continue
		}
		number, rest, ok := strings.Cut(text[1:], "}")
		if !ok {
			return "", false
		}
		number, _, _ = strings.Cut(number, ":")
		number, _, _ = strings.Cut(number, ",")
		if k, err := strconv.Atoi(strings.TrimSpace(number)); err == nil && k >= 0 && k < len(args) {
			b.WriteString(args[k])
		} else {
			b.WriteByte(Hole)
		}
		text = rest
	}
	return b.String() + text, true
}

// directive is one of a format: %-10s, %064d, %.0s, %x, %1$s.
type directive struct {
	verb             byte
	left, zero       bool
	width, precision int // precision -1: none given
	length           int // bytes after the percent sign
}

// readDirective reads the directive after a percent sign.
func readDirective(s string) directive {
	d := directive{precision: -1}
	rest := s
	if n, behind := leadingNumber(rest); n > 0 && strings.HasPrefix(behind, "$") { // its place, which we take to be the next
		rest = behind[1:]
	}
	behind := strings.TrimLeft(rest, "-+ #0'")
	flags := rest[:len(rest)-len(behind)]
	d.left, d.zero = strings.Contains(flags, "-"), strings.Contains(flags, "0")
	d.width, rest = leadingNumber(behind)
	if strings.HasPrefix(rest, ".") {
		d.precision, rest = leadingNumber(rest[1:])
	}
	if rest = strings.TrimLeft(rest, "lhjz"); rest != "" {
		d.verb, rest = rest[0], rest[1:]
	}
	d.length = len(s) - len(rest)
	return d
}

// leadingNumber is the number that a text begins with, at most MaxValue, and what stands
// after it.
func leadingNumber(s string) (int, string) {
	rest := strings.TrimLeft(s, "0123456789")
	n, err := strconv.Atoi(s[:len(s)-len(rest)])
	if err != nil && rest != s { // too long a number
		n = MaxValue
	}
	return min(n, MaxValue), rest
}

// formatBase is the base of the numbers that a directive writes, if it is not 10.
var formatBase = map[byte]int{'x': 16, 'X': 16, 'o': 8}

// apply writes an argument as the directive says.
func (d directive) apply(text string, shell bool) string {
	if strings.IndexByte(text, Hole) >= 0 {
		return text // of an unknown length
	}
	text = d.converted(text, shell)
	pad := max(0, d.width-len(text))
	switch {
	case d.left:
		return text + strings.Repeat(" ", pad)
	case d.zero && d.verb != 's':
		return strings.Repeat("0", pad) + text
	}
	return strings.Repeat(" ", pad) + text
}

// converted is an argument in the form that the verb asks for.
func (d directive) converted(text string, shell bool) string {
	switch d.verb {
	case 'q':
		if shell {
			return Quote(text)
		}
	case 'c':
		if n, err := strconv.ParseInt(text, 0, 32); err == nil && !shell {
			text = string(rune(n))
		}
		return Substring(text, 0, 1)
	case 's', 'b':
		if d.precision >= 0 {
			return text[:min(d.precision, len(text))]
		}
	case 'd', 'i', 'u', 'x', 'X', 'o':
		return d.number(text)
	}
	return text
}

// number writes a number in the base of the directive; what is none stays.
func (d directive) number(text string) string {
	n, ok := new(big.Int).SetString(strings.TrimPrefix(text, "+"), 0)
	if !ok && (text != "" || d.width+max(d.precision, 0) == 0) {
		return text
	}
	if n == nil {
		n = new(big.Int)
	}
	text = n.Text(cmp.Or(formatBase[d.verb], 10))
	if d.verb == 'X' {
		text = strings.ToUpper(text)
	}
	return strings.Repeat("0", max(0, d.precision-len(text))) + text
}
