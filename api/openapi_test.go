package api

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/services"
)

// openAPIDocument is an OpenAPI document, parsed like a client would.
type openAPIDocument struct {
	text     []byte
	root     map[string]any
	compiler *jsonschema.Compiler
}

// openAPIDocument returns the document with all operations.
func (n *node) openAPIDocument() openAPIDocument {
	n.t.Helper()
	return n.openAPIAt("/openapi-full.json")
}

func (n *node) openAPIAt(path string) openAPIDocument {
	n.t.Helper()
	a := n.get(path)
	n.wants(a, http.StatusOK)
	d := openAPIDocument{text: a.body, root: a.members(n.t), compiler: jsonschema.NewCompiler()}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	d.compiler.UseRegexpEngine(libraryRegexp)
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err == nil {
		err = d.compiler.AddResource("openapi.json", resource)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return d
}

// described is one operation of the document.
type described struct {
	method, path string
	operation    map[string]any
}

func (d openAPIDocument) operations() []described {
	var list []described
	paths, _ := d.root["paths"].(map[string]any)
	for _, path := range sortedKeys(paths) {
		item, _ := paths[path].(map[string]any)
		for _, method := range sortedKeys(item) {
			operation, _ := item[method].(map[string]any)
			list = append(list, described{method, path, operation})
		}
	}
	return list
}

// schema compiles the schema at a JSON pointer.
func (d openAPIDocument) schema(t *testing.T, parts ...string) *jsonschema.Schema {
	t.Helper()
	pointer := "openapi.json#"
	for _, part := range parts {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
	}
	compiled, err := d.compiler.Compile(pointer)
	if err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}
	return compiled
}

// valid fails the test unless the answer matches the schema that the document has for this status.
func (d openAPIDocument) valid(t *testing.T, o described, a answer) {
	t.Helper()
	responses, _ := o.operation["responses"].(map[string]any)
	status := fmt.Sprint(a.status)
	if responses[status] == nil {
		t.Errorf("%s %s: the status %s is not documented", o.method, o.path, status)
		return
	}
	response, _ := responses[status].(map[string]any)
	content, _ := response["content"].(map[string]any)
	media := a.header.Get("Content-Type")
	if content[media] == nil {
		t.Errorf("%s %s: answers %s, documented are %v", o.method, o.path, media, sortedKeys(content))
		return
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if strings.HasPrefix(media, "text/") || strings.Contains(media, "xml") {
		instance, err = string(a.body), nil
	}
	if err == nil {
		err = d.schema(t, "paths", o.path, o.method, "responses", status, "content", media, "schema").Validate(instance)
	}
	if err != nil {
		t.Errorf("%s %s: the answer has not its documented shape: %v", o.method, o.path, err)
	}
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

func TestOpenAPILint(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	info, _ := d.root["info"].(map[string]any)
	contact, _ := info["contact"].(map[string]any)
	if d.root["openapi"] != "3.1.0" || info["version"] != "1.0.0" || contact["email"] != "operator@example.com" || info["x-guidance"] == nil || info["license"] == nil {
		t.Errorf("openapi %v, info %v", d.root["openapi"], info)
	}
	if diff := cmp.Diff([]any{map[string]any{"url": n.url}}, d.root["servers"]); diff != "" {
		t.Error(diff)
	}
	seen := map[string]bool{}
	for _, o := range d.operations() {
		where := o.method + " " + o.path
		id := fmt.Sprint(o.operation["operationId"])
		if !snakeCase.MatchString(id) || seen[id] {
			t.Errorf("%s: operationId %s", where, id)
		}
		seen[id] = true
		if summary := fmt.Sprint(o.operation["summary"]); len(summary) < 10 || !strings.HasSuffix(summary, ".") {
			t.Errorf("%s: summary %q", where, summary)
		}
		responses, _ := o.operation["responses"].(map[string]any)
		success := 0
		for status, r := range responses {
			response, _ := r.(map[string]any)
			if response["description"] == nil {
				t.Errorf("%s: %s has no description", where, status)
			}
			if status[0] == '2' {
				success++
			}
			content, _ := response["content"].(map[string]any)
			for media := range content {
				d.schema(t, "paths", o.path, o.method, "responses", status, "content", media, "schema")
			}
		}
		if responses["default"] == nil || success != 1 && o.path != "/api/assurance/decisions" && o.path != "/api/assurance/receipts" {
			t.Errorf("%s: responses %v", where, sortedKeys(responses))
		}
		d.lintParameters(t, o)
		if body, has := o.operation["requestBody"].(map[string]any); has {
			d.schema(t, "paths", o.path, o.method, "requestBody", "content", "application/json", "schema")
			if optional := o.path == "/api/billing-portal" || o.path == "/api/account/keys" || o.path == "/api/entitlements/{slug}/downloads" || o.path == "/api/purchase/{slug}"; (body["required"] == true) == optional {
				t.Errorf("%s: the body is required: %v", where, body["required"])
			}
		}
		for _, s := range asList(o.operation["security"]) {
			schemes, _ := d.at("components", "securitySchemes").(map[string]any)
			for name := range s.(map[string]any) {
				if schemes[name] == nil {
					t.Errorf("%s: security scheme %s is not declared", where, name)
				}
			}
		}
	}
	for _, id := range []string{"action_safety_quick_gate", "agent_action_safety_loop", "get_action_safety_workflow_status", "command_risk_score", "review_triage_submit"} {
		if !seen[id] {
			t.Errorf("there is no operation %s", id)
		}
	}
	d.lintEverything(t, d.root, "#")
}

// inlined returns a schema with its references replaced by their targets.
func (d openAPIDocument) inlined(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if ref, is := v["$ref"].(string); is {
			target, _ := d.inlined(d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)).(map[string]any)
			whole := maps.Clone(target)
			if v["description"] != nil {
				whole["description"] = v["description"]
			} else {
				delete(whole, "description")
			}
			return whole
		}
		whole := make(map[string]any, len(v))
		for name, member := range v {
			whole[name] = d.inlined(member)
		}
		return whole
	case []any:
		whole := make([]any, len(v))
		for i, element := range v {
			whole[i] = d.inlined(element)
		}
		return whole
	}
	return v
}

