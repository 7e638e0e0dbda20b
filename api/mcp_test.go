package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/canon"
)

// eras are one protocol version with a handshake and one without.
var eras = []string{"2025-11-25", "2026-07-28"}

// carrier adds headers to the requests of a client, as a person would configure them.
type carrier struct{ header http.Header }

// RoundTrip implements http.RoundTripper.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range c.header {
		r.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(r)
}

// dial returns the official client, connected. headers alternates names and values.
func (n *node) dial(version string, headers ...string) *sdk.ClientSession {
	n.t.Helper()
	header := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(n.t.Context(), &sdk.StreamableClientTransport{Endpoint: n.url + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: carrier{header}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = session.Close() })
	return session
}

// toolAnswer is the result of a tool call.
type toolAnswer struct {
	isError    bool
	structured string // canonical JSON; empty if there is none
	text       string
	meta       map[string]any
}

// callTool calls a tool with arguments in JSON. meta alternates names and values of _meta.
func (n *node) callTool(session *sdk.ClientSession, name, arguments string, meta ...any) toolAnswer {
	n.t.Helper()
	params := &sdk.CallToolParams{Name: name, Arguments: jsonRaw(arguments)}
	for i := 0; i < len(meta); i += 2 {
		if params.Meta == nil {
			params.Meta = sdk.Meta{}
		}
		params.Meta[meta[i].(string)] = meta[i+1]
	}
	result, err := session.CallTool(n.t.Context(), params)
	if err != nil {
		n.t.Fatalf("%s: %v", name, err)
	}
	a := toolAnswer{isError: result.IsError, meta: result.Meta}
	if len(result.Content) != 1 {
		n.t.Fatalf("%s: %d contents", name, len(result.Content))
	}
	a.text = result.Content[0].(*sdk.TextContent).Text
	if result.StructuredContent != nil {
		text, err := canon.Marshal(result.StructuredContent)
		if err != nil {
			n.t.Fatal(err)
		}
		a.structured = string(text)
	}
	return a
}

// jsonRaw is JSON that the SDK's encoder leaves unchanged.
type jsonRaw string

// MarshalJSON implements json.Marshaler.
func (r jsonRaw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// refusedTool fails the test unless the answer is an error whose only content is the text that
// REST returns as the body.
func (n *node) refusedTool(a toolAnswer, status int, rest answer) {
	n.t.Helper()
	if rest.status != status || !a.isError || a.structured != "" || Plain(a.text) != Plain(string(rest.body)) {
		n.t.Errorf("tool %+v, REST %v, want %d", a, rest, status)
	}
}

// TestEachToolIsItsOperation checks that each tool has the name, schema and price of its
// operation.
func TestEachToolIsItsOperation(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	for _, era := range eras {
		list, err := n.dial(era).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]*sdk.Tool{}
		for _, tool := range list.Tools {
			found[tool.Name] = tool
		}
		for _, s := range services.List() {
			tool, o := found[s.Operation], n.server.table.Find(s.Operation)
			if tool == nil {
				t.Errorf("%s is no tool", s.Operation)
				continue
			}
			price := fmt.Sprintf("%d.%02d", s.PriceCents/100, s.PriceCents%100)
			if diff := cmp.Diff(map[string]any{"usd": price}, tool.Meta["x402/price"]); diff != "" || !strings.Contains(tool.Description, "$"+price) {
				t.Errorf("%s: price (-want +got):\n%s%s", s.Operation, diff, tool.Description)
			}
			n.sameInput(o, tool)
			if tool.Annotations.ReadOnlyHint == s.Signed || !tool.Annotations.IdempotentHint || *tool.Annotations.DestructiveHint || *tool.Annotations.OpenWorldHint || tool.Title == "" {
				t.Errorf("%s: %+v", s.Operation, tool.Annotations)
			}
			if strings.Contains(tool.Description, "One key per purchase you intend") == o.KeyOutsideBody() {
				t.Errorf("%s: its key is a member of the body, or not: %s", s.Operation, tool.Description)
			}
		}
		var priced struct {
			Services []struct {
				MCPTool  string `json:"mcpTool"`
				PriceUSD string `json:"priceUsd"`
			} `json:"services"`
		}
		if n.get("/api/pricing").decode(t, &priced); len(priced.Services) != len(services.List()) {
			t.Errorf("%d services have a price", len(priced.Services))
		}
		for _, p := range priced.Services {
			if found[p.MCPTool] == nil || cmp.Diff(map[string]any{"usd": p.PriceUSD}, found[p.MCPTool].Meta["x402/price"]) != "" {
				t.Errorf("the price list says %+v", p)
			}
		}
		for _, name := range []string{"get_action_safety_workflow_status", "verify_record", "list_products", "get_pricing",
			"authorize_purchase_intent", "record_execution_receipt", "list_assurance_history"} {
			if tool := found[name]; tool == nil || tool.Meta["x402/price"] != nil {
				t.Errorf("%s: %+v", name, tool)
			}
		}
		for name, tool := range found {
			for which, shown := range map[string]any{"input": tool.InputSchema, "output": tool.OutputSchema} {
				if m, _ := shown.(map[string]any); m["type"] != "object" {
					t.Errorf("%s: the root of the %s schema is no object: %v", name, which, m["type"])
				}
				compileJSON(t, name, shown)
				schema.Walk(shown, func(s map[string]any) {
					if s["items"] == true || s["additionalProperties"] == true && len(s) == 1 {
						t.Errorf("%s: somewhere the %s schema is just true, which not every client takes", name, which)
					}
				})
			}
		}
	}
}

func plainJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func compileJSON(t *testing.T, name string, schema any) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseRegexpEngine(libraryRegexp)
	if err := compiler.AddResource("tool.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("tool.json")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return compiled
}

// TestEveryServiceAnswersTheSameOverBoth checks for every service, in both eras, that the same
// arguments give the same content over REST and MCP, and that it matches the tool's output schema.
func TestEveryServiceAnswersTheSameOverBoth(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	list, err := n.dial(eras[1]).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]any{}
	for _, tool := range list.Tools {
		outputs[tool.Name] = tool.OutputSchema
	}
	for _, s := range services.List() {
		rest := n.post(op.ServicePath(s), key, s.Example, "Idempotency-Key", "key-"+s.Operation)
		n.wants(rest, 200)
		for _, era := range eras {
			a := n.callTool(n.dial(era, "X-API-Key", key, "Idempotency-Key", "key-"+s.Operation), s.Operation, s.Example)
			if a.isError || a.structured != string(rest.body) || a.text != string(rest.body) {
				t.Errorf("%s %s: %+v\nREST %s", era, s.Operation, a, rest.body)
			}
			if s.Signed {
				continue // each answer has a different receipt
			}
			if a = n.callTool(n.dial(era, "Authorization", "Bearer "+key), s.Operation, s.Example); a.structured != string(rest.body) {
				t.Errorf("%s %s afresh: %+v\nREST %s", era, s.Operation, a, rest.body)
			}
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(rest.body))
		if err != nil {
			t.Fatal(err)
		}
		if err := compileJSON(t, s.Operation, outputs[s.Operation]).Validate(instance); err != nil {
			t.Errorf("%s: %v", s.Operation, err)
		}
	}
}

