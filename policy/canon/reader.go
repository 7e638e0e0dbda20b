package canon

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader goes through a text that Check has accepted, in one pass, and makes nothing
// of what is skipped. It is for texts that were checked and for nothing else: of any
// other, what it returns means nothing.
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

// NewReader reads a text from its beginning.
func NewReader(text []byte) *Reader { return &Reader{text: text} }

// Kind is the kind of the next value by its first octet: { [ " 0 t f n. A number is 0,
// whatever it begins with. It is 0 (the octet) where the text ends.
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

// Enter goes into the object or list that is the next value.
func (r *Reader) Enter() {
	r.space()
	r.at++
}

// More says whether the object or list has one more member or item, which is next, and
// goes behind its end if not.
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

// Name is the name of the next member, behind which its value is next. Like Text it
// is a part of the whole where there is nothing to unescape: who keeps it copies it.
func (r *Reader) Name() []byte {
	name := r.Text()
	r.space()
	r.at++
	return name
}

// Text is the string that is the next value.
func (r *Reader) Text() []byte {
	r.space()
	start := r.at
	r.at = skipText(r.text, start)
	inside := r.text[start+1 : r.at-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	text, _ := jsontext.AppendUnquote(nil, r.text[start:r.at]) // it was checked
	return text
}

// Number is the number that is the next value, as the double that Check accepted.
func (r *Reader) Number() float64 {
	f, _ := strconv.ParseFloat(string(r.Raw()), 64)
	return f
}

// Raw is the text of the next value, a part of the whole.
func (r *Reader) Raw() jsontext.Value {
	r.space()
	start := r.at
	r.Skip()
	return jsontext.Value(r.text[start:r.at:r.at])
}

// Skip goes behind the next value.
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
				return // of what the value stands in: it was a number or a word
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