// lenientRequests lists the request bodies that may have unknown members: those of OAuth, as RFC
// 6749 and 7591 demand, and a document to verify.
var lenientRequests = map[string]bool{
	"#/components/schemas/RegisterAgentRequest": true, "#/components/schemas/RequestAccessTokenRequest": true,
	"#/components/schemas/RevokeAccessTokenRequest": true, "#/components/schemas/IntrospectAccessTokenRequest": true,
	"#/components/schemas/VerifyRecordRequest": true,
}

func asList(v any) []any { l, _ := v.([]any); return l }

// at returns the value at a path of the document.
func (d openAPIDocument) at(parts ...string) any {
	var v any = d.root
	for _, part := range parts {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	return v
}

// lintParameters compares the variables of a path with the declared parameters.
func (d openAPIDocument) lintParameters(t *testing.T, o described) {
	t.Helper()
	var declared []string
	names := map[string]bool{}
	for i, p := range asList(o.operation["parameters"]) {
		parameter, _ := p.(map[string]any)
		name, in := fmt.Sprint(parameter["name"]), fmt.Sprint(parameter["in"])
		if names[in+name] {
			t.Errorf("%s: parameter %s twice", o.path, name)
		}
		names[in+name] = true
		d.schema(t, "paths", o.path, o.method, "parameters", fmt.Sprint(i), "schema")
		if in == "path" {
			if parameter["required"] != true {
				t.Errorf("%s: parameter %s is not required", o.path, name)
			}
			declared = append(declared, name)
		}
	}
	var used []string
	for _, match := range regexp.MustCompile(`\{([^}]*)\}`).FindAllStringSubmatch(o.path, -1) {
		used = append(used, match[1])
	}
	if !slices.Equal(declared, used) {
		t.Errorf("%s: parameters %v, declared %v", o.path, used, declared)
	}
}

// lintEverything checks every value: references resolve, nullable schemas do not use a list of
// types, and documented objects allow no other members.
func (d openAPIDocument) lintEverything(t *testing.T, v any, where string) {
	switch v := v.(type) {
	case map[string]any:
		if ref, has := v["$ref"].(string); has {
			pointer, local := strings.CutPrefix(ref, "#/")
			if !local || d.at(strings.Split(pointer, "/")...) == nil {
				t.Errorf("%s: %s does not resolve", where, ref)
			}
		}
		if _, list := v["type"].([]any); list {
			t.Errorf("%s: a list of types", where)
		}
		// Only lenientRequests may accept unknown members.
		lenient := lenientRequests[where] && v["additionalProperties"] == true
		if properties, is := v["properties"].(map[string]any); is && v["type"] == "object" && v["additionalProperties"] != false && !lenient {
			t.Errorf("%s: takes members besides %v", where, sortedKeys(properties))
		}
		for name, member := range v {
			if name != "example" {
				d.lintEverything(t, member, where+"/"+name)
			}
		}
	case []any:
		for i, element := range v {
			d.lintEverything(t, element, fmt.Sprintf("%s/%d", where, i))
		}
	}
}

// TestEveryServiceAgreesWithItsDeclaration checks that every service has one declaration, from
// which route, price and schemas are derived.
func TestEveryServiceAgreesWithItsDeclaration(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	d := n.openAPIDocument()
	priced := map[string]bool{}
	for _, s := range services.List() {
		path := "/api/agent-services/" + s.Name
		priced[path] = true
		operation, _ := d.at("paths", path, "post").(map[string]any)
		if operation == nil || operation["operationId"] != s.Operation {
			t.Errorf("%s: operation %v", path, operation["operationId"])
			continue
		}
		dollars := fmt.Sprintf("%d.%02d", s.PriceCents/100, s.PriceCents%100)
		want := map[string]any{"price": map[string]any{"mode": "fixed", "currency": "USD", "amount": dollars}, "protocols": []any{map[string]any{"x402": map[string]any{}}}}
		if diff := cmp.Diff(want, operation["x-payment-info"]); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if diff := cmp.Diff([]any{map[string]any{}, map[string]any{"apiKey": []any{}}, map[string]any{"bearer": []any{}}}, operation["security"]); diff != "" {
			t.Errorf("%s: security %s", path, diff)
		}
		responses, _ := operation["responses"].(map[string]any)
		for _, status := range []string{"200", "400", "401", "402", "409", "413", "429", "503", "default"} {
			if responses[status] == nil {
				t.Errorf("%s: %s is not documented", path, status)
			}
		}
		for status, name := range map[string]string{"402": "PAYMENT-REQUIRED", "429": "Link"} {
			if d.at("paths", path, "post", "responses", status, "headers", name) == nil {
				t.Errorf("%s: %s does not document %s", path, status, name)
			}
		}
		// The published schema of the request must be the one that validates.
		validated, err := schema.New(s.Input())
		if err != nil {
			t.Fatal(err)
		}
		validated.Rules = n.server.table.Find(s.Operation).Conditions
		text, err := json.Marshal(validated.Published(), json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		published, _ := json.Marshal(d.inlined(d.at("paths", path, "post", "requestBody", "content", "application/json", "schema")), json.Deterministic(true))
		if diff := cmp.Diff(string(text), string(published)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	for _, o := range d.operations() {
		if (o.operation["x-payment-info"] != nil) != priced[o.path] {
			t.Errorf("%s is priced: %v", o.path, !priced[o.path])
		}
	}
	for name, cents := range map[string]int{
		"action-safety/quick": 1, "action-safety/run": 25, "command-risk/score": 10, "review-triage/submit": 25, "x402-provenance/check": 5,
		"payment-policy/decide": 5, "evidence/verify": 5, "assurance/attest": 5, "mcp-risk/score": 5, "wallet-screen/score": 10, "email-check/validate": 2,
		"portfolio-risk/score": 15, "cashflow/analyze": 20, "waterfall/distribute": 25, "bond/analyze": 25, "options/price": 25, "dealanalyzer/analyze": 25,
		"spend-assurance/run": 25, "investment-evidence/analyze": 25,
	} {
		for _, s := range services.List() {
			if s.Name == name && s.PriceCents != cents {
				t.Errorf("%s costs %d cents, the specification says %d", name, s.PriceCents, cents)
			}
		}
	}
}

// TestTableAndDocumentAreTheSame checks that every operation of the table has a route and is in
// the document.
func TestTableAndDocumentAreTheSame(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	documented := map[string]bool{}
	for _, o := range n.openAPIDocument().operations() {
		documented[strings.ToUpper(o.method)+" "+o.path] = true
	}
	for _, endpoint := range operations() {
		if !documented[endpoint.Method+" "+endpoint.Path] {
			t.Errorf("%s %s is not documented", endpoint.Method, endpoint.Path)
		}
		delete(documented, endpoint.Method+" "+endpoint.Path)
		known := strings.NewReplacer("{name}", "preflight-actions", "/rules/{id}", "/rules/git.push.force-protected").Replace(endpoint.Path)
		path := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(known, "x")
		if a := n.send(endpoint.Method, path, ""); a.status == 405 || a.status == 404 && strings.Contains(string(a.body), `"not_found"`) {
			t.Errorf("%s %s: %v", endpoint.Method, endpoint.Path, a)
		}
	}
	if len(documented) > 0 {
		t.Errorf("documented but not in the table: %v", documented)
	}
}

// TestEveryExampleIsAnsweredAsDocumented checks that every example request is answered, and that
// every answer has the published shape.
func TestEveryExampleIsAnsweredAsDocumented(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	d := n.openAPIDocument()
	key := n.issueKey()
	executed := map[string]bool{}
	for _, endpoint := range operations() {
		if endpoint.Access.Right != "" || endpoint.Access.Kind == credential.Person || endpoint.Access.Scope != "" || endpoint.Sells != nil || endpoint.OAuth == "invalid_request" {
			continue // requires an organization, a customer, a payment or a client
		}
		o := described{strings.ToLower(endpoint.Method), endpoint.Path, d.at("paths", endpoint.Path, strings.ToLower(endpoint.Method)).(map[string]any)}
		var a answer
		switch {
		case endpoint.Method == http.MethodGet && !strings.Contains(endpoint.Path, "{"):
			query := url.Values{}
			for _, name := range endpoint.Needs {
				query.Set(name, "1")
			}
			a = n.send(http.MethodGet, endpoint.Path+"?"+query.Encode(), "", "X-API-Key", key)
		case endpoint.Input != nil && endpoint.Example != "":
			example, err := json.Marshal(d.at("paths", endpoint.Path, o.method, "requestBody", "content", "application/json", "example"))
			if err != nil {
				t.Fatal(err)
			}
			a = n.post(endpoint.Path, key, string(example))
		default:
			continue
		}
		if a.status != endpoint.Success && withoutExample[endpoint.ID] == "" {
			t.Errorf("%s: %v", endpoint.ID, a)
		}
		executed[endpoint.ID] = true
		d.valid(t, o, a)
	}
	for _, s := range services.List() {
		if !executed[s.Operation] {
			t.Errorf("the example of %s was not executed", s.Name)
		}
	}
	// The status record and the verification have no fixed example.
	_, run := n.runWorkflow(key, verdicts[3].body)
	status := described{"get", statusPath + "{workflowId}", d.at("paths", statusPath+"{workflowId}", "get").(map[string]any)}
	d.valid(t, status, n.get(statusPath+fmt.Sprint(run["workflowId"])))
	n.appendLegacy("asw_00000000-0000-4000-8000-00000000000b", n.clock.Now())
	d.valid(t, status, n.get(statusPath+"asw_00000000-0000-4000-8000-00000000000b"))
	d.valid(t, status, n.get(statusPath+"x"))
	d.valid(t, status, n.get(statusPath+"asw_00000000-0000-4000-8000-00000000000c"))
	verify := described{"post", "/api/verify", d.at("paths", "/api/verify", "post").(map[string]any)}
	d.valid(t, verify, n.post("/api/verify", "", string(jcsOf(t, run["receipt"]))))
	d.valid(t, verify, n.post("/api/verify", "", `{}`))
	quick := described{"post", quickPath, d.at("paths", quickPath, "post").(map[string]any)}
	for _, v := range verdicts {
		d.valid(t, quick, n.post(quickPath, key, v.body))
	}
	for _, a := range []answer{n.post(quickPath, "", ""), n.post(quickPath, "bad", ""), n.post(quickPath, key, "{"), n.post(quickPath, key, strings.Repeat(" ", 70_000))} {
		d.valid(t, quick, a)
	}
}

// TestStatusHasTwoShapes checks that the document describes a status record by one schema for each
// of its two shapes, and that humanApprovalIncluded is false in both.
func TestStatusHasTwoShapes(t *testing.T) {
	t.Parallel()
	d := startNode(t, setup{}).openAPIDocument()
	for name, want := range map[string][2]bool{"WorkflowStatus": {true, false}, "LegacyWorkflowStatus": {false, true}} {
		schema, _ := d.at("components", "schemas", name).(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		if (properties["actionHash"] != nil) != want[0] || (properties["binding"] != nil) != want[1] {
			t.Errorf("%s has %v", name, sortedKeys(properties))
		}
	}
	found := 0
	schema.Walk(d.root["components"], func(s map[string]any) {
		if properties, is := s["properties"].(map[string]any); is && properties["humanApprovalIncluded"] != nil {
			if constant, _ := properties["humanApprovalIncluded"].(map[string]any); constant["const"] != false {
				t.Errorf("humanApprovalIncluded may be true: %v", constant)
			}
			found++
		}
	})
	if found == 0 {
		t.Error("no schema has humanApprovalIncluded")
	}
}

// TestPublishedSchemaAndServiceAgree checks that the published schema refuses the invalid bodies
// of the other tests, and accepts bodies that the service answers.
func TestPublishedSchemaAndServiceAgree(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	d := n.openAPIDocument()
	key := n.issueKey()
	for _, path := range actionPaths {
		compiled := d.schema(t, "paths", path, "post", "requestBody", "content", "application/json", "schema")
		for _, c := range badMembers {
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(c.body))
			if err == nil && compiled.Validate(instance) == nil {
				t.Errorf("%s: the published schema accepts %s", path, c.name)
			}
		}
		for _, v := range verdicts {
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(v.body))
			if err != nil || compiled.Validate(instance) != nil {
				t.Errorf("%s: the published schema refuses %s", path, v.body)
			}
			n.wants(n.post(path, key, v.body), 200)
		}
	}
}

// TestAgentsContractIsPartOfTheWhole checks the content of /openapi.json: it has every operation
// that the specification requires, at most 40 operations, each as in the full document, and each
// with a way to call it without OAuth.
func TestAgentsContractIsPartOfTheWhole(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	whole := map[string]map[string]any{}
	for _, o := range n.openAPIDocument().operations() {
		whole[o.method+" "+o.path] = o.operation
	}
	agents := n.openAPIAt("/openapi.json")
	schemes, _ := agents.at("components", "securitySchemes").(map[string]any)
	kindOf := func(scheme string) any { return schemes[scheme].(map[string]any)["type"] }
	missing := specified()
	for _, o := range agents.operations() {
		name := o.method + " " + o.path
		missing = slices.DeleteFunc(missing, func(s string) bool { return s == name })
		if diff := cmp.Diff(whole[name], o.operation); diff != "" {
			t.Errorf("%s differs from the whole contract: %s", name, diff)
		}
		ways, _ := o.operation["security"].([]any)
		known := len(ways) == 0
		for _, way := range ways {
			for scheme := range way.(map[string]any) {
				known = known || kindOf(scheme) == "apiKey"
			}
		}
		if !known {
			t.Errorf("%s: a reader that knows keys and no OAuth finds no way to call it: %v", name, ways)
		}
	}
	if len(missing) > 0 {
		t.Errorf("the specification names, and the contract has not: %v", missing)
	}
	if count := len(agents.operations()); count > 40 {
		t.Errorf("%d operations: indexers take more than 40 for too many to read. Make a service Unlisted, or take one out of agentOperations", count)
	}
	if len(whole) != len(n.server.table) {
		t.Errorf("the whole contract has %d operations of %d", len(whole), len(n.server.table))
	}
	for _, id := range contract.AgentOperations {
		if !slices.ContainsFunc(n.server.table, func(endpoint *op.Operation) bool { return endpoint.ID == id }) {
			t.Errorf("no operation is called %s", id)
		}
	}
}

// specified lists the operations that the specification requires, as method and path.
func specified() []string {
	list := []string{
		"get /api/agent-workflows/action-safety/status/{workflowId}",
		"post /api/assurance/decisions", "post /api/assurance/receipts", "get /api/assurance/history",
		"get /api/health", "get /api/catalog", "get /api/checkout", "post /api/checkout", "get /api/purchase/{slug}", "post /api/purchase/{slug}",
		"get /api/content", "get /api/billing-portal", "post /api/billing-portal", "get /api/entitlements/{slug}", "get /api/support/entitlements",
		"post /api/keys/free", "get /api/keys/free/status", "post /api/auth/register", "post /api/auth/token", "post /api/auth/claim",
	}
	for _, s := range services.List() {
		list = append(list, "post "+op.ServicePath(s))
	}
	return list
}

func TestDocumentIsTheSameBytesUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	first := n.get("/openapi.json")
	for range 3 {
		again, err := contract.New(*n.server.contract).ForAgents()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Body, first.body) {
			t.Fatal("two builds differ")
		}
	}
	other, err := New(Config{App: n.app, Projections: n.projections, Log: n.server.path.Answers.Log, Contact: "operator@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := other.contract.ForAgents(); err != nil || !bytes.Equal(again.Body, first.body) {
		t.Errorf("two servers of one configuration differ, %v", err)
	}
	for _, path := range []string{"/openapi.json", "/openapi-full.json", "/.well-known/jwks.json"} {
		a := n.get(path)
		etag := a.header.Get("ETag")
		if want := `"` + sha256Hex(a.body)[:16] + `"`; etag != want {
			t.Errorf("%s: ETag %s, want %s", path, etag, want)
		}
		if a.header.Get("Cache-Control") != "public, max-age=300" || a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.header)
		}
		for _, have := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
			if b := n.send("GET", path, "", "If-None-Match", have); b.status != 304 || len(b.body) != 0 || b.header.Get("ETag") != etag {
				t.Errorf("%s with If-None-Match %s: %v", path, have, b)
			}
		}
		if b := n.send("GET", path, "", "If-None-Match", `"0000000000000000"`); b.status != 200 || !bytes.Equal(b.body, a.body) {
			t.Errorf("%s with another tag: %d", path, b.status)
		}
		head := n.send("HEAD", path, "")
		if head.status != 200 || len(head.body) != 0 || head.header.Get("ETag") != etag || head.header.Get("Content-Type") != a.header.Get("Content-Type") {
			t.Errorf("HEAD %s: %v %v", path, head, head.header)
		}
		// Addresses in a document must never come from the request.
		if b := n.send("GET", path, "", "X-Forwarded-Host", canary, "X-Forwarded-Proto", canary, "Host", canary); !bytes.Equal(b.body, a.body) {
			t.Errorf("%s follows the request's host", path)
		}
	}
}

