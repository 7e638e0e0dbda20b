// Package secrets recognizes secrets by the forms of the tokens that well-known services issue,
// and by the names of the variables, headers and members that contain secrets. The gate, the
// payment policy, the scan of manifests and every function that shows texts to people use this
// package, so a new token format is added in one place (shapes.go), and a new name in one place
// (names.go).
//
// Its main functions:
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
// process.env.TOKEN, op://vault/item, the name of another variable. The function Placeholder
// recognizes placeholders.
//
// 64 hexadecimal digits without a name do not count as a secret, because hashes of transactions
// have the same form. A caller that wants to mask them must do so itself.
//
// All functions take time linear in the length of the text, and allocate only their results.
package secrets

import "strings"

// Span is the position of a secret: text[Start:End]. It does not include the name before the
// secret.
type Span struct {
	Kind       string
	Start, End int
}

// Kinds of secrets that the table of shapes does not contain.
const (
	NamedValue  = "secret value" // a literal value under a name such as PASSWORD
	URLPassword = "password in a URL"
	PrivateKey  = "private key"
	SeedPhrase  = "seed phrase"
)

// Find returns the secrets in a text, in their order and without overlap.
func Find(text string) (all []Span) {
	scan(text, func(s Span) bool {
		all = append(all, s)
		return true
	})
	return all
}

// Kind returns the kind of the first secret in a value, or the kind that the value has because of
// its name, or "".
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

// scan calls yield for each secret in a text until yield returns false. It searches for a secret at
// the start of each word and at each byte between words, and reads ahead only from there.
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

// secretAt returns the secret that begins at i. If a name ends at i, it returns the secret value
// after the name.
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
