package assurance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

var severity = []string{"allow", "needs_review", "deny"}

func worse(a, b string) bool { return slices.Index(severity, a) > slices.Index(severity, b) }

var (
	hosts      = []string{"api.example", "*.example", "pay.example", "*.api.example", "db.internal", "api.example:8443", "other.example"}
	networks   = []string{"base", "eip155:8453", "polygon", "solana", "cosmos:hub"}
	recipients = []string{"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984", "0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"}
	servers    = []string{"files", "Files", "mail"}
	tools      = []string{"read", "files/read", "READ", "delete", "mail/delete"}
	maxima     = []string{"0", "0.1", "0.25", "1", "1000"}
	thresholds = []string{"medium", "high", "critical"}
)

// drawPolicy draws the members of a policy, as JSON texts by name.
func drawPolicy(t *rapid.T, name string) map[string]string {
	p := map[string]string{}
	lists := func(member string, from []string) {
		if rapid.Bool().Draw(t, name+member) {
			p[member] = quoted(rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 3, rapid.ID[string]).Draw(t, name+member+" entries"))
		}
	}
	lists("allowedHosts", hosts)
	lists("blockedHosts", hosts)
	lists("allowedNetworks", networks)
	lists("allowedPayTo", recipients)
	lists("allowedMcpServers", servers)
	lists("allowedMcpTools", tools)
	lists("blockedMcpTools", tools)
	for _, flag := range flags {
		if rapid.Bool().Draw(t, name+flag) {
			p[flag] = rapid.SampledFrom([]string{"true", "false"}).Draw(t, name+flag+" value")
		}
	}
	if rapid.Bool().Draw(t, name+"max") {
		p["maxUsdPerTransaction"] = rapid.SampledFrom(maxima).Draw(t, name+"maximum")
	}
	if rapid.Bool().Draw(t, name+"risk") {
		p["reviewMcpRiskAtOrAbove"] = `"` + rapid.SampledFrom(thresholds).Draw(t, name+"threshold") + `"`
	}
	return p
}

var flags = []string{"requireExactScheme", "requireHttps", "requireResourceBinding", "requirePaymentIdentifier", "requireMcpArgumentBinding"}

func quoted(entries []string) string {
	text, _ := json.Marshal(entries)
	return string(text)
}

func object(members map[string]string) string {
	parts := []string{}
	for name, value := range members {
		parts = append(parts, `"`+name+`":`+value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func policyText(members map[string]string) []byte {
	p := map[string]string{"policyId": `"p"`, "version": "1"}
	for name, value := range members {
		p[name] = value
	}
	text, _ := canon.Canonical([]byte(object(p)))
	return text
}

func drawIntent(t *rapid.T) (protocol, intent string) {
	in := map[string]string{}
	maybe := func(member string, values ...string) {
		if v := rapid.SampledFrom(append(values, "")).Draw(t, member); v != "" {
			in[member] = v
		}
	}
	if rapid.Bool().Draw(t, "mcp") {
		in["serverId"] = `"` + rapid.SampledFrom(servers).Draw(t, "server") + `"`
		in["toolName"] = `"` + rapid.SampledFrom([]string{"read", "delete", "files/read"}).Draw(t, "tool") + `"`
		maybe("serverUrl", `"https://api.example/"`, `"http://pay.example/"`, `"https://u@x.example/"`)
		maybe("toolArguments", `{"a":1}`, `null`)
		maybe("toolArgumentsHash", `"x"`, `"`+strings.Repeat("0", 64)+`"`)
		maybe("declaredRisk", `"low"`, `"medium"`, `"critical"`)
		return "mcp", object(in)
	}
	in["resourceUrl"] = `"` + rapid.SampledFrom([]string{"https://api.example/v1", "http://api.example/v1", "https://db.internal/", "https://api.example:8443/",
		"https://u:p@a.api.example/", "ftp://other.example/"}).Draw(t, "url") + `"`
	in["method"] = rapid.SampledFrom([]string{`"GET"`, `"PROPFIND"`}).Draw(t, "method")
	maybe("scheme", `"exact"`, `"upto"`, `"other"`)
	maybe("network", `"base"`, `"solana"`, `"cosmos:hub"`)
	maybe("asset", `"0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"`, `"other"`)
	maybe("payTo", `"`+recipients[0]+`"`, `"`+recipients[2]+`"`, `"0x00"`)
	maybe("amountUnits", `"250000"`, `"100000"`, `"-1"`)
	maybe("amountUsd", `0.25`, `0.1`, `100`, `-1`)
	maybe("facilitatorUrl", `"https://pay.example/"`, `"http://pay.example/"`)
	maybe("paymentIdentifier", `"pay_0123456789abcdef"`, `"short"`)
	maybe("paymentPayloadResource", in["resourceUrl"], `"https://x.example/"`)
	return "x402", object(in)
}

func drawRequest(t *rapid.T, asserted map[string]string) assurance.DecisionRequest {
	protocol, intent := drawIntent(t)
	text := `{"protocol":"` + protocol + `","idempotencyKey":"k","subject":{"runId":"r"},"intent":` + intent
	if asserted != nil {
		text += `,"policy":` + string(policyText(asserted))
	}
	r, err := assurance.ParseDecision([]byte(text + "}"))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func drawn(t *rapid.T, members map[string]string) assurance.StoredPolicy {
	p, err := assurance.ReadPolicy(policyText(members))
	if err != nil {
		t.Fatalf("%v: %v", members, err)
	}
	return p
}

func judge(t *rapid.T, p assurance.StoredPolicy, asserted *assurance.Rules, r assurance.DecisionRequest) assurance.Evaluation {
	e, ok := assurance.Evaluate(assurance.EngineVersion, r.Protocol, p.Rules, asserted, r.Normalized)
	if !ok {
		t.Fatal("no such engine")
	}
	return e
}

// With an assertion, the decision is never less strict than without it. This holds for every
// assertion, even for one that Compare refuses.
func TestAnAssertionNeverWeakens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		active := drawn(t, drawPolicy(t, "active "))
		r := drawRequest(t, drawPolicy(t, "asserted "))
		without := judge(t, active, nil, r)
		with := judge(t, active, &r.Assertion.Rules, r)
		if worse(without.Decision, with.Decision) {
			t.Fatalf("the assertion turns %s into %s", without.Decision, with.Decision)
		}
		for _, f := range without.Findings {
			if !slices.ContainsFunc(with.Findings, func(g assurance.Finding) bool {
				return g.RuleID == f.RuleID && g.Field == f.Field && !worse(f.Effect, g.Effect)
			}) {
				t.Fatalf("the assertion makes %s silent", f.RuleID)
			}
		}
	})
}

// An assertion that Compare accepts and that is not stricter in any field does not change the
// decision.
func TestAnAssertionThatIsNotStricterChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		active := drawn(t, drawPolicy(t, "active "))
		r := drawRequest(t, drawPolicy(t, "asserted "))
		stricter, err := r.Assertion.Compare(active)
		if err != nil || len(stricter) > 0 {
			return
		}
		if without, with := judge(t, active, nil, r), judge(t, active, &r.Assertion.Rules, r); with.Decision != without.Decision {
			t.Fatalf("an assertion that is stricter nowhere turns %s into %s", without.Decision, with.Decision)
		}
	})
}

