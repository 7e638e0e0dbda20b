package canon

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// ReplaceNUL returns a text in which each escaped NUL of the string at path, the member
// names from the top, is U+FFFD instead. It is the one exception to the strict parse: a
// service that judges texts can judge that one too. What comes after it, the canonical
// form, the hash and what is stored, has no NUL. A text without such a string is returned
// as it is.
func ReplaceNUL(text []byte, path ...string) []byte {
	if !bytes.Contains(text, []byte(`\u0000`)) {
		return text
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for range path {
		if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' || !enterMember(dec, path[0]) {
			return text
		}
		path = path[1:]
	}
	value, err := dec.ReadValue()
	if err != nil || value.Kind() != '"' {
		return text
	}
	end := int(dec.InputOffset())
	replaced := bytes.Clone(text)
	for inside := replaced[end-len(value) : end]; len(inside) > 1; {
		if inside[0] != '\\' {
			inside = inside[1:]
			continue
		}
		if bytes.HasPrefix(inside, []byte(`\u0000`)) {
			copy(inside, `\ufffd`)
		}
		inside = inside[2:]
	}
	return replaced
}

// enterMember reads up to the value of a member of the object that was entered.
func enterMember(dec *jsontext.Decoder, name string) bool {
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return false
		}
		if token.String() == name {
			return true
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
	return false
}
