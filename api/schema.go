package api

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// schema is the JSON Schema (2020-12) of a Go struct: published in the OpenAPI
// document and used, unchanged, to validate.
type schema struct {
	of       reflect.Type
	document map[string]any // what validates
	rules    []any          // published beside it: conditions between members, which the service checks itself
	compiled *jsonschema.Schema
	reads    *reading // what of a body compiled has to see
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

// newSchema makes and compiles the schema of a request, in which an optional member
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
	document, err := schemaOf(t)
	if err != nil {
		return nil, err
	}
	forbidNUL(document)
	allowNull(document)
	s, err := compileSchema(document)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	s.of = t
	return s, nil
})

func compileSchema(document map[string]any) (*schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseRegexpEngine(ecmaRegexp)
	if err := compiler.AddResource("request.json", plain(document)); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile("request.json")
	if err != nil {
		return nil, err
	}
	return &schema{document: document, compiled: compiled, reads: readingOf(document)}, nil
}

// schemaOf makes the JSON Schema of a Go type from its struct tags. A type that is
// read from more than one type of JSON names them: JSONSchemaTypes. The document is
// the caller's own.
func schemaOf(t reflect.Type) (map[string]any, error) {
	text, err := schemaText(t)
	if err != nil {
		return nil, err
	}
	var document map[string]any
	return document, json.Unmarshal(text, &document)
}

