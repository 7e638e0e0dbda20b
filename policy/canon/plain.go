package canon

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Nearly every text is plain: its member names are ASCII without escapes, its strings have only
// escapes in canonical spelling, its numbers are integers, or fractions of at most 15 digits
// without an exponent, and it is nested at most 64 deep. The canonical form of a plain text
// consists of the same tokens, with the members sorted. One pass over the bytes builds it and
// makes all checks of Check. The JSON library parses any other text, and produces the error.

// plain returns the canonical form of a plain text. ok is false if the text is not plain or if
// Check would refuse it.
func plain(text []byte) (canonical []byte, ok bool) {
	if !utf8.Valid(text) {
		return nil, false
	}
	w := plainWriters.Get().(*plainWriter)
	defer plainWriters.Put(w)
	w.src, w.at, w.dst, w.depth, w.members = text, 0, make([]byte, 0, len(text)), 0, w.members[:0]
	if ok = w.value(); ok {
		w.space()
		canonical, ok = w.dst, w.at == len(text)
	}
	w.src, w.dst = nil, nil
	clear(w.members)
	return canonical, ok
}

var plainWriters = sync.Pool{New: func() any { return new(plainWriter) }}

type plainWriter struct {
	src     []byte
	at      int
	dst     []byte
	depth   int
	members []plainMember // members of the objects being read, those of the innermost object last
	moved   []byte        // buffer for sorting members
}

// plainMember is the position in dst of one member: name, colon and value.
type plainMember struct {
	name       []byte
	start, end int
}

func (w *plainWriter) space() {
	for w.at < len(w.src) && (w.src[w.at] == ' ' || w.src[w.at] == '\n' || w.src[w.at] == '\t' || w.src[w.at] == '\r') {
		w.at++
	}
}

// next skips white space, and then the byte c. It returns false if another byte comes first.
func (w *plainWriter) next(c byte) bool {
	w.space()
	if w.at < len(w.src) && w.src[w.at] == c {
		w.at++
		return true
	}
	return false
}

func (w *plainWriter) value() bool {
	w.space()
	if w.at == len(w.src) {
		return false
	}
	switch c := w.src[w.at]; {
	case c == '{' || c == '[':
		if w.depth++; w.depth > MaxDepth {
			return false
		}
		ok := c == '{' && w.object() || c == '[' && w.array()
		w.depth--
		return ok
	case c == '"':
		_, ok := w.text(false)
		return ok
	case c == '-' || c >= '0' && c <= '9':
		return w.number()
	}
	for _, word := range literals {
		if rest := w.src[w.at:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			w.dst = append(w.dst, word...)
			w.at += len(word)
			return true
		}
	}
	return false
}

var literals = []string{"true", "false", "null"}

// number copies a number that is already in canonical form: an integer, or a fraction of at most
// 15 digits without an exponent. For such a fraction no shorter text means the same double. A
// number below 1e-6 has an exponent in its canonical form, and "-0" becomes 0: number returns
// false for both, and for "01", which is not JSON.
func (w *plainWriter) number() bool {
	start := w.at
	if w.src[w.at] == '-' {
		w.at++
	}
	first := w.at
	digits := w.digits()
	if digits == 0 || digits > 1 && w.src[first] == '0' {
		return false
	}
	fraction, zero := 0, w.src[first] == '0'
	if w.at < len(w.src) && w.src[w.at] == '.' {
		w.at++
		first = w.at
		if fraction = w.digits(); fraction == 0 || w.src[w.at-1] == '0' {
			return false
		}
		if zero && len(bytes.TrimLeft(w.src[first:min(first+6, w.at)], "0")) == 0 {
			return false
		}
		zero = false
	}
	if w.at < len(w.src) && (w.src[w.at] == 'e' || w.src[w.at] == 'E') {
		return false
	}
	w.dst = append(w.dst, w.src[start:w.at]...)
	return (digits+fraction <= 15 || fraction == 0 && w.at-start <= MaxNumber) && !(zero && w.src[start] == '-')
}

