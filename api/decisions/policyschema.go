package decisions

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// PolicySchemaPath is the path of the JSON Schema of a policy.
const PolicySchemaPath = "/schemas/policy.json"

var policySchema = &op.Operation{
	ID: "get_policy_schema", Method: http.MethodGet, Path: PolicySchemaPath,
	Summary: "The JSON Schema of a policy. Name its address as $schema in a policy file so that editors check the file.", Media: "application/schema+json",
	Output: reflect.TypeFor[map[string]any](),
}

func (s *Policies) policySchema(c *op.Call) (op.Reply, error) {
	text, err := PolicySchema(s.Commands.BaseURL)
	if err != nil {
		return op.Reply{}, err
	}
	return op.NewDocument(text, c.Op.Media).Answer(c), nil
}

// PolicySchema returns the JSON Schema 2020-12 of a policy as its author writes it: without a
// version, which the activation sets, and with the member $schema that editors read. base is the
// base URL of the service.
func PolicySchema(base string) ([]byte, error) {
	document, err := schema.Of(reflect.TypeFor[assurance.Policy]())
	if err != nil {
		return nil, err
	}
	document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	document["$id"] = base + PolicySchemaPath
	document["title"] = "Countersign policy"
	document["required"] = []any{"policyId"}
	properties, _ := document["properties"].(map[string]any)
	properties["$schema"] = map[string]any{"type": "string", "description": "Address of this schema, for editors. It is not part of the policy."}
	return canon.Marshal(document)
}
