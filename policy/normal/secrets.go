package normal

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The recognisers below read by hand and not by regular expression: texts come a
// megabyte at a time, and a bounded repetition in the middle of an expression
// costs a microsecond per octet. Each looks for a literal first and then reads at
// most once over what follows.

type secretForm struct {
	kind, literal string
	follows       func(rest string) bool
}

// starts says whether a form may start at an occurrence of its literal. A JWT is
// a run of its own: reading it from every "eyJ" inside would take forever.
func (s secretForm) starts(text string, at int) bool {
	switch {
	case at == 0 || s.literal[0] == '-':
		return true
	case s.literal == "eyJ":
		return !isURLSafe(text[at-1])
	}
	return !isAlnum(text[at-1])
}

// secretForms recognise secrets by their own shape, wherever they stand. A form
// gets what follows its literal; in the middle of a word no token starts.
var secretForms = []secretForm{
	{"private key", "-----BEGIN ", isPrivatePEM},
	{"API key", "sk-", longRun(16, isURLSafe)},
	{"API key", "sk_", longRun(16, isURLSafe)},
	{"cloud key", "AKIA", isCloudKey},
	{"cloud key", "ASIA", isCloudKey},
	{"GitHub token", "ghp_", longRun(20, isAlnum)},
	{"GitHub token", "gho_", longRun(20, isAlnum)},
	{"GitHub token", "ghu_", longRun(20, isAlnum)},
	{"GitHub token", "ghs_", longRun(20, isAlnum)},
	{"GitHub token", "ghr_", longRun(20, isAlnum)},
	{"GitHub token", "github_pat_", longRun(20, isURLSafe)},
	{"Slack token", "xox", isSlackToken},
	{"JWT", "eyJ", isJWT},
}

var (
	keyName   = Pattern(`(?i)(private|secret|signing|wallet)[ _.-]?key|priv[ _-]?key|^pk$|^secret$|^seed$`)
	seedNames = []string{"seed", "mnemonic", "recovery"}
	keyOwners = []string{"private", "secret", "signing", "wallet"}
)

// SecretKind says what secret a member's text holds, or "". The name of the
// member counts: 64 hexadecimal digits are a hash under "hash" and a key under
// "privateKey".
func SecretKind(name, text string) string {
	if len(text) < shortestSecret {
		return ""
	}
	for _, s := range secretForms {
		if found(text, s.literal, func(at int) bool {
			return s.starts(text, at) && s.follows(text[at+len(s.literal):])
		}) {
			return s.kind
		}
	}
	lower := strings.ToLower(text)
	for _, seed := range seedNames {
		if found(lower, seed, func(at int) bool { return isSeedLabel(lower[at+len(seed):]) }) {
			return "seed phrase"
		}
	}
	if found(lower, "key", func(at int) bool { return isOwnedKey(lower[:at]) && isHexKey(value(lower[at+len("key"):])) }) {
		return "private key"
	}
	trimmed := strings.TrimSpace(lower)
	switch {
	case len(strings.TrimPrefix(trimmed, "0x")) == 64 && isHexKey(trimmed) && keyName(clipped(name)):
		return "private key"
	case isSeed(trimmed) && slices.ContainsFunc(seedNames, func(s string) bool { return strings.Contains(strings.ToLower(clipped(name)), s) }):
		return "seed phrase"
	}
	return ""
}

// Shorter texts hold nothing that is looked for: xoxb- and ten characters, a@b.cc.
const (
	shortestSecret   = len("xoxb-") + 10
	shortestPersonal = len("a@b.cc")
)

// clipped is the part of a member's name that is looked at.
func clipped(name string) string { return name[:min(len(name), maxShown)] }

// found says whether accept takes some occurrence of a literal.
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

