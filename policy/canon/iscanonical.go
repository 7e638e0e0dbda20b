package canon

import (
	"bytes"
	"unicode/utf8"
)

// IsCanonical reports whether a text is equal to its canonical form. For a plain text (see
// plain.go) it decides in one pass over the bytes, without a copy.
func IsCanonical(text []byte) bool {
	if end, ok := plainValue(text, 0, 0); ok && end == len(text) && utf8.Valid(text) {
		return true
	}
	canonical, err := Canonical(text)
	return err == nil && bytes.Equal(canonical, text)
}

// plainValue returns the end of the plain, canonical value that begins at the position at. ok is
// false if the text is not plain or not canonical.
func plainValue(text []byte, at, depth int) (end int, ok bool) {
	if at == len(text) || depth > plainDepth {
		return at, false
	}
	switch c := text[at]; {
	case c == '"':
		return plainText(text, at)
	case c == '{':
		return plainObject(text, at, depth)
	case c == '[':
		return plainArray(text, at, depth)
	case c == '-' || c >= '0' && c <= '9':
		return plainNumber(text, at)
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(text[at:], []byte(word)) {
			return at + len(word), true
		}
	}
	return at, false
}

// plainDepth is the deepest nesting for the quick pass; Canonical decides for deeper texts.
const plainDepth = 32

// plainText returns the end of a string. ok is false if it has an escape that is not in canonical
// form, or \u.
func plainText(text []byte, at int) (end int, ok bool) {
	for at++; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			return at + 1, true
		case c < 0x20:
			return at, false
		case c == '\\':
			if at++; at == len(text) || bytes.IndexByte([]byte(`"\bfnrt`), text[at]) < 0 {
				return at, false
			}
		}
	}
	return at, false
}

// plainNumber returns the end of an integer. ok is false for any other number, for more than 15
// digits, and for an integer that is not canonical, such as 01 or -0.
func plainNumber(text []byte, at int) (end int, ok bool) {
	negative := text[at] == '-'
	if negative {
		at++
	}
	start := at
	for at < len(text) && text[at] >= '0' && text[at] <= '9' {
		at++
	}
	digits := at - start
	if at < len(text) && (text[at] == '.' || text[at] == 'e' || text[at] == 'E') {
		return at, false
	}
	return at, digits > 0 && digits <= 15 && (text[start] != '0' || digits == 1 && !negative)
}

func plainArray(text []byte, at, depth int) (end int, ok bool) {
	if at++; at < len(text) && text[at] == ']' {
		return at + 1, true
	}
	for {
		if at, ok = plainValue(text, at, depth+1); !ok || at == len(text) {
			return at, false
		}
		if at++; text[at-1] == ']' {
			return at, true
		}
		if text[at-1] != ',' {
			return at, false
		}
	}
}

// plainObject returns the end of an object. ok is false if a name is not ASCII or has an escape,
// or if the names are not sorted and unique.
func plainObject(text []byte, at, depth int) (end int, ok bool) {
	if at++; at < len(text) && text[at] == '}' {
		return at + 1, true
	}
	var before []byte
	for first := true; ; first = false {
		name := at
		if at == len(text) || text[at] != '"' {
			return at, false
		}
		if at, ok = plainText(text, at); !ok || at == len(text) || text[at] != ':' {
			return at, false
		}
		inside := text[name+1 : at-1]
		if !isASCII(inside) || bytes.IndexByte(inside, '\\') >= 0 || !first && bytes.Compare(before, inside) >= 0 {
			return at, false
		}
		before = inside
		if at, ok = plainValue(text, at+1, depth+1); !ok || at == len(text) {
			return at, false
		}
		if at++; text[at-1] == '}' {
			return at, true
		}
		if text[at-1] != ',' {
			return at, false
		}
	}
}
