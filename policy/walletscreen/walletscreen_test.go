package walletscreen_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/policytest"
	"github.com/countersign/countersign/policy/walletscreen"
)

func score(t testing.TB, body []byte) walletscreen.Output {
	var in walletscreen.Input
	if err := canon.Decode(body, &in); err != nil {
		t.Fatal(err)
	}
	out, err := walletscreen.Evaluate(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func told(out walletscreen.Output) string {
	text := strconv.FormatFloat(out.RiskScore, 'f', -1, 64) + " " + out.RiskLevel + " " + out.Decision + ":"
	for _, s := range out.Signals {
		text += " " + s.ID + "=" + strconv.FormatFloat(s.Strength, 'f', -1, 64)
	}
	text += " |"
	for _, f := range out.Findings {
		text += " " + f.ID
	}
	return text
}

func TestRules(t *testing.T) {
	for _, c := range policytest.Cases(t, "testdata/rules.txtar") {
		t.Run(c.Name, func(t *testing.T) {
			out := score(t, c.Body)
			if got := told(out); got != c.Want {
				t.Errorf("got  %s\nwant %s", got, c.Want)
			}
			want := map[string]string{"allow": "proceed", "needs_review": "review", "deny": "block"}[out.Decision]
			if out.Recommendation != want || out.ReceiptDecision() != out.Decision {
				t.Errorf("recommendation %s for %s", out.Recommendation, out.Decision)
			}
		})
	}
}

// Every category is accepted as an exposure and as a label, and has the weight that the contract
// states (at hop 0, for the whole volume).
func TestCategories(t *testing.T) {
	for category, weight := range map[string]float64{
		"sanctions": 1, "terrorism_financing": 1, "child_abuse": 1, "ransomware": .9, "stolen_funds": .85, "darknet_market": .8, "mixer": .7, "scam": .7,
		"fraud_shop": .7, "high_risk_jurisdiction": .6, "high_risk_exchange": .45, "gambling": .3, "p2p_exchange": .25, "privacy_protocol": .5, "bridge": .15,
		"unhosted_wallet": .1, "unknown": .1, "defi": .05, "exchange": 0, "mining": 0, "payment_processor": 0, "merchant": 0,
	} {
		out := score(t, []byte(`{"address":"abc","exposures":[{"category":"`+category+`","hops":0,"share":1}],"counterparties":[{"address":"x","label":"`+category+`","hops":0}]}`))
		if out.Signals[0].Strength != weight || out.Signals[1].Strength != policy.Sig12(weight/2) || *out.Signals[0].Category != category {
			t.Errorf("%s: %+v", category, out.Signals)
		}
	}
}

func TestFanIn(t *testing.T) {
	transfers := func(senders int, seconds int) []walletscreen.Transfer {
		var all []walletscreen.Transfer
		for i := range senders {
			at := "2026-01-01T00:00:00Z"
			if i == senders-1 {
				at = fmt.Sprintf("2026-01-02T00:00:%02dZ", seconds)
			}
			all = append(all, walletscreen.Transfer{Direction: "incoming", AmountUSD: 5, Timestamp: at, Counterparty: fmt.Sprintf("0x%040d", i)})
		}
		return all
	}
	same := transfers(10, 0)
	same[9].Counterparty = strings.Replace(same[0].Counterparty, "0x", "0X", 1)
	for name, tc := range map[string]struct {
		transfers []walletscreen.Transfer
		want      float64
	}{
		"ten senders in a day":                   {transfers(10, 0), 20},
		"ten senders in a day and a second":      {transfers(10, 1), 0},
		"nine senders":                           {transfers(9, 0), 0},
		"ten transfers, one sender in two cases": {same, 0},
	} {
		out, err := walletscreen.Evaluate(walletscreen.Input{Subject: walletscreen.Subject{Address: "abc", Transfers: tc.transfers}})
		if err != nil || out.RiskScore != tc.want || (tc.want > 0) != (len(out.Findings) == 1 && out.Findings[0].ID == "fan_in_pattern") {
			t.Errorf("%s: %v, %+v, %v", name, out.RiskScore, out.Findings, err)
		}
	}
}

func TestSummaryAndCoverage(t *testing.T) {
	out := score(t, []byte(`{"address":"abc","sanctionsHits":[{"list":"a","matchType":"fuzzy"}],"exposures":[{"category":"mixer"},{"category":"bridge"},{"category":"mixer","hops":0}],
		"counterparties":[{"address":"x","label":"bridge"}]}`))
	want := []walletscreen.CategoryTotal{{Category: "sanctions", MaxStrength: .6, Count: 1}, {Category: "mixer", MaxStrength: .42, Count: 2}, {Category: "bridge", MaxStrength: .072, Count: 2}}
	if diff := cmp.Diff(want, out.CategorySummary); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(walletscreen.Coverage{SanctionsHits: 1, Exposures: 3, Counterparties: 1}, out.Coverage); diff != "" {
		t.Error(diff)
	}
	if out.Network != nil || out.Signals[1].Points != 42 || *out.Signals[1].Hops != 0 || out.Signals[1].Source != "/exposures/2" {
		t.Errorf("got %+v", out.Signals)
	}
	if diff := cmp.Diff([]string{"caller_supplied_data_only", "no_chain_lookup"}, out.Limitations); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	list := func(item string, n int) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	hit, exposure, party := `{"list":"a","matchType":"fuzzy"}`, `{"category":"defi"}`, `{"address":"a","label":"defi"}`
	transfer := `{"direction":"incoming","amountUsd":1,"timestamp":"2026-01-01T00:00:00Z"}`
	for _, tc := range []struct{ name, patch, code, path string }{
		{"no address", `{"address":null}`, "missing_field", "/address"},
		{"short address", `{"address":"ab"}`, "out_of_range", "/address"},
		{"long address", `{"address":"` + strings.Repeat("a", 129) + `"}`, "too_long", "/address"},
		{"address with a space", `{"address":"a bc"}`, "out_of_range", "/address"},
		{"long network", `{"network":"` + strings.Repeat("a", 65) + `"}`, "too_long", "/network"},
		{"hits", `{"sanctionsHits":` + list(hit, 101) + `}`, "too_many_items", "/sanctionsHits"},
		{"exposures", `{"exposures":` + list(exposure, 501) + `}`, "too_many_items", "/exposures"},
		{"counterparties", `{"counterparties":` + list(party, 501) + `}`, "too_many_items", "/counterparties"},
		{"transfers", `{"transfers":` + list(transfer, 2001) + `}`, "too_many_items", "/transfers"},
		{"match type", `{"sanctionsHits":[{"list":"a","matchType":"maybe"}]}`, "invalid_enum", "/sanctionsHits/0/matchType"},
		{"no match type", `{"sanctionsHits":[{"list":"a"}]}`, "missing_field", "/sanctionsHits/0/matchType"},
		{"confidence", `{"sanctionsHits":[{"list":"a","matchType":"fuzzy","confidence":1.1}]}`, "out_of_range", "/sanctionsHits/0/confidence"},
		{"hops", `{"sanctionsHits":[{"list":"a","matchType":"fuzzy","hops":11}]}`, "out_of_range", "/sanctionsHits/0/hops"},
		{"hops of a fraction", `{"sanctionsHits":[{"list":"a","matchType":"fuzzy","hops":1.5}]}`, "wrong_type", "/sanctionsHits/0/hops"},
		{"category", `{"exposures":[` + exposure + `,{"category":"weather"}]}`, "invalid_enum", "/exposures/1/category"},
		{"label", `{"counterparties":[{"address":"a","label":"weather"}]}`, "invalid_enum", "/counterparties/0/label"},
		{"direction", `{"exposures":[{"category":"defi","direction":"both"}]}`, "invalid_enum", "/exposures/0/direction"},
		{"share", `{"exposures":[{"category":"defi","share":1.01}]}`, "out_of_range", "/exposures/0/share"},
		{"amount", `{"transfers":[{"direction":"incoming","amountUsd":-1,"timestamp":"2026-01-01T00:00:00Z"}]}`, "out_of_range", "/transfers/0/amountUsd"},
		{"time", `{"transfers":[{"direction":"incoming","amountUsd":1,"timestamp":"2026-01-01"}]}`, "invalid_date", "/transfers/0/timestamp"},
		{"declared", `{"fundSource":{"declared":"lottery","verified":true}}`, "invalid_enum", "/fundSource/declared"},
		{"unknown member", `{"fundSource":{"declared":"other","verified":true,"note":"x"}}`, "unknown_field", "/fundSource"},
	} {
		body, err := policytest.Merge([]byte(`{"address":"abc"}`), []byte(tc.patch))
		if err != nil {
			t.Fatal(err)
		}
		_, err = walletscreen.Service.Evaluate(body)
		var refusal *policy.Error
		if !errors.As(err, &refusal) || refusal.Code != tc.code || refusal.Path != tc.path {
			t.Errorf("%s: got %#v, want %s at %s", tc.name, err, tc.code, tc.path)
		}
	}
	full := `{"address":"` + strings.Repeat("a", 128) + `","network":"` + strings.Repeat("a", 64) + `","sanctionsHits":` + list(hit, 100) + `,"exposures":` + list(exposure, 500) +
		`,"counterparties":` + list(party, 500) + `,"transfers":` + list(transfer, 2000) + `}`
	if _, err := walletscreen.Service.Evaluate([]byte(full)); err != nil {
		t.Errorf("at every limit: %v", err)
	}
}

// More evidence never lowers the score, and the score is always from 0 to 100.
func TestEvidenceNeverLowersTheScore(t *testing.T) {
	categories := []string{"sanctions", "mixer", "exchange", "bridge", "scam", "defi"}
	rapid.Check(t, func(t *rapid.T) {
		var in walletscreen.Input
		in.Address = "abc"
		last := 0.0
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			share, hops := rapid.Float64Range(0, 1).Draw(t, "share"), rapid.IntRange(0, 10).Draw(t, "hops")
			in.Exposures = append(in.Exposures, walletscreen.Exposure{Category: rapid.SampledFrom(categories).Draw(t, "category"), Share: &share, Hops: &hops})
			out, err := walletscreen.Evaluate(in)
			if err != nil || out.RiskScore < last || out.RiskScore > 100 {
				t.Fatalf("%v after %v, %v", out.RiskScore, last, err)
			}
			last = out.RiskScore
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	for _, c := range policytest.Cases(f, "testdata/rules.txtar") {
		f.Add(c.Body)
	}
	policytest.FuzzPure(f, walletscreen.Service)
}

func Example() {
	answer, err := walletscreen.Service.Evaluate([]byte(walletscreen.Service.Example))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out walletscreen.Output
	_ = json.Unmarshal(answer.Body, &out)
	fmt.Println(out.RiskScore, out.RiskLevel, out.Decision)
	// Output: 44.67 medium needs_review
}
