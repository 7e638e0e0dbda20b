package scan

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// Format formats args with a printf format. It returns the text and the number of arguments that
// it used. missing is the text of an argument that is not given. If shell is set, %c writes the
// first character of its argument instead of the character with this code, and %q quotes.
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

// format formats the other texts with the first one. Missing arguments are unknown.
func format(args []string) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	text, _ := Format(args[0], args[1:], string(Hole), false)
	return text, true
}

// fill replaces each number in braces in the first text with the argument of that index: {1},
// {0:x}. Doubled braces become one brace.
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

// directive is one directive of a printf format: %-10s, %064d, %.0s, %x or %1$s.
type directive struct {
	verb             byte
	left, zero       bool
	width, precision int // precision is -1 if none is given
	length           int // number of bytes after the percent sign
}

// readDirective parses the directive after a percent sign.
func readDirective(s string) directive {
	d := directive{precision: -1}
	rest := s
	if n, behind := leadingNumber(rest); n > 0 && strings.HasPrefix(behind, "$") { // skip the argument's index (%1$s): the next argument is used instead
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

// leadingNumber returns the number at the start of a text, at most MaxValue, and the rest of the
// text.
func leadingNumber(s string) (int, string) {
	rest := strings.TrimLeft(s, "0123456789")
	n, err := strconv.Atoi(s[:len(s)-len(rest)])
	if err != nil && rest != s { // the number is too large for an int
		n = MaxValue
	}
	return min(n, MaxValue), rest
}

// formatBase is the base in which each verb writes numbers, if that is not 10.
var formatBase = map[byte]int{'x': 16, 'X': 16, 'o': 8}

// apply formats one argument with the directive.
func (d directive) apply(text string, shell bool) string {
	if strings.IndexByte(text, Hole) >= 0 {
		return text // its length is unknown, so it is not padded
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

// converted returns an argument in the format of the verb, without padding to the width.
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

// number formats an integer in the base of the verb. Other texts are returned as they are.
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