func isDigit(c byte) bool   { return c >= '0' && c <= '9' }
func isHex(c byte) bool     { return isDigit(c) || c >= 'a' && c <= 'f' }
func isUpper(c byte) bool   { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool   { return c >= 'a' && c <= 'z' }
func isAlnum(c byte) bool   { return isDigit(c) || isUpper(c) || isLower(c) }
func isURLSafe(c byte) bool { return isAlnum(c) || c == '-' || c == '_' }

// run is how many octets at the start of a text satisfy is, at most limit.
func run(text string, limit int, is func(byte) bool) int {
	n := 0
	for n < len(text) && n < limit && is(text[n]) {
		n++
	}
	return n
}

func longRun(least int, is func(byte) bool) func(string) bool {
	return func(rest string) bool { return run(rest, least, is) == least }
}

func isPrivatePEM(rest string) bool {
	n := run(rest, 64, func(c byte) bool { return isUpper(c) || c == ' ' })
	return strings.HasSuffix(rest[:n], "PRIVATE KEY") && strings.HasPrefix(rest[n:], "-----")
}

func isCloudKey(rest string) bool {
	const length = 16
	return run(rest, length+1, func(c byte) bool { return isDigit(c) || isUpper(c) }) == length && (len(rest) == length || !isAlnum(rest[length]))
}

func isSlackToken(rest string) bool {
	return len(rest) > 2 && strings.IndexByte("abeoprs", rest[0]) >= 0 && rest[1] == '-' &&
		longRun(10, func(c byte) bool { return isAlnum(c) || c == '-' })(rest[2:])
}

// isJWT reads the rest of three base64url parts, the first two of which are
// JSON objects.
func isJWT(rest string) bool {
	const least = 8
	header := run(rest, len(rest), isURLSafe)
	if header < least || !strings.HasPrefix(rest[header:], ".eyJ") {
		return false
	}
	rest = rest[header+len(".eyJ"):]
	claims := run(rest, len(rest), isURLSafe)
	return claims >= least && strings.HasPrefix(rest[claims:], ".") && longRun(least, isURLSafe)(rest[claims+1:])
}

// isSeedLabel reads what stands between "seed" and the words of a phrase.
func isSeedLabel(rest string) bool {
	if isSeed(value(rest)) {
		return true
	}
	if rest != "" && strings.IndexByte(" _-", rest[0]) >= 0 {
		rest = rest[1:]
	}
	for _, word := range []string{"phrase", "words"} {
		if after, ok := strings.CutPrefix(rest, word); ok {
			return isSeed(value(after))
		}
	}
	return isSeed(value(rest))
}

// value skips a quotation mark, white space and one colon or equals sign, as they
// stand between a name and its value.
func value(rest string) string {
	rest = strings.TrimLeft(rest[run(rest, 1, isQuote):], " \t\r\n")
	if rest != "" && (rest[0] == ':' || rest[0] == '=') {
		rest = rest[1:]
	}
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest[run(rest, 1, isQuote):]
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }

// isSeed says whether a lower-case text begins with twelve words of three to
// eight letters, as in BIP 39, separated by spaces or commas.
func isSeed(text string) bool {
	for words := 1; ; words++ {
		n := run(text, 9, isLower)
		if n < 3 || n > 8 {
			return false
		}
		if words == 12 {
			return true
		}
		text = text[n:]
		gap := run(text, 4, func(c byte) bool { return c == ' ' || c == ',' })
		if gap == 0 {
			return false
		}
		text = text[gap:]
	}
}

// isOwnedKey says whether "private", "secret", "signing" or "wallet" stands
// before "key".
func isOwnedKey(before string) bool {
	if before != "" && strings.IndexByte(" _-", before[len(before)-1]) >= 0 {
		before = before[:len(before)-1]
	}
	return slices.ContainsFunc(keyOwners, func(owner string) bool { return strings.HasSuffix(before, owner) })
}

// isHexKey says whether a lower-case text begins with exactly 64 hexadecimal digits.
func isHexKey(text string) bool {
	return run(strings.TrimPrefix(text, "0x"), 65, isHex) == 64
}

// PersonalDataKind says what personal data a text holds, or "".
func PersonalDataKind(text string) string {
	if len(text) < shortestPersonal {
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

// isEmail says whether an address stands around the at-sign: something before it,
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

// isSSN says whether ddd-dd-dddd stands around its first dash. Numbers that were
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

// isPhone says whether an international number of 8 to 15 digits stands behind
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
	if SecretKind("", text) != "" {
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
