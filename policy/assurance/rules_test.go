package assurance_test

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/policytest"
)

//go:embed testdata/*.txtar
var testdata embed.FS

// cases reads a case file. Unlike policytest.Cases it keeps the digits of numbers as written,
// because some amounts have more digits than a float64.
func cases(t testing.TB, file string) []policytest.Case {
	t.Helper()
	archive, err := testdata.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var base []byte
	var all []policytest.Case
	for _, section := range txtar.Parse(archive).Files {
		if section.Name == "base" {
			base = section.Data
			continue
		}
		patch, want, ok := strings.Cut(string(section.Data), "\n---\n")
		if !ok {
			t.Fatalf("%s: no line between patch and answer", section.Name)
		}
		all = append(all, policytest.Case{Name: section.Name, Body: merge(t, base, []byte(patch)), Want: strings.TrimSpace(want)})
	}
	return all
}

func merge(t testing.TB, base, patch []byte) []byte {
	t.Helper()
	var b, p map[string]jsontext.Value
	if json.Unmarshal(base, &b) != nil || json.Unmarshal(patch, &p) != nil {
		t.Fatalf("not an object: %s", patch)
	}
	for name, value := range p {
		switch {
		case value.Kind() == 'n':
			delete(b, name)
		case value.Kind() == '{' && b[name].Kind() == '{':
			b[name] = merge(t, b[name], value)
		default:
			b[name] = value
		}
	}
	text, err := json.Marshal(b, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// request reads a case and returns its decision request and its active policy.
func request(t testing.TB, body []byte) (assurance.DecisionRequest, jsontext.Value, error) {
	t.Helper()
	var c struct {
		Protocol       jsontext.Value
		Policy, Active jsontext.Value
		Intent         jsontext.Value
	}
	if err := json.Unmarshal(body, &c, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	text := `{"protocol":` + string(c.Protocol) + `,"idempotencyKey":"k","subject":{"runId":"r"},"intent":` + string(c.Intent)
	active := c.Policy
	if c.Active != nil {
		active = c.Active
		text += `,"policy":` + string(c.Policy)
	}
	r, err := assurance.ParseDecision([]byte(text + "}"))
	return r, active, err
}

func evaluate(t testing.TB, r assurance.DecisionRequest, active []byte) (assurance.Evaluation, []string, error) {
	t.Helper()
	stored, err := assurance.ReadPolicy(active)
	if err != nil {
		t.Fatalf("policy: %v", err)
	}
	var asserted *assurance.Rules
	var stricter []string
	if r.Assertion != nil {
		if stricter, err = r.Assertion.Compare(stored); err != nil {
			return assurance.Evaluation{}, nil, err
		}
		asserted = &r.Assertion.Rules
	}
	e, ok := assurance.Evaluate(assurance.EngineVersion, r.Protocol, stored.Rules, asserted, r.Normalized)
	if !ok {
		t.Fatal("no such engine")
	}
	return e, stricter, nil
}

// told formats an evaluation as the case files do: the decision and the rules that made findings.
// "/info" or "/needs_review" after a rule is its effect, if that is not the decision. "/assertion"
// means that the rule is one of the caller's assertion.
func told(e assurance.Evaluation, stricter []string) string {
	text := e.Decision + ":"
	for _, f := range e.Findings {
		text += " " + f.RuleID
		if f.Effect != e.Decision {
			text += "/" + f.Effect
		}
		if f.Source == "assertion" {
			text += "/assertion"
		}
	}
	if len(stricter) > 0 {
		text += " stricter " + strings.Join(stricter, ",")
	}
	return text
}

func TestEveryRuleOfTheDecisionTable(t *testing.T) {
	catalogue, _ := assurance.Catalogue()
	effects := map[string][]string{}
	for _, file := range []string{"x402.txtar", "mcp.txtar"} {
		for _, c := range cases(t, file) {
			t.Run(c.Name, func(t *testing.T) {
				r, active, err := request(t, c.Body)
				if err != nil {
					t.Fatal(err)
				}
				e, _, err := evaluate(t, r, active)
				if err != nil {
					t.Fatal(err)
				}
				if got := told(e, nil); got != c.Want {
					t.Errorf("got  %s\nwant %s", got, c.Want)
				}
				for _, f := range e.Findings {
					effects[f.RuleID] = append(effects[f.RuleID], f.Effect)
					if f.Field == "" || f.Message == "" || f.Expected == "" || f.Actual == "" || f.Source == "" {
						t.Errorf("a member is empty: %+v", f)
					}
					if !slices.Contains(e.RulesEvaluated, f.RuleID) {
						t.Errorf("%s is not among the rules evaluated", f.RuleID)
					}
				}
			})
		}
	}
	for _, rule := range catalogue {
		got := slices.Clone(effects[rule.ID])
		slices.Sort(got)
		if diff := cmp.Diff(rule.Effects, slices.Compact(got)); diff != "" {
			t.Errorf("%s: effects of the catalogue and of the cases: %s", rule.ID, diff)
		}
	}
}

func TestAssertions(t *testing.T) {
	for _, c := range cases(t, "assertions.txtar") {
		t.Run(c.Name, func(t *testing.T) {
			r, active, err := request(t, c.Body)
			if err != nil {
				t.Fatal(err)
			}
			e, stricter, err := evaluate(t, r, active)
			got := told(e, stricter)
			var refused *policy.Error
			if errors.As(err, &refused) {
				got = "409 " + refused.Message
			}
			if got != c.Want {
				t.Errorf("got  %s\nwant %s", got, c.Want)
			}
		})
	}
}

// Lists of a policy and of an assertion may have a thousand entries each. Comparing them once took
// seconds, because the entries were normalized again for each pair. The test counts allocations.
func TestLongListsCostLittle(t *testing.T) {
	var active, asserted []string
	for i := range 1000 {
		active = append(active, fmt.Sprintf(`"*.h%d.example.com"`, i))
		asserted = append(asserted, fmt.Sprintf(`"a.h%d.example.com"`, i))
	}
	list := func(allowed, blocked []string) string {
		return `{"policyId":"p","version":1,"allowedHosts":[` + strings.Join(allowed, ",") + `],"blockedHosts":[` + strings.Join(blocked, ",") + `]}`
	}
	p, err := assurance.ReadPolicy([]byte(list(active, asserted)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := assurance.ParseDecision([]byte(`{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r"},"intent":{"resourceUrl":"https://b.h999.example.com/","method":"GET"},
		"policy":` + list(asserted, active) + `}`))
	if err != nil {
		t.Fatal(err)
	}
	if stricter, err := r.Assertion.Compare(p); err != nil || len(stricter) != 2 {
		t.Fatalf("stricter in %v, %v", stricter, err)
	}
	if n := testing.AllocsPerRun(1, func() { _, _ = r.Assertion.Compare(p) }); n > 200 {
		t.Errorf("comparing makes %.0f allocations", n)
	}
	if n := testing.AllocsPerRun(1, func() {
		assurance.Evaluate(assurance.EngineVersion, r.Protocol, p.Rules, &r.Assertion.Rules, r.Normalized)
	}); n > 200 {
		t.Errorf("evaluating makes %.0f allocations", n)
	}
}
