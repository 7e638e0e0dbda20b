package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/api/schema"
)

// OpenAI's strict mode accepts a subset of JSON Schema: every object is closed, every member is
// required, only these keywords are allowed, and the total size is limited. The guide for OpenAI's
// agents describes five steps that make the input of a tool strict. This test does the same steps
// in Go. Afterwards every tool must be strict, or be listed here with the reason why it is not.
//
// Source: OpenAI, "Structured model outputs", section "Supported schemas", as of February 2026.

var strictKeywords = []string{
	"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs", "description",
	"pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
}

var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

const (
	strictLevels  = 10
	strictMembers = 5000
	strictText    = 120_000 // characters of all names and values together
	strictValues  = 1000    // values of all enums together
)

// neverStrict lists the tools whose input cannot be described by a closed schema, with the reason.
var neverStrict = map[string]string{
	"assurance_attest":          "/intent/toolArguments may be anything",
	"authorize_purchase_intent": "/intent/toolArguments may be anything",
	"mcp_risk_score":            "/manifest has members of any name",
	"payment_policy_decide":     "/payment/metadata has members of any name",
	"spend_assurance_run":       "/payment/metadata has members of any name",
	"verify_record":             "has members of any name; /receipt/record has members of any name; /record has members of any name",
	"x402_provenance_check":     "/assetDecimals has members of any name",
}

func TestToolsAreStrictForOpenAI(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	var answer struct {
		Result struct {
			Tools []struct {
				Name  string         `json:"name"`
				Input map[string]any `json:"inputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	n.post("/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`).decode(t, &answer)
	open := map[string]string{}
	for _, tool := range answer.Result.Tools {
		if faults := strictFaults(tool.Input); len(faults) == 0 {
			t.Logf("%s is strict as it is", tool.Name)
		}
		strict := makeStrict(tool.Input, tool.Input).(map[string]any)
		if faults := strictFaults(strict); len(faults) > 0 {
			open[tool.Name] = strings.Join(faults, "; ")
			continue
		}
		n.takesNulls(t, tool.Name, strict)
	}
	if diff := cmp.Diff(neverStrict, open); diff != "" {
		t.Errorf("tools that cannot be strict (-want +got):\n%s", diff)
	}
}

// takesNulls calls a tool with its example and null for each absent member, as a model in strict
// mode must. The service must treat null as absent.
func (n *node) takesNulls(t *testing.T, name string, strict map[string]any) {
	t.Helper()
	o := n.server.table.Find(name)
	if o == nil || o.Example == "" {
		return
	}
	example, err := jsonschema.UnmarshalJSON(strings.NewReader(o.Example))
	if err != nil {
		t.Fatal(err)
	}
	filled := fillNulls(strict, strict, example)
	if err := compileJSON(t, name, strict).Validate(filled); err != nil {
		t.Errorf("%s: its strict schema refuses its example: %v", name, err)
	}
	own, err := schema.New(o.Input)
	if err != nil {
		t.Fatal(err)
	}
	if members, is := filled.(map[string]any); is && o.KeyOutsideBody() {
		delete(members, "idempotencyKey") // the key is removed before the schema checks the rest
	}
	if err := newLibrary(t, own.Document).compiled.Validate(filled); err != nil {
		t.Errorf("%s takes no null for an absent member: %v", name, err)
	}
}

// fillNulls copies a value and adds every missing member of its schema as null.
func fillNulls(root, schema map[string]any, v any) any {
	schema = resolve(root, schema)
	if choice, is := schema["anyOf"].([]any); is && len(choice) > 0 && v != nil {
		schema = resolve(root, choice[0].(map[string]any))
	}
	switch v := v.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		whole := map[string]any{}
		for member, of := range properties {
			whole[member] = fillNulls(root, of.(map[string]any), v[member])
		}
		return whole
	case []any:
		items, _ := schema["items"].(map[string]any)
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = fillNulls(root, items, element)
		}
		return list
	}
	return v
}

func resolve(root, schema map[string]any) map[string]any {
	for {
		name, is := strings.CutPrefix(fmt.Sprint(schema["$ref"]), "#/$defs/")
		if !is {
			return schema
		}
		schema = root["$defs"].(map[string]any)[name].(map[string]any)
	}
}

