package assurance

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// A request is checked member by member in the order of the document, so that
// its first problem is the answer and the texts are those of the contract. The
// values are read on the way: amounts must be seen as they were written.

// value is a member's value with the name errors give it.
type value struct {
	raw  jsontext.Value
	name string // "intent.method"
}

// field is what may stand under one name of an object.
type field struct {
	name     string
	required bool
	read     func(value) error
}

func refuse(code, name, message string) error {
	return policy.Refuse(code, "/"+strings.ReplaceAll(name, ".", "/"), name+message)
}

// object checks an object of a request against its fields: null means that a member is
// absent. A missing member is missed at the end of its object; other members are for a
// member that is none of the fields.
func object(v value, fields []field, other func(name string) error) error {
	return members(v, fields, other, true)
}

// members is object for one in which null means that a member is absent, or in which
// null is a value like others, which no reader takes.
func members(v value, fields []field, other func(name string) error, nullIsAbsent bool) error {
	if v.raw.Kind() != '{' {
		return refuse("wrong_type", v.name, " must be an object")
	}
	seen := make([]bool, len(fields))
	err := canon.Walk(v.raw, func(name string, raw jsontext.Value) error {
		i := indexOf(fields, name)
		isNull := raw.Kind() == 'n'
		if i >= 0 {
			if isNull && nullIsAbsent && name != freeForm {
				return nil // absent; and missed, if it is required
			}
			seen[i] = true
			return fields[i].read(value{raw, member(v.name, name)})
		}
		if other != nil {
			if err := other(name); err != nil {
				if isNull {
					return nil
				}
				return err
			}
		}
		return unknown(v.name, name, fields)
	})
	if err != nil {
		return err
	}
	for i, f := range fields {
		if f.required && !seen[i] {
			return refuse("missing_field", member(v.name, f.name), " is required")
		}
	}
	return nil
}

// freeForm is the one member of a request that may be any JSON value, null included.
// Elsewhere in a request null means that the member is absent; a policy has no null.
const freeForm = "toolArguments"

// withoutNulls is a canonical object without its members that are absent: what is
// hashed says the same whether they were left out or null.
func withoutNulls(canonical []byte) ([]byte, error) {
	if !bytes.Contains(canonical, []byte(":null")) {
		return canonical, nil
	}
	members, err := canon.Members(canonical)
	if err != nil {
		return nil, err
	}
	for name, value := range members {
		switch {
		case name == freeForm:
		case value.Kind() == 'n':
			delete(members, name)
		case value.Kind() == '{':
			if members[name], err = withoutNulls(value); err != nil {
				return nil, err
			}
		}
	}
	return canon.Object(members), nil
}

// canonicalOf is the canonical form of an object that passed the strict parse,
// without what is absent.
func canonicalOf(raw jsontext.Value) ([]byte, error) {
	canonical, err := canon.CanonicalChecked(raw)
	if err != nil {
		return nil, err
	}
	return withoutNulls(canonical)
}

// errShape cannot be: the text passed the strict parse.
var errShape = policy.Refuse("invalid_json", "", "invalid JSON: syntax")

// unknown names the object that holds an unknown member and, where it is near a
// known one, what was meant. The member's own name is the caller's and not repeated.
func unknown(holder, name string, fields []field) error {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	meant := canon.Meant(name, known)
	if holder == "" {
		return policy.Refuse("unknown_field", "", "request: unknown field"+meant)
	}
	return refuse("unknown_field", holder, ": unknown field"+meant)
}

func indexOf(fields []field, name string) int {
	for i, f := range fields {
		if f.name == name {
			return i
		}
	}
	return -1
}

func member(holder, name string) string {
	if holder == "" {
		return name
	}
	return holder + "." + name
}

// parse checks a text strictly and gives its top-level object to the fields.
func parse(text []byte, fields []field) error {
	if err := canon.Check(text); err != nil {
		return err
	}
	raw := jsontext.Value(bytes.TrimSpace(text))
	if raw.Kind() != '{' {
		return policy.Refuse("invalid_json", "", "invalid JSON: not an object")
	}
	return object(value{raw, ""}, fields, nil)
}