// TestToolsGoThroughTheGate checks that a tool call is handled like a call over HTTP: it is
// counted, limited, and refused with the same words.
func TestToolsGoThroughTheGate(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	for _, era := range eras {
		keyed, nobody := n.dial(era, "X-API-Key", key), n.dial(era)
		before := n.used(key)
		if a := n.callTool(keyed, "action_safety_quick_gate", `{"command":"git push --force origin main"}`); a.isError || !strings.Contains(a.structured, `"risk":"critical"`) {
			t.Errorf("%+v", a)
		}
		if used := n.used(key); used != before+1 {
			t.Errorf("%d calls used, before it %d", used, before)
		}
		n.unchanged(func() {
			for _, bad := range []string{`{}`, `{"command":5}`, `{"command":"ls","` + canary + `":1}`, `{"command":" ls"}`, `[]`, `null`, `"ls"`} {
				a := n.callTool(keyed, "action_safety_quick_gate", bad)
				n.refusedTool(a, 400, n.post(quickPath, key, bad))
			}
			n.refusedTool(n.callTool(nobody, "action_safety_quick_gate", `{}`), 503, n.post(quickPath, "", `{}`))
		})
	}
	n.spend(key, 250-n.used(key))
	for _, era := range eras {
		a := n.callTool(n.dial(era, "X-API-Key", key), "action_safety_quick_gate", `{"command":"ls"}`)
		rest := n.post(quickPath, key, `{"command":"ls"}`)
		n.exhausted(rest)
		n.refusedTool(a, 429, rest)
	}
}

// TestFreeTools checks that free tools need no credential and return the same as over REST.
func TestFreeTools(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	run := n.post(runPath, key, `{"command":"ls"}`)
	n.wants(run, 200)
	id := run.members(t)["workflowId"].(string)
	receipt, err := canon.Marshal(run.members(t)["receipt"])
	if err != nil {
		t.Fatal(err)
	}
	status := n.get("/api/agent-workflows/action-safety/status/" + id)
	n.wants(status, 200)
	verified := n.post("/api/verify", "", string(receipt))
	n.wants(verified, 200)
	for _, era := range eras {
		session := n.dial(era)
		for name, path := range map[string]string{"list_products": "/api/catalog", "get_pricing": "/api/pricing"} {
			if a, rest := n.callTool(session, name, `{}`), n.get(path); a.isError || a.structured != string(rest.body) {
				t.Errorf("%s: %+v, REST %v", name, a, rest)
			}
			if a := n.callTool(session, name, `{"x":1}`); !a.isError {
				t.Errorf("%s takes arguments: %+v", name, a)
			}
		}
		if a := n.callTool(session, "get_action_safety_workflow_status", `{"workflowId":"`+id+`"}`); a.isError || a.structured != string(status.body) {
			t.Errorf("%+v, REST %v", a, status)
		}
		if a := n.callTool(session, "verify_record", string(receipt)); a.isError || a.structured != string(verified.body) || !strings.Contains(a.text, `"valid":true`) {
			t.Errorf("%+v, REST %v", a, verified)
		}
		unknown := "asw_00000000-0000-4000-8000-000000000000"
		n.refusedTool(n.callTool(session, "get_action_safety_workflow_status", `{"workflowId":"`+unknown+`"}`), 404,
			n.get("/api/agent-workflows/action-safety/status/"+unknown))
		for _, bad := range []string{`{}`, `{"workflowId":5}`, `{"workflowId":"../` + canary + `"}`, `{"workflowId":"` + id + `","more":1}`} {
			if a := n.callTool(session, "get_action_safety_workflow_status", bad); !a.isError || a.structured != "" || strings.Contains(a.text, canary) {
				t.Errorf("%s: %+v", bad, a)
			}
		}
		result, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "countersign://workflows/" + id})
		if err != nil || result.Contents[0].Text != string(status.body) || result.Contents[0].MIMEType != "application/json" {
			t.Errorf("%v %v", result, err)
		}
	}
}

