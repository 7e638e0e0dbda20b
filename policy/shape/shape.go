// Package shape expresses in JSON Schema what struct tags cannot: which members of a request
// need or exclude each other. A service declares its conditions (policy.Service), and they are
// published in the schema of its request. The service itself also refuses such a body, with the
// code and the path of the member, which a schema cannot name. A test of package api requires
// the same verdict from both.
package shape

// Schema is a JSON Schema.
type Schema = map[string]any

// Given matches objects that have a member. A null member counts as absent.
func Given(name string) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"not": Schema{"type": "null"}}}}
}

// Filled matches objects that have a list with at least one item.
func Filled(name string) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"type": "array", "minItems": 1, "items": Schema{}}}}
}

// Is matches objects whose member has a value.
func Is(name string, value any) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"const": value}}}
}

// All matches values that match every one of schemas.
func All(schemas ...any) Schema { return together("allOf", schemas) }

// Any matches values that match at least one of schemas.
func Any(schemas ...any) Schema { return together("anyOf", schemas) }

// Not matches values that do not match a schema.
func Not(schema Schema) Schema { return Schema{"not": schema} }

// When requires then of values that match this.
func When(this, then Schema) Schema { return Schema{"if": this, "then": then} }

// Either is When with a schema for values that do not match this.
func Either(this, then, otherwise Schema) Schema {
	return Schema{"if": this, "then": then, "else": otherwise}
}

// together joins schemas by a keyword, except for a single schema, because linters warn about a
// keyword with one schema.
func together(keyword string, schemas []any) Schema {
	if len(schemas) == 1 {
		return schemas[0].(Schema)
	}
	return Schema{keyword: schemas}
}

// EachGiven returns a schema Given for each name.
func EachGiven(names ...string) (list []any) {
	for _, name := range names {
		list = append(list, Given(name))
	}
	return list
}

// AllGiven matches objects that have all of the members.
func AllGiven(names ...string) Schema { return All(EachGiven(names...)...) }

// AnyGiven matches objects that have at least one of the members.
func AnyGiven(names ...string) Schema { return Any(EachGiven(names...)...) }

// NoneGiven matches objects that have none of the members.
func NoneGiven(names ...string) Schema { return Not(AnyGiven(names...)) }

// Within applies conditions to a member that is an object.
func Within(name string, conditions ...any) Schema {
	return Properties(name, When(Schema{"type": "object"}, All(conditions...)))
}

// Properties matches objects whose member is absent or matches a schema.
func Properties(name string, schema Schema) Schema {
	return Schema{"properties": Schema{name: schema}}
}

// Items matches objects whose member is a list of items that match a schema.
func Items(name string, schema Schema) Schema {
	return Properties(name, Schema{"items": schema})
}
