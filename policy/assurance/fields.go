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

// The functions of this file check a request member by member, in the order of the text. The first
// problem becomes the error, with the message of the contract. The functions read each value
// during the check, because amounts must be read exactly as written.

// value is the value of a member, with the name that error messages use for the member.
type value struct {
	raw  jsontext.Value
	name string // for example "intent.method"
}

// field describes a member that an object may have, and the function that reads it.
type field struct {
	name     string
	required bool
	read     func(value) error
}

func refuse(code, name, message string) error {
	return policy.Refuse(code, "/"+strings.ReplaceAll(name, ".", "/"), name+message)
}

// object reads an object of a request with these fields. A member that is null counts as absent. A
// missing member is reported after all present members are read. For the name of a member that is
// not one of the fields, the function other may return a better error than "unknown field".
func object(v value, fields []field, other func(name string) error) error {
	return members(v, fields, other, true)
}

// members is like object, but the caller chooses what null means: if nullIsAbsent is false, null
// is passed to the field's reader, which refuses it.
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
				return nil // treated as absent; reported below if it is required
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

// freeForm is the only member of a request that may be any JSON value, including null. In every
// other member of a request null means absent; a policy must not contain null.
const freeForm = "toolArguments"

// withoutNulls removes the null members of a canonical object, so that the hash is the same
// whether the caller sends null or omits the member.
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

// canonicalOf returns the canonical form, without null members, of an object that passed the
// strict parse.
func canonicalOf(raw jsontext.Value) ([]byte, error) {
	canonical, err := canon.CanonicalChecked(raw)
	if err != nil {
		return nil, err
	}
	return withoutNulls(canonical)
}

// errShape is returned where an error cannot occur, because the text passed the strict parse.
var errShape = policy.Refuse("invalid_json", "", "invalid JSON: syntax")

// unknown returns the error for an unknown member. The error names the object, and the known
// member that the caller probably meant. It does not repeat the unknown name, because the caller
// chose it.
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

// parse checks a text strictly and reads its top-level object, which has these fields.
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

// text returns a reader for a string without white space at its ends and without invisible
// characters. The string has at least one character, and not more than the limit most.
func text(into *string, most int) func(value) error { return words(into, most, false) }

// prose is like text, but also accepts line breaks.
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

// address returns a reader for a URL. The reader stores the URL as written and in normal form.
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

// matching returns a reader for text that the function good accepts. For other text the error is
// the name of the member, followed by message.
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

// integer returns a reader for a number without a fraction (also written 1.0). The smallest
// accepted number is least, the largest is most.
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

// literal returns a reader that stores a number as written. It refuses numbers above the limit of
// exact integers in JSON.
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

// list returns a reader for an array of strings. The largest number of strings is entries, and the
// largest length of each, in characters, is length. check returns the error message for an entry,
// or "" if it is valid; a nil check accepts every string.
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
