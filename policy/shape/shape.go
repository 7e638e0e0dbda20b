// Package shape expresses in JSON Schema what struct tags cannot: which members of a request need
// or exclude each other. A service declares these conditions (policy.Service), and the published
// schema of its request contains them. The service itself refuses the same requests, with an error
// code and the path of the member, which a schema cannot state. A test of package api checks that
// schema and service agree.
package shape

// Schema is a JSON Schema.
type Schema = map[string]any

// Given matches objects in which the member is present and not null.
func Given(name string) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"not": Schema{"type": "null"}}}}
}

// Filled matches objects in which the member is a list with at least one item.
func Filled(name string) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"type": "array", "minItems": 1, "items": Schema{}}}}
}

// Is matches objects in which the member equals value.
func Is(name string, value any) Schema {
	return Schema{"required": []any{name}, "properties": Schema{name: Schema{"const": value}}}
}

// All matches values that match every one of schemas.
func All(schemas ...any) Schema { return together("allOf", schemas) }

// Any matches values that match at least one of schemas.
func Any(schemas ...any) Schema { return together("anyOf", schemas) }

// Not matches values that do not match a schema.
func Not(schema Schema) Schema { return Schema{"not": schema} }

// When matches values that match the schema then, and all values that do not match the schema
// this.
func When(this, then Schema) Schema { return Schema{"if": this, "then": then} }

// Either matches values that match the schemas this and then, and values that do not match this
// but match the schema otherwise.
func Either(this, then, otherwise Schema) Schema {
	return Schema{"if": this, "then": then, "else": otherwise}
}

// together puts the schemas under a keyword such as "allOf". It returns a single schema without
// the keyword, because linters warn about a keyword with one schema.
func together(keyword string, schemas []any) Schema {
	if len(schemas) == 1 {
		return schemas[0].(Schema)
	}
	return Schema{keyword: schemas}
}

// EachGiven returns one schema of Given per name.
func EachGiven(names ...string) (list []any) {
	for _, name := range names {
		list = append(list, Given(name))
	}
	return list
}

// AllGiven matches objects that have all of these members.
func AllGiven(names ...string) Schema { return All(EachGiven(names...)...) }

// AnyGiven matches objects that have at least one of these members.
func AnyGiven(names ...string) Schema { return Any(EachGiven(names...)...) }

// NoneGiven matches objects that have none of these members.
func NoneGiven(names ...string) Schema { return Not(AnyGiven(names...)) }

// Within matches objects in which the member fulfills the conditions. It accepts a member that is
// absent or not an object.
func Within(name string, conditions ...any) Schema {
	return Properties(name, When(Schema{"type": "object"}, All(conditions...)))
}

// Properties matches objects in which the member is absent or matches the schema.
func Properties(name string, schema Schema) Schema {
	return Schema{"properties": Schema{name: schema}}
}

// Items matches objects in which the member is absent or a list whose items all match the schema.
func Items(name string, schema Schema) Schema {
	return Properties(name, Schema{"items": schema})
}
