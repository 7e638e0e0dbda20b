package api

import (
	"bytes"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// order knows where in a text the values stand that errors are about, and nothing
// of the others: a text of a megabyte has more values than errors, and pointers to
// all of them may be far longer than it.
type order struct{ root *spot }

// spot is a value somebody asks for, or one that holds such a value.
type spot struct {
	start, end int // octets of the text before the value, and before its end; absent if it is not there
	below      map[string]*spot
}

const absent = math.MaxInt

// orderOf finds the places of errors in a text that passed the strict parse.
func orderOf(body []byte, found []*jsonschema.ValidationError) order {
	o := order{newSpot()}
	for _, e := range found {
		at := o.root
		for _, part := range e.InstanceLocation {
			at = at.want(part)
		}
		if unknown, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
			for _, name := range unknown.Properties {
				at.want(name)
			}
		}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	_ = o.root.read(dec) // what cannot be read counts as not there
	return o
}

func newSpot() *spot { return &spot{start: absent, end: absent} }

func (p *spot) want(name string) *spot {
	if p.below == nil {
		p.below = map[string]*spot{}
	}
	if p.below[name] == nil {
		p.below[name] = newSpot()
	}
	return p.below[name]
}

// read notes where the next value is, and what is asked for below it.
func (p *spot) read(dec *jsontext.Decoder) error {
	if p == nil {
		return dec.SkipValue()
	}
	p.start = int(dec.InputOffset())
	open := dec.PeekKind()
	if len(p.below) == 0 && open != '{' || open != '{' && open != '[' {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; dec.PeekKind() != '}' && dec.PeekKind() != ']'; i++ {
		name := strconv.Itoa(i)
		if open == '{' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		if err := p.below[name].read(dec); err != nil {
			return err
		}
	}
	p.end = int(dec.InputOffset())
	_, err := dec.ReadToken()
	return err
}

// of is where an error counts: the first of the unknown members, the end of the
// object that lacks one, else the value.
func (o order) of(e *jsonschema.ValidationError) int {
	at := o.at(e)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return at.end
	case *kind.AdditionalProperties:
		first := absent
		for _, name := range k.Properties {
			first = min(first, at.below[name].start)
		}
		return first
	}
	return at.start
}

// first is the name that stands first among members of the object of an error.
func (o order) first(e *jsonschema.ValidationError, names []string) string {
	at, first := o.at(e), names[0]
	for _, name := range names[1:] {
		if at.below[name].start < at.below[first].start {
			first = name
		}
	}
	return first
}

func (o order) at(e *jsonschema.ValidationError) *spot {
	at := o.root
	for _, part := range e.InstanceLocation {
		at = at.below[part]
	}
	return at
}
