package api

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"

	"github.com/countersign/countersign/policy/canon"
)

// schema is the JSON Schema (2020-12) of a Go struct: published in the OpenAPI
// document and used, unchanged, to validate.
type schema struct {
	of       reflect.Type
	document map[string]any // what validates
	rules    []any          // published beside it: conditions between members, which the service checks itself
	reads    *reading
}

// perType makes something of a Go type that is the same for ever, once in a process:
// a program that opens many services, as the tests do, would spend most of its time
// on it.
func perType[T any](make func(reflect.Type) (T, error)) func(reflect.Type) (T, error) {
	var made sync.Map // of reflect.Type to T
	return func(t reflect.Type) (T, error) {
		if known, ok := made.Load(t); ok {
			return known.(T), nil
		}
		value, err := make(t)
		if err == nil {
			made.Store(t, value)
		}
		return value, err
	}
}

// newSchema makes the schema of a request, in which an optional member
// may be null, which means that it is not there. The document in it is shared: who
// wants to change it copies it.
func newSchema(t reflect.Type) (*schema, error) {
	made, err := requestSchema(t)
	if err != nil {
		return nil, err
	}
	own := *made
	return &own, nil
}

var requestSchema = perType(func(t reflect.Type) (*schema, error) {
	document, err := requestSchemaOf(t)
	if err != nil {
		return nil, err
	}
	forbidNUL(document)
	reads, err := readingOf(document)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	return &schema{of: t, document: document, reads: reads}, nil
})

// schemaOf makes the JSON Schema of a Go type from its struct tags. A type that is
// read from more than one form of JSON has values of them: JSONSchemaForms. The document is
// the caller's own.
func schemaOf(t reflect.Type) (map[string]any, error) {
	document, err := markedSchemaOf(t)
	walk(document, func(s map[string]any) { delete(s, refusesNull) })
	return document, err
}

// requestSchemaOf is schemaOf for what a caller sends, in which an optional member may
// be null.
func requestSchemaOf(t reflect.Type) (map[string]any, error) {
	document, err := markedSchemaOf(t)
	allowNull(document)
	return document, err
}

func markedSchemaOf(t reflect.Type) (map[string]any, error) {
	text, err := schemaText(t)
	if err != nil {
		return nil, err
	}
	var document map[string]any
	return document, json.Unmarshal(text, &document)
}

// refusesNull is a keyword of our own that marks, inside of this file, the object of a
// type with the method RefusesNull: a document that grants or limits something. Null in
// it would be a limit that is lifted by accident.
const refusesNull = "x-refuses-null"

var schemaText = perType(func(t reflect.Type) (jsontext.Value, error) {
	var reflector invopop.Reflector
	plain := invopop.Reflector{Anonymous: true, DoNotReference: true, Mapper: func(t reflect.Type) *invopop.Schema {
		switch {
		case t == reflect.TypeFor[jsontext.Value]():
			return &invopop.Schema{Type: "object", Description: "Any JSON object."}
		case t.Kind() == reflect.Interface:
			return &invopop.Schema{}
		}
		if several, ok := reflect.Zero(t).Interface().(interface{ JSONSchemaForms() []any }); ok {
			schema := &invopop.Schema{}
			for _, form := range several.JSONSchemaForms() {
				one := reflector.ReflectFromType(reflect.TypeOf(form))
				one.Version = ""
				schema.AnyOf = append(schema.AnyOf, one)
			}
			return schema
		}
		return nil
	}}
	reflector = invopop.Reflector{Anonymous: true, DoNotReference: true, Mapper: func(t reflect.Type) *invopop.Schema {
		if _, refuses := reflect.Zero(t).Interface().(interface{ RefusesNull() }); !refuses {
			return plain.Mapper(t)
		}
		schema := plain.ReflectFromType(t)
		schema.Version, schema.Extras = "", map[string]any{refusesNull: true}
		return schema
	}}
	text, err := json.Marshal(reflector.ReflectFromType(t))
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	delete(document, "$schema")
	walk(document, func(s map[string]any) {
		// Nullable is anyOf everywhere: the generator writes oneOf.
		if one, ok := s["oneOf"].([]any); ok && len(one) == 2 && isNull(one[1]) {
			delete(s, "oneOf")
			s["anyOf"] = one
		}
		hoist(s)
		// No answer claims that a person approved: an approval is a record of its own.
		if properties, ok := s["properties"].(map[string]any); ok && properties[neverClaimed] != nil {
			properties[neverClaimed] = map[string]any{"type": "boolean", "const": false, "description": "Always false: an approval is a record of its own."}
		}
	})
	return json.Marshal(document)
})

