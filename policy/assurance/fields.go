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

// A request is checked member by member in document order, so that its first problem becomes
// the answer, with the texts of the contract. Values are read during the check, because amounts
// must be read as they were written.

// value is a member's value with the name that errors use for it.
type value struct {
	raw  jsontext.Value
	name string // "intent.method"
}

// field describes a member that an object may have.
type field struct {
	name     string
	required bool
	read     func(value) error
}

func refuse(code, name, message string) error {
	return policy.Refuse(code, "/"+strings.ReplaceAll(name, ".", "/"), name+message)
}

// object checks an object of a request against its fields. null means that a member is absent.
// A missing member is reported at the end of its object; other is called for a member that is
// not one of the fields.
func object(v value, fields []field, other func(name string) error) error {
	return members(v, fields, other, true)
}

// members is object with a choice of the meaning of null: absent, or a value, which no reader
// accepts.
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
				return nil // absent, and reported below if it is required
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

// freeForm is the one member of a request that may be any JSON value, also null. Elsewhere in a
// request null means that the member is absent; a policy must not contain null.
const freeForm = "toolArguments"

// withoutNulls removes absent members from a canonical object, so that a hash does not depend
// on whether they were left out or null.
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

// canonicalOf returns the canonical form of an object that passed the strict parse, without
// absent members.
func canonicalOf(raw jsontext.Value) ([]byte, error) {
	canonical, err := canon.CanonicalChecked(raw)
	if err != nil {
		return nil, err
	}
	return withoutNulls(canonical)
}

// errShape cannot occur, because the text passed the strict parse.
var errShape = policy.Refuse("invalid_json", "", "invalid JSON: syntax")

// unknown names the object with an unknown member and the known member that was probably meant.
// It does not repeat the member's name, which the caller chose.
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

// parse checks a text strictly and reads its top-level object with the fields.
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

// text reads a string of 1 to most characters without white space at the ends and without
// invisible characters.
func text(into *string, most int) func(value) error { return words(into, most, false) }

// prose is text that may contain line breaks.
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
			return refuse("out_of_range", v.name, " must not have white space at an end or invisible characters")
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

// address reads a URL and also stores its normal form.
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

// matching reads text of a form that the message describes.
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

// integer reads a number without fraction (also 1.0) within limits.
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

// literal reads a number as it is written, up to the limit of exact JSON numbers.
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

// list reads an array of strings, each of which must satisfy check (nil: any string).
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