// TestABadCredentialIsNoMessage checks that a message with an invalid credential gets 401
// for every method. The answer says where to get a valid one. For a token it refers to OAuth.
// For a key it does not, because clients would start an OAuth log-in.
func TestABadCredentialIsNoMessage(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	for _, headers := range [][]string{
		{"X-API-Key", canary}, {"X-API-Key", key[:len(key)-1]}, {"Authorization", "Bearer " + canary}, {"Authorization", "Basic " + key},
		{"Authorization", "Bearer svco_" + canary}, {"Authorization", "Bearer a.b.c"}, {"X-API-Key", ""},
		{"X-API-Key", key, "X-API-Key", key}, {"Authorization", "Bearer " + key, "Authorization", "Bearer " + key},
	} {
		for _, d := range op.MCPPaths {
			a := n.send(http.MethodPost, d, list, append([]string{"Content-Type", "application/json"}, headers...)...)
			n.refused(a, 401, "-", "")
			want := `Bearer realm="countersign", resource_metadata="` + n.url + `/.well-known/oauth-protected-resource` + d + `", error="invalid_token", scope="catalog:read"`
			if isKey := headers[0] == "X-API-Key" || strings.Contains(headers[1], " svc"); isKey { // an OAuth log-in does not make a key valid
				want = `ApiKey realm="countersign"`
				if !strings.Contains(string(a.body), "create a key at") {
					t.Errorf("%v: %s", headers, a.body)
				}
			}
			if got := a.header.Get("WWW-Authenticate"); got != want {
				t.Errorf("%v: WWW-Authenticate %q, want %q", headers, got, want)
			}
		}
	}
	agent := n.register()
	token := n.token(agent, "")
	for _, headers := range [][]string{nil, {"X-API-Key", key}, {"Authorization", "Bearer " + key}, {"Authorization", "Bearer " + n.organizationToken()},
		{"Authorization", "Bearer " + token}, {"Cookie", "countersign_session=" + canary}} {
		if a := n.send(http.MethodPost, "/mcp", list, append([]string{"Content-Type", "application/json"}, headers...)...); a.status != 200 {
			t.Errorf("%v: %v", headers, a)
		}
	}
	n.form("/api/auth/revoke", agent, url.Values{"token": {token}})
	n.refused(n.send(http.MethodPost, "/mcp", list, "Content-Type", "application/json", "Authorization", "Bearer "+token), 401, "unauthorized", "")
}

