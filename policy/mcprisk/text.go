package mcprisk

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign/countersign/policy/normal"
	"github.com/countersign/countersign/policy/secrets"
)

// readings returns the normal forms of a text that the rules match: first the text as a model
// reads it, without invisible characters. If it has invisible characters, a second form has spaces
// in their place, so that such a character can neither split a word nor join two words.
func readings(raw string) []string {
	if isPlain(raw) {
		return []string{collapse(strings.ToLower(raw))}
	}
	hidden := false
	removed := strings.Map(func(r rune) rune {
		if hides(r) {
			hidden = true
			return -1
		}
		return r
	}, raw)
	forms := []string{fold(removed)}
	if hidden {
		forms = append(forms, fold(strings.Map(func(r rune) rune {
			if hides(r) {
				return ' '
			}
			return r
		}, raw)))
	}
	return forms
}

func hides(r rune) bool {
	return normal.Invisible(r) || isVariation(r) || unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r'
}

func isVariation(r rune) bool { return 0xfe00 <= r && r <= 0xfe0f || 0xe0100 <= r && r <= 0xe01ef }

func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return true
}

// fold converts a text to NFKC and lower case, replaces look-alike letters by Latin ones and
// typographic by straight quotes, and collapses white space.
func fold(text string) string {
	return collapse(strings.Map(func(r rune) rune {
		if latin, ok := lookAlikes[r]; ok {
			return latin
		}
		return r
	}, strings.ToLower(norm.NFKC.String(text))))
}

// collapse replaces white space by single spaces and removes it at the ends.
func collapse(text string) string {
	before := byte(' ')
	for i := range len(text) {
		c := text[i]
		if c == ' ' && before == ' ' || c < ' ' || c >= utf8.RuneSelf {
			return strings.Join(strings.Fields(text), " ")
		}
		before = c
	}
	return strings.TrimSuffix(text, " ")
}

// lookAlikes maps lower-case letters of other scripts that look like Latin ones (the single
// letters of Unicode's confusables that matter for English words), and typographic quotes.
var lookAlikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'һ': 'h', 'ԛ': 'q', 'ԝ': 'w',
	'к': 'k', 'м': 'm', 'т': 't', 'в': 'b', 'н': 'h', 'ѵ': 'v', 'ɡ': 'g', 'ո': 'n', 'ս': 'u', 'օ': 'o', 'ı': 'i', 'ḷ': 'l',
	'α': 'a', 'ο': 'o', 'ν': 'v', 'ι': 'i', 'κ': 'k', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'ε': 'e', 'η': 'n', 'γ': 'y',
	'’': '\'', '‘': '\'', '“': '"', '”': '"',
}

// eachWord calls yield with each word of ASCII letters and digits in a text in normal form.
func eachWord(clean string, yield func(string)) {
	start := -1
	for i := 0; i <= len(clean); i++ {
		letter := i < len(clean) && isWordByte(clean[i])
		switch {
		case letter && start < 0:
			start = i
		case !letter && start >= 0:
			yield(clean[start:i])
			start = -1
		}
	}
}

func isWordByte(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// evidenceOf makes a text safe to show: invisible characters become U+XXXX, a secret is cut to
// four characters, and a long text to 120.
func evidenceOf(raw string) string {
	if secrets.Kind("private_key", raw) != "" {
		runes := []rune(visible(raw))
		return string(runes[:min(4, len(runes))]) + "..."
	}
	runes := []rune(visible(raw))
	if len(runes) > maxEvidence {
		return string(runes[:maxEvidence-3]) + "..."
	}
	return string(runes)
}

// visible replaces invisible characters by U+XXXX.
func visible(raw string) string {
	if isPlain(raw) && !strings.ContainsAny(raw, "\t\n\r") {
		return raw
	}
	var b strings.Builder
	for _, r := range raw {
		switch {
		case hides(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			fmt.Fprintf(&b, "U+%04X", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// around returns the match in a text, with about 20 bytes before and after it.
func around(text string, loc []int) string {
	from, to := max(0, loc[0]-20), min(len(text), loc[1]+20)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return text[from:to]
}
