package x402_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/api/x402"
)

// discovery describes a service whose request and answer have this number of members.
func discovery(members int) *x402.Discovery {
	properties, example := map[string]any{}, map[string]any{}
	for i := range members {
		name := fmt.Sprintf("member%03d", i)
		properties[name] = map[string]any{"type": "string", "description": strings.Repeat("words ", 50), "maxLength": 10}
		example[name] = "value"
	}
	properties["choice"] = map[string]any{"anyOf": []any{map[string]any{"type": "string", "enum": []any{"a", "b"}}, map[string]any{"type": "null"}}}
	properties["deep"] = map[string]any{"type": "object", "properties": map[string]any{"hidden": map[string]any{"type": "string"}}}
	example["choice"], example["deep"] = nil, map[string]any{"hidden": "x"}
	text, err := json.Marshal(example)
	if err != nil {
		panic(err)
	}
	schema := map[string]any{"type": "object", "properties": properties, "required": []any{"deep"}, "additionalProperties": false}
	return &x402.Discovery{Example: text, Answer: text, Input: schema, Output: schema}
}

func TestAChallengeIsReadAsItWasWritten(t *testing.T) {
	resource := x402.Resource{URL: quickURL, Description: "Classify one action before it runs – ✓", MimeType: "application/json"}
	c := devTerms(t).Challenge(resource, 25, discovery(3))
	if !regexp.MustCompile(`^[A-Za-z0-9+/]*={0,2}$`).MatchString(c.Header()) || len(c.Header())%4 != 0 {
		t.Errorf("clients do not read %s", c.Header())
	}
	read, err := x402.ReadRequired(c.Header())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, read); diff != "" {
		t.Error(diff)
	}
	want := x402.PaymentRequired{X402Version: 2, Error: "Payment required", Resource: resource, Extensions: c.Extensions, Accepts: []x402.Requirements{{
		Scheme: "exact", Network: "eip155:84532", Amount: "250000", Asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
		PayTo: "0x329EdA9C18561571bA257177847A993E354e81b7", MaxTimeoutSeconds: 300, Extra: x402.Extra{Name: "USDC", Version: "2"},
	}}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if refused := c.WithError("insufficient_funds"); refused.Error != "insufficient_funds" || c.Error != x402.PaymentIsRequired {
		t.Error("another reason changes the challenge itself")
	}
}

// TestExtensionsAreValidUnderTheirSchemas checks that the published example is valid under the
// published schema, and that the schema has one level and no descriptions.
func TestExtensionsAreValidUnderTheirSchemas(t *testing.T) {
	for _, members := range []int{1, 10, 20, 40, 60} {
		c := devTerms(t).Challenge(x402.Resource{URL: quickURL}, 1, discovery(members))
		for name, extension := range c.Extensions {
			var e struct{ Info, Schema jsontext.Value }
			if err := json.Unmarshal(extension, &e, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatal(err)
			}
			if err := valid(e.Schema, e.Info); err != nil {
				t.Errorf("%d members, %s: %v", members, name, err)
			}
			if text := string(e.Schema); strings.Contains(text, "words") || strings.Contains(text, "hidden") {
				t.Errorf("%d members, %s: the schema is not shallow: %s", members, name, text)
			}
		}
	}
	bazaar := string(devTerms(t).Challenge(x402.Resource{URL: quickURL}, 1, discovery(1)).Extensions["bazaar"])
	if !strings.Contains(bazaar, `"choice":{"enum":["a","b",null],"type":["string","null"]}`) {
		t.Errorf("a choice that may be null: %s", bazaar)
	}
	identifier := devTerms(t).Challenge(x402.Resource{URL: quickURL}, 1, nil).Extensions["payment-identifier"]
	var e struct {
		Schema jsontext.Value `json:"schema"`
	}
	if err := json.Unmarshal(identifier, &e); err != nil {
		t.Fatal(err)
	}
	for info, good := range map[string]bool{
		`{"required":false}`: true, `{"required":false,"id":"0123456789abcdef"}`: true,
		`{"required":false,"id":"0123456789abcde"}`: false, `{"required":false,"id":"0123456789abcde!"}`: false,
	} {
		if err := valid(e.Schema, jsontext.Value(info)); (err == nil) != good {
			t.Errorf("%s: %v", info, err)
		}
	}
}

func valid(schema, instance jsontext.Value) error {
	compiler := jsonschema.NewCompiler()
	for name, text := range map[string]jsontext.Value{"schema.json": schema} {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = compiler.AddResource(name, document)
		}
		if err != nil {
			return err
		}
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(instance))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// TestTheHeaderOfEveryServiceFits checks that the header stays below its limit, and in which order
// parts are left out for that. Buyers send the extensions back in a header, whose length servers
// limit.
func TestTheHeaderOfEveryServiceFits(t *testing.T) {
	has := func(c x402.PaymentRequired, text string) bool {
		sent, err := x402.ReadRequired(c.Header())
		return err == nil && strings.Contains(string(sent.Extensions["bazaar"]), text)
	}
	lost := ""
	for members := range 120 {
		c := devTerms(t).Challenge(x402.Resource{URL: quickURL}, 1, discovery(members))
		if got := len(c.WithError(strings.Repeat("x", 80)).Header()); got > x402.MaxChallenge {
			t.Fatalf("%d members: %d characters", members, got)
		}
		form := "nothing"
		switch {
		case has(c, `"info":{"input":{"body":{},`):
			form = "no example of the request"
		case has(c, `"info":{"input":{"body":{`) && has(c, `"output":{"example"`):
			form = "all"
		case has(c, `"example":{"properties"`):
			form = "no example of the answer"
		case has(c, `"body":{"properties"`):
			form = "names of the answer only"
		case has(c, `"output":{`):
			form = "no members of the request"
		}
		if !strings.HasSuffix(lost, form) {
			lost += ", " + form
		}
		if c.Extensions["payment-identifier"] == nil {
			t.Error("the payment identifier is lost")
		}
		if c.Extensions["bazaar"] == nil {
			t.Errorf("%d members: the body does not say how the service is called", members)
		}
	}
	if want := ", all, no example of the answer, names of the answer only, no members of the request, no example of the request"; lost != want {
		t.Errorf("left out in the order %s, want %s", lost, want)
	}
}

func TestPaymentResponse(t *testing.T) {
	for _, r := range []struct {
		response x402.SettleResponse
		want     string
	}{
		{x402.SettleResponse{Success: true, Payer: "0xab", Transaction: "0xcd", Network: "eip155:84532", Amount: "10000"},
			`{"success":true,"payer":"0xab","transaction":"0xcd","network":"eip155:84532","amount":"10000"}`},
		{x402.SettleResponse{ErrorReason: "settlement_pending", Payer: "0xab", Network: "eip155:84532"},
			`{"success":false,"errorReason":"settlement_pending","payer":"0xab","transaction":"","network":"eip155:84532"}`},
	} {
		if got := string(r.response.JSON()); got != r.want {
			t.Errorf("got %s", got)
		}
		if read, err := x402.ReadResponse(r.response.Header()); err != nil || read != r.response {
			t.Errorf("read as %+v, %v", read, err)
		}
	}
}
