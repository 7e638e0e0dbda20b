package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Validate checks a body in one pass over its bytes, and stops at the first error in the text. It
// builds no tree of values: a validator that needs a tree costs ten times as much as parsing, and
// more for each invalid value. Tests compare every result with a JSON Schema library.

// reading is a compiled schema in the form that our schemas have: a value of one type, or of one
// of several types (anyOf), with the keywords of each type. A nil reading accepts every value.
type reading struct {
	want    string // expected type, for error texts
	null    bool
	boolean bool
	text    *textReading
	number  *numberReading
	list    *listReading
	object  *objectReading
}

type textReading struct {
	enum                 []string
	format               *format
	minLength, maxLength int // characters; 0 and math.MaxInt mean no limit
	pattern, not         Pattern
}

type numberReading struct {
	integer                            bool
	enum                               []float64
	minimum, maximum                   float64 // the infinities mean no limit
	exclusiveMinimum, exclusiveMaximum float64
}

type listReading struct {
	items              *reading
	minItems, maxItems int // 0 and math.MaxInt mean no limit
	unique             bool
}

type objectReading struct {
	members  map[string]memberReading
	names    []string // names of the members, sorted
	required []string
	closed   bool     // other members are refused
	others   *reading // schema of other members
}

type memberReading struct {
	*reading
	required uint64 // bit of the member in the set of required members; 0 if it is optional
}

// maxRequired is the largest number of required members of an object, because each has a bit.
const maxRequired = 64

// readingOf compiles a schema. It returns an error for a keyword or a form of schema that is not
// supported.
func readingOf(document any) (*reading, error) {
	if document == nil || document == true {
		return nil, nil
	}
	node, is := document.(map[string]any)
	if !is {
		return nil, fmt.Errorf("the schema %v accepts no value", document)
	}
	k := keywords{node: node}
	var r *reading
	switch branches, several := k.take("anyOf").([]any); {
	case several:
		r = k.anyOf(branches)
	case node["type"] == nil:
	default:
		r = &reading{}
		r.want, _ = k.take("type").(string)
		k.fill(r)
	}
	return r, k.rest()
}

// keywords contains the keywords of one schema during compilation. Each supported keyword is taken
// out; rest returns an error if one is left.
type keywords struct {
	node  map[string]any
	taken []string
	fault error
}

// saysNothing lists the keywords that do not restrict values.
var saysNothing = []string{"title", "description", "default", "examples"}

func (k *keywords) take(name string) any {
	k.taken = append(k.taken, name)
	return k.node[name]
}

func (k *keywords) number(name string, otherwise float64) float64 {
	if n, has := k.take(name).(float64); has {
		return n
	}
	return otherwise
}

func (k *keywords) bounds() numberReading {
	return numberReading{minimum: k.number("minimum", math.Inf(-1)), maximum: k.number("maximum", math.Inf(1)),
		exclusiveMinimum: k.number("exclusiveMinimum", math.Inf(-1)), exclusiveMaximum: k.number("exclusiveMaximum", math.Inf(1))}
}

// Numbers describes the numbers that a schema allows, in the words of an error: "must be a number
// from 0 to 1" or "must be an integer from 0 to 9".
func Numbers(document Object, integer bool) string {
	n := (&keywords{node: document}).bounds()
	n.integer = integer
	return n.allowed()
}

func (k *keywords) length(name string, otherwise int) int {
	if n, has := k.take(name).(float64); has {
		return int(n)
	}
	return otherwise
}

func (k *keywords) pattern(name string) (compiled Pattern) {
	if text, has := k.take(name).(string); has {
		var err error
		compiled, err = Regexp(text)
		k.fail(err)
	}
	return compiled
}

func (k *keywords) schema(name string) *reading {
	r, err := readingOf(k.take(name))
	k.fail(err)
	return r
}

func (k *keywords) fail(err error) {
	if k.fault == nil {
		k.fault = err
	}
}

// rest returns the first error, or an error if a keyword was not taken.
func (k *keywords) rest() error {
	for name := range k.node {
		if !slices.Contains(k.taken, name) && !slices.Contains(saysNothing, name) {
			k.fail(fmt.Errorf("the keyword %s is not supported", name))
		}
	}
	return k.fault
}

// anyOf compiles a value of one of several types. If null is one of them, errors name another
// type, because null means that the member is absent.
func (k *keywords) anyOf(branches []any) *reading {
	merged := &reading{want: "null"}
	for _, branch := range branches {
		r, err := readingOf(branch)
		k.fail(err)
		if err != nil || r == nil {
			return nil
		}
		if merged.overlaps(r) {
			k.fail(fmt.Errorf("two branches accept a %s", r.want))
		}
		if merged.want == "null" {
			merged.want = r.want
		}
		merged.null, merged.boolean = merged.null || r.null, merged.boolean || r.boolean
		merged.text, merged.number = either(merged.text, r.text), either(merged.number, r.number)
		merged.list, merged.object = either(merged.list, r.list), either(merged.object, r.object)
	}
	return merged
}

