package canon

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader reads a text that Check has accepted, in one pass. It does not parse values that the
// caller skips. For a text that was not checked the results are undefined.
//
//	for r.Enter(); r.More(); {
//		switch string(r.Name()) {
//		case "a":
//			a = r.Text()
//		default:
//			r.Skip()
//		}
//	}
type Reader struct {
	text []byte
	at   int
}

// NewReader returns a reader at the beginning of a text.
func NewReader(text []byte) *Reader { return &Reader{text: text} }

// Kind returns the first byte of the next value, which tells its type: { [ " t f n, or '0' for
// every number. At the end of the text it returns 0.
func (r *Reader) Kind() byte {
	r.space()
	if r.at >= len(r.text) {
		return 0
	}
	switch c := r.text[r.at]; c {
	case '-', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	default:
		return c
	}
}

func (r *Reader) space() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\n' || r.text[r.at] == '\t' || r.text[r.at] == '\r') {
		r.at++
	}
}

// Enter moves into the object or array that is the next value.
func (r *Reader) Enter() {
	r.space()
	r.at++
}

// More reports whether the object or array has another member or item. If not, it moves after the
// closing bracket.
func (r *Reader) More() bool {
	switch r.Kind() {
	case ']', '}':
		r.at++
		return false
	case ',':
		r.at++
	}
	return r.at < len(r.text)
}

// Name returns the name of the next member and moves to its value. A name without escapes is a
// part of the text: a caller that keeps it must copy it.
func (r *Reader) Name() []byte {
	name := r.Text()
	r.space()
	r.at++
	return name
}

// Text returns the string that is the next value. A string without escapes is a part of the text:
// a caller that keeps it must copy it.
func (r *Reader) Text() []byte {
	r.space()
	start := r.at
	r.at = skipText(r.text, start)
	inside := r.text[start+1 : r.at-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	text, _ := jsontext.AppendUnquote(nil, r.text[start:r.at]) // no error, because the text was checked
	return text
}

// Number returns the number that is the next value.
func (r *Reader) Number() float64 {
	f, _ := strconv.ParseFloat(string(r.Raw()), 64)
	return f
}

// Raw returns the text of the next value. It is a part of the complete text, not a copy.
func (r *Reader) Raw() jsontext.Value {
	r.space()
	start := r.at
	r.Skip()
	return jsontext.Value(r.text[start:r.at:r.at])
}

// Skip moves after the next value.
func (r *Reader) Skip() {
	r.space()
	depth := 0
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case '"':
			r.at = skipText(r.text, r.at)
			if depth == 0 {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return // the end of the surrounding value; the skipped value was a number or a literal
			}
			if depth--; depth == 0 {
				r.at++
				return
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return
			}
		}
		r.at++
	}
}
