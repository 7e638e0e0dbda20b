// Package shape says in JSON Schema what struct tags cannot: which members of a request
// need or exclude each other. A service declares its conditions (policy.Service), and they
// are published in the schema of its request. The service itself refuses such a body, with
// the code and the place of the member, which a schema could not name. A test of package api
// holds both to the same verdict.
package shape

// Schema is a JSON Schema.
type Schema = map[string]any

// Given is a schema of objects that have a member. Null counts as absent.
func Given(name string) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"not": Schema{"type": "null"}}}}
}

// Filled is a schema of objects that have a list with at least one item.
func Filled(name string) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"type": "array", "minItems": 1, "items": Schema{}}}}
}

// Is is a schema of objects whose member has a value.
func Is(name string, value any) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"const": value}}}
}

// All is a schema of what passes every one of schemas.
func All(schemas ...any) Schema { return together("allOf", schemas) }

// Any is a schema of what passes at least one of schemas.
func Any(schemas ...any) Schema { return together("anyOf", schemas) }

// Not is a schema of what fails a schema.
func Not(schema Schema) Schema { return Schema{"not": schema} }

// When is a schema of what passes then if it passes this.
func When(this, then Schema) Schema { return Schema{"if": this, "then": then} }

// Either is When with a schema for what fails this.
func Either(this, then, otherwise Schema) Schema {
	return Schema{"if": this, "then": then, "else": otherwise}
}

// together joins schemas by a keyword. Linters warn of a keyword with one schema.
func together(keyword string, schemas []any) Schema {
	if len(schemas) == 1 {
		return schemas[0].(Schema)
	}
	return Schema{keyword: schemas}
}

// EachGiven lists a schema Given for each name.
func EachGiven(names ...string) (list []any) {
	for _, name := range names {
		list = append(list, Given(name))
	}
	return list
}

// AllGiven is a schema of objects that have all of the members.
func AllGiven(names ...string) Schema { return All(EachGiven(names...)...) }

// AnyGiven is a schema of objects that have at least one of the members.
func AnyGiven(names ...string) Schema { return Any(EachGiven(names...)...) }

// NoneGiven is a schema of objects that have none of the members.
func NoneGiven(names ...string) Schema { return Not(AnyGiven(names...)) }

// Within states conditions of a member that is an object.
func Within(name string, conditions ...any) Schema {
	return Properties(name, When(Schema{"type": "object"}, All(conditions...)))
}

// Properties is a schema of objects whose member, if they have it, passes a schema.
func Properties(name string, schema Schema) Schema {
	return Schema{"properties": Schema{name: schema}}
}

// Items is a schema of objects whose member is a list of items that pass a schema.
func Items(name string, schema Schema) Schema {
	return Properties(name, Schema{"items": schema})
}
