package normal

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
)

// Bounds checks a struct against the json and jsonschema tags of its fields. The published schema
// is made from the same tags, so the check and the schema cannot differ. Bounds checks minLength,
// maxLength, pattern, enum and format=date-time of strings; minimum, maximum and exclusiveMinimum
// of numbers; minItems and maxItems of lists. The other tags of a list apply to its items. Bounds
// does not check members of maps and of free-form values.
//
//	var bounds = normal.BoundsOf[Input]()
//	if err := bounds.Check(in); err != nil { return Output{}, err }
type Bounds[T any] struct{ root func() *shape }

// shape contains the requirements for values of one type, from the type and the tags of a field.
type shape struct {
	fields               []field        // of a struct
	items                *shape         // requirements for the items of a list; otherwise nil
	required             bool           // the json tag has neither omitempty nor omitzero
	minLength, maxLength int            // of a string, in code points
	minItems, maxItems   int            // of a list
	minimum, maximum     float64        // of a number
	exclusive            bool           // minimum is an exclusive limit
	enum                 []string       // allowed strings; nil allows every string
	pattern              *regexp.Regexp // of a string; nil allows every string
	dateTime             bool           // the string must be an RFC 3339 time
}

// freeForm is the type of members that may be any JSON value.
var freeForm = reflect.TypeFor[jsontext.Value]()

type field struct {
	index    int
	name     string
	embedded bool
	shape    *shape
}

// BoundsOf returns the bounds of an input type T. It reads the tags at the first Check, because
// the coding-agent guard judges one command per start and must not read the tags of every service.
// If a tag cannot be parsed, the first Check panics; the tests call Check for every type.
func BoundsOf[T any]() Bounds[T] {
	return Bounds[T]{sync.OnceValue(func() *shape { return shapeOf(reflect.TypeFor[T](), "", true) })}
}

// Check returns nil, or an *Error for the first member, in the order of the fields, that violates
// its tags. The codes are missing_field, out_of_range, too_long, too_many_items, invalid_enum and
// invalid_date.
func (b Bounds[T]) Check(v T) error {
	r := b.root().check(reflect.ValueOf(&v).Elem())
	if r == nil {
		return nil
	}
	name := strings.ReplaceAll(strings.TrimPrefix(r.path, "/"), "/", ".") // the name as error texts contain it: "payment.method is required"
	return policy.Refuse(r.code, r.path, name+" "+r.clause)
}

// refusal is the reason why a member is refused. Its path is built while check returns, so that
// accepted members cost nothing.
type refusal struct{ path, code, clause string }

func refuse(code, clause string) *refusal { return &refusal{code: code, clause: clause} }

// under adds the name of the containing member, or the index in a list, to the front of the path.
func (r *refusal) under(member string) *refusal {
	r.path = "/" + member + r.path
	return r
}

func shapeOf(t reflect.Type, tag string, required bool) *shape {
	s := &shape{required: required, maxLength: math.MaxInt, maxItems: math.MaxInt, minimum: math.Inf(-1), maximum: math.Inf(1)}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, part := range splitTag(tag) {
		name, value, _ := strings.Cut(part, "=")
		s.set(name, value)
	}
	switch t.Kind() {
	case reflect.Slice:
		if t == freeForm {
			return s
		}
		s.items = shapeOf(t.Elem(), tag, true)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
			s.fields = append(s.fields, field{i, name, f.Anonymous && name == "", shapeOf(f.Type, f.Tag.Get("jsonschema"), !optional)})
		}
	}
	return s
}

// splitTag splits a tag at its commas, except at commas after a backslash.
func splitTag(tag string) []string {
	const escaped = "\x00"
	parts := strings.Split(strings.ReplaceAll(tag, `\,`, escaped), ",")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], escaped, ",")
	}
	return parts
}

func (s *shape) set(name, value string) {
	switch name {
	case "minLength":
		s.minLength = mustInt(value)
	case "maxLength":
		s.maxLength = mustInt(value)
	case "minItems":
		s.minItems = mustInt(value)
	case "maxItems":
		s.maxItems = mustInt(value)
	case "minimum":
		s.minimum = mustFloat(value)
	case "maximum":
		s.maximum = mustFloat(value)
	case "exclusiveMinimum":
		s.minimum, s.exclusive = mustFloat(value), true
	case "enum":
		s.enum = append(s.enum, value)
	case "pattern":
		s.pattern = regexp.MustCompile(value)
	case "format":
		s.dateTime = value == "date-time"
	}
}

func mustInt(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("the limit of a jsonschema tag must be an integer: " + text)
	}
	return n
}

func mustFloat(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("the limit of a jsonschema tag must be a number: " + text)
	}
	return f
}

func (s *shape) check(v reflect.Value) *refusal {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return s.absent()
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return s.checkString(v.String())
	case reflect.Float64, reflect.Float32:
		return s.checkNumber(v.Float())
	case reflect.Int, reflect.Int64, reflect.Int32:
		return s.checkNumber(float64(v.Int()))
	case reflect.Slice:
		if v.Type() == freeForm && !v.IsNil() {
			return nil
		}
		return s.checkList(v)
	case reflect.Map, reflect.Interface:
		if v.IsNil() {
			return s.absent()
		}
	case reflect.Struct:
		for _, f := range s.fields {
			r := f.shape.check(v.Field(f.index))
			switch {
			case r == nil:
			case f.embedded:
				return r
			default:
				return r.under(f.name)
			}
		}
	}
	return nil
}

func (s *shape) absent() *refusal {
	if s.required {
		return refuse("missing_field", "is required")
	}
	return nil
}

func (s *shape) checkString(text string) *refusal {
	if text == "" && s.minLength > 0 {
		return s.absent()
	}
	if text == "" && !s.required {
		return nil
	}
	switch length := utf8.RuneCountInString(text); {
	case length > s.maxLength:
		return refuse("too_long", fmt.Sprintf("must have at most %d characters", s.maxLength))
	case length < s.minLength:
		return refuse("out_of_range", fmt.Sprintf("must have at least %d characters", s.minLength))
	case s.enum != nil && !slices.Contains(s.enum, text):
		return refuse("invalid_enum", policy.MustBeOneOf(s.enum))
	case s.pattern != nil && !s.pattern.MatchString(text):
		return refuse("out_of_range", policy.MustMatch(s.pattern.String()))
	}
	if s.dateTime {
		if _, err := Timestamp(text); err != nil {
			return refuse("invalid_date", "must be an RFC 3339 time with a zone, such as 2026-01-02T03:04:05Z")
		}
	}
	return nil
}

func (s *shape) checkNumber(x float64) *refusal {
	if !(x >= s.minimum && x <= s.maximum) || s.exclusive && x == s.minimum {
		return refuse("out_of_range", policy.MustBeWithin(s.minimum, s.maximum, s.exclusive, false, false))
	}
	return nil
}

func (s *shape) checkList(v reflect.Value) *refusal {
	switch {
	case v.Len() == 0 && s.minItems > 0:
		if r := s.absent(); r != nil || v.IsNil() {
			return r
		}
		return refuse("out_of_range", fmt.Sprintf("must have at least %d items", s.minItems))
	case v.Len() < s.minItems:
		return refuse("out_of_range", fmt.Sprintf("must have at least %d items", s.minItems))
	case v.Len() > s.maxItems:
		return refuse("too_many_items", fmt.Sprintf("must have at most %d items", s.maxItems))
	case v.IsNil():
		return s.absent()
	}
	for i := range v.Len() {
		if r := s.items.check(v.Index(i)); r != nil {
			return r.under(strconv.Itoa(i))
		}
	}
	return nil
}
