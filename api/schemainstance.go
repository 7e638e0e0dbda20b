package api

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// instance reads the next value of a text that passed the strict parse, as far as
// its schema says anything about it: of all else, only what kind of value it is. So
// a megabyte that no schema describes is skipped, and the item after the last that a
// list may have is the last that is read.
//
// Numbers are the doubles that the services read. The validator would compute with
// the text of a number exactly otherwise, and 1e-999999 has a million digits.
func instance(dec *jsontext.Decoder, said any) (any, error) {
	node := saidOf(said)
	switch dec.PeekKind() {
	case '{':
		if node == nil {
			return map[string]any{}, dec.SkipValue()
		}
		return objectInstance(dec, node)
	case '[':
		if node == nil {
			return []any{}, dec.SkipValue()
		}
		return listInstance(dec, node)
	}
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return token.String(), nil
	case '0':
		return token.Float()
	case 'n':
		return nil, nil
	}
	return token.Bool(), nil
}

// everything is a schema that may say something about every value below.
var everything = map[string]any{"items": true, "additionalProperties": true, "uniqueItems": true}

// saidOf is what a schema says of a value, nil if nothing: the branch beside null
// of an optional one.
func saidOf(said any) map[string]any {
	node, _ := said.(map[string]any)
	for _, several := range []string{"oneOf", "allOf", "not", "if", "prefixItems", "contains", "patternProperties", "propertyNames", "$ref", "const", "enum"} {
		if _, has := node[several]; has && (several != "not" || node["type"] != "string") {
			return everything
		}
	}
	if branches, ok := node["anyOf"].([]any); ok {
		branches = slices.DeleteFunc(slices.Clone(branches), isNull)
		if len(branches) != 1 {
			return everything
		}
		return saidOf(branches[0])
	}
	return node
}

// below is what an object or list says of a part of it.
func below(node map[string]any, said any) any {
	if _, all := node["uniqueItems"]; all {
		return everything
	}
	return said
}

func objectInstance(dec *jsontext.Decoder, node map[string]any) (any, error) {
	properties, _ := node["properties"].(map[string]any)
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	object := map[string]any{}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		said, known := properties[name]
		if !known {
			said = node["additionalProperties"]
		}
		if object[name], err = instance(dec, below(node, said)); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return object, err
}

func listInstance(dec *jsontext.Decoder, node map[string]any) (any, error) {
	most, bounded := node["maxItems"].(float64)
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	list := []any{}
	for dec.PeekKind() != ']' {
		if bounded && len(list) > int(most) {
			if err := dec.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		item, err := instance(dec, below(node, node["items"]))
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	_, err := dec.ReadToken()
	return list, err
}