// TestOrganizationTools checks that the tools and resources of an organization return the same
// records as REST, and no records of others.
func TestOrganizationTools(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	token, other, key := n.tokenWithPolicy(), n.tokenWithPolicy(), n.issueKey()
	bearer := func(token string) []string {
		return []string{"Content-Type", "application/json", "Authorization", "Bearer " + token}
	}
	order := func(era string) string {
		return `{"protocol":"x402","idempotencyKey":"purchase-` + era + `","subject":{"runId":"run-1"},"intent":{"resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo",` +
			`"method":"GET","scheme":"exact","network":"base","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`
	}
	for _, era := range eras {
		mine, theirs := n.dial(era, "Authorization", "Bearer "+token), n.dial(era, "Authorization", "Bearer "+other)
		decided := n.callTool(mine, "authorize_purchase_intent", order(era))
		again := n.send(http.MethodPost, "/api/assurance/decisions", order(era), bearer(token)...)
		if n.wants(again, 200); decided.isError || decided.structured != string(again.body) || !strings.Contains(decided.text, `"decision":"allow"`) {
			t.Errorf("%+v, REST %v", decided, again)
		}
		var decision struct {
			Record struct {
				DecisionID  string `json:"decisionId"`
				BindingHash string `json:"bindingHash"`
			} `json:"record"`
			Integrity struct {
				RecordHash string `json:"recordHash"`
			} `json:"integrity"`
		}
		again.decode(t, &decision)
		receipt := `{"decisionId":"` + decision.Record.DecisionID + `","decisionRecordHash":"` + decision.Integrity.RecordHash + `","bindingHash":"` + decision.Record.BindingHash +
			`","protocol":"x402","outcome":"fulfilled","responseStatus":200}`
		bound := n.callTool(mine, "record_execution_receipt", receipt)
		rebound := n.send(http.MethodPost, "/api/assurance/receipts", receipt, bearer(token)...)
		if n.wants(rebound, 200); bound.isError || bound.structured != string(rebound.body) {
			t.Errorf("%+v, REST %v", bound, rebound)
		}
		receiptID := rebound.members(t)["record"].(map[string]any)["receiptId"].(string)
		for _, query := range []struct{ arguments, rest string }{{`{}`, ""}, {`{"limit":0}`, "?limit=0"}, {`{"limit":-7}`, "?limit=-7"}, {`{"limit":101}`, "?limit=101"}, {`{"limit":1}`, "?limit=1"}} {
			listed := n.callTool(mine, "list_assurance_history", query.arguments)
			rest := n.send(http.MethodGet, "/api/assurance/history"+query.rest, "", bearer(token)...)
			if n.wants(rest, 200); listed.isError || listed.structured != string(rest.body) {
				t.Errorf("%+v, REST %v", listed, rest)
			}
			cursor := rest.members(t)["nextCursor"]
			if query.rest != "?limit=1" {
				continue
			}
			listed = n.callTool(mine, "list_assurance_history", fmt.Sprintf(`{"limit":1,"cursor":%q}`, cursor))
			if rest := n.send(http.MethodGet, fmt.Sprintf("/api/assurance/history?limit=1&cursor=%s", cursor), "", bearer(token)...); listed.structured != string(rest.body) {
				t.Errorf("%+v, REST %v", listed, rest)
			}
		}
		for uri, path := range map[string]string{
			"countersign://decisions/" + decision.Record.DecisionID: "/api/assurance/decisions/" + decision.Record.DecisionID,
			"countersign://receipts/" + receiptID:                   "/api/assurance/receipts/" + receiptID,
		} {
			read, err := mine.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			if rest := n.send(http.MethodGet, path, "", bearer(token)...); err != nil || read.Contents[0].Text != string(rest.body) || read.CacheScope == "public" {
				t.Errorf("%s: %v %v", uri, read, err)
			}
			for who, session := range map[string]*sdk.ClientSession{"another organization": theirs, "a key": n.dial(era, "X-API-Key", key), "nobody": n.dial(era)} {
				if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); notFoundError(err) != nil {
					t.Errorf("%s reads %s: %v", who, uri, err)
				}
			}
		}
		for name, arguments := range map[string]string{"authorize_purchase_intent": order("nobody"), "record_execution_receipt": receipt, "list_assurance_history": `{}`} {
			n.unchanged(func() {
				if a := n.callTool(n.dial(era), name, arguments); a.text != `{"error":"authentication required"}` || !a.isError || a.structured != "" {
					t.Errorf("%s without a credential: %+v", name, a)
				}
				if a := n.callTool(n.dial(era, "X-API-Key", key), name, arguments); a.text != `{"error":"organization credential required"}` || !a.isError {
					t.Errorf("%s with a key: %+v", name, a)
				}
			})
		}
	}
}

// tokenWithPolicy returns a valid token of a new organization whose policy allows some payments.
func (n *node) tokenWithPolicy() string {
	n.t.Helper()
	_, token := n.organizationWith(`{"policyId":"default","maxUsdPerTransaction":1,"allowedNetworks":["base"],"requireHttps":true}`)
	return token
}

// organizationWith creates an organization with this active policy. It returns its id and a valid
// token with every scope.
func (n *node) organizationWith(policy string) (orgID, token string) {
	n.t.Helper()
	o, err := n.app.CreateOrganization(n.t.Context(), "operator", "Acme", "team", fmt.Sprintf("owner%d@example.com", addresses.Add(1)))
	if err != nil {
		n.t.Fatal(err)
	}
	operator, err := n.app.Operator(n.t.Context(), o.OrgID)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.app.DraftAndActivate(n.t.Context(), operator, []byte(policy), "test"); err != nil {
		n.t.Fatal(err)
	}
	issued, err := n.app.IssueToken(n.t.Context(), operator, organizations.TokenOrder{Scopes: organizations.Scopes})
	if err != nil {
		n.t.Fatal(err)
	}
	return o.OrgID, issued.Token
}

