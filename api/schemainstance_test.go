package api

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// What is read of a body for the validator gives the verdict that the whole body
// gives, and the same words: of random schemas in our shapes, and of every schema
// that the service has.
func TestTheValidatorSeesWhatCounts(t *testing.T) {
	t.Run("random schemas", rapid.MakeCheck(func(t *rapid.T) {
		document := drawSchema(t, 3)
		if _, is := document["type"]; !is {
			document["type"] = "object"
		}
		s, err := compileSchema(document)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			agree(t, s, drawInstance(t, document, 4))
		}
	}))
	for _, service := range Services() {
		s, err := newSchema(service.Input())
		if err != nil {
			t.Fatal(err)
		}
		t.Run(service.Operation, rapid.MakeCheck(func(t *rapid.T) {
			agree(t, s, drawInstance(t, s.document, 6))
		}))
	}
}

// agree compares the verdict on a body with that on the whole of it.
func agree(t *rapid.T, s *schema, value any) {
	body, err := json.Marshal(value)
	if err != nil || canon.Check(body) != nil {
		t.Skip("no body that gets so far")
	}
	all, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	want, got := verdict(s.judge(body, all)), verdict(s.validate(body))
	if want != got {
		text, _ := json.Marshal(s.document)
		t.Fatalf("%s\nis %s\nwanted %s\nof %s", body, got, want, text)
	}
}

func verdict(err error) string {
	var refused *policy.Error
	if errors.As(err, &refused) {
		return refused.Code + " at " + refused.Path + ": " + refused.Message
	}
	return fmt.Sprint(err)
}

var (
	someNames = []string{"a", "b", "items", "type"}
	someTexts = []string{"", "a", "ab", " a", "abcdef", "2026-01-02", "{}"}
)

// drawSchema draws a schema in the shapes that ours have, and now and then one with
// a keyword that none of ours has.
func drawSchema(t *rapid.T, depth int) map[string]any {
	kinds := []string{"string", "number", "integer", "boolean", "any", "enum"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "array", "nullable", "several", "strange")
	}
	number := rapid.IntRange(0, 4)
	sometimes := func(node map[string]any, name string, value any) {
		if rapid.Bool().Draw(t, name) {
			node[name] = value
		}
	}
	node := map[string]any{}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "any":
	case "enum":
		node["enum"] = []any{"a", 1.0, []any{}, map[string]any{"a": "b"}}
	case "object":
		node["type"] = "object"
		properties := map[string]any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(someNames), 0, 3, rapid.ID).Draw(t, "properties") {
			properties[name] = drawSchema(t, depth-1)
		}
		sometimes(node, "properties", properties)
		sometimes(node, "required", []any{"a"})
		switch rapid.IntRange(0, 2).Draw(t, "additional") {
		case 0:
			node["additionalProperties"] = false
		case 1:
			node["additionalProperties"] = drawSchema(t, depth-1)
		}
	case "array":
		node["type"] = "array"
		sometimes(node, "items", drawSchema(t, depth-1))
		least := number.Draw(t, "least")
		sometimes(node, "minItems", float64(least))
		sometimes(node, "maxItems", float64(least+number.Draw(t, "more")))
		sometimes(node, "uniqueItems", true)
	case "nullable", "several":
		node["anyOf"] = []any{drawSchema(t, depth-1), map[string]any{"type": "null"}}
		if kind == "several" {
			node["anyOf"] = []any{drawSchema(t, depth-1), drawSchema(t, depth-1)}
		}
		sometimes(node, "required", []any{"b"})
	case "strange":
		inner := drawSchema(t, depth-1)
		keyword := rapid.SampledFrom([]string{"not", "allOf", "oneOf", "contains", "prefixItems", "propertyNames", "patternProperties",
			"dependentRequired", "dependentSchemas", "minProperties", "unevaluatedProperties", "if", "const"}).Draw(t, "keyword")
		switch keyword {
		case "allOf", "oneOf", "prefixItems":
			node[keyword] = []any{inner}
		case "patternProperties", "dependentSchemas":
			node[keyword] = map[string]any{"a": inner}
		case "dependentRequired":
			node[keyword] = map[string]any{"a": []any{"b"}}
		case "minProperties":
			node[keyword] = float64(number.Draw(t, "least"))
		case "unevaluatedProperties":
			node[keyword] = false
		case "if":
			node["if"], node["then"], node["else"] = inner, drawSchema(t, depth-1), drawSchema(t, depth-1)
		default:
			node[keyword] = inner
		}
	default:
		node["type"] = kind
		if kind == "string" {
			sometimes(node, "minLength", 1.0)
			sometimes(node, "maxLength", 3.0)
			sometimes(node, "pattern", edgePattern)
			sometimes(node, "format", "date")
		}
		if kind == "number" || kind == "integer" {
			sometimes(node, "minimum", 1.0)
			sometimes(node, "exclusiveMaximum", 2.5)
		}
	}
	return node
}

