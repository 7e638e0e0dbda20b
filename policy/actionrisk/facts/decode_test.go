package facts

import (
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// TestTableOfAnotherShape checks that a table is refused if it does not fit its Go type.
func TestTableOfAnotherShape(t *testing.T) {
	var wrong []struct {
		Rules string `json:"rules"`
	}
	if err := rules.DecodeTable("shell", &wrong); err == nil {
		t.Error("an object is accepted as a list")
	}
	var member struct {
		Other string `json:"other"`
	}
	if err := rules.DecodeTable("shell", &member); err == nil {
		t.Error("an unknown member is accepted")
	}
}
