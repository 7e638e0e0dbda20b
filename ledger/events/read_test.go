package events

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every type is read in one place, and into its own struct only.
func TestEveryTypeIsRead(t *testing.T) {
	for _, name := range Types {
		r, known := readers[name]
		if !known {
			t.Errorf("%s has no reader", name)
			continue
		}
		if hasPersonal(r.present) && !r.sealed {
			t.Errorf("%s has personal members, so its payload holds commitments", name)
		}
		var other struct{}
		if err := Read(name, 1, []byte(`{}`), &other); err == nil || !strings.Contains(err.Error(), "want *events.") {
			t.Errorf("%s into another struct: %v", name, err)
		}
		into := reflect.New(r.present).Interface()
		for version := -1; version <= 3; version++ {
			err := Read(name, version, []byte(`{}`), into)
			if read := version >= 1 && version <= Newest(name) || version == 0 && name == TypeWorkflowCompleted; read == errors.Is(err, ErrVersion) {
				t.Errorf("%s, schema version %d: %v", name, version, err)
			}
		}
	}
	for name := range readers {
		if !slices.Contains(Types, name) {
			t.Errorf("%s is no type", name)
		}
	}
	if err := Read("future.happened", 1, nil, nil); !errors.Is(err, ErrVersion) {
		t.Errorf("a type of a newer program: %v", err)
	}
}

func hasPersonal(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("personal") == "true" {
			return true
		}
	}
	return false
}