// notFoundError returns nil if the error says that a resource does not exist. Otherwise it returns
// an error.
func notFoundError(err error) error {
	if err != nil && strings.Contains(err.Error(), "resource not found") {
		return nil
	}
	return fmt.Errorf("not the error of an unknown resource: %w", err)
}

// TestResourcesAndPrompts checks that the documents are resources, byte for byte, and that the
// active policy is a resource for its organization.
func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	token := n.tokenWithPolicy()
	for _, era := range eras {
		session := n.dial(era)
		list, err := session.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Resources {
			path := map[string]string{"rules": "/api/rules", "pricing": "/api/pricing", "keys": "/.well-known/jwks.json", "openapi": "/openapi.json"}[r.Name]
			read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: r.URI})
			if rest := n.get(path); err != nil || rest.status != 200 || read.Contents[0].Text != string(rest.body) {
				t.Errorf("%s: %v, REST %v", r.URI, err, rest)
			}
		}
		if len(list.Resources) != 4 {
			t.Errorf("%d resources", len(list.Resources))
		}
		if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "countersign://policy/active"}); notFoundError(err) != nil {
			t.Errorf("anybody reads the policy: %v", err)
		}
		read, err := n.dial(era, "Authorization", "Bearer "+token).ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "countersign://policy/active"})
		if err != nil || !jsontext.Value(read.Contents[0].Text).IsValid() || !strings.Contains(read.Contents[0].Text, `"maxUsdPerTransaction":1`) {
			t.Errorf("%v %v", read, err)
		}
		for name, arguments := range map[string]map[string]string{
			"preflight_command":  {"command": "rm -rf <x>", "environment": "production"},
			"authorize_purchase": {"intent": "a forecast <x>"},
			"explain_decision":   {"decisionId": "asd_<x>"},
		} {
			prompt, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: arguments})
			if err != nil || !strings.Contains(prompt.Messages[0].Content.(*sdk.TextContent).Text, "<x>") {
				t.Errorf("%s: %v %v", name, prompt, err)
			}
			if _, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name}); err == nil {
				t.Errorf("%s without arguments", name)
			}
		}
	}
}

// TestIntegersBeyondTheLimit checks, over HTTP and MCP, that integers beyond 2^53 keep every digit
// in values that the service only hashes. A service that computes with a number refuses such an
// integer.
func TestIntegersBeyondTheLimit(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	token, key := n.tokenWithPolicy(), n.issueKey()
	decide := func(key, id string) string {
		return `{"protocol":"mcp","idempotencyKey":"` + key + `","subject":{"runId":"run-1"},"intent":{"serverId":"discord","toolName":"reply","toolArguments":{"message_id":` + id + `}}}`
	}
	rest := func(body string) answer {
		return n.send(http.MethodPost, "/api/assurance/decisions", body, "Content-Type", "application/json", "Authorization", "Bearer "+token)
	}
	session := n.dial(eras[0], "Authorization", "Bearer "+token)
	for i, id := range []string{"1308129394817110129", "1308129394817110128", "-9223372036854775808", "18446744073709551615", "1e17"} {
		body := decide("k"+strconv.Itoa(i), id)
		decided := rest(body)
		n.wants(decided, 201)
		hash := canon.Hash([]byte(`{"message_id":` + strings.Replace(id, "1e17", "100000000000000000", 1) + `}`))
		if !strings.Contains(string(decided.body), `"toolArgumentsHash":"`+hash+`"`) {
			t.Errorf("%s: %s lacks %s", id, decided.body, hash)
		}
		again := n.callTool(session, "authorize_purchase_intent", body)
		if again.isError || again.structured != string(decided.body) {
			t.Errorf("%s over MCP: %+v", id, again)
		}
		verified := n.post("/api/verify", "", string(decided.body))
		if n.wants(verified, 200); !strings.Contains(string(verified.body), `"valid":true`) {
			t.Errorf("%s: %s", id, verified.body)
		}
	}
	n.wants(rest(decide("k0", "1308129394817110130")), 409)

	const risk = "/api/agent-services/mcp-risk/score"
	manifest := func(most string) string {
		return `{"manifest":{"name":"pager","tools":[{"name":"page","description":"Returns one page.","inputSchema":{"type":"object","properties":{"cursor":{"type":"integer","minimum":-9223372036854775808,"maximum":` + most + `}}}}]}}`
	}
	hashes := map[string]bool{}
	for _, most := range []string{"9223372036854775807", "9223372036854775806"} {
		a := n.post(risk, key, manifest(most))
		n.wants(a, 200)
		hashes[a.members(t)["manifestHash"].(string)] = true
		if over := n.callTool(n.dial(eras[0], "X-API-Key", key), "mcp_risk_score", manifest(most)); over.isError {
			t.Errorf("over MCP: %+v", over)
		}
	}
	if len(hashes) != 2 {
		t.Errorf("two manifests have %d hashes", len(hashes))
	}

	for _, spot := range []string{"9007199254740993", "1e17", "1000000000000000000000001"} {
		refused := n.post("/api/agent-services/options/price", key, `{"optionType":"call","spot":`+spot+`,"strike":95,"timeToExpiryYears":0.5,"riskFreeRate":0.03,"volatility":0.25}`)
		if n.wants(refused, 400); !strings.Contains(string(refused.body), `spot must be a number from -9007199254740991 to 9007199254740991`) {
			t.Errorf("%s: %s", spot, refused.body)
		}
	}
}