// digits skips digits and returns their number.
func (w *plainWriter) digits() int {
	start := w.at
	for w.at < len(w.src) && w.src[w.at] >= '0' && w.src[w.at] <= '9' {
		w.at++
	}
	return w.at - start
}

// text copies a string and returns its contents without the quotes. A name must be ASCII without
// escapes.
func (w *plainWriter) text(isName bool) (inside []byte, ok bool) {
	start := w.at
	for w.at++; w.at < len(w.src); w.at++ {
		switch c := w.src[w.at]; {
		case c == '"':
			w.at++
			w.dst = append(w.dst, w.src[start:w.at]...)
			return w.src[start+1 : w.at-1], true
		case c < ' ' || isName && (c >= 0x80 || c == '\\'):
			return nil, false
		case c == '\\':
			if w.at++; w.at == len(w.src) || !isShortEscape[w.src[w.at]] {
				return nil, false
			}
		}
	}
	return nil, false
}

// isShortEscape marks the bytes that may follow a backslash in canonical form, except u.
var isShortEscape = [256]bool{'"': true, '\\': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

func (w *plainWriter) array() bool {
	w.at++
	w.dst = append(w.dst, '[')
	for n := 0; !w.next(']'); n++ {
		if n > 0 {
			if !w.next(',') {
				return false
			}
			w.dst = append(w.dst, ',')
		}
		if !w.value() {
			return false
		}
	}
	w.dst = append(w.dst, ']')
	return true
}

func (w *plainWriter) object() bool {
	w.at++
	w.dst = append(w.dst, '{')
	start, first, inOrder := len(w.dst), len(w.members), true
	for !w.next('}') {
		if len(w.members) > first {
			if !w.next(',') {
				return false
			}
			w.dst = append(w.dst, ',')
		}
		m := plainMember{start: len(w.dst)}
		w.space()
		var ok bool
		if w.at == len(w.src) || w.src[w.at] != '"' {
			return false
		}
		if m.name, ok = w.text(true); !ok || !w.next(':') {
			return false
		}
		w.dst = append(w.dst, ':')
		if !w.value() {
			return false
		}
		m.end = len(w.dst)
		inOrder = inOrder && (len(w.members) == first || bytes.Compare(w.members[len(w.members)-1].name, m.name) < 0)
		w.members = append(w.members, m)
	}
	if len(w.members)-first > MaxMembers || !inOrder && !w.reorder(start, w.members[first:]) {
		return false
	}
	w.members = w.members[:first]
	w.dst = append(w.dst, '}')
	return true
}

// reorder sorts by name the members of the object that begins at start in dst. For ASCII names the
// order of bytes is the order of UTF-16 code units. It returns false if two names are equal.
func (w *plainWriter) reorder(start int, members []plainMember) bool {
	slices.SortFunc(members, func(a, b plainMember) int { return bytes.Compare(a.name, b.name) })
	w.moved = append(w.moved[:0], w.dst[start:]...)
	w.dst = w.dst[:start]
	for i, m := range members {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if i > 0 && bytes.Equal(members[i-1].name, m.name) {
			return false
		}
		w.dst = append(w.dst, w.moved[m.start-start:m.end-start]...)
	}
	return true
}

// plainMembers returns the members of a canonical object. ok is false if a name has an escape.
func plainMembers(canonical []byte) (members map[string]jsontext.Value, ok bool) {
	end := len(canonical) - 1
	if end < 1 || canonical[0] != '{' || canonical[end] != '}' {
		return nil, false
	}
	members = make(map[string]jsontext.Value, 16)
	for at := 1; at < end; at++ { // at is after the brace or a comma
		if canonical[at] != '"' {
			return nil, false
		}
		name := bytes.IndexByte(canonical[at+1:], '"')
		if name < 0 || bytes.IndexByte(canonical[at+1:at+1+name], '\\') >= 0 {
			return nil, false
		}
		value := at + 1 + name + 2 // the position after the closing quote and the colon
		next := skip(canonical, value)
		if canonical[value-1] != ':' || next > end || next < end && canonical[next] != ',' {
			return nil, false
		}
		members[string(canonical[at+1:at+1+name])] = jsontext.Value(canonical[value:next:next])
		at = next
	}
	return members, true
}

// Find returns the position of the value at a path of member names in a canonical object. It finds
// only names that JSON writes without escapes. With an empty path it returns the position of the
// complete object.
func Find(canonical []byte, path ...string) (start, end int, found bool) {
	if len(path) == 0 {
		return 0, len(canonical), true
	}
	for _, name := range path {
		if start, found = findMember(canonical, start, name); !found {
			return 0, 0, false
		}
	}
	return start, skip(canonical, start), true
}

// findMember returns the position of the value of a member. object is the position of the object.
// It does not read the value or the rest of the object.
func findMember(text []byte, object int, name string) (value int, found bool) {
	if object == len(text) || text[object] != '{' {
		return 0, false
	}
	for at := object + 1; at < len(text) && text[at] == '"'; at = skip(text, value) + 1 { // at is after the brace or a comma
		colon := skipText(text, at)
		if value = colon + 1; value >= len(text) {
			break // the text ends too early
		}
		if string(text[at+1:colon-1]) == name {
			return value, true
		}
	}
	return 0, false
}

// Put returns a copy of a canonical object in which the value at path is replaced by another
// canonical value. If Find does not find a value at path, Put returns the object unchanged.
func Put(canonical, value []byte, path ...string) []byte {
	start, end, found := Find(canonical, path...)
	if !found {
		return canonical
	}
	return slices.Concat(canonical[:start], value, canonical[end:])
}

// skip returns the end of a value in an object or array, including white space after the value.
func skip(text []byte, at int) int {
	for depth := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			at = skipText(text, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return at
			}
		case ',':
			if depth == 0 {
				return at
			}
		}
	}
	return at
}

