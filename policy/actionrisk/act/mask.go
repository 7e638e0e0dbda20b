package act

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/secrets"
)

// Mask replaces the secrets in a text with "[secret]", for showing the text to people.
func Mask(text string) string { return Conceal(text).masked(0, len(text)) }

// Concealed is a command with the ranges of its secrets. They are found once and used for every
// excerpt.
type Concealed struct {
	command string
	secrets []Span
}

// Conceal finds the secrets in a command.
func Conceal(command string) Concealed { return Concealed{command, SecretsIn(command)} }

// Excerpt returns the part of the command in a span, without secrets. The command is masked before
// it is cut, so that no cut shows part of a secret.
func (g Concealed) Excerpt(span Span) string {
	start := min(max(span.Start, 0), len(g.command))
	end := max(start, min(max(span.End, 0), len(g.command)))
	if start == 0 && end == len(g.command) {
		return Printable(g.command)
	}
	return Printable(g.masked(start, end))
}

// masked returns command[at:end] without the secrets.
func (g Concealed) masked(at, end int) string {
	var b strings.Builder
	for _, s := range g.secrets {
		if s.End <= at || s.Start >= end {
			continue
		}
		if s.Start > at {
			b.WriteString(g.command[at:s.Start])
		}
		b.WriteString("[secret]")
		at = min(s.End, end)
	}
	return b.String() + g.command[at:end]
}

// Hide removes the secrets of the command from a text that was derived from it. The text alone may
// no longer show where a secret begins, because quotes were removed or words joined.
func (g Concealed) Hide(text string) string {
	const telling = 8 // fewer characters of a secret at the end of the text reveal nothing
	for _, s := range g.secrets {
		secret := g.command[s.Start:s.End]
		text = strings.ReplaceAll(text, secret, "[secret]")
		for n := len(secret) - 1; n >= telling; n-- {
			if rest, ok := strings.CutSuffix(text, secret[:n]); ok {
				text = rest + "[secret]"
				break
			}
		}
	}
	return text
}

// SecretsIn returns the ranges of the secrets in a text, sorted and without overlap.
func SecretsIn(text string) []Span {
	found := append(secretWords(text), passwordsIn(text)...)
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	out := found[:1]
	for _, s := range found[1:] {
		if last := &out[len(out)-1]; s.Start <= last.End {
			last.End = max(last.End, s.End)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// secretWords returns the ranges of the secrets that are recognized by their format or by the name
// before them, and of keys with 64 hexadecimal digits.
func secretWords(text string) []Span {
	var out []Span
	for _, s := range secrets.Find(text) {
		out = append(out, Span{s.Start, s.End})
	}
	for i := 0; i < len(text); i++ {
		end := i
		for end < len(text) && (scan.Alnum(text[end]) || strings.IndexByte("_-.", text[end]) >= 0) {
			end++
		}
		if w := text[i:end]; isHexKey(w) || len(w) > len("eyJ")+12 && strings.HasPrefix(w, "eyJ") { // eyJ begins JSON in base64, as in tokens and payments
			out = append(out, Span{i, end})
		}
		i = end
	}
	slices.SortFunc(out, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// isHexKey reports whether w has 64 hexadecimal digits, as a private key has.
func isHexKey(w string) bool {
	w = strings.TrimPrefix(w, "0x")
	return len(w) == 64 && strings.Trim(w, "0123456789abcdefABCDEF") == ""
}

// SecretWord reports whether the format of a word is that of a secret.
func SecretWord(w string) bool {
	return isHexKey(w) || slices.ContainsFunc(secrets.Find(w), func(s secrets.Span) bool { return s.Start == 0 && s.End == len(w) })
}
