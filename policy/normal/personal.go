package normal

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/secrets"
)

// The recognisers below read by hand and not by regular expression: texts come a
// megabyte at a time, and a bounded repetition in the middle of an expression costs
// a microsecond per byte. Each looks for a literal first and then reads at most once
// over what follows.

// found reports whether accept takes some occurrence of a literal.
func found(text, literal string, accept func(at int) bool) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], literal)
		if at < 0 {
			return false
		}
		if accept(from + at) {
			return true
		}
		from += at + len(literal)
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isAlnum(c byte) bool { return isDigit(c) || isUpper(c) || isLower(c) }

// run is how many bytes at the start of a text satisfy is, at most limit.
func run(text string, limit int, is func(byte) bool) int {
	n := 0
	for n < len(text) && n < limit && is(text[n]) {
		n++
	}
	return n
}

// PersonalDataKind says what personal data a text holds, or "".
func PersonalDataKind(text string) string {
	const shortest = len("a@b.cc")
	if len(text) < shortest {
		return ""
	}
	switch {
	case found(text, "@", func(at int) bool { return isEmail(text, at) }):
		return "e-mail address"
	case hasCard(text):
		return "card number"
	case found(text, "-", func(at int) bool { return isSSN(text, at) }):
		return "social security number"
	case found(text, "+", func(at int) bool { return isPhone(text, at) }):
		return "phone number"
	}
	return ""
}

// isEmail reports whether an address stands around the at-sign: something before it,
// and a name with a dot and a last label of letters behind it.
func isEmail(text string, at int) bool {
	if at == 0 || !isAlnum(text[at-1]) && strings.IndexByte("._%+-", text[at-1]) < 0 {
		return false
	}
	rest := text[at+1:]
	domain := strings.TrimRight(rest[:run(rest, 255, func(c byte) bool { return isAlnum(c) || c == '-' || c == '.' })], ".-")
	dot := strings.IndexByte(domain, '.')
	if dot <= 0 || strings.Contains(domain, "..") {
		return false
	}
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	return run(last, 2, func(c byte) bool { return isUpper(c) || isLower(c) }) == 2
}

// hasCard looks for 13 to 19 digits, alone or in groups with single spaces or
// dashes, that begin like a card's and satisfy the Luhn check.
func hasCard(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] < '3' || text[i] > '6' || i > 0 && (isAlnum(text[i-1]) || text[i-1] == '_') {
			continue
		}
		if isCard(text[i:]) {
			return true
		}
	}
	return false
}

// isCard reads each digit once: the sum of the Luhn check is kept for both ways of
// doubling every second one, as the number turns out to be of even or odd length.
func isCard(text string) bool {
	var sums [2]int // with the digits at even, and at odd places doubled
	digits := 0
	for i := 0; i < len(text) && digits <= 19; i++ {
		switch c := text[i]; {
		case isDigit(c):
			d := int(c - '0')
			sums[digits%2] += doubled(d)
			sums[1-digits%2] += d
			digits++
			ends := i+1 == len(text) || !isAlnum(text[i+1]) && text[i+1] != '_'
			if ends && digits >= 13 && digits <= 19 && sums[digits%2]%10 == 0 {
				return true
			}
		case (c == ' ' || c == '-') && i > 0 && isDigit(text[i-1]):
		default:
			return false
		}
	}
	return false
}

func doubled(digit int) int {
	if digit >= 5 {
		return 2*digit - 9
	}
	return 2 * digit
}

// isSSN reports whether ddd-dd-dddd stands around its first dash. Numbers that were
// never given are none: area 000, 666, 9xx, group 00, serial 0000.
func isSSN(text string, dash int) bool {
	from, to := dash-3, dash+8
	if from < 0 || to > len(text) || !sameShape(text[from:to], "000-00-0000") {
		return false
	}
	if from > 0 && (isDigit(text[from-1]) || text[from-1] == '-') || to < len(text) && (isDigit(text[to]) || text[to] == '-') {
		return false
	}
	area, group, serial := text[from:dash], text[dash+1:dash+3], text[dash+4:to]
	return area != "000" && area != "666" && area[0] != '9' && group != "00" && serial != "0000"
}

// isPhone reports whether an international number of 8 to 15 digits stands behind
// the plus, with at most two separators between digits.
func isPhone(text string, plus int) bool {
	if plus > 0 && strings.IndexByte(" \t\r\n\"'(=:;,", text[plus-1]) < 0 {
		return false
	}
	rest := text[plus+1:]
	if rest == "" || rest[0] < '1' || rest[0] > '9' {
		return false
	}
	digits := 0
	for gap := 0; rest != "" && gap <= 2 && digits <= 15; rest = rest[1:] {
		switch {
		case isDigit(rest[0]):
			digits++
			gap = 0
		case strings.IndexByte(" ().-", rest[0]) >= 0:
			gap++
		default:
			return digits >= 8
		}
	}
	return digits >= 8 && digits <= 15
}

// Shown prepares a short text of the caller for a finding or a log line: nothing
// that looks like a secret, nothing long.
func Shown(text string) string {
	if secrets.Kind("", text) != "" {
		return "[masked]"
	}
	if utf8.RuneCountInString(text) > maxShown {
		return string([]rune(text)[:maxShown]) + "..."
	}
	return text
}

// MaskAddress shows the first six and the last four characters of an address.
func MaskAddress(address string) string {
	runes := []rune(address)
	if len(runes) <= 10 {
		return string(runes[:min(len(runes), 2)]) + "..."
	}
	return string(runes[:6]) + "..." + string(runes[len(runes)-4:])
}
