// Package secrets recognizes secrets: by the forms of the tokens that well-known services
// issue, and by the names of variables, headers and members that hold secrets. The gate, the
// payment policy, the manifest scan and every text shown to people use this package, so that a
// new token format is added in one place (shapes.go) and a new name in one place (names.go).
//
// It has four functions:
//
//	Find(text)         every secret in a text: tokens by their shape, passwords in
//	                   URLs, private keys, labelled seed phrases, and literal values
//	                   after a name, as in API_KEY=…, "password": "…", --token … or
//	                   X-Api-Key: …
//	Kind(name, value)  the kind of secret that a variable, header or JSON member
//	                   holds, or "". The name counts: 64 hexadecimal digits are a
//	                   hash under "hash" and a key under "privateKey".
//	Name(name)         whether a variable, header or member is named like one that
//	                   holds a secret: STRIPE_SECRET_KEY is, TOKEN_COUNT is not.
//	Mask(text)         the text with each secret replaced by "[secret]".
//
// A placeholder for a secret is not a secret: ${VAR}, <token>, your-api-key, xxxx,
// process.env.TOKEN, op://vault/item, the name of another variable. Placeholder recognizes
// them.
//
// 64 hexadecimal digits without a name are not taken for a secret, because hashes of
// transactions look the same. A caller that prefers to mask too much must do that itself.
//
// All functions take time linear in the length of the text, and allocate only their results.
package secrets

import "strings"

// Span is a secret in text[Start:End]. It covers only the secret, not the name before it.
type Span struct {
	Kind       string
	Start, End int
}

// The kinds that are not in the table of shapes.
const (
	NamedValue  = "secret value" // a literal after or under a name such as PASSWORD
	URLPassword = "password in a URL"
	PrivateKey  = "private key"
	SeedPhrase  = "seed phrase"
)

// Find returns the secrets in a text, in order and without overlap.
func Find(text string) (all []Span) {
	scan(text, func(s Span) bool {
		all = append(all, s)
		return true
	})
	return all
}

// Kind returns the kind of secret in a value that has a name, or "".
func Kind(name, value string) string {
	kind := ""
	scan(value, func(s Span) bool {
		kind = s.Kind
		return false
	})
	if kind != "" {
		return kind
	}
	return kindByName(name, value)
}

// Mask returns a text with each secret replaced by "[secret]".
func Mask(text string) string {
	found := Find(text)
	if len(found) == 0 {
		return text
	}
	var masked strings.Builder
	at := 0
	for _, s := range found {
		masked.WriteString(text[at:s.Start])
		masked.WriteString("[secret]")
		at = s.End
	}
	masked.WriteString(text[at:])
	return masked.String()
}

// scan calls yield with each secret of a text until yield returns false. It reads each byte
// once, and reads further only where a word begins or a name ends.
func scan(text string, yield func(Span) bool) {
	for i := 0; i < len(text); {
		s, ok := secretAt(text, i)
		if !ok {
			i += max(1, run(text[i:], len(text), isAlnum))
			continue
		}
		if !yield(s) {
			return
		}
		i = s.End
	}
}

// secretAt returns the secret that begins at i, or whose name ends there.
func secretAt(text string, i int) (Span, bool) {
	if s, ok := shapeAt(text, i); ok {
		return s, true
	}
	switch text[i] {
	case ':':
		if s, ok := urlPassword(text, i); ok {
			return s, true
		}
		return assigned(text, i)
	case '=':
		return assigned(text, i)
	case '-':
		return flagged(text, i)
	case 'k', 'K', 's', 'S', 'm', 'M', 'r', 'R':
		return labelled(text, i)
	}
	return Span{}, false
}

// urlPassword returns the password in scheme://user:password@host, where i is the position of
// the first colon.
func urlPassword(text string, i int) (Span, bool) {
	const longest = 512
	if !strings.HasPrefix(text[i:], "://") || i == 0 || !isAlnum(text[i-1]) {
		return Span{}, false
	}
	from := i + len("://")
	authority := text[from:min(len(text), from+longest)]
	if end := strings.IndexAny(authority, "/?#\"'`<> \t\r\n\\"); end >= 0 {
		authority = authority[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	colon := strings.IndexByte(authority, ':')
	if colon < 0 || at < colon+2 || Placeholder(authority[colon+1:at]) {
		return Span{}, false
	}
	return Span{URLPassword, from + colon + 1, from + at}, true
}
