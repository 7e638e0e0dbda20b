package canon

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Most values are structs of strings, integers and other structs. Their canonical form is written
// member by member, in the order of the names, which are sorted once per type. The JSON library
// writes all other types and values, and produces all errors.

// encoder appends the canonical form of a value of one type. ok is false if only the JSON library
// can write the value.
type encoder func(w *writer, v reflect.Value) (ok bool)

// writer contains the text that the encoders have written so far.
type writer struct {
	dst   []byte
	depth int
}

// direct returns the canonical form of a value. ok is false if its type has no encoder or the
// encoder cannot write the value.
func direct(value any) (canonical []byte, ok bool) {
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		return nil, false
	}
	encode := encoderOf(v.Type())
	if encode == nil {
		return nil, false
	}
	w := writers.Get().(*writer)
	defer writers.Put(w)
	w.dst, w.depth = w.dst[:0], 0
	ok = encode(w, v)
	if cap(w.dst) > keptWriter { // too large to keep as buffer for the next value
		canonical, w.dst = w.dst, nil
		return canonical, ok
	}
	return bytes.Clone(w.dst), ok
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// encoders maps each type that was written before to its encoder, or to nil if it has none.
var encoders sync.Map

func encoderOf(t reflect.Type) encoder {
	if known, ok := encoders.Load(t); ok {
		return known.(encoder)
	}
	encode := newEncoder(t, nil)
	encoders.Store(t, encode)
	return encode
}

var (
	textValue = reflect.TypeFor[jsontext.Value]()
	madeValue = reflect.TypeFor[Value]()
	octets    = reflect.TypeFor[[]byte]()
	// ownForm lists the interfaces of types that define their own JSON form or zero value.
	ownForm = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.MarshalerTo](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextAppender](), reflect.TypeFor[interface{ IsZero() bool }]()}
)

func hasOwnForm(t reflect.Type) bool {
	return slices.ContainsFunc(ownForm, func(own reflect.Type) bool { return t.Implements(own) || reflect.PointerTo(t).Implements(own) })
}

// newEncoder returns the encoder of a type, or nil if it has none. within lists the types that
// contain it; a type that contains itself has no encoder.
func newEncoder(t reflect.Type, within []reflect.Type) encoder {
	switch {
	case t == textValue:
		return (*writer).canonical
	case t == madeValue:
		return (*writer).made
	case t == octets:
		return (*writer).base64
	case t == reflect.TypeFor[time.Duration]() || slices.Contains(within, t):
		return nil
	}
	if hasOwnForm(t) {
		return nil
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.String:
		return func(w *writer, v reflect.Value) bool { return w.text(v.String()) }
	case reflect.Bool:
		return func(w *writer, v reflect.Value) bool { w.dst = strconv.AppendBool(w.dst, v.Bool()); return true }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return (*writer).integer
	case reflect.Pointer:
		return pointerEncoder(newEncoder(t.Elem(), within))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		return sliceEncoder(newEncoder(t.Elem(), within))
	case reflect.Struct:
		return structEncoder(t, within)
	case reflect.Interface:
		return (*writer).whatever
	}
	return nil
}

// text appends a string. It returns false for a NUL or invalid UTF-8, which have no canonical
// form.
func (w *writer) text(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			if strings.IndexByte(s, 0) >= 0 {
				return false
			}
			var err error
			w.dst, err = jsontext.AppendQuote(w.dst, s)
			return err == nil
		}
	}
	w.dst = append(append(append(w.dst, '"'), s...), '"')
	return true
}

func (w *writer) integer(v reflect.Value) bool {
	n := v.Int()
	w.dst = strconv.AppendInt(w.dst, n, 10)
	return -MaxInteger <= n && n <= MaxInteger
}

func (w *writer) base64(v reflect.Value) bool {
	w.dst = append(base64.StdEncoding.AppendEncode(append(w.dst, '"'), v.Bytes()), '"')
	return true
}

// Value is a text in canonical form, as Canonical, Marshal, Members or Object return it. Marshal
// copies it unchanged: the body of a request may be large, and need not be parsed again for each
// record that contains it.
type Value []byte

// MarshalJSON returns the text unchanged.
func (v Value) MarshalJSON() ([]byte, error) { return v, nil }