// published is the schema with the conditions between its members.
func (s *schema) published() map[string]any {
	if len(s.rules) == 0 {
		return s.document
	}
	whole := maps.Clone(s.document)
	whole["allOf"] = s.rules
	return whole
}

// neverClaimed is always false, where it stands.
const neverClaimed = "humanApprovalIncluded"

func isNull(s any) bool {
	m, ok := s.(map[string]any)
	return ok && len(m) == 1 && m["type"] == "null"
}

// walk visits a schema and all its subschemas.
func walk(s any, visit func(map[string]any)) {
	switch s := s.(type) {
	case map[string]any:
		visit(s)
		for _, name := range sortedKeys(s) {
			if name == "properties" {
				for _, property := range s[name].(map[string]any) {
					walk(property, visit)
				}
			} else if name != "enum" && name != "default" && name != "examples" && name != "const" {
				walk(s[name], visit)
			}
		}
	case []any:
		for _, element := range s {
			walk(element, visit)
		}
	}
}

// forbidNUL publishes what the strict parse refuses: the specification's pattern
// alone would let a NUL through, and a schema-valid body must not be refused.
func forbidNUL(document map[string]any) {
	walk(document, func(s map[string]any) {
		if s["pattern"] == edgePattern {
			s["not"] = map[string]any{"pattern": nulPattern}
		}
	})
}

// nulPattern finds a NUL, in the spelling of ECMA-262.
const nulPattern = `\u0000`

// allowNull lets every optional member be null, but those of an object that refuses it.
func allowNull(document map[string]any) {
	walk(document, func(s map[string]any) {
		if s[refusesNull] != nil {
			delete(s, refusesNull)
			return
		}
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for name, property := range properties {
			p, _ := property.(map[string]any)
			if _, nullable := p["anyOf"]; nullable || slices.Contains(required, any(name)) || len(p) == 0 {
				continue
			}
			nullable := map[string]any{"anyOf": []any{p, map[string]any{"type": "null"}}}
			hoist(nullable)
			properties[name] = nullable
		}
	})
}

// hoist moves what is said about a value that may be null from the branch of its type to
// the member itself, where readers look for it.
func hoist(s map[string]any) {
	branches, _ := s["anyOf"].([]any)
	if len(branches) != 2 || !isNull(branches[1]) {
		return
	}
	of, _ := branches[0].(map[string]any)
	for _, keyword := range []string{"description", "default"} {
		if said, has := of[keyword]; has && s[keyword] == nil {
			s[keyword] = said
			delete(of, keyword)
		}
	}
}

// edgePattern is the specification's pattern for text that neither starts nor
// ends with white space.
const edgePattern = `^(?:\S|\S[\s\S]*\S)$`

// ecmaSpace is \s of ECMA-262, which includes NBSP and the byte order mark.
const ecmaSpace = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"

// textPattern is a compiled pattern of a schema.
type textPattern interface {
	MatchString(text string) bool
	String() string
}

// ecmaRegexp compiles a pattern of a schema with the white space of ECMA-262.
func ecmaRegexp(pattern string) (textPattern, error) {
	if pattern == edgePattern {
		return noWhiteEdges{}, nil // two look-ups for what costs the engine a pass per rune
	}
	if pattern == nulPattern {
		return holdsNUL{}, nil
	}
	goPattern := strings.NewReplacer(`[\s\S]`, `(?s:.)`, `\s`, `[`+ecmaSpace+`]`, `\S`, `[^`+ecmaSpace+`]`).Replace(pattern)
	return regexp.Compile(goPattern)
}

type holdsNUL struct{}

// MatchString says whether there is a NUL in the text.
func (holdsNUL) MatchString(text string) bool { return strings.IndexByte(text, 0) >= 0 }

// String is the pattern.
func (holdsNUL) String() string { return nulPattern }

type noWhiteEdges struct{}

// MatchString says whether the text is not empty and has no white space at its edges.
func (noWhiteEdges) MatchString(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	return text != "" && !strings.ContainsRune(ecmaSpace, first) && !strings.ContainsRune(ecmaSpace, last)
}

// String is the pattern.
func (noWhiteEdges) String() string { return edgePattern }

// validate checks a body that passed the strict parse. The error is a
// *policy.Error for the first offence in document order.
func (s *schema) validate(body []byte) error {
	if found := s.reads.read(canon.NewReader(body)); found != nil {
		return found.refusal()
	}
	return nil
}

// escapePointer makes a name a part of a JSON pointer.
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func article(want string) string {
	if strings.ContainsRune("aio", rune(want[0])) {
		return "an " + want
	}
	return "a " + want
}

func sortedKeys(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
