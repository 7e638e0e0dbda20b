package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/policy/canon"
)

// freeForm lists the objects that accept unknown members at any depth, with the reason. Their
// content is data and sets no field of the service.
var freeForm = map[string]string{
	"request_refund /request":                "the body of another operation, held against what was paid for",
	"assurance_attest /intent/toolArguments": "arguments of a tool that its server describes",
	"mcp_risk_score /manifest":               "the server's own document, which is judged as it is",
	"register_agent ":                        "RFC 7591, section 2: metadata that is not understood is ignored",
}

func isFreeForm(place string) bool {
	for free := range freeForm {
		if place == free || strings.HasPrefix(place, free+"/") {
			return true
		}
	}
	return false
}

// withStranger adds an unknown member to each object in an example, one object at a time. It calls
// try with the path of the object and the changed example.
func withStranger(t *testing.T, example string, try func(place, text string)) {
	t.Helper()
	var whole any
	if err := json.Unmarshal([]byte(example), &whole); err != nil {
		t.Fatalf("%s: %v", example, err)
	}
	var walk func(place string, v any)
	walk = func(place string, v any) {
		switch v := v.(type) {
		case map[string]any:
			v["zzStranger"] = true
			text, err := canon.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			delete(v, "zzStranger")
			try(place, string(text))
			for name, member := range v {
				walk(place+"/"+name, member)
			}
		case []any:
			for i, member := range v {
				walk(fmt.Sprint(place, "/", i), member)
			}
		}
	}
	walk("", whole)
}

// TestNoFieldIsAssignedThatTheContractDoesNotName checks that every operation with a body refuses
// unknown members in each object of it, so that no caller can set what only the service may set.
func TestNoFieldIsAssignedThatTheContractDoesNotName(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, o := range operations() {
		if o.Input == nil || o.Parses || o.Form { // operations that parse the text themselves, and forms, have other tests
			continue
		}
		example := o.Example
		if o.Service != nil {
			example = o.Service.Example
		}
		if example == "" {
			example = "{}"
		}
		known, err := schema.New(o.Input)
		if err != nil {
			t.Fatal(err)
		}
		withStranger(t, example, func(place, text string) {
			tried++
			err := known.Validate([]byte(text))
			if refused := err != nil && strings.Contains(err.Error(), "unknown member"); refused == isFreeForm(o.ID+" "+place) {
				t.Errorf("%s %s: %v", o.ID, place, err)
			}
		})
	}
	if tried < 50 {
		t.Errorf("only %d objects were tried", tried)
	}
}
