package facts

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/canon"
)

// TestTablesAsDecoded: every table is read as the strict decoder of all other JSON
// reads it, escapes, numbers and empty lists included.
func TestTablesAsDecoded(t *testing.T) {
	read := 0
	set, err := Compile(func(name string, into any) error {
		if err := rules.DecodeTable(name, into); err != nil {
			return err
		}
		want := reflect.New(reflect.TypeOf(into).Elem())
		if err := canon.Decode([]byte(rules.Tables()[name]), want.Interface()); err != nil {
			return err
		}
		if diff := cmp.Diff(want.Interface(), into, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		read++
		return nil
	})
	set.names()
	set.Resources()
	if err != nil || read < 25 {
		t.Errorf("%d tables read: %v", read, err)
	}
}

// TestTableOfAnotherShape: a table that its type does not describe is refused.
func TestTableOfAnotherShape(t *testing.T) {
	var wrong []struct {
		Rules string `json:"rules"`
	}
	if err := rules.DecodeTable("shell", &wrong); err == nil {
		t.Error("an object is read as a list")
	}
	var member struct {
		Other string `json:"other"`
	}
	if err := rules.DecodeTable("shell", &member); err == nil {
		t.Error("an unknown member is passed over")
	}
}