func TestMessagesAreReadStrictly(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	n.unchanged(func() {
		a := n.post("/mcp", key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"action_safety_quick_gate","arguments":{"command":"ls","command":"rm -rf /"}}}`)
		if a.status != 400 || !strings.Contains(string(a.body), `"code":-32700`) {
			t.Errorf("%v", a)
		}
		a = n.post("/mcp", key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"action_safety_quick_gate","arguments":{"command":"ls","COMMAND":"rm -rf /"}}}`)
		if a.status != 200 || !strings.Contains(string(a.body), "unknown_field") {
			t.Errorf("%v", a)
		}
	})
	for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}} {
		if a := n.post("/mcp", key, `{}`, headers...); a.status != 403 {
			t.Errorf("%v: %v", headers, a)
		}
	}
	if a := n.raw("POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); a.status != 403 {
		t.Errorf("another host: %v", a)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
		if a := n.send(method, "/mcp", ""); a.status != 405 || a.header.Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%s: %v", method, a)
		}
	}
}

// TestToolsWhileTheDatabaseIsAway checks that calls get a 503 while the database is down, even if
// the caller's key cannot be read, and that the same call works afterwards.
func TestToolsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key, unseen, body := n.issueKey(), n.issueKey(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"action_safety_quick_gate","arguments":{"command":"ls"}}}`
	session := n.dial(eras[1], "X-API-Key", key)
	n.callTool(session, "action_safety_quick_gate", `{"command":"ls"}`) // the node caches this key
	n.db.Away(t)
	n.refusedTool(n.callTool(session, "action_safety_quick_gate", `{"command":"ls"}`), 503, n.post(quickPath, key, `{"command":"ls"}`))
	n.refused(n.post("/mcp", unseen, body), 503, "temporarily_unavailable", "")
	_, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "countersign://workflows/asw_00000000-0000-4000-8000-000000000000"})
	if err == nil || !strings.Contains(err.Error(), "temporarily unavailable") {
		t.Errorf("%v", err)
	}
	n.db.Back(t)
	a := n.post("/mcp", unseen, body)
	if n.app.Ledger.Home(key[5:17]) != n.app.Ledger.Home(unseen[5:17]) && strings.Contains(string(a.body), "temporarily_unavailable") {
		a = n.post("/mcp", unseen, body) // the node has not read this partition since the outage, so the first read fails with an old connection
	}
	if a.status != 200 || !strings.Contains(string(a.body), `\"risk\":\"low\"`) {
		t.Errorf("%v", a)
	}
}

