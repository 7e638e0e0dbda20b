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

// A model reads the list of tools with all schemas before it does anything, so the list must
// be short. The input of a tool is the schema of the operation without the null that means an
// absent member, with short descriptions, and without bounds that a model does not reach
// anyway. It has no $ref, since some clients pass a schema on without resolving them. The
// output schema is short, too: a model reads the answer itself, and code generators read
// openapi.json.

const (
	describedDepth = 1   // levels of members that are described; members below have only names
	onlyFormat     = 25  // bytes of a description that says no more than the format
	longClause     = 64  // bytes of a description
	hugeBound      = 1e9 // a maximum above it is left out
	longText       = 200 // characters; a maximum length above it is left out
)

// toolInput is the schema of an operation's input as its tool shows it.
var toolInput = schema.PerType(func(t reflect.Type) (jsontext.Value, error) {
	s, err := schema.New(t)
	if err != nil {
		return nil, err
	}
	return shortInput(s.Document)
})

// keyedInput is toolInput with an idempotency key as a further member.
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

// shorten copies a schema. Depth counts the members around it.
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
				if least, is := member.(float64); !is || least > 1 && v["enum"] == nil && v["const"] == nil && v["format"] == nil { // else it says nothing
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
			case "not": // NUL, which no JSON here may have
			case "maximum":
				if bound, is := member.(float64); !is || bound < hugeBound {
					m[name] = member
				}
			case "additionalProperties": // only at the top
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

// toolOutput is a schema that both an answer and a demand for a payment pass, since a client
// may check the structured content of either.
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
