package agents

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fill reads the members of an object into the fields of a struct with their names, as
// json.Unmarshal does. Unmarshal first builds a plan for every field of the type, which takes
// longer than all other work on an event. The caller must have checked the text with
// canon.Check, which refuses duplicate members and text after the object.
func fill(text []byte, into any) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	fields := reflect.ValueOf(into).Elem()
	begin, err := d.ReadToken()
	if err != nil {
		return err
	}
	if begin.Kind() != '{' {
		return ErrShape
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		field := fieldNamed(fields, name.String())
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if !field.IsValid() {
			continue
		}
		if err := fillOne(value, field.Addr().Interface()); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

// fieldNamed returns the field whose tag has the name, and an invalid Value if there is none.
func fieldNamed(fields reflect.Value, name string) reflect.Value {
	for i := range fields.NumField() {
		if fields.Type().Field(i).Tag.Get("json") == name {
			return fields.Field(i)
		}
	}
	return reflect.Value{}
}

// fillOne reads one member into a field.
func fillOne(value jsontext.Value, into any) error {
	switch p := into.(type) {
	case *jsontext.Value:
		*p = slices.Clone(value)
		return nil
	case *string:
		if value.Kind() != '"' && value.Kind() != 'n' {
			return ErrShape
		}
		if value.Kind() == '"' {
			text, err := jsontext.AppendUnquote(nil, value)
			*p = string(text)
			return err
		}
		return nil
	}
	return json.Unmarshal(value, into)
}