// TestToolsAtOnce checks that many concurrent callers each get their own answer.
func TestToolsAtOnce(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	sessions := make([]*sdk.ClientSession, 8)
	for i := range sessions {
		sessions[i] = n.dial(eras[i%2], "X-API-Key", n.issueKey())
	}
	errs := make([]error, 64)
	parallel(len(errs), func(i int) {
		command := fmt.Sprintf("echo %d", i)
		result, err := sessions[i%8].CallTool(context.Background(), &sdk.CallToolParams{Name: "command_risk_score", Arguments: map[string]any{"command": command}})
		if err != nil || result.IsError {
			errs[i] = fmt.Errorf("%v %w", result, err)
		}
	})
	for i, err := range errs {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestListsOfToolsAreShort checks that the list of tools is short enough for a model, and that
// each focused endpoint offers only the tools of its purpose.
func TestListsOfToolsAreShort(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	for path, bounds := range map[string][3]int{"/mcp": {26, 26, 62_000}, "/mcp/safety": {4, 6, 20_000}, "/mcp/assurance": {4, 6, 20_000}} {
		a := n.post(path, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
		var answer struct {
			Result struct {
				Tools []struct {
					Name  string         `json:"name"`
					Input map[string]any `json:"inputSchema"`
				} `json:"tools"`
			} `json:"result"`
		}
		a.decode(t, &answer)
		if count := len(answer.Result.Tools); count < bounds[0] || count > bounds[1] || len(a.body) > bounds[2] {
			t.Errorf("%s: %d tools in %d octets", path, count, len(a.body))
		}
		if strings.Contains(string(a.body), "$ref") || strings.Contains(string(a.body), "$defs") { // some clients pass references on unresolved
			t.Errorf("%s has schemas with references", path)
		}
		for _, tool := range answer.Result.Tools {
			compiled := compileJSON(t, tool.Name, tool.Input)
			if o := n.server.table.Find(tool.Name); o != nil && o.Example != "" {
				instance, err := jsonschema.UnmarshalJSON(strings.NewReader(o.Example))
				if err == nil {
					err = compiled.Validate(instance)
				}
				if err != nil {
					t.Errorf("%s refuses its example: %v", tool.Name, err)
				}
			}
		}
	}
}

// sameInput checks that the short schema of a tool has the same members at every level as the
// schema that validates, and the idempotency key, which over HTTP may be a header.
func (n *node) sameInput(o *op.Operation, tool *sdk.Tool) {
	n.t.Helper()
	whole, _ := plainJSON(n.t, o.Schema.Document).(map[string]any)
	short, _ := tool.InputSchema.(map[string]any)
	definitions, _ := short["$defs"].(map[string]any)
	members := membersOf(whole, nil)
	members["/idempotencyKey"] = false
	if diff := cmp.Diff(members, membersOf(short, definitions)); diff != "" {
		n.t.Errorf("%s: members (-REST +MCP):\n%s", o.ID, diff)
	}
}

// membersOf returns the paths of all members of a schema, and whether each is required.
func membersOf(schema, definitions map[string]any) map[string]bool {
	found := map[string]bool{}
	var visit func(s any, at string)
	visit = func(s any, at string) {
		m, _ := s.(map[string]any)
		if ref, is := m["$ref"].(string); is {
			visit(definitions[strings.TrimPrefix(ref, "#/$defs/")], at)
		}
		if properties, is := m["properties"].(map[string]any); is {
			required, _ := m["required"].([]any)
			for name, property := range properties {
				found[at+"/"+name] = slices.Contains(required, any(name))
				visit(property, at+"/"+name)
			}
		}
		visitEach := func(v any) {
			list, _ := v.([]any)
			for _, element := range list {
				visit(element, at)
			}
		}
		visitEach(m["anyOf"])
		visitEach(m["oneOf"])
		if m["items"] != nil {
			visit(m["items"], at+"/*")
		}
	}
	visit(schema, "")
	return found
}