var schemaText = perType(func(t reflect.Type) (jsontext.Value, error) {
	reflector := invopop.Reflector{Anonymous: true, DoNotReference: true, Mapper: func(t reflect.Type) *invopop.Schema {
		switch {
		case t == reflect.TypeFor[jsontext.Value]():
			return &invopop.Schema{Type: "object", Description: "Any JSON object."}
		case t.Kind() == reflect.Interface:
			return &invopop.Schema{}
		}
		if several, ok := reflect.Zero(t).Interface().(interface{ JSONSchemaTypes() []string }); ok {
			schema := &invopop.Schema{}
			for _, name := range several.JSONSchemaTypes() {
				schema.AnyOf = append(schema.AnyOf, &invopop.Schema{Type: name})
			}
			return schema
		}
		return nil
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
		// No answer claims that a person approved: an approval is a record of its own.
		if properties, ok := s["properties"].(map[string]any); ok && properties[neverClaimed] != nil {
			properties[neverClaimed] = map[string]any{"type": "boolean", "const": false}
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

func allowNull(document map[string]any) {
	walk(document, func(s map[string]any) {
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for name, property := range properties {
			p, _ := property.(map[string]any)
			if _, nullable := p["anyOf"]; nullable || slices.Contains(required, any(name)) || len(p) == 0 {
				continue
			}
			properties[name] = map[string]any{"anyOf": []any{p, map[string]any{"type": "null"}}}
		}
	})
}

// plain turns numbers into what the validator's own decoder would give.
func plain(document map[string]any) any {
	text, err := json.Marshal(document)
	if err != nil {
		return document
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return document
	}
	return value
}

// edgePattern is the specification's pattern for text that neither starts nor
// ends with white space.
const edgePattern = `^(?:\S|\S[\s\S]*\S)$`

// ecmaSpace is \s of ECMA-262, which includes NBSP and the byte order mark.
const ecmaSpace = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// ecmaRegexp compiles a pattern of a schema with the white space of ECMA-262.
func ecmaRegexp(pattern string) (jsonschema.Regexp, error) {
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

var edgeSpace = regexp.MustCompile(`^[` + ecmaSpace + `]|[` + ecmaSpace + `]$`)

// MatchString says whether the text is not empty and has no white space at its edges.
func (noWhiteEdges) MatchString(text string) bool {
	if text == "" {
		return false
	}
	const edge = 4 // octets of the longest rune
	head, tail := text[:min(edge, len(text))], text[max(0, len(text)-edge):]
	return !edgeSpace.MatchString(head[:firstRune(head)]) && !edgeSpace.MatchString(tail[lastRune(tail):])
}

// String is the pattern.
func (noWhiteEdges) String() string { return edgePattern }

func firstRune(s string) int { return len(string([]rune(s)[:1])) }

func lastRune(s string) int {
	r := []rune(s)
	return len(s) - len(string(r[len(r)-1:]))
}

// validate checks a body that passed the strict parse. The error is a
// *policy.Error for the first offence in document order.
func (s *schema) validate(body []byte) error {
	value, err := s.reads.instance(jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true)))
	if err != nil {
		return policy.Refuse("invalid_json", "", "invalid JSON")
	}
	return s.judge(body, value)
}

// judge is validate with the instance that the validator looks at.
func (s *schema) judge(body []byte, value any) error {
	err := s.compiled.Validate(value)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	found := leaves(invalid)
	first, where := found[0], orderOf(body, found)
	for _, leaf := range found[1:] {
		if where.of(leaf) < where.of(first) {
			first = leaf
		}
	}
	refusal := refusalOf(first)
	if unknown, ok := first.ErrorKind.(*kind.AdditionalProperties); ok {
		refusal.Message += canon.Meant(where.first(first, unknown.Properties), s.namesAt(first.SchemaURL))
	}
	return refusal
}

// leaves are the errors that say something, without those of the null branch of
// an optional member.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var found []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		found = append(found, leaves(cause)...)
	}
	if _, ok := e.ErrorKind.(*kind.AnyOf); ok {
		own := slices.DeleteFunc(slices.Clone(found), func(e *jsonschema.ValidationError) bool {
			k, ok := e.ErrorKind.(*kind.Type)
			return ok && slices.Equal(k.Want, []string{"null"})
		})
		if len(own) > 0 {
			return own
		}
	}
	return found
}

// namesAt are the members that the object schema at an address knows.
func (s *schema) namesAt(address string) []string {
	_, pointer, _ := strings.Cut(address, "#")
	var at any = s.document
	for _, part := range strings.Split(strings.Trim(pointer, "/"), "/") {
		switch holder := at.(type) {
		case map[string]any:
			if next, is := holder[part]; is {
				at = next
			}
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i < len(holder) {
				at = holder[i]
			}
		}
	}
	found, _ := at.(map[string]any)
	properties, _ := found["properties"].(map[string]any)
	return sortedKeys(properties)
}

// escapePointer makes a name a part of a JSON pointer.
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// refusalOf puts an error of the validator into our words.
func refusalOf(e *jsonschema.ValidationError) *policy.Error {
	pointer := ""
	for _, part := range e.InstanceLocation {
		pointer += "/" + escapePointer.Replace(part)
	}
	at := func(code, path, message string) *policy.Error {
		path = canon.SafePointer(path)
		name := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
		if name == "" {
			name = "the body"
		}
		return &policy.Error{Code: code, Path: path, Message: name + " " + message}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return at("missing_field", pointer+"/"+k.Missing[0], "is required")
	case *kind.AdditionalProperties:
		return at("unknown_field", pointer, "has an unknown member")
	case *kind.Type:
		if k.Got == "null" && isMember(e.InstanceLocation) { // an optional one may be null
			return at("missing_field", pointer, "is required")
		}
		return at("wrong_type", pointer, "must be "+article(k.Want))
	case *kind.MinLength:
		return at("out_of_range", pointer, fmt.Sprintf("must have at least %d characters", k.Want))
	case *kind.MaxLength:
		return at("too_long", pointer, fmt.Sprintf("must have at most %d characters", k.Want))
	case *kind.MinItems:
		return at("out_of_range", pointer, fmt.Sprintf("must have at least %d items", k.Want))
	case *kind.MaxItems:
		return at("too_many_items", pointer, fmt.Sprintf("must have at most %d items", k.Want))
	case *kind.UniqueItems:
		return at("out_of_range", pointer, "must not repeat an item")
	case *kind.Enum:
		return at("invalid_enum", pointer, "is not one of the documented values")
	case *kind.Const:
		return at("invalid_enum", pointer, "is not the documented value")
	case *kind.Pattern:
		if k.Want == edgePattern {
			return at("out_of_range", pointer, "must not start or end with white space")
		}
		return at("out_of_range", pointer, "does not have the documented form")
	case *kind.Format:
		if strings.HasPrefix(k.Want, "date") {
			return at("invalid_date", pointer, "does not have the format "+k.Want)
		}
		return at("out_of_range", pointer, "does not have the format "+k.Want)
	case *kind.Minimum, *kind.Maximum, *kind.ExclusiveMinimum, *kind.ExclusiveMaximum:
		return at("out_of_range", pointer, "is out of range")
	}
	return at("invalid_request", pointer, "does not have the documented shape")
}

// isMember says whether a place is a member of an object rather than an element of
// a list, or the whole.
func isMember(place []string) bool {
	return len(place) > 0 && strings.Trim(place[len(place)-1], "0123456789") != ""
}

func article(want []string) string {
	if len(want) == 0 {
		return "of another type"
	}
	if strings.ContainsRune("aio", rune(want[0][0])) {
		return "an " + want[0]
	}
	return "a " + want[0]
}

func sortedKeys(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
