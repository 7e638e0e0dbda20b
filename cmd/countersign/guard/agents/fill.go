package agents

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fill decodes the members of an object into the fields of a struct whose tags have their names,
// as json.Unmarshal does, but faster: Unmarshal first prepares all fields of the type, which takes
// longer than all other work on an event. The caller must have checked the text with canon.Check,
// which refuses duplicate members and text after the object.
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

// fieldNamed returns the field with this name in its tag, or an invalid Value if there is none.
func fieldNamed(fields reflect.Value, name string) reflect.Value {
	for i := range fields.NumField() {
		if fields.Type().Field(i).Tag.Get("json") == name {
			return fields.Field(i)
		}
	}
	return reflect.Value{}
}

// fillOne decodes one member into a field.
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