// skipText returns the position after the string that begins at the position at.
func skipText(text []byte, at int) int {
	at++
	for quote := -1; at <= len(text); {
		if quote < at { // the quote found last was inside an escape
			next := bytes.IndexByte(text[at:], '"')
			if next < 0 {
				return len(text)
			}
			quote = at + next
		}
		escape := bytes.IndexByte(text[at:quote], '\\')
		if escape < 0 {
			return quote + 1
		}
		at += escape + 2
	}
	return len(text)
}

// Walk calls member for each member of an object that Check has accepted, in the order of the
// text. The values are parts of the text, not copies. If member returns an error, Walk stops and
// returns that error.
func Walk(object []byte, member func(name string, value jsontext.Value) error) error {
	w := plainWriter{src: object}
	if !w.next('{') {
		return errNoObject
	}
	for n := 0; !w.next('}'); n++ {
		if n > 0 && !w.next(',') {
			return errNoObject
		}
		w.space()
		start := w.at
		w.at = skipText(object, start)
		name, ok := nameOf(object[start:w.at])
		if !ok || !w.next(':') {
			return errNoObject
		}
		w.space()
		start = w.at
		w.at = skip(object, start)
		if err := member(name, bytes.TrimRight(object[start:w.at:w.at], " \t\r\n")); err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns the name without quotes and escapes. Escapes in names are rare.
func nameOf(quoted []byte) (name string, ok bool) {
	if inside := len(quoted) - 1; inside > 0 && bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:inside]), true
	}
	unquoted, err := jsontext.AppendUnquote(nil, quoted)
	return string(unquoted), err == nil
}

// errNoObject is returned where an error cannot occur, because the text was checked.
var errNoObject = &Error{"invalid_json", "", "invalid JSON: not an object"}
