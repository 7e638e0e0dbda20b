// Package canon is countersign's strict JSON decoder, and its canonical form,
// svc-stable-json-v1.
//
// A text is accepted only if all readers agree on its meaning. In addition to everything that
// RFC 8259 refuses, these are refused: duplicate member names (compared after unescaping),
// invalid UTF-8 and lone surrogates, NUL in a string, a number token of more than 40
// characters, a number that is not a finite IEEE 754 double, nesting deeper than 64, an object
// of more than 10,000 members, a byte order mark, and anything after the value.
//
// svc-stable-json-v1 is RFC 8785 (JCS) over a text that passed those rules:
// members sorted by UTF-16 code units, numbers in the shortest ECMAScript form,
// minimal escapes, no white space. For example
//
//	{"b": 1.50, "a": "\u0041"}   becomes   {"a":"A","b":1.5}
//
// whose SHA-256 is
// be5f1ce885c41d70c068a81970b44f7ec2ac60de83e9b1e154e7d1afab7a3571 .
//
// Integers beyond 2^53-1 need their own rule: RFC 8785 accepts only numbers that a double
// represents exactly (I-JSON, RFC 7493), and rounds all others. In svc-stable-json-v1 an
// integer literal (a number without fraction and exponent) keeps its digits, however many there
// are; only -0 becomes 0. So two large integers with different digits never have the same hash.
// For example
//
//	{"message_id": 1308129394817110129, "n": 1e2}   becomes   {"message_id":1308129394817110129,"n":100}
//
// whose SHA-256 is
// 91df0d7136df5b8f408295a6f81ef6fc365f296089cc86e6ba9599cd63f0e3cb .
//
// This rule is for values that are only hashed or passed on. Where a program computes with a
// number, the limit of 2^53-1 applies: Decode and Marshal refuse a larger number of a Go type
// (except a float64 from 1e21), and IsExact checks a number as it is written.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Name is the name of the canonical form, as records contain it.
const Name = "svc-stable-json-v1"

