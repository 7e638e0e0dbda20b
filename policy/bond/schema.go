package bond

import (
	"reflect"
	"strings"
)

// JSONSchemaAlias returns a value of the type whose schema describes an Output. The type has the
// members of both parts. A bond must have all members of Bond, and a loan all members of Loan.
// Struct tags alone would make the members of both required.
func (Output) JSONSchemaAlias() any {
	var fields []reflect.StructField
	output := reflect.TypeFor[Output]()
	for i := range output.NumField() {
		f := output.Field(i)
		if !f.Anonymous {
			fields = append(fields, f)
			continue
		}
		part := f.Type.Elem()
		for j := range part.NumField() {
			fields = append(fields, optional(part.Field(j), strings.ToLower(f.Name)))
		}
	}
	return reflect.Zero(reflect.StructOf(fields)).Interface()
}

// optional returns a field that is optional in general, but required in its part of the answer.
func optional(f reflect.StructField, part string) reflect.StructField {
	keywords := []string{"oneof_required=" + part}
	if own := f.Tag.Get("jsonschema"); own != "" {
		keywords = append(keywords, own)
	}
	f.Tag = reflect.StructTag(`json:"` + f.Tag.Get("json") + `,omitempty" jsonschema:"` + strings.Join(keywords, ",") +
		`" jsonschema_description:"` + f.Tag.Get("jsonschema_description") + `"`)
	return reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag}
}
