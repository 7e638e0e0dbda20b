package api

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// reading is how much of a value the validator has to see: what its schema says
// something about. Of all else only the kind of value counts, so a megabyte that no
// schema describes is skipped. Nil reads nothing that is inside of a value.
type reading struct {
	members map[string]*reading
	others  *reading // members that members does not have
	items   *reading
	object  bool // the members of an object count, if only by their names
	list    bool // the items of a list count, if only by their number
	most    int  // items of a list; what follows one more changes nothing. Below 0: no bound
}

// whole reads everything.
var whole = func() *reading {
	r := &reading{object: true, list: true, most: -1}
	r.others, r.items = r, r
	return r
}()

// Keywords that say nothing about what is inside of a value, and those of which
// readingOf knows what they say. A schema with any other is read whole, so that the
// validator never sees less than it asks for.
var (
	saysNothingInside = []string{"type", "title", "description", "default", "examples", "format", "pattern",
		"minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
	ofObjects = []string{"properties", "required", "additionalProperties"}
	ofLists   = []string{"items", "minItems", "maxItems", "uniqueItems"}
	scalars   = []string{"string", "number", "integer", "boolean", "null"}
)

// readingOf is what a schema asks for. One of an optional member has two branches, of
// which one is null.
func readingOf(schema any) *reading {
	node, is := schema.(map[string]any)
	if !is {
		return nil // true or false: whatever the value is
	}
	if kind, _ := node["type"].(string); slices.Contains(scalars, kind) {
		return nil
	}
	if branches, has := node["anyOf"].([]any); has {
		branches = slices.DeleteFunc(slices.Clone(branches), isNull)
		if rest := without(node, "anyOf"); len(branches) == 1 && !says(rest, ofObjects) && !says(rest, ofLists) && isKnown(rest) {
			return readingOf(branches[0])
		}
		return whole
	}
	if !isKnown(node) {
		return whole
	}
	r := &reading{object: says(node, ofObjects), list: says(node, ofLists), most: -1,
		others: readingOf(node["additionalProperties"]), items: readingOf(node["items"])}
	properties, _ := node["properties"].(map[string]any)
	if len(properties) > 0 {
		r.members = make(map[string]*reading, len(properties))
	}
	for name, property := range properties {
		r.members[name] = readingOf(property)
	}
	if most, bounded := node["maxItems"].(float64); bounded {
		r.most = int(most)
	}
	if node["uniqueItems"] == true {
		r.items = whole
	}
	return r
}

func without(node map[string]any, name string) map[string]any {
	node = maps.Clone(node)
	delete(node, name)
	return node
}

func says(node map[string]any, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, has := node[name]; return has })
}

func isKnown(node map[string]any) bool {
	for name := range node {
		if !slices.Contains(saysNothingInside, name) && !slices.Contains(ofObjects, name) && !slices.Contains(ofLists, name) {
			return false
		}
	}
	return true
}

// instance reads the next value of a text that passed the strict parse.
//
// Numbers are the doubles that the services read. The validator would compute with
// the text of a number exactly otherwise, and 1e-999999 has a million digits.
func (r *reading) instance(dec *jsontext.Decoder) (any, error) {
	switch dec.PeekKind() {
	case '{':
		if r == nil || !r.object {
			return map[string]any{}, dec.SkipValue()
		}
		return r.objectInstance(dec)
	case '[':
		if r == nil || !r.list {
			return []any{}, dec.SkipValue()
		}
		return r.listInstance(dec)
	}
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return token.String(), nil
	case '0':
		return token.Float()
	case 'n':
		return nil, nil
	}
	return token.Bool(), nil
}

func (r *reading) objectInstance(dec *jsontext.Decoder) (any, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	object := map[string]any{}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		member, known := r.members[name]
		if !known {
			member = r.others
		}
		if object[name], err = member.instance(dec); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return object, err
}

func (r *reading) listInstance(dec *jsontext.Decoder) (any, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	list := []any{}
	for dec.PeekKind() != ']' {
		if r.most >= 0 && len(list) > r.most {
			if err := dec.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		item, err := r.items.instance(dec)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	_, err := dec.ReadToken()
	return list, err
}
