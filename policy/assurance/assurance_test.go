package assurance_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

const weather = `{"resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","method":"GET","scheme":"exact",
	"network":"eip155:8453","asset":"0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
	"payTo":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","amountUnits":"250000"}`

const readFile = `{"serverId":"files","toolName":"read","toolArguments":{"limit":10,"path":"/srv/report.txt"}}`

func decision(t testing.TB, protocol, intent string) assurance.DecisionRequest {
	t.Helper()
	r, err := assurance.ParseDecision([]byte(`{"protocol":"` + protocol + `","idempotencyKey":"purchase-1","subject":{"runId":"run-1","agentId":"agent-7"},"intent":` + intent + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHashVectors checks the test vectors of the contract.
func TestHashVectors(t *testing.T) {
	x402, mcp := decision(t, "x402", weather), decision(t, "mcp", readFile)
	if want := "156f3bb8d855bc6e8a577bf11f1481366166bde4a9df10e6ca25d23efa755acf"; x402.ActionHash != want {
		t.Errorf("x402 action hash %s, want %s", x402.ActionHash, want)
	}
	if want := "8a1632e12f297cb347be32c679594af321227936049d1812b0b16da77a86cd2d"; mcp.ActionHash != want {
		t.Errorf("mcp action hash %s, want %s", mcp.ActionHash, want)
	}
	if want := "38daf1912503ee8e7a10fe739ba920e0122c3ebcb8862b97555d9211377e04b2"; mcp.Normalized.ToolArgumentsHash != want {
		t.Errorf("toolArgumentsHash %s, want %s", mcp.Normalized.ToolArgumentsHash, want)
	}
	if want := canon.Hash([]byte(`{"agentId":"agent-7","runId":"run-1"}`)); x402.SubjectHash != want {
		t.Errorf("subjectHash %s, want %s", x402.SubjectHash, want)
	}
	if want := canon.Hash([]byte("purchase-1")); assurance.KeyHash("purchase-1") != want {
		t.Errorf("idempotencyKeyHash is not that of the key's octets")
	}
	b := assurance.Binding{OrgID: "org_1", DecisionID: "asd_1", Decision: "allow", AssuranceActionHash: x402.ActionHash,
		SubjectHash: x402.SubjectHash, PolicyHash: strings.Repeat("0", 64), PolicyID: "default", Version: 3}
	got, err := b.Hash()
	want := canon.Hash([]byte(`svc-assurance-binding-v1` + "\n" + `{"assuranceActionHash":"` + x402.ActionHash +
		`","decision":"allow","decisionId":"asd_1","orgId":"org_1","policyHash":"` + strings.Repeat("0", 64) +
		`","policyId":"default","subjectHash":"` + x402.SubjectHash + `","v":1,"version":3}`))
	if err != nil || got != want {
		t.Errorf("bindingHash %s, want %s (%v)", got, want, err)
	}
}

// Two spellings of the same purchase have the same action hash. A purchase that differs in any
// member that is hashed has another action hash.
func TestActionHashIsOverNormalForms(t *testing.T) {
	same := decision(t, "x402", `{"amountUnits":"250000","amountUsd":0.25,"payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984",
		"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","network":"base","scheme":"exact","method":"get",
		"resourceUrl":"HTTPS://API.weather.example.:443/v1/forecast?city=Oslo#now","facilitatorUrl":"https://pay.example/",
		"paymentPayloadMethod":"GET"}`)
	want := decision(t, "x402", weather).ActionHash
	if same.ActionHash != want {
		t.Errorf("another spelling has another hash: %s", same.ActionHash)
	}
	for _, change := range [][2]string{
		{"Oslo", "Bergen"}, {`"GET"`, `"POST"`}, {`"exact"`, `"upto"`}, {"8453", "84532"}, {"02913", "02914"},
		{"1f9840a85d5af5bf1d1762f925bdaddc4201f984", "1f9840a85d5af5bf1d1762f925bdaddc4201f985"}, {"250000", "250001"},
		{`"amountUnits":"250000"`, `"amountUsd":0.25`}, {`{"resource`, `{"paymentIdentifier":"pay_0123456789ab","resource`},
	} {
		if other := decision(t, "x402", strings.Replace(weather, change[0], change[1], 1)); other.ActionHash == want {
			t.Errorf("%s -> %s has the same hash", change[0], change[1])
		}
	}
}

// summaryOf builds the expected summary of a record, member by member.
func summaryOf(r assurance.DecisionRecord) assurance.DecisionSummary {
	s := assurance.DecisionSummary{DecisionID: r.DecisionID, IssuedAt: r.IssuedAt, Protocol: r.Protocol, Decision: r.Decision,
		RunID: r.Subject.RunID, PolicyID: r.Policy.PolicyID, PolicyVersion: r.Policy.Version, RuleIDs: []string{}}
	for _, f := range r.Findings {
		s.RuleIDs = append(s.RuleIDs, f.RuleID)
	}
	return s
}

// The bytes of a decision record never change, because they are signed, stored and checked by
// others.
func TestDecisionRecordIsGolden(t *testing.T) {
	r := decision(t, "x402", weather)
	draft, err := assurance.Lint([]byte(`{"policyId":"default","maxUsdPerTransaction":1}`))
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := assurance.WithVersion(draft.Canonical, 3)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := assurance.ReadPolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := assurance.Evaluate(assurance.EngineVersion, r.Protocol, stored.Rules, nil, r.Normalized)
	record, err := assurance.Ruling{DecisionID: "asd_01", OrgID: "org_01", Environment: "dev",
		IssuedAt: time.Date(2026, 11, 21, 10, 0, 0, 123e6, time.UTC), Request: r, Policy: stored, ActivatedSequence: 4, Evaluation: e}.Record()
	if err != nil {
		t.Fatal(err)
	}
	got, err := canon.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if summary, err := assurance.ReadSummary(got); err != nil || cmp.Diff(summaryOf(record), summary) != "" {
		t.Errorf("summary %+v, %v", summary, err)
	}
	_, ruleset := assurance.Catalogue()
	want := `{"approval":{"approvalId":null,"humanApprovalIncluded":false,"required":false},` +
		`"assuranceActionHash":"156f3bb8d855bc6e8a577bf11f1481366166bde4a9df10e6ca25d23efa755acf",` +
		`"bindingHash":"` + record.BindingHash + `","decision":"allow","decisionId":"asd_01",` +
		`"engineVersion":"svc-assurance-engine-v1","environment":"dev","findings":[],` +
		`"idempotencyKeyHash":"` + canon.Hash([]byte("purchase-1")) + `",` +
		`"intent":{"amountUnits":"250000","asset":"0x833589fcd6edb6e08f4c7c32d4f71b54bda02913","method":"GET","network":"eip155:8453",` +
		`"payTo":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","scheme":"exact"},` +
		`"issuedAt":"2026-11-21T10:00:00.123Z",` +
		`"normalized":{"amountUnits":"250000","amountUnitsInUsd":"0.25","asset":"0x833589fcd6edb6e08f4c7c32d4f71b54bda02913","method":"GET","network":"eip155:8453",` +
		`"payTo":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","scheme":"exact"},` +
		`"orgId":"org_01","policy":{"activatedSequence":4,"asserted":null,"policyHash":"` + stored.Hash + `","policyId":"default","version":3},` +
		`"protocol":"x402","rulesEvaluated":["policy.no_applicable_rule","x402.amount.inconsistent","x402.amount.invalid","x402.amount.missing",` +
		`"x402.amount.over_limit","x402.amount.units_missing","x402.asset.unknown","x402.binding.mismatch","x402.binding.missing",` +
		`"x402.facilitator.not_allowed","x402.host.blocked","x402.host.not_allowed","x402.host.private","x402.https.required",` +
		`"x402.method.unknown","x402.network.missing","x402.network.not_allowed","x402.payment_identifier.invalid","x402.payment_identifier.missing",` +
		`"x402.payto.invalid","x402.payto.missing","x402.payto.not_allowed","x402.scheme.not_exact","x402.scheme.unknown",` +
		`"x402.url.fragment","x402.url.scheme","x402.url.userinfo"],` +
		`"rulesetHash":"` + ruleset + `","schema":"svc-assurance-decision-v1","subject":{"agentId":"agent-7","runId":"run-1"},` +
		`"supersedes":null,"validUntil":"2026-11-21T10:15:00.123Z"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if want := "a0d082ba8c2b80e4b2b7f5f95d57c7bec7520c7ffa4439b863e4cbdc3782a34a"; ruleset != want {
		t.Errorf("the decision table has the hash %s, not %s: a released engine is not edited, make a v2", ruleset, want)
	}
	if want := "dc7c7b0bf9c0d59d2d9ddd9de64e192be36054224b4b9db5ae6f8c7b045d71e8"; record.BindingHash != want {
		t.Errorf("bindingHash %s, want %s", record.BindingHash, want)
	}
}

func TestCredentialsNeverReachTheRecord(t *testing.T) {
	r := decision(t, "x402", `{"resourceUrl":"https://user:canary@api.example/","method":"GET","facilitatorUrl":"https://canary@pay.example/",
		"paymentPayloadResource":"https://user:canary@api.example/"}`)
	broken := decision(t, "x402", `{"resourceUrl":"https://api.example/","method":"GET","paymentPayloadResource":"https://user:can%ary@api.example/canary"}`)
	server := decision(t, "mcp", `{"serverId":"s","toolName":"t","serverUrl":"https://canary@mcp.example/","toolArguments":{"password":"canary"}}`)
	for _, r := range []assurance.DecisionRequest{r, broken, server} {
		text, err := canon.Marshal([]any{r.Intent, r.Normalized})
		if err != nil || strings.Contains(string(text), "canary") {
			t.Errorf("a credential is kept: %s %v", text, err)
		}
	}
}

func TestRefusalsOfDecisions(t *testing.T) {
	long := strings.Repeat("a", 201)
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	x402 := func(intent string) string {
		return `{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r"},"intent":` + intent + `}`
	}
	policyOf := func(members string) string {
		return `{"policy":{"policyId":"p","version":1` + members + `},"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r"},"intent":{"resourceUrl":"https://a.example","method":"GET"}}`
	}
	for _, c := range [][2]string{
		{``, "invalid JSON: the body is empty"},
		{`[]`, "invalid JSON: not an object"},
		{`"x"`, "invalid JSON: not an object"},
		{`{"protocol":"x402","protocol":"mcp"}`, "invalid JSON: duplicate member"},
		{`{"protocol":"x402","proto\u0063ol":"mcp"}`, "invalid JSON: duplicate member"},
		{`{"Protocol":"x402"}`, "request: unknown field"},
		{`{"zzz":1,"protocol":3}`, "request: unknown field"},
		{`{}`, "protocol is required"},
		{`{"protocol":null}`, "protocol is required"},
		{`{"protocol":"X402"}`, "protocol must be x402 or mcp"},
		{`{"protocol":"x402","idempotencyKey":""}`, "idempotencyKey must be 1 to 200 characters"},
		{`{"protocol":"x402","idempotencyKey":"` + long + `"}`, "idempotencyKey must be 1 to 200 characters"},
		{`{"protocol":"x402","idempotencyKey":"k "}`, "idempotencyKey must not have white space at an end or invisible characters"},
		{`{"protocol":"x402","idempotencyKey":7}`, "idempotencyKey must be a string"},
		{`{"protocol":"x402","idempotencyKey":"k","subject":[]}`, "subject must be an object"},
		{`{"protocol":"x402","idempotencyKey":"k","subject":{}}`, "subject.runId is required"},
		{`{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r","runid":"r"}}`, "subject: unknown field"},
		{`{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r","agentId":"a\u200bb"}}`, "subject.agentId must not have white space at an end or invisible characters"},
		{`{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r","purpose":"` + strings.Repeat("é", 1001) + `"}}`, "subject.purpose must be 1 to 1000 characters"},
		{`{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r"}}`, "intent is required"},
		{x402(`null`), "intent is required"},
		{x402(`{}`), "intent.resourceUrl is required"},
		{x402(`{"resourceUrl":"https://a.example"}`), "intent.method is required"},
		{x402(`{"resourceUrl":"https://a.example","method":"G T"}`), "intent.method is not an HTTP method"},
		{x402(`{"serverId":"s","toolName":"t"}`), "intent does not match the protocol"},
		{x402(`{"resourceUrl":"https://a.example","method":"GET","toolName":"t"}`), "intent does not match the protocol"},
		{x402(`{"resourceUrl":"https://a.example","method":"GET","resourceURL":"x"}`), "intent: unknown field"},
		{x402(`{"resourceUrl":"https://a.example","method":"GET","amountUnits":250000}`), "intent.amountUnits must be a string"},
		{x402(`{"resourceUrl":"https://a.example","method":"GET","amountUsd":"1"}`), "intent.amountUsd must be a number"},
		{x402(`{"resourceUrl":"https://a.example","method":"GET","amountUsd":1e999}`), "invalid JSON: a number too large for a double"},
		{x402(`{"resourceUrl":"https://a.example","method":"GET","amountUsd":9007199254740993}`), "intent.amountUsd must be at most 9007199254740991"},
		{policyOf(`,"maxUsdPerTransaction":9007199254740993`), "policy.maxUsdPerTransaction must be at most 9007199254740991"},
		{strings.Replace(policyOf(``), `"version":1`, `"version":9007199254740993`, 1), "policy.version must be an integer of 1 to 9007199254740991"},
		{x402(`{"resourceUrl":"https://a.example","method":"GET","scheme":"` + "\\ud800" + `"}`), "invalid JSON: not valid UTF-8"},
		{strings.Replace(x402(`{"serverId":"s","toolName":"t","toolArguments":`+deep+`}`), "x402", "mcp", 1), "invalid JSON: nested deeper than 64"},
		{strings.Replace(x402(`{"resourceUrl":"https://a.example","method":"GET"}`), "x402", "mcp", 1), "intent does not match the protocol"},
		{strings.Replace(x402(`{"serverId":"s"}`), "x402", "mcp", 1), "intent.toolName is required"},
		{strings.Replace(x402(`{"serverId":"s","toolName":"t","declaredRisk":"none"}`), "x402", "mcp", 1), "intent.declaredRisk must be low, medium, high or critical"},
		{`{"intent":{"resourceUrl":"https://a.example"},"protocol":5}`, "intent.method is required"},
		{policyOf(`,"version":2`), "invalid JSON: duplicate member"},
		{policyOf(`,"maxUsdPerTransaction":-1`), "policy.maxUsdPerTransaction must be at least 0, with an exponent of at most 400"},
		{policyOf(`,"maxUsdPerTransaction":1e-400000000`), "policy.maxUsdPerTransaction must be at least 0, with an exponent of at most 400"},
		{policyOf(`,"maxUsdPerTransaction":"1"`), "policy.maxUsdPerTransaction must be a number"},
		{policyOf(`,"allowedHosts":"a"`), "policy.allowedHosts must be an array"},
		{policyOf(`,"allowedHosts":[1]`), "policy.allowedHosts.0 must be a string"},
		{policyOf(`,"allowedHosts":["a.example","https://a.example/"]`), "policy.allowedHosts.1 is not a host, *.domain or host:port"},
		{policyOf(`,"blockedHosts":["a.*.example"]`), "policy.blockedHosts.0 is not a host, *.domain or host:port"},
		{policyOf(`,"allowedPayTo":["0x1F9840a85d5aF5bf1D1762F925BDADdC4201F984"]`), "policy.allowedPayTo.0 is not a valid address"},
		{policyOf(`,"requireHttps":"true"`), "policy.requireHttps must be a boolean"},
		{policyOf(`,"reviewMcpRiskAtOrAbove":"low"`), "policy.reviewMcpRiskAtOrAbove must be medium, high or critical"},
		{policyOf(`,"requireHTTPS":true`), "policy: unknown field"},
		{strings.Replace(policyOf(``), `"version":1`, `"version":0`, 1), "policy.version must be an integer of 1 to 9007199254740991"},
		{strings.Replace(policyOf(``), `"version":1`, `"version":1.5`, 1), "policy.version must be an integer of 1 to 9007199254740991"},
		{strings.Replace(policyOf(``), `,"version":1`, ``, 1), "policy.version is required"},
		{policyOf(`,"allowedMcpTools":[` + strings.Repeat(`"t",`, 1000) + `"t"]`), "policy.allowedMcpTools must have at most 1000 entries"},
	} {
		_, err := assurance.ParseDecision([]byte(c[0]))
		refused(t, c[0], err, c[1])
	}
	for _, bad := range hostileURLs {
		_, err := assurance.ParseDecision([]byte(x402(fmt.Sprintf(`{"resourceUrl":%q,"method":"GET"}`, bad))))
		refused(t, bad, err, "intent.resourceUrl is not a valid absolute URL")
	}
}

var hostileURLs = []string{
	"api.example/v1", "//api.example", "https:api.example", "mailto:a@b.example", "https://", "https:///x", "https://a..b.example/",
	"https://127.1/", "https://0x7f000001/", "https://2130706433/", "https://1.2.3.4.5/", "https://[fe80::1%25eth0]/",
	"https://api.example:0/", "https://api.example:65536/", "https://api.example:99999999999/", "https://api.example/%2e%2e/x", "https://api.example/a%2Fb",
	"https://api.example/%5cx", "https://api.example/%00", "https://api.example/../x", "https://api.example/./x", `https://api.example\x`,
	"https://xn--/", "https://" + strings.Repeat("a", 64) + ".example/", "https://api.example/" + strings.Repeat("a", 2048),
}

func refused(t *testing.T, input string, err error, want string) {
	t.Helper()
	if len(input) > 120 {
		input = input[:120]
	}
	var e *policy.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: got %v, want %q", input, err, want)
		return
	}
	if !strings.HasPrefix(e.Message, want) {
		t.Errorf("%s: got %q, want %q", input, e.Message, want)
	}
	if len(e.Message) > 200 || strings.ContainsFunc(e.Message, func(r rune) bool { return r > 0x7e }) {
		t.Errorf("%s: %q is not short ASCII", input, e.Message)
	}
}

// toolArguments may be any JSON value, including null. null and an absent member have different
// hashes.
func TestToolArgumentsMayBeAnything(t *testing.T) {
	seen := map[string]bool{}
	for _, arguments := range []string{`null`, `{}`, `[]`, `0`, `"x"`, `false`, `{"a":[1,{"b":null}]}`} {
		r := decision(t, "mcp", `{"serverId":"s","toolName":"t","toolArguments":`+arguments+`}`)
		canonical, err := canon.Canonical([]byte(arguments))
		if err != nil || !r.Normalized.ToolArgumentsGiven || r.Normalized.ToolArgumentsHash != canon.Hash(canonical) || seen[r.ActionHash] {
			t.Errorf("%s: %+v %v", arguments, r.Normalized, err)
		}
		seen[r.ActionHash] = true
		if want := jsontext.Value(`"` + r.Normalized.ToolArgumentsHash + `"`); !strings.Contains(string(r.Intent), `"toolArguments":`+string(want)) {
			t.Errorf("the intent holds %s", r.Intent)
		}
	}
}

// Every reader of a policy refuses a member that is null. An absent member means that the rule
// does not apply, but many programs write null for an empty list, which allows nothing.
func TestNoMemberOfAPolicyIsNull(t *testing.T) {
	for f := range reflect.TypeFor[assurance.Policy]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		stated := map[string]any{"policyId": "p", "version": 1, name: nil}
		text, err := json.Marshal(stated)
		if err != nil {
			t.Fatal(err)
		}
		_, err = assurance.Lint(text)
		refused(t, string(text), err, "policy."+name+" must be a")
		_, err = assurance.ReadPolicy(text)
		refused(t, string(text), err, "policy."+name+" must be a")
		_, err = assurance.ParseDecision([]byte(`{"protocol":"mcp","idempotencyKey":"k","subject":{"runId":"r"},"intent":{"serverId":"s","toolName":"t"},"policy":` + string(text) + `}`))
		refused(t, string(text), err, "policy."+name+" must be a")
	}
	// A Go program that encodes a policy keeps an empty list, which allows nothing.
	nothing, err := json.Marshal(assurance.Policy{PolicyID: "p", Version: 1, AllowedHosts: []string{}})
	if err != nil || string(nothing) != `{"policyId":"p","version":1,"allowedHosts":[]}` {
		t.Errorf("%s %v", nothing, err)
	}
	_, err = assurance.Lint([]byte(`{"policyId":"p","requireHttps":true,"allowedHosts":null,"allowedPayTo":null,"allowedNetworks":null,"maxUsdPerTransaction":null}`))
	refused(t, "nulls", err, "policy.allowedHosts must be an array")
}
