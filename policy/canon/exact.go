package canon

import (
	"math"
	"reflect"
	"strconv"
	"strings"
)

// tooLarge is the refusal of a number that is computed with.
func tooLarge(path string) *Error {
	path = SafePointer(path)
	return &Error{"out_of_range", path, where(path) + " must be a number from -9007199254740991 to 9007199254740991"}
}

// AllExact says whether a text that Check has accepted has no number for which IsExact
// says no. It looks at nothing inside of strings.
func AllExact(text []byte) bool {
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '"':
			at = skipText(text, at)
		case c == '-' || c >= '0' && c <= '9':
			start := at
			for at < len(text) && strings.IndexByte("+-.0123456789Ee", text[at]) >= 0 {
				at++
			}
			if !IsExact(string(text[start:at])) {
				return false
			}
		default:
			at++
		}
	}
	return true
}

// hasLongNumber says whether a text may hold an integer beyond 2^53-1, which has at
// least 16 digits.
func hasLongNumber(text []byte) bool {
	digits := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			digits = 0
			continue
		}
		if digits++; digits == 16 {
			return true
		}
	}
	return false
}

// inexact returns the JSON pointer of the first number of a Go type that is an integer
// beyond 2^53-1. Numbers inside a JSON text (jsontext.Value, Value) are not checked,
// since the program does not compute with them. Numbers inside an interface are checked
// only if interfaces is set: the program made those that it writes, while those that it
// reads are any JSON value.
func inexact(v reflect.Value, interfaces bool) (path string, found bool) {
	if !v.IsValid() || hasOwnForm(v.Type()) { // a time is written as a text
		return "", false
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "", v.Int() > MaxInteger || v.Int() < -MaxInteger
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "", v.Uint() > MaxInteger
	case reflect.Float32, reflect.Float64:
		f := math.Abs(v.Float())
		return "", f > MaxInteger && f < 1e21
	case reflect.Pointer:
		return inexact(v.Elem(), interfaces)
	case reflect.Interface:
		if interfaces {
			return inexact(v.Elem(), interfaces)
		}
	case reflect.Struct:
		for field, inner := range v.Fields() {
			if !field.IsExported() && !field.Anonymous {
				continue
			}
			if path, found = inexact(inner, interfaces); found {
				return memberPath(field) + path, true
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "", false
		}
		for i := range v.Len() {
			if path, found = inexact(v.Index(i), interfaces); found {
				return "/" + strconv.Itoa(i) + path, true
			}
		}
	case reflect.Map:
		for _, name := range v.MapKeys() {
			if path, found = inexact(v.MapIndex(name), interfaces); found {
				return path, true // of the map: a name may be the caller's
			}
		}
	}
	return "", false
}

// memberPath is the pointer of a field in the object that holds it.
func memberPath(field reflect.StructField) string {
	if field.Anonymous {
		return ""
	}
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" {
		name = field.Name
	}
	return "/" + name
}
