package api

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/policy/assurance"
)

// TestPolicySchemaIsPublished: every starter satisfies it, with the $schema that
// policy init writes, and what the linter refuses for its shape does not.
func TestPolicySchemaIsPublished(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	a := n.get(PolicySchemaPath)
	if a.status != http.StatusOK {
		t.Fatal(a)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	address := n.app.BaseURL + PolicySchemaPath
	if err := compiler.AddResource(address, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(address)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{`{}`: false, `{"policyId":"a","requireHttps":1}`: false, `{"policyId":"a","unknown":1}`: false, `{"$schema":"x","policyId":"a"}`: true}
	for _, s := range assurance.Starters() {
		text, _ := s.Text()
		texts[text] = true
	}
	for text, good := range texts {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		_, lint := assurance.Lint([]byte(text))
		if err := schema.Validate(value); (err == nil) != good || (lint == nil) != good {
			t.Errorf("%s: schema %v, lint %v, want good %v", text, err, lint, good)
		}
	}
	with, err := assurance.Lint([]byte(`{"$schema":"x","policyId":"a"}`))
	without, err2 := assurance.Lint([]byte(`{"policyId":"a"}`))
	if err != nil || err2 != nil || with.Hash != without.Hash {
		t.Errorf("$schema is part of the policy: %s %s, %v %v", with.Hash, without.Hash, err, err2)
	}
}
