package api

import (
	"maps"
	"path"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// components collects the schemas of the OpenAPI document that have a name: every
// request and answer, and every Go struct that stands in one of them. A generator
// makes one type of each, instead of one of every place where it is used.
type components struct {
	named map[string]object // whole, by name
	texts map[string]string // names by text
	fault error
}

func newComponents() *components {
	return &components{named: map[string]object{}, texts: map[string]string{}}
}

// add gives a schema a name and returns the reference to it. One that has a name
// already keeps it.
func (c *components) add(name string, schema object) object {
	text := c.textOf(schema)
	if _, known := c.texts[text]; !known {
		for c.named[name] != nil {
			name += "Variant"
		}
		c.texts[text], c.named[name] = name, schema
	}
	return object{"$ref": "#/components/schemas/" + c.texts[text]}
}

// textOf is what two schemas have in common that describe the same: what is said
// about one place of it does not count.
func (c *components) textOf(schema object) string {
	own := maps.Clone(schema)
	delete(own, "description")
	text, err := canon.Marshal(own)
	if err != nil {
		c.fault = err
	}
	return string(text)
}

// addTypes names the structs inside a type as they are in requests or in answers:
// only in a request may null stand for what is absent.
func (c *components) addTypes(t reflect.Type, request bool) {
	seen := map[reflect.Type]bool{}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() { // the root itself is named for its operation
		c.visit(t.Field(i).Type, request, seen)
	}
}

func (c *components) visit(t reflect.Type, request bool, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		c.visit(t.Elem(), request, seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] || t == reflect.TypeFor[jsontext.Value]() {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			c.visit(f.Type, request, seen)
		}
	}
	if t.Name() == "" {
		return
	}
	made := schemaOf
	if request {
		made = requestSchemaOf
	}
	schema, err := made(t)
	if err != nil {
		c.fault = err
		return
	}
	if properties, _ := schema["properties"].(object); len(properties) == 0 {
		return
	}
	if _, known := c.texts[c.textOf(schema)]; known {
		return
	}
	name := typeName(t.Name())
	if c.named[name] != nil {
		name = typeName(path.Base(t.PkgPath())) + name
	}
	if c.named[name] != nil && request {
		name += "Input"
	}
	c.add(name, schema)
}

// typeName is a name with capitals at the beginnings of its words.
func typeName(text string) string {
	var out strings.Builder
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '_' || r == '-' || r == '[' || r == ']' || r == '/' || r == '.' }) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

// document is all of them, each with references to the others.
func (c *components) document() (object, error) {
	made := object{}
	for name, schema := range c.named {
		copied, _ := copySchema(schema).(object)
		for member, value := range copied {
			copied[member] = c.refer(value)
		}
		made[name] = copied
	}
	return made, c.fault
}

// used keeps the schemas that paths lead to.
func used(schemas, paths object) object {
	kept := object{}
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, is := v["$ref"].(string); is {
				name := strings.TrimPrefix(ref, "#/components/schemas/")
				if kept[name] == nil && schemas[name] != nil {
					kept[name] = schemas[name]
					follow(schemas[name])
				}
			}
			for _, member := range v {
				follow(member)
			}
		case []any:
			for _, element := range v {
				follow(element)
			}
		}
	}
	follow(paths)
	return kept
}

// refer replaces every schema below v that has a name with a reference.
func (c *components) refer(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["properties"] != nil && v["type"] == "object" {
			if name, known := c.texts[c.textOf(v)]; known {
				reference := object{"$ref": "#/components/schemas/" + name}
				if said := v["description"]; said != nil {
					reference["description"] = said
				}
				return reference
			}
		}
		for member, value := range v {
			v[member] = c.refer(value)
		}
	case []any:
		for i, element := range v {
			v[i] = c.refer(element)
		}
	}
	return v
}

// copySchema copies all of a schema.
func copySchema(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, member := range v {
			m[name] = copySchema(member)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = copySchema(element)
		}
		return list
	}
	return v
}