func (r *reading) overlaps(o *reading) bool {
	return r.null && o.null || r.boolean && o.boolean || r.text != nil && o.text != nil || r.number != nil && o.number != nil ||
		r.list != nil && o.list != nil || r.object != nil && o.object != nil
}

func either[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// fill compiles the keywords of one type.
func (k *keywords) fill(r *reading) {
	switch r.want {
	case "null":
		r.null = true
	case "boolean":
		r.boolean = true
	case "string":
		r.text = k.text()
	case "number", "integer":
		n := k.bounds()
		n.integer, n.enum = r.want == "integer", optionsOf[float64](k)
		r.number = &n
	case "array":
		r.list = &listReading{k.schema("items"), k.length("minItems", 0), k.length("maxItems", math.MaxInt), k.take("uniqueItems") == true}
	case "object":
		r.object = k.object()
	default:
		k.fail(fmt.Errorf("the type %v is not supported", k.node["type"]))
	}
}

// optionsOf returns the values of an enum. All must have the type T.
func optionsOf[T any](k *keywords) (options []T) {
	list, _ := k.take("enum").([]any)
	for _, value := range list {
		option, is := value.(T)
		if !is {
			k.fail(fmt.Errorf("an enum has a value of another type"))
		}
		options = append(options, option)
	}
	return options
}

func (k *keywords) text() *textReading {
	t := &textReading{enum: optionsOf[string](k), minLength: k.length("minLength", 0), maxLength: k.length("maxLength", math.MaxInt), pattern: k.pattern("pattern")}
	if not, has := k.take("not").(map[string]any); has {
		inner := keywords{node: not}
		t.not = inner.pattern("pattern")
		k.fail(inner.rest())
	}
	if name, has := k.take("format").(string); has {
		known := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
		if known < 0 {
			k.fail(fmt.Errorf("the format %s is not known", name))
			return t
		}
		t.format = &formats[known]
	}
	return t
}

func (k *keywords) object() *objectReading {
	o := &objectReading{members: map[string]memberReading{}}
	if closed, is := k.take("additionalProperties").(bool); is {
		o.closed = !closed
	} else {
		o.others = k.schema("additionalProperties")
	}
	properties, _ := k.take("properties").(map[string]any)
	o.names = slices.Sorted(maps.Keys(properties))
	for _, name := range o.names {
		r, err := readingOf(properties[name])
		k.fail(err)
		o.members[name] = memberReading{reading: r}
	}
	list, _ := k.take("required").([]any)
	if len(list) > maxRequired {
		k.fail(fmt.Errorf("%d members are required, which is more than is supported", len(list)))
	}
	for i, value := range list {
		name, _ := value.(string)
		member, known := o.members[name]
		if !known {
			member.reading = o.others
			if o.closed {
				k.fail(fmt.Errorf("the member %s is required but not defined", name))
			}
		}
		member.required = 1 << i
		o.members[name], o.required = member, append(o.required, name)
	}
	return o
}

// offence is the first value in a body that violates the schema.
type offence struct {
	code, message string
	place         []string // path of the value: names and indexes, innermost first
	gotNull       bool     // the value is null, but null is not allowed
}

// in adds the name or index of the surrounding value to the path.
func (o *offence) in(part string) *offence {
	if o != nil {
		o.place = append(o.place, part)
	}
	return o
}

// refusal returns the offence as an error for callers.
func (o *offence) refusal() *policy.Error {
	pointer := ""
	for _, part := range slices.Backward(o.place) {
		pointer += "/" + escapePointer.Replace(part)
	}
	pointer = canon.SafePointer(pointer)
	name := strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
	if name == "" {
		name = "the body"
	}
	return &policy.Error{Code: o.code, Path: pointer, Message: name + " " + o.message}
}

// read checks the next value against the schema.
func (r *reading) read(in *canon.Reader) *offence {
	if r == nil {
		in.Skip()
		return nil
	}
	kind := in.Kind()
	switch {
	case kind == '"' && r.text != nil:
		return r.text.read(in)
	case kind == '0' && r.number != nil:
		if from := *in; !canon.IsExact(string(from.Raw())) {
			return r.inexact()
		}
		if found, isNumber := r.number.read(in); isNumber {
			return found
		}
	case kind == '{' && r.object != nil:
		return r.object.read(in)
	case kind == '[' && r.list != nil:
		return r.list.read(in)
	case kind == 'n' && r.null, (kind == 't' || kind == 'f') && r.boolean:
		in.Skip()
		return nil
	}
	return &offence{code: "wrong_type", message: "must be " + article(r.want), gotNull: kind == 'n'}
}

// inexact refuses an integer beyond 2^53-1, which computations could not represent exactly. It
// tells the caller what to send instead.
func (r *reading) inexact() *offence {
	message := "must be a number from -9007199254740991 to 9007199254740991"
	if r.text != nil {
		message += "; send a larger one as a string"
	}
	return &offence{code: "out_of_range", message: message}
}

func (t *textReading) read(in *canon.Reader) *offence {
	octets := in.Text()
	if t.enum == nil && t.format == nil && t.pattern == nil && t.not == nil {
		return t.length(octets)
	}
	text := string(octets)
	if t.enum != nil && !slices.Contains(t.enum, text) {
		return notListed(t.enum)
	}
	if t.format != nil && !t.format.holds(text) {
		return &offence{code: t.format.code, message: t.format.clause}
	}
	if found := t.length(octets); found != nil {
		return found
	}
	switch {
	case t.pattern == nil || t.pattern.MatchString(text):
	default:
		return &offence{code: "out_of_range", message: policy.MustMatch(t.pattern.String())}
	}
	if t.not != nil && t.not.MatchString(text) {
		return &offence{code: "invalid_request", message: "must not contain a NUL character"}
	}
	return nil
}

func notListed[T any](options []T) *offence {
	return &offence{code: "invalid_enum", message: policy.MustBeOneOf(options)}
}

// length checks the number of characters. It counts them only if the number of bytes leaves it
// open.
func (t *textReading) length(text []byte) *offence {
	switch {
	case len(text) < t.minLength*utf8.UTFMax && utf8.RuneCount(text) < t.minLength:
		return &offence{code: "out_of_range", message: fmt.Sprintf("must have at least %d characters", t.minLength)}
	case len(text) > t.maxLength && utf8.RuneCount(text) > t.maxLength:
		return &offence{code: "too_long", message: fmt.Sprintf("must have at most %d characters", t.maxLength)}
	}
	return nil
}

// read checks a number. isNumber is false if the number is a fraction and an integer is required.
func (n *numberReading) read(in *canon.Reader) (found *offence, isNumber bool) {
	f := in.Number()
	switch {
	case n.integer && f != math.Trunc(f):
		return nil, false
	case n.enum != nil && !slices.Contains(n.enum, f):
		return notListed(n.enum), true
	case f < n.minimum || f > n.maximum || f <= n.exclusiveMinimum || f >= n.exclusiveMaximum:
		return &offence{code: "out_of_range", message: n.allowed()}, true
	}
	return nil, true
}

// allowed describes the allowed numbers, in the words of an error.
func (n *numberReading) allowed() string {
	above, below := !math.IsInf(n.exclusiveMinimum, -1), !math.IsInf(n.exclusiveMaximum, 1)
	return policy.MustBeWithin(math.Max(n.minimum, n.exclusiveMinimum), math.Min(n.maximum, n.exclusiveMaximum), above, below, n.integer)
}

// read checks the items, and then their number. If both have an error, it returns the one about
// the number: its path is the list, which comes before the items.
func (l *listReading) read(in *canon.Reader) (first *offence) {
	n, unique := 0, true
	seen := map[string]bool{}
	for in.Enter(); in.More(); n++ {
		if n == l.maxItems {
			return &offence{code: "too_many_items", message: fmt.Sprintf("must have at most %d items", l.maxItems)}
		}
		from := *in
		if first == nil {
			if first = l.items.read(in); first != nil {
				first = first.in(strconv.Itoa(n))
				*in = from // an error may have stopped the reader inside the item
				in.Skip()
			}
		} else {
			in.Skip()
		}
		if l.unique {
			canonical, _ := canon.CanonicalChecked(from.Raw()) // no error: the item was parsed before
			unique = unique && !seen[string(canonical)]
			seen[string(canonical)] = true
		}
	}
	switch {
	case n < l.minItems:
		return &offence{code: "out_of_range", message: fmt.Sprintf("must have at least %d items", l.minItems)}
	case !unique:
		return &offence{code: "out_of_range", message: "must not repeat an item"}
	}
	return first
}

// read checks the members in the order of the text, and then whether a required member is missing.
func (o *objectReading) read(in *canon.Reader) *offence {
	var has uint64
	for in.Enter(); in.More(); {
		name := in.Name()
		member, known := o.members[string(name)]
		switch {
		case !known && o.closed:
			return &offence{code: "unknown_field", message: canon.Unknown(string(name), o.names)}
		case !known:
			member.reading = o.others
		}
		has |= member.required
		if found := member.read(in); found != nil {
			if found.gotNull && len(found.place) == 0 && member.required != 0 {
				found = &offence{code: "missing_field", message: "is required"}
			}
			return found.in(string(name))
		}
	}
	for i, name := range o.required {
		if has&(1<<i) == 0 {
			return (&offence{code: "missing_field", message: "is required"}).in(name)
		}
	}
	return nil
}