// Error is the refusal of an input. It names the place and the reason, and never repeats the
// value.
type Error struct {
	// Code is for programs: invalid_json, duplicate_field, unknown_field, missing_field,
	// wrong_type, out_of_range, too_long, too_many_items, invalid_date, invalid_enum,
	// mutually_exclusive, inconsistent_input, or a code of one service.
	Code string
	// Path is the JSON pointer (RFC 6901) of the refused value, or of the object that contains it.
	// It is empty for the complete text.
	Path string
	// Message is for people: one lower-case clause in ASCII, at most 200 characters.
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Check parses one JSON text strictly. It returns nil, or an *Error for the first problem in the
// text. Its time is linear in the length of the text.
func Check(text []byte) error {
	if len(bytes.TrimLeft(text, " \t\r\n")) == 0 {
		return &Error{"invalid_json", "", "invalid JSON: the body is empty"}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		kind := dec.PeekKind()
		if kind == '[' || kind == '{' {
			if dec.StackDepth() >= MaxDepth {
				return &Error{"invalid_json", "", "invalid JSON: nested deeper than 64"}
			}
		}
		token, err := dec.ReadToken()
		if err != nil {
			return syntaxError(dec, err)
		}
		switch token.Kind() {
		case '0':
			if err := checkNumber(token.String(), dec); err != nil {
				return err
			}
		case '"':
			if strings.IndexByte(token.String(), 0) >= 0 {
				return &Error{"invalid_json", "", "invalid JSON: NUL in a string"}
			}
			if kind, length := dec.StackIndex(dec.StackDepth()); kind == '{' && length > 2*MaxMembers {
				return &Error{"invalid_json", "", "invalid JSON: more than 10000 members in one object"}
			}
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return &Error{"invalid_json", "", "invalid JSON: something follows the value"}
	}
	return nil
}

func syntaxError(dec *jsontext.Decoder, err error) *Error {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{"duplicate_field", holder(dec), "invalid JSON: duplicate member"}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &Error{"invalid_json", "", "invalid JSON: the text ends too early"}
	case strings.Contains(err.Error(), "UTF-8"), strings.Contains(err.Error(), "surrogate"):
		return &Error{"invalid_json", "", "invalid JSON: not valid UTF-8"}
	}
	return &Error{"invalid_json", "", "invalid JSON: syntax error at byte " + strconv.FormatInt(dec.InputOffset(), 10)}
}

// holder returns the JSON pointer of the object that the decoder is reading. The caller chooses
// the names of members, so the pointer is cut before a name that no contract could contain
// (SafePointer).
func holder(dec *jsontext.Decoder) string { return SafePointer(string(dec.StackPointer().Parent())) }

// SafePointer cuts a JSON pointer before the first part that could not be a member name of a
// contract (1 to 64 letters, digits, underscores and hyphens), so that an error does not repeat
// names that the caller invented.
func SafePointer(pointer string) string {
	end := 0
	for end < len(pointer) {
		next := strings.IndexByte(pointer[end+1:], '/')
		if next < 0 {
			next = len(pointer) - end - 1
		}
		if !IsSafeName(pointer[end+1 : end+1+next]) {
			return pointer[:end]
		}
		end += 1 + next
	}
	return pointer
}

// IsSafeName reports whether a part of a JSON pointer could be a member name of a contract: 1 to 64
// letters, digits, underscores and hyphens.
func IsSafeName(part string) bool {
	return len(part) > 0 && len(part) <= 64 && strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

func checkNumber(token string, dec *jsontext.Decoder) error {
	reason := ""
	err := error(nil)
	if len(token) > 15 || strings.ContainsAny(token, "eE") { // a shorter number without an exponent is below 1e15
		_, err = strconv.ParseFloat(token, 64) // the error reports a number that is not finite
	}
	switch {
	case len(token) > MaxNumber:
		reason = "a number of more than 40 characters"
	case err != nil:
		reason = "a number too large for a double"
	default:
		return nil
	}
	return &Error{"invalid_json", SafePointer(string(dec.StackPointer())), "invalid JSON: " + reason}
}

// IsExact reports whether every program reads the same value from a number that is written like
// this. It is false if the absolute value is above 2^53-1, because readers may round the number
// differently. It is true again from 1e21, if the number has a fraction or an exponent, because
// its canonical form then has an exponent and no reader takes it for an integer.
func IsExact(number string) bool {
	if len(number) <= 15 && !strings.ContainsAny(number, "eE") {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	isFloat := strings.ContainsAny(number, ".eE")
	return err == nil && (math.Abs(f) <= MaxInteger || isFloat && math.Abs(f) >= 1e21)
}

// Canonical checks a text (see Check) and returns its canonical form.
func Canonical(text []byte) ([]byte, error) {
	if canonical, ok := plain(text); ok {
		return canonical, nil
	}
	if err := Check(text); err != nil {
		return nil, err
	}
	return byLibrary(text)
}

// CanonicalChecked is like Canonical, for a text that Check has accepted.
func CanonicalChecked(text []byte) ([]byte, error) {
	if canonical, ok := plain(text); ok {
		return canonical, nil
	}
	return byLibrary(text)
}

// byLibrary returns the canonical form of a checked text that is not plain (see plain.go).
func byLibrary(text []byte) ([]byte, error) {
	v := jsontext.Value(bytes.Clone(text))
	if err := v.Canonicalize(keepIntegers); err != nil {
		return nil, &Error{"invalid_json", "", "invalid JSON: no canonical form"}
	}
	return v, nil
}

// keepIntegers makes integer literals keep their digits. It is the only difference from RFC 8785.
var keepIntegers = jsontext.CanonicalizeRawInts(false)

// Decode checks a text and reads it into a Go value. It refuses members that the Go type does not
// have; the case of names matters. For a Go number it refuses a number beyond 2^53-1, except a
// float64 from 1e21 (see IsExact). It keeps every number in a jsontext.Value or a Value.
func Decode(text []byte, into any) error {
	if err := Check(text); err != nil {
		return err
	}
	return DecodeChecked(text, into)
}

// DecodeChecked is like Decode, for a text that Check has accepted.
func DecodeChecked(text []byte, into any) error {
	// Check has found no duplicate names. Checking again would cost a set of names per object.
	err := json.Unmarshal(text, into, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true))
	var semantic *json.SemanticError
	switch {
	case err == nil && hasLongNumber(text):
		if path, found := inexact(reflect.ValueOf(into), false); found {
			return tooLarge(path)
		}
		return nil
	case err == nil:
		return nil
	case errors.Is(err, json.ErrUnknownName):
		path, clause := "", Unknown("", nil)
		if errors.As(err, &semantic) {
			path = SafePointer(string(semantic.JSONPointer.Parent()))
			clause = Unknown(semantic.JSONPointer.LastToken(), memberNames(semantic.GoType))
		}
		return &Error{"unknown_field", path, where(path) + " " + clause}
	case errors.As(err, &semantic):
		path := SafePointer(string(semantic.JSONPointer))
		return &Error{"wrong_type", path, where(path) + " has the wrong type"}
	}
	return &Error{"invalid_json", "", "invalid JSON"}
}

func where(path string) string {
	if path == "" {
		return "the object"
	}
	return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".") // the form that all error texts use for names
}

// Marshal returns the canonical form of a Go value. It returns an error if the value contains a
// NUL, a float that is not finite, or a Go number beyond 2^53-1, except a float64 from 1e21 (see
// IsExact). It keeps larger integers in a jsontext.Value or a Value.
func Marshal(v any) ([]byte, error) {
	if canonical, ok := direct(v); ok {
		return canonical, nil
	}
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	if hasLongNumber(text) {
		if path, found := inexact(reflect.ValueOf(v), true); found {
			return nil, tooLarge(path)
		}
	}
	if canonical, ok := plain(text); ok {
		return canonical, nil
	}
	// The encoder writes valid UTF-8 with unique names. A violation of the other rules of Check is
	// rare, so a quick search decides whether a full check is necessary.
	if suspect(text) {
		if err := Check(text); err != nil {
			return nil, err
		}
	}
	canonical := jsontext.Value(text)
	if err := canonical.Canonicalize(keepIntegers); err != nil {
		return nil, err
	}
	return canonical, nil
}

// suspect reports whether a text may contain a NUL, a number that is too long, or deep nesting.
func suspect(text []byte) bool {
	digits, depth := 0, 0
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > MaxNumber {
				return true
			}
			continue
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		case c == 'u' && i > 0 && text[i-1] == '\\' && bytes.HasPrefix(text[i:], []byte("u0000")):
			return true
		}
		digits = 0
	}
	return false
}

// Members returns the members of a canonical object without parsing their values. The values
// are parts of the object, not copies.
func Members(canonical []byte) (map[string]jsontext.Value, error) {
	if members, ok := plainMembers(canonical); ok {
		return members, nil
	}
	var members map[string]jsontext.Value
	return members, json.Unmarshal(canonical, &members)
}

// Object builds a canonical object from members with canonical values.
func Object(members map[string]jsontext.Value) []byte {
	names, size := make([]string, 0, len(members)), 2
	for name, value := range members {
		names = append(names, name)
		size += len(name) + len(value) + 4
	}
	slices.SortFunc(names, compareUTF16)
	b := append(make([]byte, 0, size), '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, name) // fails only for invalid UTF-8, which no member name contains
		b = append(append(b, ':'), members[name]...)
	}
	return append(b, '}')
}

// compareUTF16 compares names by their UTF-16 code units. For ASCII that is the order of the
// bytes.
func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] >= 0x80 || b[i] >= 0x80 {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		}
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}

// Hash returns the lower-case hex SHA-256 of canonical bytes.
func Hash(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}