// TestEveryServiceIsComplete checks that the declarations of services are complete and unique.
func TestEveryServiceIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range services.List() {
		if seen[s.Name] || seen[s.Operation] || s.PriceCents < 1 || s.Title == "" || s.Summary == "" || s.Input() == nil || s.Output() == nil {
			t.Errorf("%s is declared twice, or incomplete", s.Name)
		}
		seen[s.Name], seen[s.Operation] = true, true
		if _, err := s.Evaluate([]byte(s.Example)); err != nil {
			t.Errorf("the example of %s: %v", s.Name, err)
		}
	}
	if len(seen) == 0 {
		t.Error("there is no service")
	}
}

// TestEveryMemberOfAServiceIsDescribed checks that every member of a service's request and answer
// has its description at the member itself, where readers expect it, even if the member may be
// null.
func TestEveryMemberOfAServiceIsDescribed(t *testing.T) {
	t.Parallel()
	for _, s := range services.List() {
		request, err := schema.OfRequest(s.Input())
		if err != nil {
			t.Fatal(err)
		}
		answer, err := contract.AnswerSchema(&op.Operation{ID: s.Operation, Service: &s, Output: s.Output()})
		if err != nil {
			t.Fatal(err)
		}
		for side, shown := range map[string]any{"request": request, "answer": answer} {
			schema.Walk(shown, func(part map[string]any) {
				properties, _ := part["properties"].(map[string]any)
				for name, property := range properties {
					member, _ := property.(map[string]any)
					if said, _ := member["description"].(string); said == "" {
						t.Errorf("%s of %s: the member %s is not described", side, s.Name, name)
					}
				}
			})
		}
	}
}
