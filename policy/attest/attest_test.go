package attest_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/policytest"
)

func answer(t testing.TB, body string) attest.Output {
	t.Helper()
	a, err := attest.Service.Evaluate([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var out attest.Output
	if err := json.Unmarshal(a.Body, &out); err != nil {
		t.Fatal(err)
	}
	if a.Decision != out.Verdict {
		t.Errorf("the receipt says %s, the answer %s", a.Decision, out.Verdict)
	}
	return out
}

func told(out attest.Output) string {
	text := out.Verdict + ":"
	for _, f := range out.Findings {
		text += " " + f.ID
	}
	return text
}

func merged(t testing.TB, base, patch string) string {
	t.Helper()
	body, err := policytest.Merge([]byte(base), []byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestWorkedExample(t *testing.T) {
	out := answer(t, `{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","declaredRisk":"low"}}`)
	if out.BindingHash != "b78e67aa7388fcb7559d1d96e9e8e37829646a8df5d15eaa995b1c1704adcc34" || out.ActionBindingVersion != "svc-action-v1" {
		t.Errorf("got %+v", out)
	}
}

// A caller may send a SHA-256 in upper case. It is compared and recorded in lower case.
func TestUpperCaseHashes(t *testing.T) {
	arguments, _ := canon.Canonical([]byte(`{"path":"/tmp"}`))
	hash := canon.Hash(arguments)
	a, err := attest.Service.Evaluate([]byte(`{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","toolArguments":{"path":"/tmp"},"toolArgumentsHash":"` + strings.ToUpper(hash) + `"},
		"settlement":{"outcome":"fulfilled","responseBodyHash":"` + strings.Repeat("AB", 32) + `","evidenceHashes":["` + strings.Repeat("CD", 32) + `","Receipt 7"],"observedAt":"2026-01-02t03:04:05z"}}`))
	if err != nil {
		t.Fatal(err)
	}
	record := a.State("att_1", "2026-01-02T03:04:06.000Z").(attest.Record)
	if record.IntentSummary.ArgumentsHash != hash || record.Settlement.ResponseBodyHash != strings.Repeat("ab", 32) ||
		!slices.Equal(record.Settlement.EvidenceHashes, []string{strings.Repeat("cd", 32), "Receipt 7"}) {
		t.Errorf("got %+v", record)
	}
}

// The binding hash covers the intent as sent. The order of members and white space do not matter.
// A null member counts as absent, but a null inside the arguments counts.
func TestBindingHash(t *testing.T) {
	base := answer(t, `{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","toolArguments":{"a":null,"b":[1,{}]}}}`).BindingHash
	canonical := []byte(`{"actionBindingVersion":"svc-action-v1","intent":{"serverId":"files","toolArguments":{"a":null,"b":[1,{}]},"toolName":"read"},"protocol":"mcp"}`)
	if want := canon.Hash(canonical); base != want {
		t.Errorf("got %s, want %s", base, want)
	}
	same := `{"intent" : {"toolName":"read", "declaredRisk":null, "toolArguments":{"b":[1.0,{}],"a":null}, "serverId":"files"}, "protocol":"mcp", "subject":{"runId":"r"}}`
	if got := answer(t, same).BindingHash; got != base {
		t.Errorf("the same intent has another hash: %s", got)
	}
	for _, other := range []string{
		`{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","toolArguments":{"b":[1,{}]}}}`,
		`{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","toolArguments":{}}}`,
		`{"protocol":"mcp","intent":{"serverId":"files","toolName":"read"}}`,
		`{"protocol":"mcp","intent":{"serverId":"files","toolName":"write","toolArguments":{"a":null,"b":[1,{}]}}}`,
	} {
		if got := answer(t, other).BindingHash; got == base {
			t.Errorf("%s has the same hash", other)
		}
	}
}

// An intent built in Go has the same binding hash as the same intent sent as JSON.
func TestIntentsMadeInGo(t *testing.T) {
	out, err := attest.Evaluate(attest.Input{Protocol: "mcp", Intent: &attest.Intent{ServerID: "files", ToolName: "read", ToolArguments: map[string]any{}}})
	if err != nil || out.BindingHash != answer(t, `{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","toolArguments":{}}}`).BindingHash {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestMCPRules(t *testing.T) {
	const base = `{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","declaredRisk":"medium"},"policy":{"policyId":"tools","version":2,"allowedMcpServers":["files"]}}`
	for _, tc := range []struct{ name, patch, want string }{
		{"server allowed", `{}`, "allow:"},
		{"no policy", `{"policy":null}`, "needs_review: no_policy"},
		// no rule was checked, so the verdict is not allow
		{"a policy without a rule for tools", `{"policy":{"allowedMcpServers":null,"requireHttps":true}}`, "needs_review: no_applicable_rule"},
		{"server not allowed", `{"policy":{"allowedMcpServers":["Files"]}}`, "deny: mcp_server_not_allowed"},
		{"no server allowed", `{"policy":{"allowedMcpServers":[]}}`, "deny: mcp_server_not_allowed"},
		{"tool allowed", `{"policy":{"allowedMcpTools":["read"]}}`, "allow:"},
		{"tool allowed with its server", `{"policy":{"allowedMcpTools":["files/read"]}}`, "allow:"},
		{"tool not allowed", `{"policy":{"allowedMcpTools":["Read","other/read"]}}`, "deny: mcp_tool_not_allowed"},
		{"tool blocked in another case", `{"policy":{"blockedMcpTools":["FILES/Read"]}}`, "deny: mcp_tool_blocked"},
		{"blocked wins", `{"policy":{"blockedMcpTools":["read"],"allowedMcpTools":["read"]}}`, "deny: mcp_tool_blocked"},
		{"another tool blocked", `{"policy":{"blockedMcpTools":["write","other/read"]}}`, "allow:"},
		{"arguments required", `{"policy":{"requireMcpArgumentBinding":true}}`, "deny: mcp_arguments_unbound"},
		{"arguments given", `{"policy":{"requireMcpArgumentBinding":true},"intent":{"toolArguments":{}}}`, "allow:"},
		{"hash given", `{"policy":{"requireMcpArgumentBinding":true},"intent":{"toolArgumentsHash":"` + strings.Repeat("a", 64) + `"}}`, "allow:"},
		{"risk at the threshold", `{"policy":{"reviewMcpRiskAtOrAbove":"medium"}}`, "needs_review: mcp_risk_at_or_above_review"},
		{"risk below the threshold", `{"policy":{"reviewMcpRiskAtOrAbove":"high"}}`, "allow:"},
		{"risk not declared", `{"policy":{"reviewMcpRiskAtOrAbove":"critical"},"intent":{"declaredRisk":null}}`, "needs_review: mcp_risk_undeclared"},
		{"fulfilled", `{"settlement":{"outcome":"fulfilled"}}`, "allow:"},
		{"failed", `{"settlement":{"outcome":"failed"}}`, "needs_review: settlement_not_fulfilled"},
		{"rejected", `{"settlement":{"outcome":"rejected"}}`, "needs_review: settlement_not_fulfilled"},
		{"denied and failed", `{"settlement":{"outcome":"failed"},"policy":{"allowedMcpServers":[]}}`, "deny: mcp_server_not_allowed settlement_not_fulfilled"},
	} {
		if got := told(answer(t, merged(t, base, tc.patch))); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

const payment = `{"protocol":"x402","intent":{"resourceUrl":"https://api.weather.example/v1?key=canaryquery","method":"get","scheme":"exact","network":"base",
	"asset":"USDC","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000","paymentIdentifier":"order-2026-000117"},
	"subject":{"runId":"run-17","agentId":"a","purpose":"weather"},"policy":{"policyId":"p","version":3,"maxUsdPerTransaction":0.04}}`

func TestX402Rules(t *testing.T) {
	for _, tc := range []struct{ name, patch, want, path string }{
		{"allowed", `{}`, "allow:", ""},
		{"above the limit", `{"policy":{"maxUsdPerTransaction":0.03}}`, "deny: over_transaction_limit", "/policy/maxUsdPerTransaction"},
		{"host not allowed", `{"policy":{"allowedHosts":[]}}`, "deny: host_not_allowed", "/intent/resourceUrl"},
		{"no policy", `{"policy":null}`, "needs_review: no_policy", "/policy"},
		{"another resource", `{"intent":{"paymentPayloadResource":"https://other.example/"}}`, "deny: resource_binding_mismatch", "/intent/paymentPayloadResource"},
		{"failed", `{"settlement":{"outcome":"failed"}}`, "needs_review: settlement_not_fulfilled", "/settlement/outcome"},
	} {
		out := answer(t, merged(t, payment, tc.patch))
		if got := told(out); got != tc.want || tc.path != "" && out.Findings[0].Path != tc.path {
			t.Errorf("%s: got %s %+v, want %s at %s", tc.name, got, out.Findings, tc.want, tc.path)
		}
	}
}

// statement returns the record to be signed for a request.
func statement(t *testing.T, body string) any {
	t.Helper()
	answer, err := attest.Service.Evaluate([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return answer.State("", "")
}

// The bytes of a record must not change, because a verifier may check it years later.
func TestGoldenRecords(t *testing.T) {
	settled := merged(t, payment, `{"settlement":{"outcome":"failed","settlementId":"s-1","observedAt":"2026-01-02T03:04:05Z","evidenceHashes":["h1"],"responseStatus":500,"responseBodyHash":"`+strings.Repeat("a", 64)+`"}}`)
	for _, tc := range []struct{ body, want string }{
		{attest.Service.Example, `{"attestationId":"","bindingHash":"` + answer(t, attest.Service.Example).BindingHash + `","findingIds":[],"intentSummary":{"argumentsHash":` +
			`"38daf1912503ee8e7a10fe739ba920e0122c3ebcb8862b97555d9211377e04b2","serverId":"files","toolName":"read"},"issuedAt":"","policyRef":{"policyId":"tools","version":2},` +
			`"protocol":"mcp","settlement":null,"subject":{"runId":"run-17"},"verdict":"allow"}`},
		{settled, `{"attestationId":"","bindingHash":"` + answer(t, settled).BindingHash + `","findingIds":["settlement_not_fulfilled"],"intentSummary":{"host":"api.weather.example",` +
			`"method":"GET","network":"eip155:8453","payTo":"0x1f98...F984"},"issuedAt":"","policyRef":{"policyId":"p","version":3},"protocol":"x402","settlement":{"evidenceHashes":["h1"],` +
			`"observedAt":"2026-01-02T03:04:05Z","outcome":"failed","responseBodyHash":"` + strings.Repeat("a", 64) + `","responseStatus":500,"settlementId":"s-1"},` +
			`"subject":{"agentId":"a","purpose":"weather","runId":"run-17"},"verdict":"needs_review"}`},
		{`{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","declaredRisk":"low"}}`, `{"attestationId":"","bindingHash":` +
			`"b78e67aa7388fcb7559d1d96e9e8e37829646a8df5d15eaa995b1c1704adcc34","findingIds":["no_policy"],"intentSummary":{"serverId":"files","toolName":"read"},"issuedAt":"",` +
			`"policyRef":null,"protocol":"mcp","settlement":null,"subject":null,"verdict":"needs_review"}`},
	} {
		record := statement(t, tc.body)
		got, err := canon.Marshal(record)
		if err != nil || string(got) != tc.want {
			t.Errorf("got  %s\nwant %s, %v", got, tc.want, err)
		}
	}
}

// Neither the record nor the answer contains arguments, a query or a complete address.
func TestNoRawInputs(t *testing.T) {
	call := `{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","toolArguments":{"path":"canaryargument"}}}`
	for _, body := range []string{call, payment} {
		record := statement(t, body)
		text, err := json.Marshal([]any{record, answer(t, body)})
		if err != nil || strings.Contains(string(text), "canary") || strings.Contains(strings.ToLower(string(text)), "1f9840a85d5a") {
			t.Errorf("%s, %v", text, err)
		}
	}
}

// The arguments are hashed as text, so nesting costs no additional memory. Earlier each call built
// a tree of them twice, with 40 bytes of memory per byte sent.
func TestArgumentsCostTheirLength(t *testing.T) {
	flat := `"` + strings.Repeat("a", 200_000) + `"`
	nested := `[` + strings.Repeat(strings.Repeat(`{"a":`, 50)+`0`+strings.Repeat(`}`, 50)+`,`, 200_000/301) + `0]`
	for _, arguments := range []string{flat, nested} {
		body := []byte(`{"intent":{"serverId":"files","toolArguments":` + arguments + `,"toolName":"read"},"protocol":"mcp"}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer, err := attest.Service.EvaluateCanonical(body)
		if err != nil {
			t.Fatal(err)
		}
		answer.State("", "")
		runtime.ReadMemStats(&after)
		if used, most := after.TotalAlloc-before.TotalAlloc, uint64(12*len(body)); used > most {
			t.Errorf("%.20s…: %d bytes were allocated for %d", arguments, used, len(body))
		}
		if made := after.Mallocs - before.Mallocs; made > 2000 {
			t.Errorf("%.20s…: %d values were made", arguments, made)
		}
	}
}

func TestRefusals(t *testing.T) {
	const call = `{"protocol":"mcp","intent":{"serverId":"files","toolName":"read"}}`
	for _, tc := range []struct{ base, patch, code, path string }{
		{call, `{"protocol":null}`, "missing_field", "/protocol"},
		{call, `{"protocol":"http"}`, "invalid_enum", "/protocol"},
		{call, `{"intent":null}`, "missing_field", "/intent"},
		{call, `{"intent":{"serverId":null}}`, "missing_field", "/intent/serverId"},
		{call, `{"intent":{"toolName":null}}`, "missing_field", "/intent/toolName"},
		{call, `{"intent":{"method":"GET"}}`, "unknown_field", "/intent"},
		{call, `{"intent":{"tool":"x"}}`, "unknown_field", "/intent"},
		{call, `{"intent":{"serverUrl":"mcp"}}`, "out_of_range", "/intent/serverUrl"},
		{call, `{"intent":{"declaredRisk":"severe"}}`, "invalid_enum", "/intent/declaredRisk"},
		{call, `{"intent":{"toolArguments":1,"toolArgumentsHash":"` + strings.Repeat("a", 64) + `"}}`, "arguments_hash_mismatch", "/intent/toolArgumentsHash"},
		{call, `{"intent":{"toolArgumentsHash":"` + strings.Repeat("G", 64) + `"}}`, "out_of_range", "/intent/toolArgumentsHash"},
		{call, `{"idempotencyKey":"` + strings.Repeat("k", 201) + `"}`, "too_long", "/idempotencyKey"},
		{call, `{"subject":{}}`, "missing_field", "/subject/runId"},
		{call, `{"subject":{"runId":"` + strings.Repeat("k", 201) + `"}}`, "too_long", "/subject/runId"},
		{call, `{"settlement":{"outcome":"maybe"}}`, "invalid_enum", "/settlement/outcome"},
		{call, `{"settlement":{"outcome":"failed","responseStatus":99}}`, "out_of_range", "/settlement/responseStatus"},
		{call, `{"settlement":{"outcome":"failed","observedAt":"now"}}`, "invalid_date", "/settlement/observedAt"},
		{call, `{"settlement":{"outcome":"failed","evidenceHashes":["` + strings.Repeat(`a","`, 100) + `a"]}}`, "too_many_items", "/settlement/evidenceHashes"},
		{call, `{"policy":{"policyId":"p"}}`, "out_of_range", "/policy/version"},
		{call, `{"policy":{"policyId":"p","version":1,"reviewMcpRiskAtOrAbove":"low"}}`, "invalid_enum", "/policy/reviewMcpRiskAtOrAbove"},
		{payment, `{"intent":{"resourceUrl":null}}`, "missing_field", "/intent/resourceUrl"},
		{payment, `{"intent":{"method":null}}`, "missing_field", "/intent/method"},
		{payment, `{"intent":{"resourceUrl":"/v1"}}`, "out_of_range", "/intent/resourceUrl"},
		{payment, `{"intent":{"method":"G T"}}`, "out_of_range", "/intent/method"},
		{payment, `{"intent":{"toolName":"x"}}`, "unknown_field", "/intent"},
		{payment, `{"intent":{"nonce":"x"}}`, "unknown_field", "/intent"},
		{payment, `{"intent":{"amountUnits":"` + strings.Repeat("9", 78) + `"}}`, "out_of_range", "/intent/amountUnits"},
		{payment, `{"policy":{"allowedHosts":["https://x"]}}`, "out_of_range", "/policy/allowedHosts"},
		{payment, `{"policy":{"dailyLimitUsd":1}}`, "unknown_field", "/policy"},
	} {
		body := merged(t, tc.base, tc.patch)
		_, err := attest.Service.Evaluate([]byte(body))
		var refusal *policy.Error
		if !errors.As(err, &refusal) || refusal.Code != tc.code || refusal.Path != tc.path {
			t.Errorf("%.80s: got %#v, want %s at %s", tc.patch, err, tc.code, tc.path)
		}
	}
	answer(t, merged(t, call, `{"idempotencyKey":"`+strings.Repeat("k", 200)+`","settlement":{"outcome":"failed","evidenceHashes":["`+strings.Repeat(`a","`, 99)+`a"]}}`))
}

// A restriction that is added to the policy never makes the verdict less strict.
func TestRestrictionsNeverWeaken(t *testing.T) {
	rank := map[string]int{"allow": 0, "needs_review": 1, "deny": 2}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"read", "files/read", "write", "READ"}), 0, 3)
		p := attest.Policy{PolicyID: "p", Version: 1, AllowedMCPTools: names.Draw(t, "allowed"), BlockedMCPTools: names.Draw(t, "blocked"),
			RequireMCPArguments: rapid.Bool().Draw(t, "bound"), ReviewMCPRiskAtOrAbove: rapid.SampledFrom([]string{"", "medium", "critical"}).Draw(t, "threshold")}
		in := attest.Input{Protocol: "mcp", Intent: &attest.Intent{ServerID: "files", ToolName: "read", DeclaredRisk: rapid.SampledFrom([]string{"", "low", "high"}).Draw(t, "risk")}, Policy: &p}
		before, err := attest.Evaluate(in)
		if err != nil {
			t.Fatal(err)
		}
		stricter := p
		stricter.BlockedMCPTools = append(append([]string{}, p.BlockedMCPTools...), "files/read")
		stricter.RequireMCPArguments = true
		in.Policy = &stricter
		after, err := attest.Evaluate(in)
		if err != nil || rank[after.Verdict] < rank[before.Verdict] {
			t.Fatalf("%s became %s, %v", before.Verdict, after.Verdict, err)
		}
	})
}

func FuzzAttest(f *testing.F) {
	f.Add([]byte(attest.Service.Example))
	f.Add([]byte(payment))
	f.Fuzz(func(t *testing.T, body []byte) {
		first, err := attest.Service.Evaluate(body)
		var refusal *policy.Error
		if err != nil && !errors.As(err, &refusal) {
			t.Fatalf("another kind of error: %v", err)
		}
		if again, _ := attest.Service.Evaluate(body); string(first.Body) != string(again.Body) {
			t.Fatal("two answers")
		}
		if (first.State == nil) != (err != nil) {
			t.Fatalf("an answer and its statement belong together: %v", err)
		}
	})
}

func Example() {
	answer, err := attest.Service.Evaluate([]byte(`{"protocol":"mcp","intent":{"serverId":"files","toolName":"read","declaredRisk":"low"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out attest.Output
	_ = json.Unmarshal(answer.Body, &out)
	fmt.Println(out.Verdict, out.Findings[0].ID)
	fmt.Println(out.BindingHash)
	// Output:
	// needs_review no_policy
	// b78e67aa7388fcb7559d1d96e9e8e37829646a8df5d15eaa995b1c1704adcc34
}
