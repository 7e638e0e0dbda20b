package api

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// TestABodyGetsTheVerdictOfTheLibrary compares Validate with a JSON Schema library, for random
// schemas and for every schema of the service: a body must get the same result, and the same error
// text as is made from the errors of the library.
func TestABodyGetsTheVerdictOfTheLibrary(t *testing.T) {
	t.Parallel()
	t.Run("random schemas", rapid.MakeCheck(func(t *rapid.T) {
		document := drawSchema(t, 3)
		s, err := schema.Read(document)
		if err != nil {
			t.Fatal(err)
		}
		by := newLibrary(t, document)
		for range 8 {
			agree(t, s, by, drawInstance(t, document, 4))
		}
	}))
	for _, o := range operations() {
		if o.Input == nil {
			continue
		}
		s, err := schema.New(o.Input)
		if err != nil {
			t.Fatal(err)
		}
		by := newLibrary(t, s.Document)
		t.Run(o.ID, rapid.MakeCheck(func(t *rapid.T) {
			agree(t, s, by, drawInstance(t, s.Document, 6))
		}))
	}
}

// agree compares the result for a body with the library's.
func agree(t *rapid.T, s *schema.Schema, by library, value any) {
	body, err := json.Marshal(value)
	if err != nil || canon.Check(body) != nil {
		t.Skip("no body that gets so far")
	}
	all, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	want, got := verdict(by.judge(body, all)), verdict(s.Validate(body))
	if want != got {
		text, _ := json.Marshal(s.Document)
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

// drawSchema returns a random schema in the forms that our schemas have.
func drawSchema(t *rapid.T, depth int) map[string]any {
	kinds := []string{"string", "number", "integer", "boolean", "any"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "array", "nullable", "several")
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
	case "object":
		node["type"] = "object"
		properties := map[string]any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(someNames), 0, 3, rapid.ID).Draw(t, "properties") {
			properties[name] = drawSchema(t, depth-1)
		}
		sometimes(node, "properties", properties)
		switch rapid.IntRange(0, 2).Draw(t, "additional") {
		case 0:
			node["additionalProperties"] = false
		case 1:
			node["additionalProperties"] = drawSchema(t, depth-1)
		}
		var required []any
		for _, name := range []string{"b", "a"} {
			if known, _ := node["properties"].(map[string]any); node["additionalProperties"] != false || known[name] != nil {
				required = append(required, name)
			}
		}
		sometimes(node, "required", required)
	case "array":
		node["type"] = "array"
		sometimes(node, "items", drawSchema(t, depth-1))
		least := number.Draw(t, "least")
		sometimes(node, "minItems", float64(least))
		sometimes(node, "maxItems", float64(least+number.Draw(t, "more")))
		sometimes(node, "uniqueItems", true)
	case "nullable":
		inner := drawSchema(t, depth-1)
		if inner["type"] != nil {
			inner = map[string]any{"anyOf": []any{inner, map[string]any{"type": "null"}}}
		}
		return inner
	case "several":
		node["anyOf"] = []any{map[string]any{"type": "number", "minimum": 1.0}, map[string]any{"type": "object", "required": []any{"a"}}, map[string]any{"type": "string", "maxLength": 2.0}}
	default:
		node["type"] = kind
		if kind == "string" {
			sometimes(node, "minLength", 1.0)
			sometimes(node, "maxLength", 3.0)
			sometimes(node, "pattern", schema.EdgePattern)
			sometimes(node, "format", "date")
			sometimes(node, "enum", []any{"a", "ab", " a"})
			sometimes(node, "not", map[string]any{"pattern": "b"})
		}
		if kind == "number" || kind == "integer" {
			sometimes(node, "minimum", 1.0)
			sometimes(node, "maximum", 2.0)
			sometimes(node, "exclusiveMinimum", 0.5)
			sometimes(node, "exclusiveMaximum", 2.5)
			sometimes(node, "enum", []any{1.0, 2.5})
		}
	}
	return node
}

// drawInstance returns a random value that mostly matches a schema.
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

// library validates with a library that compiles schemas. Of all its errors it returns, in our
// words, the one whose position is first in the text.
type library struct {
	document map[string]any
	compiled *jsonschema.Schema
}

// libraryRegexp makes the library interpret patterns like we do.
func libraryRegexp(pattern string) (jsonschema.Regexp, error) { return schema.Regexp(pattern) }

// compileSchema compiles a schema with the library.
func compileSchema(document map[string]any) (*jsonschema.Schema, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseRegexpEngine(libraryRegexp)
	if err := compiler.AddResource("request.json", resource); err != nil {
		return nil, err
	}
	return compiler.Compile("request.json")
}

func newLibrary(t interface{ Fatal(...any) }, document map[string]any) library {
	compiled, err := compileSchema(document)
	if err != nil {
		t.Fatal(err)
	}
	return library{document, compiled}
}

func (s library) judge(body []byte, value any) error {
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
	refusal := s.refusalOf(first)
	if unknown, ok := first.ErrorKind.(*kind.AdditionalProperties); ok {
		refusal.Message += " " + canon.Unknown(where.first(first, unknown.Properties), s.namesAt(first.SchemaURL))
	}
	return refusal
}

// leaves returns the relevant errors. For anyOf these are the errors of the branch for the value's
// type, or of all branches except null.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var found, ofType, notNull []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		found = append(found, leaves(cause)...)
	}
	if _, ok := e.ErrorKind.(*kind.AnyOf); !ok {
		return found
	}
	for _, leaf := range found {
		k, isType := leaf.ErrorKind.(*kind.Type)
		if !isType || len(leaf.InstanceLocation) > len(e.InstanceLocation) {
			ofType = append(ofType, leaf)
		}
		if !isType || !slices.Equal(k.Want, []string{"null"}) {
			notNull = append(notNull, leaf)
		}
	}
	for _, some := range [][]*jsonschema.ValidationError{ofType, notNull} {
		if len(some) > 0 {
			return some
		}
	}
	return found
}

