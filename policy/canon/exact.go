package canon

import (
	"math"
	"reflect"
	"strconv"
	"strings"
)

// tooLarge returns the error for a Go number that inexact finds.
func tooLarge(path string) *Error {
	path = SafePointer(path)
	return &Error{"out_of_range", path, where(path) + " must be a number from -9007199254740991 to 9007199254740991"}
}

// AllIntegers reports whether every number in a text that Check has accepted is an integer without
// point and exponent, for which IsExact is true. It ignores digits in strings.
func AllIntegers(text []byte) bool {
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '"':
			at = skipText(text, at)
		case c == '-' || c >= '0' && c <= '9':
			start := at
			for at < len(text) && strings.IndexByte("+-.0123456789Ee", text[at]) >= 0 {
				at++
			}
			if number := string(text[start:at]); strings.ContainsAny(number, ".eE") || !IsExact(number) {
				return false
			}
		default:
			at++
		}
	}
	return true
}

// hasLongNumber reports whether a text has 16 digits in sequence. An integer beyond 2^53-1 has at
// least 16.
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

// inexact returns the JSON pointer of the first Go number in v that is beyond 2^53-1. A float from
// 1e21 is allowed (see IsExact). inexact ignores numbers in a JSON text (jsontext.Value, Value),
// because the program does not compute with them. It checks numbers in an interface value only if
// interfaces is true: Marshal sets it, because such numbers come from the program itself. For
// Decode they are part of arbitrary JSON.
func inexact(v reflect.Value, interfaces bool) (path string, found bool) {
	if !v.IsValid() || hasOwnForm(v.Type()) { // a type with its own form, such as time.Time, is not written as a number
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
				return path, true // the JSON pointer of the map itself, because its names may come from the caller
			}
		}
	}
	return "", false
}

// memberPath returns the JSON pointer of a field relative to its struct. It is empty for an
// embedded struct, because JSON writes its fields as those of the outer struct.
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
