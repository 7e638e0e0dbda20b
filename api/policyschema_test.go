package api

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/policy/assurance"
)

// TestPolicySchemaIsPublished checks that every starter matches the schema, including the $schema
// that policy init writes, and that a policy with a shape that the linter refuses does not match.
func TestPolicySchemaIsPublished(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	a := n.get(decisions.PolicySchemaPath)
	if a.status != http.StatusOK {
		t.Fatal(a)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	address := n.app.BaseURL + decisions.PolicySchemaPath
	if err := compiler.AddResource(address, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(address)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{`{}`: false, `{"policyId":"a","requireHttps":1}`: false, `{"policyId":"a","allowedHosts":null}`: false, `{"policyId":"a","unknown":1}`: false, `{"$schema":"x","policyId":"a"}`: true}
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

// TestNullOpensNothing checks that types that grant or limit something refuse null for each of
// their members, because many programs write null for an empty list. Such a type has the method
// RefusesNull.
func TestNullOpensNothing(t *testing.T) {
	t.Parallel()
	grants := regexp.MustCompile(`^(allowed|blocked|require|max[A-Z].*Transaction|daily|monthly|scopes$|addresses$|topics$|noPersonal$|messageId$)`)
	n := startNode(t, setup{})
	schemas := 0
	for _, o := range n.server.table {
		if o.Input == nil {
			continue
		}
		document, err := schema.OfRequest(o.Input)
		if err != nil {
			t.Fatal(err)
		}
		schema.Walk(document, func(s map[string]any) {
			properties, _ := s["properties"].(map[string]any)
			if !slices.ContainsFunc(sortedKeys(properties), grants.MatchString) {
				return
			}
			schemas++
			for name, property := range properties {
				p, _ := property.(map[string]any)
				if branches, is := p["anyOf"].([]any); is && slices.ContainsFunc(branches, schema.IsNull) {
					t.Errorf("%s: %s may be null", o.ID, name)
				}
			}
		})
	}
	if schemas < 7 { // four operations take policies; the others create tokens, webhooks and exports
		t.Errorf("only %d schemas grant or limit something", schemas)
	}

	key := n.issueKey()
	const payment = `{"payment":{"resourceUrl":"https://api.example/","method":"GET","payTo":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","amountUnits":"999000000000"},`
	for _, c := range [][3]string{
		{"payment-policy/decide", payment + `"policy":{"policyId":"p","version":1,"allowedPayTo":null}}`, "policy.allowedPayTo must be an array"},
		{"payment-policy/decide", payment + `"policy":{"policyId":null,"version":1}}`, "policy.policyId is required"},
		{"spend-assurance/run", payment + `"policy":{"policyId":"p","version":1,"dailyLimitUsd":null}}`, "policy.dailyLimitUsd must be a number"},
		{"assurance/attest", `{"protocol":"mcp","intent":{"serverId":"s","toolName":"t"},"policy":{"policyId":"p","version":1,"allowedMcpServers":null}}`, "policy.allowedMcpServers must be an array"},
	} {
		if a := n.post("/api/agent-services/"+c[0], key, c[1]); a.status != 400 || !strings.Contains(string(a.body), c[2]) {
			t.Errorf("%s %s: %v", c[0], c[1], a)
		}
	}
}
