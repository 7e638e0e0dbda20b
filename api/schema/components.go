package schema

import (
	"maps"
	"path"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// Components collects the named schemas of an OpenAPI document: those of requests and answers, and
// those of the Go structs in them. Without names, a client generator would create one type per use
// of a schema.
type Components struct {
	named map[string]Object // complete schemas, by name
	texts map[string]string // names of schemas, by the schema's text
	fault error
}

// NewComponents returns an empty collection.
func NewComponents() *Components {
	return &Components{named: map[string]Object{}, texts: map[string]string{}}
}

// Add names a schema and returns a reference to it. If an equal schema has a name already, the
// reference uses that name.
func (c *Components) Add(name string, schema Object) Object {
	text := c.textOf(schema)
	if _, known := c.texts[text]; !known {
		for c.named[name] != nil {
			name += "Variant"
		}
		c.texts[text], c.named[name] = name, schema
	}
	return Object{"$ref": "#/components/schemas/" + c.texts[text]}
}

// textOf returns a text that is equal for equal schemas. It omits the description, which may
// differ between uses.
func (c *Components) textOf(schema Object) string {
	own := maps.Clone(schema)
	delete(own, "description")
	text, err := canon.Marshal(own)
	if err != nil {
		c.fault = err
	}
	return string(text)
}

// AddTypes names the schemas of the structs inside a type. Schemas of requests allow null for an
// absent member; schemas of answers do not.
func (c *Components) AddTypes(t reflect.Type, request bool) {
	seen := map[reflect.Type]bool{}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() { // skip the type itself, because it is named after its operation
		c.visit(t.Field(i).Type, request, seen)
	}
}

func (c *Components) visit(t reflect.Type, request bool, seen map[reflect.Type]bool) {
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
	made := Of
	if request {
		made = OfRequest
	}
	schema, err := made(t)
	if err != nil {
		c.fault = err
		return
	}
	if properties, _ := schema["properties"].(Object); len(properties) == 0 {
		return
	}
	if _, known := c.texts[c.textOf(schema)]; known {
		return
	}
	name := TypeName(t.Name())
	if c.named[name] != nil {
		name = TypeName(path.Base(t.PkgPath())) + name
	}
	if c.named[name] != nil && request {
		name += "Input"
	}
	c.Add(name, schema)
}

// TypeName converts an operation id or a type name into the name of a schema: verify_record
// becomes VerifyRecord.
func TypeName(text string) string {
	var out strings.Builder
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '_' || r == '-' || r == '[' || r == ']' || r == '/' || r == '.' }) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

// Document returns the schemas by name. Schemas inside them are replaced by references.
func (c *Components) Document() (Object, error) {
	made := Object{}
	for name, schema := range c.named {
		copied, _ := Copy(schema).(Object)
		for member, value := range copied {
			copied[member] = c.refer(value)
		}
		made[name] = copied
	}
	return made, c.fault
}

// Used returns the schemas to which the paths of a document refer, directly or indirectly.
func Used(schemas, paths Object) Object {
	kept := Object{}
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

// refer replaces every named schema inside v by a reference.
func (c *Components) refer(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["properties"] != nil && v["type"] == "object" {
			if name, known := c.texts[c.textOf(v)]; known {
				reference := Object{"$ref": "#/components/schemas/" + name}
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

// Copy returns a deep copy of a schema.
func Copy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, member := range v {
			m[name] = Copy(member)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = Copy(element)
		}
		return list
	}
	return v
}
