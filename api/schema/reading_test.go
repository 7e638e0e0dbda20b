package schema

import (
	"testing"
)

// TestASchemaInAnotherShapeIsRefused checks that a schema with a part that Validate cannot check
// is refused, so that no part is ignored silently.
func TestASchemaInAnotherShapeIsRefused(t *testing.T) {
	t.Parallel()
	text, object := map[string]any{"type": "string"}, map[string]any{"type": "object"}
	for name, document := range map[string]map[string]any{
		"an unknown keyword":              {"type": "object", "minProperties": 1.0},
		"allOf":                           {"allOf": []any{text}},
		"a keyword without a type":        {"required": []any{"a"}},
		"a keyword of another type":       {"type": "number", "maxLength": 1.0},
		"two types in a list":             {"type": []any{"string", "null"}},
		"a keyword beside branches":       {"anyOf": []any{text, object}, "required": []any{"a"}},
		"two branches of one type":        {"anyOf": []any{text, text}},
		"a branch that cannot be read":    {"anyOf": []any{text, map[string]any{"const": 1.0}}},
		"options of another type":         {"type": "string", "enum": []any{"a", 1.0}},
		"not, and more than a pattern":    {"type": "string", "not": map[string]any{"minLength": 1.0}},
		"a format that nobody knows":      {"type": "string", "format": "colour"},
		"an item that cannot be read":     {"type": "array", "items": map[string]any{"const": 1.0}},
		"a member that cannot be read":    {"type": "object", "properties": map[string]any{"a": map[string]any{"const": 1.0}}},
		"a member that takes nothing":     {"type": "object", "properties": map[string]any{"a": false}},
		"required and never allowed":      {"type": "object", "additionalProperties": false, "required": []any{"a"}},
		"other members that are unread":   {"type": "object", "additionalProperties": map[string]any{"const": 1.0}},
		"a pattern that does not compile": {"type": "string", "pattern": "("},
	} {
		if _, err := readingOf(document); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

// TestNumbersAreDoubles checks that a number is compared as the double that the service computes
// with.
func TestNumbersAreDoubles(t *testing.T) {
	t.Parallel()
	s, err := Read(map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "number", "maximum": 1.0}}})
	if err != nil {
		t.Fatal(err)
	}
	for text, accepted := range map[string]bool{"1": true, "1.00000000000000000000001": true, "1e-999999": true, "1.1": false} {
		if err := s.Validate([]byte(`{"n":` + text + `}`)); (err == nil) != accepted {
			t.Errorf("%s: %v", text, err)
		}
	}
}
