package recompute

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

const (
	same    = "the verdict was recomputed from the recorded input and is the same"
	another = "the verdict was recomputed from the recorded input and is different"
)

// envelope returns an envelope without signatures, because the package verifies none.
func envelope(t *testing.T, record any) string {
	t.Helper()
	text, err := canon.Marshal(map[string]any{"record": record, "integrity": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// receipt returns the envelope of a gate service's receipt, and the service's answer.
func receipt(t *testing.T, service policy.Service, request, rules string) (signed, answer string) {
	t.Helper()
	a, err := service.Evaluate([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	return envelope(t, map[string]any{"receiptVersion": "svc-receipt-v1", "service": service.Label(), "serviceVersion": policy.Version,
		"inputHash": a.InputHash, "outputHash": a.OutputHash, "workflow": map[string]any{"rulesetHash": rules}}), string(a.Body)
}

func verdicts(t *testing.T, documents ...string) []Result {
	t.Helper()
	var texts [][]byte
	for _, document := range documents {
		texts = append(texts, []byte(document))
	}
	got, err := Verdicts(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestVerdictsOfReceiptsAreRecomputed(t *testing.T) {
	_, rules := actionrisk.Ruleset()
	request := `{"command":"git push --force origin main","environment":"production"}`
	signed, _ := receipt(t, actionsafety.Run, request, rules)
	old, _ := receipt(t, actionsafety.Run, request, "another")
	alone, answer := receipt(t, actionsafety.Run, `{"command":"git push --force origin main"}`, rules)
	changed := strings.Replace(signed, `"outputHash":"`, `"outputHash":"0`, 1)
	for name, c := range map[string]struct {
		documents []string
		want      []Result
	}{
		"with its request":                     {[]string{signed, request}, []Result{{0, "", Same, same}}},
		"with its request, in another order":   {[]string{`{"environment":"production", "command":"git push --force origin main"}`, signed}, []Result{{1, "", Same, same}}},
		"as JSON lines":                        {[]string{signed + "\n" + request + "\n"}, []Result{{0, "/0", Same, same}}},
		"inside another document":              {[]string{`{"a/b":[` + signed + `],"sent":` + request + `}`}, []Result{{0, "/a~1b/0", Same, same}}},
		"with the answer, whose command is it": {[]string{`{"receipt":` + alone + `,"answer":` + answer + `}`}, []Result{{0, "/receipt", Same, same}}},
		"without its request":                  {[]string{signed}, []Result{{0, "", Unknown, "the documents do not contain the request: add the request that was sent"}}},
		"with another request":                 {[]string{signed, `{"command":"git push --force origin main"}`}, []Result{{0, "", Unknown, "the documents do not contain the request: add the request that was sent"}}},
		"with another answer":                  {[]string{changed, request}, []Result{{0, "", Different, another}}},
		"of another rule set":                  {[]string{old, request}, []Result{{0, "", Same, same}}},
		"nothing signed":                       {[]string{request}, []Result{}},
		"of another service":                   {[]string{envelope(t, map[string]any{"receiptVersion": "svc-receipt-v1", "service": "bond-price"})}, []Result{{0, "", Unknown, "only verdicts of the gate and decisions are recomputed"}}},
		"an approval":                          {[]string{envelope(t, map[string]any{"schema": assurance.ApprovalSchema})}, []Result{}},
	} {
		if diff := cmp.Diff(c.want, verdicts(t, c.documents...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := Verdicts([]byte(`{"record":{},"record":{}}`)); err == nil {
		t.Error("a member that is there twice was read")
	}
}

// TestEveryLabelledActionIsTheSame checks that recomputing the receipt of each action in the
// labelled corpus gives the signed result.
func TestEveryLabelledActionIsTheSame(t *testing.T) {
	text, err := os.ReadFile("../../../policy/actionrisk/testdata/levels.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range bytes.Lines(text) {
		var c struct{ Action json.RawMessage }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		signed, _ := receipt(t, actionsafety.Run, string(c.Action), "")
		if diff := cmp.Diff([]Result{{0, "", Same, same}}, verdicts(t, signed, string(c.Action))); diff != "" {
			t.Errorf("%s: %s", c.Action, diff)
		}
		count++
	}
	if count < 300 {
		t.Errorf("the corpus has %d actions", count)
	}
}

func TestDecisionsAreRecomputed(t *testing.T) {
	active := `{"policyId":"default","version":3,"allowedMcpServers":["files"],"reviewMcpRiskAtOrAbove":"high"}`
	assertion := `{"policyId":"default","version":3,"allowedMcpServers":["files"],"reviewMcpRiskAtOrAbove":"medium"}`
	decide := func(risk string, adjusted bool, asserts bool) string {
		body := `{"protocol":"mcp","idempotencyKey":"k","subject":{"runId":"r"},"intent":{"serverId":"files","toolName":"read","declaredRisk":"` + risk + `","toolArguments":{}}`
		if asserts {
			body += `,"policy":` + assertion
		}
		request, err := assurance.ParseDecision([]byte(body + "}"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := assurance.ReadPolicy([]byte(active))
		if err != nil {
			t.Fatal(err)
		}
		var asserted *assurance.Rules
		if request.Assertion != nil {
			asserted = &request.Assertion.Rules
		}
		e, _ := assurance.Evaluate(assurance.EngineVersion, request.Protocol, p.Rules, asserted, request.Normalized)
		record, err := assurance.Ruling{DecisionID: "asd_1", OrgID: "org_1", Environment: "dev", IssuedAt: time.Unix(0, 0), ClockAdjusted: adjusted,
			Request: request, Policy: p, Evaluation: e}.Record()
		if err != nil {
			t.Fatal(err)
		}
		return envelope(t, record)
	}
	allow, review := decide("low", false, false), decide("high", true, false)
	altered := strings.Replace(review, `"decision":"needs_review"`, `"decision":"allow"`, 1)
	for name, c := range map[string]struct {
		documents []string
		result    string
	}{
		"an allow with its policy":         {[]string{allow, active}, Same},
		"a review, with an adjusted clock": {[]string{review, active}, Same},
		"with an assertion":                {[]string{decide("medium", false, true), active, assertion}, Same},
		"without the assertion":            {[]string{decide("medium", false, true), active}, Unknown},
		"without its policy":               {[]string{allow}, Unknown},
		"with another policy":              {[]string{allow, assertion}, Unknown},
		"with another verdict":             {[]string{altered, active}, Different},
		"with another binding hash":        {[]string{strings.Replace(allow, `"bindingHash":"`, `"bindingHash":"0`, 1), active}, Different},
		"of another engine":                {[]string{strings.Replace(allow, `"engineVersion":"`, `"engineVersion":"9`, 1), active}, Unknown},
	} {
		got := verdicts(t, c.documents...)
		if len(got) != 1 || got[0].Result != c.result {
			t.Errorf("%s: %+v, want %s", name, got, c.result)
		}
	}
}
