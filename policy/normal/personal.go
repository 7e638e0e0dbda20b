package normal

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/secrets"
)

// The functions below search for personal data without regular expressions. Texts may have a
// megabyte, and a bounded repetition in the middle of an expression costs a microsecond per byte.
// Each function first searches for a literal, and then reads the bytes near it at most once.

// found reports whether text contains literal at a position for which the function accept returns
// true.
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

// run counts the bytes at the start of text for which is(byte) is true, at most limit.
func run(text string, limit int, is func(byte) bool) int {
	n := 0
	for n < len(text) && n < limit && is(text[n]) {
		n++
	}
	return n
}

// PersonalDataKind returns which kind of personal data a text contains, for example "e-mail
// address", or "" if none is found.
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

// isEmail reports whether the at-sign at this position is part of an e-mail address: a character
// of a local part precedes it, and a domain follows it that has a dot and whose last label begins
// with two letters.
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

// hasCard reports whether a text contains a card number: 13 to 19 digits, possibly in groups with
// single spaces or dashes between them, that begin with 3 to 6 and satisfy the Luhn check.
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

// isCard reports whether a text begins with a card number. It reads each digit once and computes
// two Luhn sums, because the length of the number, even or odd, decides which digits are doubled.
func isCard(text string) bool {
	var sums [2]int // Luhn sums: one with the digits at even positions doubled, one with those at odd positions
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

// isSSN reports whether the dash at this position is the first dash of a social security number,
// ddd-dd-dddd. It returns false for numbers that are never issued: area 000, 666 or 9xx, group 00,
// serial 0000.
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

// isPhone reports whether an international phone number of 8 to 15 digits follows the plus at this
// position. At most two separators may be between two digits.
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

// Shown prepares a text of the caller for a finding or a log line. It masks a text that looks like
// a secret, and cuts a long text.
func Shown(text string) string {
	if secrets.Kind("", text) != "" {
		return "[masked]"
	}
	if utf8.RuneCountInString(text) > maxShown {
		return string([]rune(text)[:maxShown]) + "..."
	}
	return text
}

// MaskAddress returns the first six and the last four characters of an address, with "..." between
// them. Of a text with at most ten characters it keeps the first two.
func MaskAddress(address string) string {
	runes := []rune(address)
	if len(runes) <= 10 {
		return string(runes[:min(len(runes), 2)]) + "..."
	}
	return string(runes[:6]) + "..." + string(runes[len(runes)-4:])
}
