package bond

import (
	"reflect"
	"strings"
)

// JSONSchemaAlias returns a value of the type from which the schema of Output is made. The type
// has all members of Bond and of Loan. The schema requires those of Bond for a bond and those of
// Loan for a loan; struct tags of Output alone would require all of them in every answer.
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

// optional returns a field that is optional in general, but required in one part of the answer:
// "bond" or "loan".
func optional(f reflect.StructField, part string) reflect.StructField {
	keywords := []string{"oneof_required=" + part}
	if own := f.Tag.Get("jsonschema"); own != "" {
		keywords = append(keywords, own)
	}
	f.Tag = reflect.StructTag(`json:"` + f.Tag.Get("json") + `,omitempty" jsonschema:"` + strings.Join(keywords, ",") +
		`" jsonschema_description:"` + f.Tag.Get("jsonschema_description") + `"`)
	return reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag}
}