// namesAt returns the names of the members of the object schema at an address.
func (s library) namesAt(address string) []string {
	properties, _ := s.at(address)["properties"].(map[string]any)
	return sortedKeys(properties)
}

// requires reports whether the member whose schema is at an address is required.
func (s library) requires(address, name string) bool {
	holder := max(strings.LastIndex(address, "/properties/"), strings.LastIndex(address, "/additionalProperties"))
	if holder < 0 {
		return false
	}
	list, _ := s.at(address[:holder])["required"].([]any)
	return slices.Contains(list, any(name))
}

// at returns the schema at an address.
func (s library) at(address string) map[string]any {
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
	return found
}

// formatRefusals maps formats to the error for a text without the format.
var formatRefusals = map[string]struct{ code, clause string }{
	"date":      {"invalid_date", "must be a date YYYY-MM-DD"},
	"date-time": {"invalid_date", "must be an RFC 3339 time with a zone, such as 2026-01-02T03:04:05Z"},
	"email":     {"invalid_email", "must be an e-mail address"},
	"uri":       {"out_of_range", "must be an absolute URI"},
}

// refusalOf converts an error of the library into ours.
func (s library) refusalOf(e *jsonschema.ValidationError) *policy.Error {
	pointer := ""
	for _, part := range e.InstanceLocation {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
	}
	at := func(code, path, message string) *policy.Error {
		path = canon.SafePointer(path)
		name := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
		if name == "" {
			name = "the body"
		}
		return &policy.Error{Code: code, Path: path, Message: strings.TrimSuffix(name+" "+message, " ")}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return at("missing_field", pointer+"/"+k.Missing[0], "is required")
	case *kind.AdditionalProperties:
		return at("unknown_field", pointer, "")
	case *kind.Type:
		if n := len(e.InstanceLocation); k.Got == "null" && n > 0 && s.requires(e.SchemaURL, e.InstanceLocation[n-1]) {
			return at("missing_field", pointer, "is required")
		}
		return at("wrong_type", pointer, "must be "+withArticle(k.Want[0]))
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
		return at("invalid_enum", pointer, policy.MustBeOneOf(k.Want))
	case *kind.Const:
		return at("invalid_enum", pointer, "is not the documented value")
	case *kind.Pattern:
		return at("out_of_range", pointer, policy.MustMatch(k.Want))
	case *kind.Format:
		says := formatRefusals[k.Want]
		return at(says.code, pointer, says.clause)
	case *kind.Minimum, *kind.Maximum, *kind.ExclusiveMinimum, *kind.ExclusiveMaximum:
		of := s.at(e.SchemaURL)
		return at("out_of_range", pointer, schema.Numbers(of, of["type"] == "integer"))
	case *kind.Not:
		return at("invalid_request", pointer, "must not contain a NUL character")
	}
	return at("invalid_request", pointer, "does not have the documented shape")
}

func withArticle(noun string) string {
	if strings.ContainsRune("aio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// order contains the positions in a text at which errors occurred. It skips other values, because
// a text of a megabyte has many more values than errors, and pointers to all of them could be much
// longer than the text.
type order struct{ root *spot }

// spot is a value with an error, or a value that contains one.
type spot struct {
	start, end int // offsets in the text of the value's start and end; absent if the value is missing
	below      map[string]*spot
}

const absent = math.MaxInt

// orderOf finds the positions of errors in a text that passed the strict parse.
func orderOf(body []byte, found []*jsonschema.ValidationError) order {
	o := order{newSpot()}
	for _, e := range found {
		at := o.root
		for _, part := range e.InstanceLocation {
			at = at.want(part)
		}
		if unknown, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
			for _, name := range unknown.Properties {
				at.want(name)
			}
		}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	_ = o.root.read(dec) // values that cannot be read count as missing
	return o
}

func newSpot() *spot { return &spot{start: absent, end: absent} }

func (p *spot) want(name string) *spot {
	if p.below == nil {
		p.below = map[string]*spot{}
	}
	if p.below[name] == nil {
		p.below[name] = newSpot()
	}
	return p.below[name]
}

// read records the position of the next value, and of the errors inside it.
func (p *spot) read(dec *jsontext.Decoder) error {
	if p == nil {
		return dec.SkipValue()
	}
	p.start = int(dec.InputOffset())
	open := dec.PeekKind()
	if len(p.below) == 0 && open != '{' || open != '{' && open != '[' {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; dec.PeekKind() != '}' && dec.PeekKind() != ']'; i++ {
		name := strconv.Itoa(i)
		if open == '{' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		if err := p.below[name].read(dec); err != nil {
			return err
		}
	}
	p.end = int(dec.InputOffset())
	_, err := dec.ReadToken()
	return err
}

// of returns the position of an error: of the first unknown member, of the end of an object that
// lacks a member, or else of the value.
func (o order) of(e *jsonschema.ValidationError) int {
	at := o.at(e)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return at.end
	case *kind.AdditionalProperties:
		first := absent
		for _, name := range k.Properties {
			first = min(first, at.below[name].start)
		}
		return first
	}
	return at.start
}

// first returns the name that comes first in the text.
func (o order) first(e *jsonschema.ValidationError, names []string) string {
	at, first := o.at(e), names[0]
	for _, name := range names[1:] {
		if at.below[name].start < at.below[first].start {
			first = name
		}
	}
	return first
}

func (o order) at(e *jsonschema.ValidationError) *spot {
	at := o.root
	for _, part := range e.InstanceLocation {
		at = at.below[part]
	}
	return at
}