// makeStrict does the five steps of the guide: references with a description are replaced by their
// targets, objects are closed, members become required, optional ones become nullable, and
// unsupported keywords are removed.
func makeStrict(root map[string]any, v any) any {
	s, is := v.(map[string]any)
	if !is {
		return v
	}
	if ref, is := s["$ref"]; is && len(s) > 1 {
		whole := maps.Clone(resolve(root, map[string]any{"$ref": ref}))
		maps.Copy(whole, s)
		delete(whole, "$ref")
		s = whole
	}
	strict := map[string]any{}
	for keyword, value := range s {
		switch {
		case keyword == "properties" || keyword == "$defs":
			members := map[string]any{}
			for name, member := range value.(map[string]any) {
				members[name] = makeStrict(root, member)
			}
			strict[keyword] = members
		case keyword == "anyOf":
			choice := []any{}
			for _, one := range value.([]any) {
				choice = append(choice, makeStrict(root, one))
			}
			strict[keyword] = choice
		case keyword == "items":
			strict[keyword] = makeStrict(root, value)
		case keyword == "format" && !slices.Contains(strictFormats, fmt.Sprint(value)):
		case slices.Contains(strictKeywords, keyword):
			strict[keyword] = value
		}
	}
	if properties, is := strict["properties"].(map[string]any); is {
		closeObject(strict, properties)
	}
	return strict
}

func closeObject(strict, properties map[string]any) {
	required, _ := strict["required"].([]any)
	for name, member := range properties {
		if !slices.Contains(required, any(name)) {
			properties[name] = map[string]any{"anyOf": []any{member, map[string]any{"type": "null"}}}
		}
	}
	all := []any{}
	for _, name := range sortedKeys(properties) {
		all = append(all, name)
	}
	strict["required"] = all
	if _, said := strict["additionalProperties"]; !said {
		strict["additionalProperties"] = false
	}
}

// strictFaults returns the reasons why strict mode would refuse a schema.
func strictFaults(root map[string]any) []string {
	c := strictCheck{root: root}
	if root["type"] != "object" {
		c.fault("", "the whole is no object")
	}
	c.read("", root, 0)
	definitions, _ := root["$defs"].(map[string]any)
	for _, name := range sortedKeys(definitions) {
		c.text += len(name)
	}
	if c.members > strictMembers || c.text > strictText || c.values > strictValues {
		c.fault("", fmt.Sprintf("%d members, %d characters of names, %d values", c.members, c.text, c.values))
	}
	return c.faults
}

type strictCheck struct {
	root                  map[string]any
	members, text, values int
	faults                []string
}

func (c *strictCheck) fault(at, says string) {
	if says = strings.TrimSpace(at + " " + says); !slices.Contains(c.faults, says) {
		c.faults = append(c.faults, says)
	}
}

// read checks a schema and all schemas inside it, including referenced ones.
func (c *strictCheck) read(at string, s map[string]any, level int) {
	if level > strictLevels {
		c.fault(at, "lies too deep")
		return
	}
	if _, is := s["$ref"]; is {
		if len(s) > 1 {
			c.fault(at, "says more than its reference")
		}
		s = resolve(c.root, s)
	}
	if s["type"] == nil && s["anyOf"] == nil && s["enum"] == nil && s["const"] == nil {
		c.fault(at, "may be anything")
	}
	for _, keyword := range sortedKeys(s) {
		if !slices.Contains(strictKeywords, keyword) {
			c.fault(at, "uses "+keyword)
		}
	}
	if format, is := s["format"]; is && !slices.Contains(strictFormats, fmt.Sprint(format)) {
		c.fault(at, fmt.Sprint("uses format ", format))
	}
	values, _ := s["enum"].([]any)
	c.values += len(values)
	for _, value := range values {
		c.text += len(fmt.Sprint(value))
	}
	choice, _ := s["anyOf"].([]any)
	for _, one := range choice {
		c.read(at, one.(map[string]any), level)
	}
	if items, is := s["items"].(map[string]any); is {
		c.read(at+"/*", items, level)
	} else if s["type"] == "array" {
		c.fault(at, "holds anything")
	}
	if s["type"] == "object" {
		c.object(at, s, level)
	}
}

func (c *strictCheck) object(at string, s map[string]any, level int) {
	if s["additionalProperties"] != false {
		c.fault(at, "has members of any name")
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range sortedKeys(properties) {
		c.members++
		c.text += len(name)
		if !slices.Contains(required, any(name)) {
			c.fault(at+"/"+name, "may be absent")
		}
		c.read(at+"/"+name, properties[name].(map[string]any), level+1)
	}
}
