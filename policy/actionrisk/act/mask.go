package act

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Mask hides secrets in a text that is shown to people.
func Mask(text string) string { return Guard(text).masked(0, len(text)) }

// Guarded is a command and where its secrets stand, found once for everything that is
// shown of it.
type Guarded struct {
	command string
	secrets []Span
}

// Guard is a text with the places of its secrets.
func Guard(command string) Guarded { return Guarded{command, SecretsIn(command)} }

// Excerpt is the span's part of the command for showing. The whole is masked before
// it is cut, so that a cut never uncovers part of a secret: what is masked in
// the whole is masked in the part.
func (g Guarded) Excerpt(span Span) string {
	start := min(max(span.Start, 0), len(g.command))
	end := max(start, min(max(span.End, 0), len(g.command)))
	if start == 0 && end == len(g.command) {
		return Printable(g.command)
	}
	return Printable(g.masked(start, end))
}

// masked is command[at:end] without the secrets.
func (g Guarded) masked(at, end int) string {
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

// Hide takes the secrets of the command out of a text made from it: where quotes fell
// away or words were joined, the text alone does not show where a secret begins.
func (g Guarded) Hide(text string) string {
	const telling = 8 // fewer characters at a cut end tell nothing
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

// tokenPrefixes begin the tokens of well-known services.
var tokenPrefixes = []string{"sk-", "sk_live_", "sk_test_", "rk_live_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "AKIA", "ASIA",
	"xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-", "npm_", "pypi-", "AIza", "ya29.", "SG.", "dop_v1_", "hf_", "shpat_", "EAAC", "eyJ", "dckr_pat_", "hvs.", "pscale_tkn_", "xprv", "figd_", "lin_api_", "ops_ey"}

// keyWords before "=" or ":" say that a value is a secret.
var keyWords = []string{"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "apikey", "api-key", "access_key", "access-key", "private_key", "private-key", "privatekey", "mnemonic", "seed", "auth", "bearer", "credential", "client_secret"}

// SecretsIn lists what must not be shown, in order and without overlap.
func SecretsIn(text string) []Span {
	found, more := secretWords(text), passwordsIn(text)
	if len(more) == 0 {
		return found
	}
	found = append(found, more...)
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

// secretWords are the secrets that show by their form or by the word before them.
func secretWords(text string) []Span {
	var out []Span
	for i := 0; i < len(text); {
		start, end := i, i
		for end < len(text) && SecretByte(text[end]) {
			end++
		}
		if s, ok := longSecret(text, i); ok {
			out = append(out, s)
			i = s.End
			continue
		}
		if end == start {
			i++
			continue
		}
		word := text[start:end]
		switch {
		case userinfo(text, start, end) > 0:
			stop := userinfo(text, start, end)
			out = append(out, Span{start, stop})
			end = stop
		case SecretWord(word) || (len(word) >= 8 || strings.Contains(text[:start], "-p")) && AfterKeyWord(text[:start]):
			out = append(out, Span{start, end})
		default:
			if j := Embedded(word); j >= 0 {
				out = append(out, Span{start + j, end})
			}
		}
		i = end
	}
	return out
}

// SecretByte tells whether a token may hold the byte.
func SecretByte(c byte) bool {
	return scan.Alnum(c) || c == '_' || c == '-' || c == '.' || c == '+' || c == '%' || c == '!' || c == '~' || c == '^' || c >= 0x80
}

// SecretWord: a token by its prefix, or 64 hex digits (a private key).
func SecretWord(w string) bool {
	for _, p := range tokenPrefixes {
		if len(w) >= len(p)+12 && strings.HasPrefix(w, p) {
			return true
		}
	}
	return len(w) == 64 && strings.Trim(w, "0123456789abcdefABCDEF") == "" ||
		len(w) == 66 && w[0] == '0' && w[1] == 'x' && strings.Trim(w[2:], "0123456789abcdefABCDEF") == ""
}

// Embedded finds a token that begins inside a word ("tok-ghp_…").
func Embedded(w string) int {
	for _, p := range tokenPrefixes[:20] {
		if j := strings.Index(w, p); j > 0 && len(w)-j >= len(p)+12 && !scan.Alnum(w[j-1]) {
			return j
		}
	}
	return -1
}

// AfterKeyWord: the text before ends in a key word and a sign of assignment.
func AfterKeyWord(before string) bool {
	before = strings.ToLower(before[max(0, len(before)-64):])
	trimmed := strings.TrimRight(before, ` "'=:`)
	if len(trimmed) == len(before) {
		return false
	}
	gap := before[len(trimmed):]
	for _, k := range keyWords {
		if strings.HasSuffix(trimmed, k) {
			if strings.ContainsAny(gap, "=:") || k == "bearer" {
				return true
			}
			flag := trimmed[:len(trimmed)-len(k)]
			return strings.HasSuffix(flag, "--") || strings.HasSuffix(flag, "-") && strings.Contains(flag, "--")
		}
	}
	return false
}

// userinfo: "user:password@" in a URL; the end of what must be hidden, or 0.
func userinfo(text string, start, end int) int {
	if start < 1 || text[start-1] != ':' {
		return 0
	}
	stop := strings.IndexFunc(text[end:], func(r rune) bool { return r <= ' ' || strings.ContainsRune("@/\"'", r) })
	if stop < 0 || text[end+stop] != '@' {
		return 0
	}
	head := text[:start-1]
	i := strings.LastIndex(head, "://")
	if i < 0 || strings.ContainsAny(head[i+3:], "/ @\"'") {
		return 0
	}
	return end + stop
}

// longSecret: a PEM block.
func longSecret(text string, i int) (Span, bool) {
	if !strings.HasPrefix(text[i:], "-----BEGIN") {
		return Span{}, false
	}
	if j := strings.Index(text[i:], "-----END"); j > 0 {
		return Span{i, i + j}, true
	}
	return Span{i, len(text)}, true
}
