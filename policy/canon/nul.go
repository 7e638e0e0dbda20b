package canon

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// ReplaceNUL returns a text in which each escaped NUL in the string at path (member names from
// the top) is replaced by U+FFFD. This is the only exception to the strict parse: it lets a
// service that judges texts judge such a text, too. The canonical form, the hash and everything
// that is stored are computed after it and contain no NUL. A text without such a string is
// returned unchanged.
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

// enterMember advances to the value of a member of the entered object.
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