func (v value) text() (string, error) {
	if v.raw.Kind() != '"' {
		return "", refuse("wrong_type", v.name, " must be a string")
	}
	s, err := jsontext.AppendUnquote(nil, v.raw)
	if err != nil {
		return "", errShape
	}
	return string(s), nil
}

// text reads a string of 1 to most characters without white space at an edge or
// characters that do not show.
func text(into *string, most int) func(value) error { return words(into, most, false) }

// prose is text that may have line breaks inside.
func prose(into *string, most int) func(value) error { return words(into, most, true) }

func words(into *string, most int, prose bool) func(value) error {
	return func(v value) error {
		s, err := v.text()
		if err != nil {
			return err
		}
		if n := utf8.RuneCountInString(s); n < 1 || n > most {
			return refuse("out_of_range", v.name, " must be 1 to "+strconv.Itoa(most)+" characters")
		}
		if normal.Text(s, prose) != nil {
			return refuse("out_of_range", v.name, " must not have white space at an edge or characters that do not show")
		}
		*into = s
		return nil
	}
}

func oneOf(into *string, values ...string) func(value) error {
	return func(v value) error {
		s, err := v.text()
		if err != nil {
			return err
		}
		for _, allowed := range values {
			if s == allowed {
				*into = s
				return nil
			}
		}
		last := len(values) - 1
		return refuse("invalid_enum", v.name, " must be "+strings.Join(values[:last], ", ")+" or "+values[last])
	}
}

// address reads a URL; its normal form is kept beside the text.
func address(into *string, parsed *normal.URL) func(value) error {
	return func(v value) error {
		s, err := v.text()
		if err != nil {
			return err
		}
		u, err := normal.ParseURL(s)
		if err != nil {
			return refuse("out_of_range", v.name, " is not a valid absolute URL")
		}
		*into, *parsed = s, u
		return nil
	}
}

// matching reads text of a form that the message names.
func matching(into *string, most int, good func(string) bool, message string) func(value) error {
	read := text(into, most)
	return func(v value) error {
		if err := read(v); err != nil {
			return err
		}
		if !good(*into) {
			return refuse("out_of_range", v.name, message)
		}
		return nil
	}
}

func flag(into **bool) func(value) error {
	return func(v value) error {
		kind := v.raw.Kind()
		if kind != 't' && kind != 'f' {
			return refuse("wrong_type", v.name, " must be a boolean")
		}
		b := kind == 't'
		*into = &b
		return nil
	}
}

// integer reads a number without fraction, 1.0 included, within bounds.
func integer(into *int64, least, most int64) func(value) error {
	return func(v value) error {
		bad := refuse("out_of_range", v.name, " must be an integer of "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
		if v.raw.Kind() != '0' {
			return refuse("wrong_type", v.name, " must be an integer")
		}
		f, err := strconv.ParseFloat(string(v.raw), 64)
		if err != nil || f != math.Trunc(f) || f < float64(least) || f > float64(most) {
			return bad
		}
		*into = int64(f)
		return nil
	}
}

// literal reads a number as it is written, up to what JSON can carry exactly.
func literal(into *string) func(value) error {
	return func(v value) error {
		if v.raw.Kind() != '0' {
			return refuse("wrong_type", v.name, " must be a number")
		}
		if !canon.IsExact(string(v.raw)) {
			return refuse("out_of_range", v.name, " must be at most 9007199254740991")
		}
		*into = string(v.raw)
		return nil
	}
}

// list reads an array of texts, of which each must please check (nil: any).
func list(into *[]string, entries, length int, check func(string) (message string)) func(value) error {
	return func(v value) error {
		if v.raw.Kind() != '[' {
			return refuse("wrong_type", v.name, " must be an array")
		}
		var raws []jsontext.Value
		if err := json.Unmarshal(v.raw, &raws); err != nil {
			return errShape
		}
		if len(raws) > entries {
			return refuse("too_many_items", v.name, " must have at most "+strconv.Itoa(entries)+" entries")
		}
		found := make([]string, len(raws))
		for i, raw := range raws {
			entry := value{raw, v.name + "." + strconv.Itoa(i)}
			if err := text(&found[i], length)(entry); err != nil {
				return err
			}
			if check == nil {
				continue
			}
			if message := check(found[i]); message != "" {
				return refuse("out_of_range", entry.name, message)
			}
		}
		*into = found
		return nil
	}
}