// UnmarshalJSON stores a copy of the text without checking the text. Use it only for texts that
// this program has written in canonical form.
func (v *Value) UnmarshalJSON(text []byte) error {
	*v = bytes.Clone(text)
	return nil
}

// made appends a Value, which is canonical. It returns false for an empty one.
func (w *writer) made(v reflect.Value) bool {
	w.dst = append(w.dst, v.Bytes()...)
	return v.Len() > 0
}

// whatever appends the value that an interface contains.
func (w *writer) whatever(v reflect.Value) bool {
	if v.IsNil() {
		w.dst = append(w.dst, "null"...)
		return true
	}
	encode := encoderOf(v.Elem().Type())
	return encode != nil && encode(w, v.Elem())
}

// canonical appends the canonical form of a JSON text (jsontext.Value).
func (w *writer) canonical(v reflect.Value) bool {
	text := jsontext.Value(v.Bytes())
	switch {
	case text == nil:
		w.dst = append(w.dst, "null"...)
		return true
	case !utf8.Valid(text):
		return false
	}
	inner := plainWriter{src: text, dst: w.dst, depth: w.depth}
	if !inner.value() {
		return false
	}
	inner.space()
	w.dst = inner.dst
	return inner.at == len(text)
}

func pointerEncoder(element encoder) encoder {
	if element == nil {
		return nil
	}
	return func(w *writer, v reflect.Value) bool {
		if v.IsNil() {
			w.dst = append(w.dst, "null"...)
			return true
		}
		return element(w, v.Elem())
	}
}

func sliceEncoder(element encoder) encoder {
	if element == nil {
		return nil
	}
	return func(w *writer, v reflect.Value) bool {
		w.depth++
		w.dst = append(w.dst, '[')
		for i := range v.Len() {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			if !element(w, v.Index(i)) {
				return false
			}
		}
		w.dst = append(w.dst, ']')
		w.depth--
		return w.depth < MaxDepth
	}
}

// memberEncoder writes one member of a struct.
type memberEncoder struct {
	name                string
	prefix              string // the name in quotes and a colon
	index               int
	encode              encoder
	omitZero, omitEmpty bool
}

func structEncoder(t reflect.Type, within []reflect.Type) encoder {
	var members []memberEncoder
	for field := range t.Fields() {
		m, written := memberOf(field, within)
		switch {
		case !written:
			continue
		case m.encode == nil || slices.ContainsFunc(members, func(other memberEncoder) bool { return other.name == m.name }):
			return nil
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b memberEncoder) int { return compareUTF16(a.name, b.name) })
	return func(w *writer, v reflect.Value) bool {
		w.depth++
		w.dst = append(w.dst, '{')
		first := true
		for i := range members {
			m := &members[i]
			inner := v.Field(m.index)
			if m.omitZero && inner.IsZero() {
				continue
			}
			before := len(w.dst)
			if !first {
				w.dst = append(w.dst, ',')
			}
			w.dst = append(w.dst, m.prefix...)
			start := len(w.dst)
			if !m.encode(w, inner) {
				return false
			}
			if m.omitEmpty && isEmpty(w.dst[start:]) {
				w.dst = w.dst[:before]
				continue
			}
			first = false
		}
		w.dst = append(w.dst, '}')
		w.depth--
		return w.depth < MaxDepth
	}
}

// memberOf returns the encoder of a struct field. written is false if JSON omits the field. The
// encoder in m is nil if the JSON library must write the struct.
func memberOf(field reflect.StructField, within []reflect.Type) (m memberEncoder, written bool) {
	tag, tagged := field.Tag.Lookup("json")
	switch {
	case tag == "-" || !field.IsExported() && !tagged && !field.Anonymous:
		return m, false
	case field.Anonymous || !field.IsExported():
		return m, true
	}
	name, options, _ := strings.Cut(tag, ",")
	if name == "" {
		name = field.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitzero":
			m.omitZero = true
		case "omitempty":
			m.omitEmpty = true
		default:
			return memberEncoder{name: name}, true
		}
	}
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$-") != "" {
		return memberEncoder{name: name}, true
	}
	m.name, m.prefix, m.index, m.encode = name, `"`+name+`":`, field.Index[0], newEncoder(field.Type, within)
	return m, true
}

// isEmpty reports whether omitempty omits a member with this value.
func isEmpty(text []byte) bool {
	switch string(text) {
	case `null`, `""`, `{}`, `[]`:
		return true
	}
	return false
}
