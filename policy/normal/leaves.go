package normal

import (
	"bytes"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// Leaf is one text in a JSON value. It is valid only until the iteration continues.
type Leaf struct {
	Name string // name of the member with this value; empty if Text is itself a member name
	Text string // a string, a member name, or the digits of a number

	steps []step // the path from the top of the value
}

// step is one step of a path: a member of an object, or an item of a list if index is not
// negative.
type step struct {
	name  string
	index int
}

// Leaves iterates over every text in a JSON value that canon.Check has accepted: strings, the
// digits of numbers, and member names, each before its value. It builds no values, so its cost is
// linear in the length of the text for any nesting.
func Leaves(text jsontext.Value) iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) {
		r := leafReader{dec: jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true)), yield: yield}
		r.read("")
	}
}

type leafReader struct {
	dec   *jsontext.Decoder
	yield func(Leaf) bool
	steps []step
}

// read reads the next value and passes its texts to yield. name is the name of the member that has
// the value. read returns false if the iteration must stop.
func (r *leafReader) read(name string) bool {
	token, err := r.dec.ReadToken()
	if err != nil {
		return false
	}
	switch token.Kind() {
	case '"':
		return r.yield(Leaf{name, token.String(), r.steps})
	case '0':
		return r.yield(Leaf{name, digits(token), r.steps})
	case '{', '[':
		return r.readWithin(name, token.Kind() == '{')
	}
	return true
}

func (r *leafReader) readWithin(name string, isObject bool) bool {
	depth := len(r.steps)
	for i := 0; ; i++ {
		if kind := r.dec.PeekKind(); kind == '}' || kind == ']' {
			_, err := r.dec.ReadToken()
			r.steps = r.steps[:depth]
			return err == nil
		}
		next := step{index: i}
		if isObject {
			token, err := r.dec.ReadToken()
			if err != nil {
				return false
			}
			next = step{token.String(), -1}
			name = next.name
		}
		r.steps = append(r.steps[:depth], next)
		if isObject && !r.yield(Leaf{"", name, r.steps}) || !r.read(name) {
			return false
		}
	}
}

// digits returns a number in decimal digits, without an exponent.
func digits(token jsontext.Token) string {
	text := token.String()
	for i := range len(text) { // cheap, because most numbers are short
		if text[i] == 'e' || text[i] == 'E' {
			if x, err := token.Float(); err == nil {
				return strconv.FormatFloat(x, 'f', -1, 64)
			}
			break
		}
	}
	return text
}

// Pointer returns prefix, followed by the JSON pointer of the leaf. It stops before the first name
// that could not be a member name of a contract, or for which the function passes returns false,
// so that an answer does not repeat names that the caller invented.
func (l Leaf) Pointer(prefix string, passes func(name string) bool) string {
	for _, s := range l.steps {
		part := s.name
		if s.index >= 0 {
			part = strconv.Itoa(s.index)
		}
		if !canon.IsSafeName(part) || !passes(part) {
			break
		}
		prefix += "/" + part
	}
	return prefix
}
