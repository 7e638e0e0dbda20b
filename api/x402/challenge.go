package x402

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Names of the x402 extensions.
const (
	ExtensionIdentifier = "payment-identifier"
	ExtensionBazaar     = "bazaar"
)

// paymentIdentifier is the extension that lets a buyer choose an id for a payment.
var paymentIdentifier = jsontext.Value(`{"info":{"required":false},"schema":{"$schema":"` + schema2020 + `","type":"object","properties":{` +
	`"required":{"type":"boolean"},"id":{"type":"string","minLength":16,"maxLength":128,"pattern":"^[a-zA-Z0-9_-]+$"}},"required":["required"]}}`)

const schema2020 = "https://json-schema.org/draft/2020-12/schema"

// Discovery describes a service for indexes of paid services.
type Discovery struct {
	Example jsontext.Value // example request
	Answer  jsontext.Value // answer to the example
	Input   map[string]any // JSON Schema of requests
	Output  map[string]any // JSON Schema of answers
}

// Challenge returns the demand for a price. Without a Discovery it offers only the payment
// identifier; over MCP, the rest would cost a model tokens.
//
// Buyers send the extensions of the header back inside PAYMENT-SIGNATURE, and an index lists a
// service by what they send back. So the discovery extension has the most complete form with which
// the header stays within MaxChallenge, for every possible error text. Parts are omitted in this
// order, until the header fits:
//
//	the example answer
//	the members of the answer, except the names of the required ones
//	the optional members of the request
//	the required members of the request
//	the names of the required members of the answer
//	the example request
//
// There is always an output, because indexes require one. If no form fits, only the body has the
// extension, in its most complete form.
func (t Terms) Challenge(r Resource, cents int, d *Discovery) PaymentRequired {
	p := PaymentRequired{
		X402Version: Version, Error: PaymentIsRequired, Resource: r, Accepts: []Requirements{t.Offer(cents)},
		Extensions: map[string]jsontext.Value{ExtensionIdentifier: paymentIdentifier}, FreeKey: t.FreeKey,
	}
	if d == nil {
		return p
	}
	forms := d.forms()
	for _, bazaar := range forms {
		p.Extensions[ExtensionBazaar] = bazaar
		longest := p.WithError(strings.Repeat("x", longestReason))
		if base64.StdEncoding.EncodedLen(len(longest.JSON())) <= MaxChallenge {
			return p
		}
	}
	p.Extensions[ExtensionBazaar] = forms[0]
	return p
}

// forms returns the possible values of the discovery extension, most complete first.
func (d *Discovery) forms() []jsontext.Value {
	object := map[string]any{"type": "object"}
	input, output, named := shallow(d.Input), shallow(d.Output), names(d.Output)
	return []jsontext.Value{
		bazaar(d.Example, d.Answer, input, output),
		bazaar(d.Example, nil, input, output),
		bazaar(d.Example, nil, input, named),
		bazaar(d.Example, nil, needed(d.Input), named),
		bazaar(d.Example, nil, object, named),
		bazaar(d.Example, nil, object, object),
		bazaar(jsontext.Value("{}"), nil, object, object),
	}
}

// names returns a schema that contains only the names of the required members.
func names(schema map[string]any) map[string]any {
	return map[string]any{"type": "object", "required": schema["required"]}
}

// needed returns a schema that contains only the required members.
func needed(schema map[string]any) map[string]any {
	members := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if name, is := name.(string); is {
			members[name] = typeOf(properties[name])
		}
	}
	return map[string]any{"type": "object", "properties": members, "required": required}
}

// bazaar returns the extension that describes a POST with a JSON body. Its info is valid under its
// schema.
func bazaar(example, answer jsontext.Value, input, output map[string]any) jsontext.Value {
	info := map[string]any{"input": map[string]any{"type": "http", "method": "POST", "bodyType": "json", "body": example}}
	properties := map[string]any{"input": map[string]any{
		"type": "object",
		"properties": map[string]any{
			"type": constant("http"), "method": constant("POST"), "bodyType": constant("json"), "body": input,
		},
		"required": []string{"type", "method", "bodyType", "body"},
	}}
	if output != nil {
		shown := map[string]any{"type": "json"}
		if answer != nil {
			shown["example"] = answer
		}
		info["output"] = shown
		properties["output"] = map[string]any{
			"type":       "object",
			"properties": map[string]any{"type": constant("json"), "example": output},
			"required":   []string{"type"},
		}
	}
	return encode(map[string]any{"info": info, "schema": map[string]any{
		"$schema": schema2020, "type": "object",
		"properties": properties, "required": []string{"input"},
	}})
}

func constant(text string) map[string]any { return map[string]any{"const": text} }

// shallow returns the top level of a schema: names, types and enums of its members.
func shallow(schema map[string]any) map[string]any {
	members := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		members[name] = typeOf(property)
	}
	return map[string]any{"type": "object", "properties": members}
}

// typeOf returns the type and the enum of a schema, including null if it is allowed.
func typeOf(schema any) map[string]any {
	s, _ := schema.(map[string]any)
	kept := map[string]any{}
	for _, word := range []string{"type", "enum", "const"} {
		if value, has := s[word]; has {
			kept[word] = value
		}
	}
	alternatives, _ := s["anyOf"].([]any)
	if len(alternatives) != 2 {
		return kept
	}
	one := typeOf(alternatives[0])
	if name, ok := one["type"].(string); ok && typeOf(alternatives[1])["type"] == "null" {
		kept["type"] = []string{name, "null"}
		if values, ok := one["enum"].([]any); ok {
			kept["enum"] = append(slices.Clone(values), nil)
		}
	}
	return kept
}

// ReadRequired parses the header PAYMENT-REQUIRED, as a buyer does.
func ReadRequired(header string) (PaymentRequired, error) {
	var p PaymentRequired
	return p, readHeader(header, &p)
}

// ReadResponse parses the header PAYMENT-RESPONSE, as a buyer does.
func ReadResponse(header string) (SettleResponse, error) {
	var r SettleResponse
	return r, readHeader(header, &r)
}

func readHeader(header string, into any) error {
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