// If a caller asserts the active policy itself, the assertion is neither weaker nor stricter.
func TestAPolicyIsAsStrictAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawPolicy(t, "active ")
		r := drawRequest(t, members)
		stricter, err := r.Assertion.Compare(drawn(t, members))
		if err != nil || len(stricter) > 0 {
			t.Fatalf("stricter %v, refused %v", stricter, err)
		}
	})
}

// A restriction that is added to a policy never makes the effect on a field less strict. The test
// skips three rules: policy.no_applicable_rule and x402.host.private find that a restriction is
// missing, and x402.scheme.unknown is replaced by a stricter rule.
func TestARestrictionNeverLoosens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawPolicy(t, "active ")
		r := drawRequest(t, nil)
		before := judge(t, drawn(t, members), nil, r)
		restrict(t, members)
		after := judge(t, drawn(t, members), nil, r)
		for _, f := range before.Findings {
			if f.RuleID == "policy.no_applicable_rule" || f.RuleID == "x402.host.private" || f.RuleID == "x402.scheme.unknown" {
				continue // x402.scheme.not_exact, a deny, replaces x402.scheme.unknown
			}
			// Compare by field, because a finding about a blocked host replaces other findings
			// about the host.
			if !slices.ContainsFunc(after.Findings, func(g assurance.Finding) bool {
				return g.Field == f.Field && !worse(f.Effect, g.Effect)
			}) {
				t.Fatalf("%s falls silent", f.RuleID)
			}
		}
		if before.Decision == "deny" && after.Decision != "deny" {
			t.Fatalf("a stricter policy turns deny into %s", after.Decision)
		}
	})
}

func restrict(t *rapid.T, members map[string]string) {
	entries := func(member string) (list []string, present bool) {
		text, present := members[member]
		_ = json.Unmarshal([]byte(text), &list)
		return list, present
	}
	switch member := rapid.SampledFrom([]string{"allowedHosts", "allowedNetworks", "allowedPayTo", "allowedMcpServers", "allowedMcpTools",
		"blockedHosts", "blockedMcpTools", "maxUsdPerTransaction", "reviewMcpRiskAtOrAbove", "flag"}).Draw(t, "restrict"); member {
	case "blockedHosts":
		list, _ := entries(member)
		members[member] = quoted(append(list, rapid.SampledFrom(hosts).Draw(t, "block")))
	case "blockedMcpTools":
		list, _ := entries(member)
		members[member] = quoted(append(list, rapid.SampledFrom(tools).Draw(t, "block")))
	case "maxUsdPerTransaction":
		members[member] = "0"
	case "reviewMcpRiskAtOrAbove":
		members[member] = `"medium"`
	case "flag":
		members[rapid.SampledFrom(flags).Draw(t, "flag")] = "true"
	default:
		if list, present := entries(member); present && len(list) > 0 {
			members[member] = quoted(list[1:])
		} else {
			members[member] = "[]"
		}
	}
}

