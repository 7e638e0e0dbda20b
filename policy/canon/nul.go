package canon

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// ReplaceNUL replaces each escaped NUL by U+FFFD in the string at path (member names from the
// top). If there is no such string, it returns the text unchanged.
//
// This is the only exception to the strict parse: it lets a service that judges texts judge a text
// with a NUL, too. It must run before the canonical form and the hash are computed, so that
// nothing that is stored contains a NUL.
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

// enterMember advances dec, which is inside an object, to the value of the named member.
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
