package actionrisk

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"golang.org/x/text/unicode/norm"
)

// sniff looks for characters that deceive and returns the text as it would read
// without them: invisible ones removed, NFKC applied, look-alikes made ASCII.
// The second result is false where that is the same text.
func sniff(e *interp.Env, src *act.Source) (string, bool) {
	text := src.Text
	if scan.Plain(text) {
		return "", false
	}
	e.Budget.Spend(len(text) / 8)
	seen := [4]bool{}
	note := func(kind int, what act.Sight, from, to int) {
		if !seen[kind] {
			seen[kind] = true
			e.See(what, src, from, to, "")
		}
	}
	var b strings.Builder
	previous := rune(0)
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case scan.Bidi(r):
			note(1, act.TurnsText, i, i+size)
		case r == 0x1b || r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f || r >= 0x80 && r < 0xa0:
			note(2, act.Escapes, i, i+size)
		case scan.Invisible(r):
			if !scan.Joins(previous, r, text[i+size:]) {
				note(0, act.Invisible, i, i+size)
			}
		default:
			b.WriteRune(r)
		}
		previous = r
	}
	folded := norm.NFKC.String(b.String())
	if from, to, ok := scan.MixedWord(text); ok {
		note(3, act.LooksAlike, from, to)
	}
	folded = strings.Map(func(r rune) rune {
		if c, ok := scan.Confusable[r]; ok {
			return c
		}
		return r
	}, folded)
	return folded, folded != text
}
