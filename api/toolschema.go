package api

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// What a model reads before it has done anything is the list of tools with all
// their schemas: it must be short. A tool's input is the operation's schema without
// the null that stands for an absent member, with the short form of its
// descriptions, and with what it repeats said once. Its output says little: the model
// reads the answer itself, and who generates code reads openapi.json.

const (
	shortestShared = 22  // octets from which a repeated part is worth a name
	describedDepth = 1   // levels of members that are described; below it names must do
	onlyFormat     = 25  // octets of a description that says no more than the format
	longClause     = 64  // octets of a description
	hugeBound      = 1e9 // what is larger, a model does not come near
)

// toolInput is the schema of an operation's input as its tool shows it.
var toolInput = perType(func(t reflect.Type) (jsontext.Value, error) {
	s, err := newSchema(t)
	if err != nil {
		return nil, err
	}
	return shortInput(s.document)
})

// keyedInput is toolInput with an idempotency key beside the members.
var keyedInput = perType(func(t reflect.Type) (jsontext.Value, error) {
	s, err := newSchema(t)
	if err != nil {
		return nil, err
	}
	key, err := newSchema(reflect.TypeFor[keyArgument]())
	if err != nil {
		return nil, err
	}
	whole, _ := copySchema(s.document).(object)
	properties, _ := whole["properties"].(object)
	beside, _ := key.document["properties"].(object)
	maps.Copy(properties, beside)
	return shortInput(whole)
})

func shortInput(document object) (jsontext.Value, error) {
	short, _ := shorten(document, 0).(object)
	definitions := map[string]any{}
	for {
		best, err := mostRepeated(short, definitions)
		if err != nil {
			return nil, err
		}
		if best == "" {
			break
		}
		name := definitionName(len(definitions))
		var part map[string]any
		share(short, best, name, &part)
		for _, other := range sortedKeys(definitions) {
			share(definitions[other], best, name, &part)
		}
		definitions[name] = part
	}
	if len(definitions) > 0 {
		short["$defs"] = definitions
	}
	return canon.Marshal(short)
}

// shorten copies a schema. Depth counts the members around it.
func shorten(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		if alternatives, is := v["anyOf"].([]any); is && len(alternatives) == 2 && isNull(alternatives[1]) {
			return shorten(alternatives[0], depth)
		}
		m := make(map[string]any, len(v))
		for name, member := range v {
			switch name {
			case "description":
				if text, is := member.(string); is && depth <= describedDepth && (v["format"] == nil || len(text) > onlyFormat) {
					m[name] = firstClause(text)
				}
			case "minLength":
				if v["enum"] == nil && v["const"] == nil && v["format"] == nil && v["pattern"] != edgePattern { // else it says nothing
					m[name] = member
				}
			case "maximum":
				if bound, is := member.(float64); !is || bound < hugeBound {
					m[name] = member
				}
			case "additionalProperties": // said once, for the whole
				if depth == 0 || member != false {
					m[name] = shorten(member, depth)
				}
			case "properties":
				properties, _ := member.(map[string]any)
				copied := make(map[string]any, len(properties))
				for property, schema := range properties {
					copied[property] = shorten(schema, depth+1)
				}
				m[name] = copied
			default:
				m[name] = shorten(member, depth)
			}
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = shorten(element, depth)
		}
		return list
	}
	return v
}

// firstClause is the beginning of a description that can stand alone.
func firstClause(text string) string {
	for _, end := range []string{". ", "; ", " ("} {
		text, _, _ = strings.Cut(text, end)
	}
	if len(text) > longClause {
		if comma := strings.LastIndex(text[:longClause], ", "); comma > 0 {
			text = text[:comma]
		}
	}
	return strings.TrimSuffix(text, ".")
}

// undescribed is a part of a schema without what is said about this place of it,
// as text; empty where it is not worth a name.
func undescribed(part map[string]any) (string, error) {
	if _, is := part["$ref"]; is || part["type"] == nil && part["anyOf"] == nil {
		return "", nil
	}
	own := maps.Clone(part)
	delete(own, "description")
	text, err := canon.Marshal(own)
	if err != nil || len(text) < shortestShared {
		return "", err
	}
	return string(text), nil
}

// mostRepeated is the part for which a name saves most; empty if none saves
// anything.
func mostRepeated(schema, definitions map[string]any) (best string, err error) {
	times := map[string]int{}
	count := func(part map[string]any) {
		text, fault := undescribed(part)
		if fault != nil {
			err = fault
		}
		if text != "" {
			times[text]++
		}
	}
	walk(schema, count)
	for _, name := range sortedKeys(definitions) {
		walk(definitions[name], count)
	}
	most := 0
	for text, n := range times {
		const reference, definition = len(`"$ref":"#/$defs/a"`), len(`"a":,`)
		gain := n*(len(text)-reference) - len(text) - definition
		if n > 1 && (gain > most || gain == most && gain > 0 && text < best) {
			best, most = text, gain
		}
	}
	return best, err
}

// share makes each part that has the text a reference to a definition.
func share(schema any, text, name string, part *map[string]any) {
	walk(schema, func(s map[string]any) {
		own, err := undescribed(s)
		if err != nil || own != text {
			return
		}
		defined := maps.Clone(s)
		delete(defined, "description")
		*part = defined
		for member := range defined {
			delete(s, member)
		}
		s["$ref"] = "#/$defs/" + name
	})
}

// definitionName is a, b, … z, aa, ab and so on.
func definitionName(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	if n < len(letters) {
		return letters[n : n+1]
	}
	return definitionName(n/len(letters)-1) + definitionName(n%len(letters))
}

// toolOutput tells an answer from the demand for a payment: a client may hold
// structured content to this even where it says that payment is required.
func toolOutput(answer map[string]any, priced bool) map[string]any {
	if !priced {
		return map[string]any{"type": "object"}
	}
	required, _ := answer["required"].([]any)
	if slices.Contains(required, any("status")) {
		required = []any{"status"}
	}
	return map[string]any{"type": "object", "anyOf": []any{
		map[string]any{"required": required},
		map[string]any{"required": []any{"x402Version", "accepts"}},
	}}
}
