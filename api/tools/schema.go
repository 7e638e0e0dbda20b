package tools

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/policy/canon"
)

// A model reads the list of tools with all schemas before anything else, so the list must be
// short. The input schema of a tool is that of the operation with these changes: it omits the null
// that means an absent member, its descriptions are short, and it omits limits that a model does
// not reach. It has no $ref, because some clients pass schemas on without resolving references.
// The output schema is short, too: a model reads the answer itself, and code generators read
// openapi.json.

const (
	describedDepth = 1   // levels of nested members that keep their descriptions
	onlyFormat     = 25  // bytes; a shorter description of a member with a format is omitted, because it repeats the format
	longClause     = 64  // bytes of a description from which it is cut at a comma
	hugeBound      = 1e9 // a larger maximum is omitted
	longText       = 200 // characters; a larger maxLength is omitted
)

// toolInput returns the input schema of a tool for the type of an operation's input.
var toolInput = schema.PerType(func(t reflect.Type) (jsontext.Value, error) {
	s, err := schema.New(t)
	if err != nil {
		return nil, err
	}
	return shortInput(s.Document)
})

// keyedInput is like toolInput, with the idempotency key as an additional member.
var keyedInput = schema.PerType(func(t reflect.Type) (jsontext.Value, error) {
	s, err := schema.New(t)
	if err != nil {
		return nil, err
	}
	key, err := schema.New(reflect.TypeFor[op.KeyArgument]())
	if err != nil {
		return nil, err
	}
	whole, _ := schema.Copy(s.Document).(op.Object)
	properties, _ := whole["properties"].(op.Object)
	beside, _ := key.Document["properties"].(op.Object)
	maps.Copy(properties, beside)
	return shortInput(whole)
})

func shortInput(document op.Object) (jsontext.Value, error) {
	short, _ := shorten(document, 0).(op.Object)
	return canon.Marshal(short)
}

// shorten returns a shortened copy of a schema. depth is the number of members around it.
func shorten(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		if alternatives, is := v["anyOf"].([]any); is && len(alternatives) == 2 && schema.IsNull(alternatives[1]) {
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
				if least, is := member.(float64); !is || least > 1 && v["enum"] == nil && v["const"] == nil && v["format"] == nil { // a limit of 1, or one next to an enum, a constant or a format, tells a model nothing
					m[name] = member
				}
			case "maxLength":
				if most, is := member.(float64); !is || most < longText {
					m[name] = member
				}
			case "pattern":
				if member != schema.EdgePattern {
					m[name] = member
				}
			case "not": // this forbids NUL, which the strict parse refuses anyway
			case "maximum":
				if bound, is := member.(float64); !is || bound < hugeBound {
					m[name] = member
				}
			case "additionalProperties": // keep it only at the top level
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

// firstClause returns the first clause of a description.
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

// toolOutput returns a schema that both an answer and a demand for payment match, because a client
// may validate either.
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