// drawInstance draws a value that mostly follows a schema.
func drawInstance(t *rapid.T, schema any, depth int) any {
	node, _ := schema.(map[string]any)
	if branches, has := node["anyOf"].([]any); has && rapid.IntRange(0, 9).Draw(t, "branch") > 0 {
		return drawInstance(t, rapid.SampledFrom(branches).Draw(t, "of"), depth)
	}
	if options, has := node["enum"].([]any); has && rapid.Bool().Draw(t, "as listed") {
		return rapid.SampledFrom(options).Draw(t, "option")
	}
	kind, _ := node["type"].(string)
	if kind == "" || rapid.IntRange(0, 19).Draw(t, "another") == 0 {
		kind = rapid.SampledFrom([]string{"string", "number", "boolean", "null", "object", "array"}).Draw(t, "type")
	}
	switch kind {
	case "string":
		return rapid.SampledFrom(someTexts).Draw(t, "text")
	case "number", "integer":
		return rapid.SampledFrom([]float64{0, 1, 2, 2.5, -1, 1e30, 0.1}).Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "object":
		return drawObject(t, node, depth)
	case "array":
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "items") * min(depth, 1) {
			list = append(list, drawInstance(t, node["items"], depth-1))
		}
		return list
	}
	return nil
}

func drawObject(t *rapid.T, node map[string]any, depth int) any {
	object := map[string]any{}
	if depth <= 0 {
		return object
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	names := append(sortedKeys(properties), someNames[:2]...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		property, known := properties[name]
		share := 3
		if slices.Contains(required, any(name)) {
			share = 9
		} else if !known && len(properties) > 4 {
			share = 1
		}
		if rapid.IntRange(0, 9).Draw(t, name) <= share {
			object[name] = drawInstance(t, property, depth-1)
		}
	}
	return object
}

// A number is the double that the service computes with, not its text.
func TestNumbersAreDoubles(t *testing.T) {
	s, err := compileSchema(map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "number", "maximum": 1.0}}})
	if err != nil {
		t.Fatal(err)
	}
	for text, accepted := range map[string]bool{"1": true, "1.00000000000000000000001": true, "1e-999999": true, "1.1": false} {
		if err := s.validate([]byte(`{"n":` + text + `}`)); (err == nil) != accepted {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What no schema describes is not taken apart, and a list only to its bound.
func TestWhatNoSchemaDescribesIsSkipped(t *testing.T) {
	many := `[` + strings.Repeat(`[],`, 1000) + `[]]`
	list := map[string]any{"type": "array", "maxItems": 10.0, "items": map[string]any{"type": "array"}}
	for _, c := range []struct {
		name   string
		schema map[string]any
		body   string
		most   int // values of the instance
	}{
		{"an unknown member", map[string]any{"type": "object", "additionalProperties": false}, `{"a":` + many + `}`, 2},
		{"any value", map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}}}, `{"a":` + many + `}`, 2},
		{"a list in an object's place", map[string]any{"type": "object", "properties": map[string]any{"a": true}}, many, 1},
		{"a list in a text's place", map[string]any{"type": "string"}, many, 1},
		{"more items than a list may have", list, many, 12},
		{"the same, optional", map[string]any{"anyOf": []any{list, map[string]any{"type": "null"}}}, many, 12},
	} {
		value, err := readingOf(c.schema).instance(jsontext.NewDecoder(strings.NewReader(c.body)))
		if err != nil {
			t.Fatal(err)
		}
		if n := valuesIn(value); n > c.most {
			t.Errorf("%s: %d values were read, not %d", c.name, n, c.most)
		}
	}
}

func valuesIn(value any) int {
	n := 1
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			n += valuesIn(item)
		}
	case map[string]any:
		for _, member := range v {
			n += valuesIn(member)
		}
	}
	return n
}
