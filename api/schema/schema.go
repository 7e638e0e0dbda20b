// Package schema generates the JSON Schema (2020-12) of a Go type, and checks bodies against it.
// The published schema is the one that validates.
//
//	Of          returns the schema of an answer
//	New         returns the schema of a request, ready to check bodies (OfRequest: only the document)
//	Components  collects the named schemas of an OpenAPI document
package schema

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

// Object is a JSON object: a JSON Schema, or a document that contains schemas.
type Object = map[string]any

// Schema is the JSON Schema (2020-12) of a request. The OpenAPI document publishes it, and
// Validate checks bodies against it.
type Schema struct {
	Type     reflect.Type   // Go type that the schema describes; nil if Read returned the schema
	Document map[string]any // schema that Validate checks against
	Rules    []any          // conditions between members; they are published, but checked by the service instead of Validate
	reads    *reading
}

// PerType returns a function that calls make once per Go type and process. Without it, programs
// that open many services, such as the tests, would spend most of their time on schemas.
func PerType[T any](make func(reflect.Type) (T, error)) func(reflect.Type) (T, error) {
	var made sync.Map // results by reflect.Type
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

// New returns the schema of a request. Optional members may be null, which means absent. The
// document in it is shared, so use Copy before you change it.
func New(t reflect.Type) (*Schema, error) {
	made, err := requestSchema(t)
	if err != nil {
		return nil, err
	}
	own := *made
	return &own, nil
}

var requestSchema = PerType(func(t reflect.Type) (*Schema, error) {
	document, err := OfRequest(t)
	if err != nil {
		return nil, err
	}
	forbidNUL(document)
	s, err := Read(document)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	s.Type = t
	return s, nil
})

// Read returns the schema in a document. It returns an error for a keyword or a form that Validate
// does not support.
func Read(document Object) (*Schema, error) {
	reads, err := readingOf(document)
	return &Schema{Document: document, reads: reads}, err
}

// Of returns the JSON Schema of a Go type from its struct tags. A type that is parsed from several
// forms of JSON lists a value of each form in its method JSONSchemaForms. The caller may change
// the document.
func Of(t reflect.Type) (map[string]any, error) {
	document, err := markedSchemaOf(t)
	Walk(document, func(s map[string]any) { delete(s, refusesNull) })
	return document, err
}

// OfRequest is like Of, but optional members may be null, as in requests.
func OfRequest(t reflect.Type) (map[string]any, error) {
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

// refusesNull is a private keyword that marks the schema of a type with the method RefusesNull.
// Such a type grants or limits something, and null would lift a limit by accident.
const refusesNull = "x-refuses-null"

var schemaText = PerType(func(t reflect.Type) (jsontext.Value, error) {
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
	Walk(document, func(s map[string]any) {
		// The generator writes oneOf for nullable values. Use anyOf everywhere instead.
		if one, ok := s["oneOf"].([]any); ok && len(one) == 2 && IsNull(one[1]) {
			delete(s, "oneOf")
			s["anyOf"] = one
		}
		hoist(s)
		// No answer may claim that a person approved, because an approval is a separate record.
		if properties, ok := s["properties"].(map[string]any); ok && properties[neverClaimed] != nil {
			properties[neverClaimed] = map[string]any{"type": "boolean", "const": false, "description": "Always false. The approval is a separate record."}
		}
	})
	return json.Marshal(document)
})

// Published returns the schema with the conditions between members, for the OpenAPI document.
func (s *Schema) Published() map[string]any {
	if len(s.Rules) == 0 {
		return s.Document
	}
	whole := maps.Clone(s.Document)
	whole["allOf"] = s.Rules
	return whole
}

// neverClaimed is the name of a member that is always false.
const neverClaimed = "humanApprovalIncluded"

// IsNull reports whether a schema accepts only null.
func IsNull(s any) bool {
	m, ok := s.(map[string]any)
	return ok && len(m) == 1 && m["type"] == "null"
}

// Walk calls visit for a schema and all schemas inside it.
func Walk(s any, visit func(map[string]any)) {
	switch s := s.(type) {
	case map[string]any:
		visit(s)
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if name == "properties" {
				for _, property := range s[name].(map[string]any) {
					Walk(property, visit)
				}
			} else if name != "enum" && name != "default" && name != "examples" && name != "const" {
				Walk(s[name], visit)
			}
		}
	case []any:
		for _, element := range s {
			Walk(element, visit)
		}
	}
}

// forbidNUL adds to the schema that NUL is refused. The pattern of the specification alone would
// accept it, but the strict parse refuses it, and the service must not refuse a body that the
// schema accepts.
func forbidNUL(document map[string]any) {
	Walk(document, func(s map[string]any) {
		if s["pattern"] == EdgePattern {
			s["not"] = map[string]any{"pattern": nulPattern}
		}
	})
}

// nulPattern matches a NUL, in the syntax of ECMA-262.
const nulPattern = `\u0000`

// allowNull makes every optional member nullable, except in objects marked with refusesNull.
func allowNull(document map[string]any) {
	Walk(document, func(s map[string]any) {
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

// hoist moves description and default of a nullable value from the branch of its type to the
// member, where software expects them.
func hoist(s map[string]any) {
	branches, _ := s["anyOf"].([]any)
	if len(branches) != 2 || !IsNull(branches[1]) {
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

// EdgePattern is the specification's pattern for text without white space at its start and end.
const EdgePattern = `^(?:\S|\S[\s\S]*\S)$`

// ecmaSpace contains the characters of \s in ECMA-262, including NBSP and the byte order mark.
const ecmaSpace = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"

// Pattern is a compiled pattern of a schema.
type Pattern interface {
	MatchString(text string) bool
	String() string
}

// Regexp compiles a pattern of a schema. In it, \s means the white space of ECMA-262.
func Regexp(pattern string) (Pattern, error) {
	if pattern == EdgePattern {
		return noWhiteEdges{}, nil // two look-ups are faster than a regular expression over the whole text
	}
	if pattern == nulPattern {
		return holdsNUL{}, nil
	}
	goPattern := strings.NewReplacer(`[\s\S]`, `(?s:.)`, `\s`, `[`+ecmaSpace+`]`, `\S`, `[^`+ecmaSpace+`]`).Replace(pattern)
	return regexp.Compile(goPattern)
}

type holdsNUL struct{}

// MatchString reports whether the text contains a NUL.
func (holdsNUL) MatchString(text string) bool { return strings.IndexByte(text, 0) >= 0 }

// String returns the pattern.
func (holdsNUL) String() string { return nulPattern }

type noWhiteEdges struct{}

// MatchString reports whether the text is not empty and has no white space at its start and end.
func (noWhiteEdges) MatchString(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	return text != "" && !strings.ContainsRune(ecmaSpace, first) && !strings.ContainsRune(ecmaSpace, last)
}

// String returns the pattern.
func (noWhiteEdges) String() string { return EdgePattern }

// Validate checks a body that passed the strict parse. It returns the first violation in the text
// as a *policy.Error.
func (s *Schema) Validate(body []byte) error {
	if found := s.reads.read(canon.NewReader(body)); found != nil {
		return found.refusal()
	}
	return nil
}

// escapePointer escapes a name for use in a JSON pointer (RFC 6901).
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func article(want string) string {
	if strings.ContainsRune("aio", rune(want[0])) {
		return "an " + want
	}
	return "a " + want
}