// The same input gives the same bytes. This also holds for a recorded intent and the stored rules,
// if they are read back from JSON and evaluated again.
func TestARecordedIntentIsEvaluatedAgainToTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		active := drawn(t, drawPolicy(t, "active "))
		r := drawRequest(t, drawPolicy(t, "asserted "))
		want := judge(t, active, &r.Assertion.Rules, r)
		again := r
		var rules assurance.Rules
		for _, pair := range []struct{ from, to any }{{r.Normalized, &again.Normalized}, {r.Assertion.Rules, &rules}} {
			text, err := canon.Marshal(pair.from)
			if err != nil {
				t.Fatal(err)
			}
			switch to := pair.to.(type) {
			case *assurance.Intent:
				*to = assurance.Intent{}
				err = canon.Decode(text, to)
			case *assurance.Rules:
				err = canon.Decode(text, to)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		a, err1 := canon.Marshal(want.Findings)
		b, err2 := canon.Marshal(judge(t, active, &rules, again).Findings)
		if err1 != nil || err2 != nil || string(a) != string(b) {
			t.Fatalf("got  %s\nwant %s", b, a)
		}
		record, err := assurance.Ruling{DecisionID: "asd_1", Request: r, Policy: active, Evaluation: want}.Record()
		if err != nil {
			t.Fatal(err)
		}
		text, err := canon.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		if summary, err := assurance.ReadSummary(text); err != nil || cmp.Diff(summaryOf(record), summary) != "" {
			t.Fatalf("summary of %s: %+v, %v", text, summary, err)
		}
	})
}

// FuzzParse checks that no parser panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r"},"policy":{"policyId":"p","version":1},"intent":{"resourceUrl":"https://a.example","method":"GET"}}`))
	f.Add([]byte(`{"protocol":"mcp","idempotencyKey":"k","subject":{"runId":"r"},"intent":{"serverId":"s","toolName":"t","toolArguments":null}}`))
	f.Add([]byte(`{"decisionId":"d","decisionRecordHash":"h","bindingHash":"b","protocol":"mcp","outcome":"failed","observedAt":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := assurance.ParseDecision(text); err == nil {
			if _, ok := assurance.Evaluate(assurance.EngineVersion, r.Protocol, assurance.Rules{}, nil, r.Normalized); !ok {
				t.Error("no such engine")
			}
		}
		_, _ = assurance.ParseReceipt(text)
		_, _ = assurance.ParseApproval(text)
		_, _ = assurance.ParseCall(text)
		_, _ = assurance.Lint(text)
	})
}

// If the policy requires a member as evidence and the intent does not have it, the decision is
// never allow, whatever else policy and intent contain.
func TestMissingEvidenceIsNeverAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := []struct{ member, value, protocol, needs string }{
			{"maxUsdPerTransaction", "1000", "x402", "amountUnits amountUsd"},
			{"allowedNetworks", quoted(networks), "x402", "network"},
			{"allowedPayTo", quoted(recipients), "x402", "payTo"},
			{"requireExactScheme", "true", "x402", "scheme"},
			{"requireResourceBinding", "true", "x402", "paymentPayloadResource"},
			{"requirePaymentIdentifier", "true", "x402", "paymentIdentifier"},
			{"requireMcpArgumentBinding", "true", "mcp", "toolArguments toolArgumentsHash"},
			{"reviewMcpRiskAtOrAbove", `"critical"`, "mcp", "declaredRisk"},
		}
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		protocol, intent := drawIntent(t)
		if protocol != rule.protocol {
			return
		}
		var members map[string]jsontext.Value
		if err := json.Unmarshal([]byte(intent), &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(rule.needs) {
			delete(members, name)
		}
		without, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		r, err := assurance.ParseDecision([]byte(`{"protocol":"` + protocol + `","idempotencyKey":"k","subject":{"runId":"r"},"intent":` + string(without) + `}`))
		if err != nil {
			t.Fatal(err)
		}
		p := drawPolicy(t, "active ")
		p[rule.member] = rule.value
		if e := judge(t, drawn(t, p), nil, r); e.Decision == "allow" {
			t.Fatalf("%s is not there and the decision is allow", rule.needs)
		}
	})
}
