package actionrisk

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"golang.org/x/text/unicode/norm"
)

// sniff reports deceptive characters, and returns the text as it would read without them: without
// invisible characters, normalized with NFKC, and with look-alikes replaced by ASCII. It returns
// false if that changes nothing.
func sniff(e *interp.Env, src *act.Source) (string, bool) {
	text := src.Text
	if scan.Plain(text) {
		return "", false
	}
	e.Budget.Spend(len(text) / 8)
	seen := map[act.Sight]bool{}
	note := func(what act.Sight, from, to int) {
		if !seen[what] {
			seen[what] = true
			e.See(what, src, from, to, "")
		}
	}
	var b strings.Builder
	previous := rune(0)
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case scan.Bidi(r):
			note(act.TurnsText, i, i+size)
		case steers(r):
			note(act.Escapes, i, i+size)
		case !scan.Invisible(r):
			b.WriteRune(r)
		case !scan.Joins(previous, r, text[i+size:]):
			note(act.Invisible, i, i+size)
		}
		previous = r
	}
	if from, to, ok := scan.MixedWord(text); ok {
		note(act.LooksAlike, from, to)
	}
	folded := strings.Map(func(r rune) rune {
		if c, ok := scan.Confusable()[r]; ok {
			return c
		}
		return r
	}, norm.NFKC.String(b.String()))
	return folded, folded != text
}

// steers reports whether a character is a control character that affects a terminal.
func steers(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0
}
