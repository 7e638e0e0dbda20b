package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/policy"
)

// published compiles the published schema of a request.
func (n *node) published(d openAPIDocument, o *op.Operation) *jsonschema.Schema {
	n.t.Helper()
	return d.schema(n.t, "paths", o.Path, strings.ToLower(o.Method), "requestBody", "content", "application/json", "schema")
}

// TestConditionsAreThoseOfTheService checks that a body is refused if and only if it violates the
// published schema, except for reasons that the description lists. The bodies are random: an
// example with members removed, set to null, or added from the schema.
func TestConditionsAreThoseOfTheService(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	for _, s := range services.List() {
		o := n.server.table.Find(s.Operation)
		published := n.published(d, o)
		t.Run(s.Operation, rapid.MakeCheck(func(t *rapid.T) {
			var example map[string]any
			if err := json.Unmarshal([]byte(o.Example), &example); err != nil {
				t.Fatal(err)
			}
			change(t, "", example, o.Schema.Document)
			text, err := json.Marshal(example, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			shape := published.Validate(instance)
			refused := o.Schema.Validate(text)
			if refused == nil {
				_, refused = s.Evaluate(text)
			}
			var why *policy.Error
			switch errors.As(refused, &why); {
			case shape != nil && refused == nil:
				t.Fatalf("has not the published shape and is answered: %s\n%v", text, shape)
			case shape == nil && refused != nil && !slices.Contains(o.Refuses, why.Code):
				t.Fatalf("has the published shape and is refused: %v: %s", refused, text)
			}
		}))
	}
}

// change makes a few random changes to an object: it removes a member, sets one to null, or adds
// one from the schema.
func change(t *rapid.T, at string, value, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	names := sortedKeys(properties)
	if len(names) == 0 {
		return // the schema accepts any object
	}
	for i := range rapid.IntRange(0, 3).Draw(t, at+"changes") {
		name := rapid.SampledFrom(names).Draw(t, fmt.Sprint(at, "name", i))
		switch rapid.IntRange(0, 3).Draw(t, fmt.Sprint(at, "how", i)) {
		case 0:
			delete(value, name)
		case 1:
			value[name] = nil
		default:
			value[name] = drawn(t, at+"/"+name, properties[name])
		}
	}
	for _, name := range names {
		if inner, is := value[name].(map[string]any); is && rapid.Bool().Draw(t, at+name+"inner") {
			change(t, at+"/"+name, inner, objectIn(properties[name]))
		}
	}
}

func objectIn(schema any) map[string]any {
	m, _ := schema.(map[string]any)
	for _, alternative := range asList(m["anyOf"]) {
		if found := objectIn(alternative); found["properties"] != nil {
			return found
		}
	}
	return m
}

// drawn returns a random value that matches a schema.
func drawn(t *rapid.T, at string, schema any) any {
	m, _ := schema.(map[string]any)
	if alternatives := asList(m["anyOf"]); len(alternatives) > 0 {
		return drawn(t, at, rapid.SampledFrom(alternatives).Draw(t, at+"which"))
	}
	if values := asList(m["enum"]); len(values) > 0 {
		return rapid.SampledFrom(values).Draw(t, at)
	}
	switch m["type"] {
	case "null":
		return nil
	case "boolean":
		return rapid.Bool().Draw(t, at)
	case "number", "integer":
		return float64(rapid.IntRange(0, 3).Draw(t, at))
	case "string":
		switch m["format"] {
		case "date":
			return rapid.SampledFrom([]string{"2025-01-02", "2026-06-30", "2030-02-28"}).Draw(t, at)
		case "date-time":
			return "2026-01-02T03:04:05Z"
		}
		return rapid.SampledFrom([]string{"a", "https://example.com/x", "0", strings.Repeat("a", 64)}).Draw(t, at)
	case "array":
		list := []any{}
		for i := range rapid.IntRange(0, 2).Draw(t, at+"length") {
			list = append(list, drawn(t, fmt.Sprint(at, "/", i), m["items"]))
		}
		return list
	case "object":
		made := map[string]any{}
		properties, _ := m["properties"].(map[string]any)
		required := asList(m["required"])
		for _, name := range sortedKeys(properties) {
			if slices.Contains(required, any(name)) || rapid.IntRange(0, 3).Draw(t, at+name) == 0 {
				made[name] = drawn(t, at+"/"+name, properties[name])
			}
		}
		return made
	}
	return "a"
}
