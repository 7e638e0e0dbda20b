package evidence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/evidence"
	"github.com/countersign/countersign/policy/policytest"
)

func verify(t testing.TB, body []byte) evidence.Output {
	t.Helper()
	answer, err := evidence.Service.Evaluate(body)
	if err != nil {
		t.Fatal(err)
	}
	var out evidence.Output
	if err := json.Unmarshal(answer.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func told(out evidence.Output) string {
	text := out.Verdict + ":"
	for _, r := range out.Rules {
		if r.Effect != "none" {
			text += " " + r.ID + "=" + r.Effect
		}
	}
	return text
}

func TestRules(t *testing.T) {
	outcomes := map[string]map[string]bool{}
	for _, c := range policytest.Cases(t, "testdata/rules.txtar") {
		t.Run(c.Name, func(t *testing.T) {
			out := verify(t, c.Body)
			if got := told(out); got != c.Want {
				t.Errorf("got  %s\nwant %s", got, c.Want)
			}
			effects := 0
			for _, r := range out.Rules {
				if outcomes[r.ID] == nil {
					outcomes[r.ID] = map[string]bool{}
				}
				outcomes[r.ID][r.Outcome] = true
				if r.Effect != "none" {
					effects++
				}
				if r.Detail == "" || r.Outcome == "pass" && r.Effect != "none" {
					t.Errorf("got %+v", r)
				}
			}
			if len(out.Findings) != effects || len(out.Rules) != len(evidence.RuleIDs()) {
				t.Errorf("%d findings for %d effects", len(out.Findings), effects)
			}
		})
	}
	for _, id := range evidence.RuleIDs() {
		// TestArtifactsHashAsSent has the cases in which artifact_hashes passes.
		if !outcomes[id]["pass"] && id != "artifact_hashes" || len(outcomes[id]) < 2 {
			t.Errorf("%s has only the outcomes %v", id, outcomes[id])
		}
	}
}

func TestConfidence(t *testing.T) {
	for _, c := range policytest.Cases(t, "testdata/rules.txtar") {
		out := verify(t, c.Body)
		switch c.Name {
		case "a good bundle":
			if out.Confidence != 1 || out.Findings == nil {
				t.Errorf("%s: %v", c.Name, out.Confidence)
			}
		case "the policy denied": // 19 of 20 rules pass; artifact_hashes is skipped
			if out.Confidence != .95 || out.Findings[0].Severity != "critical" || out.Findings[0].Path != "/bundle/policyDecision/decision" {
				t.Errorf("%s: %v %+v", c.Name, out.Confidence, out.Findings)
			}
		case "nothing at all": // five rules are missing, one passes
			if out.Confidence != 0.166666666667 {
				t.Errorf("%s: %v", c.Name, out.Confidence)
			}
		}
	}
}

// The hash of an artifact covers the text as sent, including members that are null.
func TestArtifactsHashAsSent(t *testing.T) {
	for _, sent := range []string{`{"network":"base","method":null,"payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984"}`, `{}`, `{"amountUnits":"1"}`} {
		canonical, err := canon.Canonical([]byte(sent))
		if err != nil {
			t.Fatal(err)
		}
		body := `{"bundle":{"challenge": ` + sent + ` ,"hashes":{"challenge":"` + canon.Hash(canonical) + `"}}}`
		out := verify(t, []byte(body))
		for _, r := range out.Rules {
			if r.ID == "artifact_hashes" && r.Outcome != "pass" {
				t.Errorf("%s: %+v", sent, r)
			}
		}
		bundle, err := canon.Canonical([]byte(`{"challenge":` + sent + `,"hashes":{"challenge":"` + canon.Hash(canonical) + `"}}`))
		if err != nil || out.BundleHash != canon.Hash(bundle) {
			t.Errorf("%s: bundle hash %s, %v", sent, out.BundleHash, err)
		}
	}
}

// A caller may send a SHA-256 in upper case.
func TestUpperCaseHashes(t *testing.T) {
	challenge, _ := canon.Canonical([]byte(`{"amountUnits":"1"}`))
	out := verify(t, []byte(`{"bundle":{"challenge":{"amountUnits":"1"},"hashes":{"challenge":"`+strings.ToUpper(canon.Hash(challenge))+`"},
		"response":{"status":200,"body":"x","bodyHash":"`+strings.ToUpper(canon.Hash([]byte("x")))+`"}}}`))
	for _, r := range out.Rules {
		if (r.ID == "artifact_hashes" || r.ID == "body_hash") && r.Outcome != "pass" {
			t.Errorf("%+v", r)
		}
	}
}

// A bundle built in Go has the same hash as the same bundle sent as JSON.
func TestBundlesMadeInGo(t *testing.T) {
	in := evidence.Input{Body: evidence.Body{Bundle: &evidence.Bundle{Source: &evidence.Source{Kind: "live"}, Challenge: &evidence.Challenge{Scheme: "exact"}}}}
	made, err := evidence.Evaluate(in)
	if err != nil {
		t.Fatal(err)
	}
	sent := verify(t, []byte(`{"bundle":{"challenge":{"scheme":"exact"},"source":{"kind":"live"}}}`))
	if diff := cmp.Diff(sent, made); diff != "" {
		t.Error(diff)
	}
}

func TestHashOfAnAbsentArtifactIsSkipped(t *testing.T) {
	out := verify(t, []byte(`{"bundle":{"hashes":{"receipt":"`+strings.Repeat("a", 64)+`"}}}`))
	for _, r := range out.Rules {
		if r.ID == "artifact_hashes" && r.Outcome != "skipped" {
			t.Errorf("got %+v", r)
		}
	}
}

// The results of the rules contain no query, no complete address and no secret.
func TestRulesRepeatNoSecret(t *testing.T) {
	out := verify(t, []byte(`{"bundle":{"challenge":{"resourceUrl":"https://api.example/canarypath?canaryquery","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","network":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
		"receipt":{"resourceUrl":"https://u:canarypass@other.example/?canaryquery","payTo":"0x329EdA9C18561571bA257177847A993E354e81b7","network":"base","transaction":"canarytx"},"response":{"body":"sk-proj-abcdefghijklmnopqrstuvwx"}}}`))
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, canary := range []string{"canary", "1f9840a85d5a", "ghp_a", "sk-proj"} {
		if strings.Contains(strings.ToLower(string(text)), canary) {
			t.Errorf("the answer holds %s: %s", canary, text)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ body, code, path string }{
		{`{}`, "missing_field", "/bundle"},
		{`{"bundle":null}`, "missing_field", "/bundle"},
		{`{"bundle":[]}`, "wrong_type", "/bundle"},
		{`{"bundle":{},"asOf":"yesterday"}`, "invalid_date", "/asOf"},
		{`{"bundle":{},"maxAgeSeconds":0}`, "out_of_range", "/maxAgeSeconds"},
		{`{"bundle":{},"maxAgeSeconds":31536001}`, "out_of_range", "/maxAgeSeconds"},
		{`{"bundle":{"receipt":{"settledAt":"2026-01-01"}}}`, "invalid_date", "/bundle/receipt/settledAt"},
		{`{"bundle":{"receipt":{"amountUnits":"-1"}}}`, "out_of_range", "/bundle/receipt/amountUnits"},
		{`{"bundle":{"response":{"status":99}}}`, "out_of_range", "/bundle/response/status"},
		{`{"bundle":{"response":{"status":600}}}`, "out_of_range", "/bundle/response/status"},
		{`{"bundle":{"response":{"bodyHash":"` + strings.Repeat("g", 64) + `"}}}`, "out_of_range", "/bundle/response/bodyHash"},
		{`{"bundle":{"response":{"body":"` + strings.Repeat("a", 65537) + `"}}}`, "too_long", "/bundle/response/body"},
		{`{"bundle":{"hashes":{"receipt":"x"}}}`, "out_of_range", "/bundle/hashes/receipt"},
		{`{"bundle":{"policyDecision":{"decision":"maybe"}}}`, "invalid_enum", "/bundle/policyDecision/decision"},
		{`{"bundle":{"source":{}}}`, "missing_field", "/bundle/source/kind"},
		{`{"bundle":{"source":{"kind":"dream"}}}`, "invalid_enum", "/bundle/source/kind"},
		{`{"bundle":{"challenge":{"memo":"x"}}}`, "unknown_field", "/bundle/challenge"},
		{`{"bundle":{"other":{}}}`, "unknown_field", "/bundle"},
		{`{"bundle":{"challenge":{"method":1}}}`, "wrong_type", "/bundle/challenge/method"},
		{`{"bundle":{},"expected":{"payer":"x"}}`, "unknown_field", "/expected"},
	} {
		_, err := evidence.Service.Evaluate([]byte(tc.body))
		var refusal *policy.Error
		if !errors.As(err, &refusal) || refusal.Code != tc.code || refusal.Path != tc.path {
			t.Errorf("%.80s: got %#v, want %s at %s", tc.body, err, tc.code, tc.path)
		}
	}
	verify(t, []byte(`{"bundle":{"response":{"status":100,"body":"`+strings.Repeat("a", 65536)+`"}},"maxAgeSeconds":31536000}`))
}

func FuzzBundle(f *testing.F) {
	for _, c := range policytest.Cases(f, "testdata/rules.txtar") {
		f.Add(c.Body)
	}
	policytest.FuzzPure(f, evidence.Service)
}

func Example() {
	answer, err := evidence.Service.Evaluate([]byte(evidence.Service.Example))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out evidence.Output
	_ = json.Unmarshal(answer.Body, &out)
	fmt.Println(out.Verdict)
	for _, f := range out.Findings[:2] {
		fmt.Println(f.ID, "-", f.Message)
	}
	// Output:
	// insufficient_evidence
	// endpoint_binding - the resource URL to compare is missing
	// response_present - the response is missing
}
