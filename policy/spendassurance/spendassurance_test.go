package spendassurance_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/paymentpolicy"
	"github.com/countersign/countersign/policy/policytest"
	"github.com/countersign/countersign/policy/spendassurance"
	"github.com/countersign/countersign/policy/walletscreen"
)

const good = `{"payment":{"resourceUrl":"https://api.weather.example/v1","method":"GET","scheme":"exact","network":"base","asset":"USDC",
	"payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000","paymentIdentifier":"order-2026-000117"},"policy":{"policyId":"research","version":3}` + ",\n" + cleanWallet + ",\n" + fullBundle + "}"

const (
	cleanWallet = `"wallet":{"address":"0x1F9840A85D5AF5BF1D1762F925BDADDC4201F984","exposures":[{"category":"exchange"}]}`
	fullBundle  = `"evidence":{"asOf":"2026-01-02T04:00:00Z","bundle":{
	"challenge":{"resourceUrl":"https://a.example/","method":"GET","network":"base","asset":"USDC","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000"},
	"receipt":{"resourceUrl":"https://a.example/","method":"GET","network":"base","asset":"USDC","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"40000",
	"transaction":"0x5bccd9addac18a63994c85ae4317df42b1ceeba3e98dc6d428bb6406bec9145b","success":true,"settledAt":"2026-01-02T03:04:09Z"},
	"policyDecision":{"decision":"allow"},"response":{"status":200,"body":"x"},"source":{"kind":"live"}}}`
)

func merged(t testing.TB, patch string) []byte {
	t.Helper()
	body, err := policytest.Merge([]byte(good), []byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func run(t testing.TB, body []byte) spendassurance.Output {
	t.Helper()
	answer, err := spendassurance.Service.Evaluate(body)
	if err != nil {
		t.Fatal(err)
	}
	var out spendassurance.Output
	if err := json.Unmarshal(answer.Body, &out); err != nil || answer.Decision != out.Decision {
		t.Fatalf("receipt %s, answer %s, %v", answer.Decision, out.Decision, err)
	}
	return out
}

func TestDecisions(t *testing.T) {
	for _, tc := range []struct{ name, patch, want string }{
		{"all three", `{}`, "allow:"},
		// a check that did not run makes a finding, and the decision is then never allow
		{"payment alone", `{"wallet":null,"evidence":null}`, "needs_review: evidence_not_verified/evidence wallet_not_screened/wallet"},
		{"no wallet", `{"wallet":null}`, "needs_review: wallet_not_screened/wallet"},
		{"no evidence", `{"evidence":null}`, "needs_review: evidence_not_verified/evidence"},
		{"denied without the rest", `{"wallet":null,"evidence":null,"payment":{"amountUnits":"50000"},"expected":{"amountUnits":"40000"}}`,
			"deny: amount_exceeds_expected/payment evidence_not_verified/evidence wallet_not_screened/wallet"},
		{"payment denied", `{"payment":{"amountUnits":"50000"},"expected":{"amountUnits":"40000"}}`, "deny: amount_exceeds_expected/payment"},
		{"payment to review", `{"policy":null}`, "needs_review: no_policy/payment"},
		{"screening required and absent", `{"wallet":null,"policy":{"requireWalletScreening":true}}`, "needs_review: wallet_not_screened/wallet"},
		{"screening required and given", `{"policy":{"requireWalletScreening":true}}`, "allow:"},
		{"wallet denied", `{"wallet":{"address":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","sanctionsHits":[{"list":"x","matchType":"exact"}]}}`, "deny: sanctions_exact_match/wallet"},
		{"wallet to review", `{"wallet":{"exposures":null}}`, "needs_review: insufficient_evidence/wallet"},
		{"evidence rejected", `{"evidence":{"bundle":{"source":{"kind":"test"},"receipt":null}}}`,
			"deny: source_kind/evidence receipt_present/evidence"},
		{"evidence insufficient", `{"evidence":{"bundle":{"receipt":null}}}`,
			"needs_review: receipt_present/evidence"},
		{"deny wins over review", `{"payment":{"scheme":null},"wallet":{"address":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","sanctionsHits":[{"list":"x","matchType":"exact"}]}}`,
			"deny: sanctions_exact_match/wallet scheme_unknown/payment"},
		{"without payTo any wallet may be screened", `{"payment":{"payTo":null},"wallet":{"address":"other"}}`, "needs_review: pay_to_missing/payment"},
		{"limits are those of the payment policy", `{"policy":{"dailyLimitUsd":0.05},"spend":{"todayUsd":0.04},"replay":{"usedPaymentIdentifiers":["order-2026-000117"]},"serviceRisk":{"level":"critical"}}`,
			"deny: replayed_payment_identifier/payment service_risk_critical/payment over_daily_limit/payment"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := run(t, merged(t, tc.patch))
			got := out.Decision + ":"
			for _, f := range out.Findings {
				got += " " + f.ID + "/" + strings.Split(f.Path, "/")[1]
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Each part of the answer equals the answer of the service that is called alone.
func TestComponentsAreTheServices(t *testing.T) {
	body := merged(t, `{"expected":{"amountUnits":"1"}}`)
	var in spendassurance.Input
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	out := run(t, body)
	payment, err := paymentpolicy.Evaluate(paymentpolicy.Input{Payment: in.Payment, Expected: in.Expected, Policy: &in.Policy.Policy})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spendassurance.PaymentPart{Decision: payment.Decision, Findings: payment.Findings, RedactedRecord: payment.RedactedRecord}, out.Components.Payment); diff != "" {
		t.Error(diff)
	}
	wallet, err := walletscreen.Evaluate(walletscreen.Input{Subject: *in.Wallet})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&spendassurance.WalletPart{Decision: wallet.Decision, RiskScore: wallet.RiskScore, RiskLevel: wallet.RiskLevel, Findings: wallet.Findings}, out.Components.Wallet); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&spendassurance.EvidencePart{Verdict: "verified", Findings: []policy.Finding{}}, out.Components.Evidence); diff != "" {
		t.Error(diff)
	}
	if alone := run(t, merged(t, `{"wallet":null,"evidence":null}`)); alone.Components.Wallet != nil || alone.Components.Evidence != nil {
		t.Errorf("got %+v", alone.Components)
	}
}

// The binding hash is that of package attest for the members of the x402 intent. It does not cover
// the other members of the payment.
func TestBindingHashIsAttests(t *testing.T) {
	intent := `{"resourceUrl":"https://api.weather.example/v1","method":"GET","scheme":"exact","network":"base","asset":"USDC","amountUsd":0,
		"payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","paymentIdentifier":"order-2026-000117","facilitatorUrl":null}`
	attested, err := attest.Service.Evaluate([]byte(`{"protocol":"x402","intent":` + intent + `}`))
	if err != nil {
		t.Fatal(err)
	}
	var want attest.Output
	if err := json.Unmarshal(attested.Body, &want); err != nil {
		t.Fatal(err)
	}
	out := run(t, []byte(`{"payment":`+strings.TrimSuffix(intent, "}")+`,"nonce":"n","description":"d","metadata":{"a":1},"maxTimeoutSeconds":60}}`))
	if out.BindingHash != want.BindingHash {
		t.Errorf("got %s, want %s", out.BindingHash, want.BindingHash)
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ patch, code, path string }{
		{`{"payment":null}`, "missing_field", "/payment/resourceUrl"},
		{`{"payment":{"resourceUrl":"x"}}`, "out_of_range", "/payment/resourceUrl"},
		{`{"wallet":{"address":"0x329EdA9C18561571bA257177847A993E354e81b7"}}`, "inconsistent_input", "/wallet/address"},
		{`{"wallet":{"address":"ab"}}`, "out_of_range", "/wallet/address"},
		{`{"wallet":{"address":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","exposures":[{"category":"weather"}]}}`, "invalid_enum", "/wallet/exposures/0/category"},
		{`{"evidence":{"bundle":null}}`, "missing_field", "/evidence/bundle"},
		{`{"evidence":{"bundle":{"receipt":{"settledAt":"now"}}}}`, "invalid_date", "/evidence/bundle/receipt/settledAt"},
		{`{"policy":{"requireWalletScreening":"yes"}}`, "wrong_type", "/policy/requireWalletScreening"},
		{`{"policy":{"other":1}}`, "unknown_field", "/policy"},
		{`{"wallet":{"address":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","reference":"x"}}`, "unknown_field", "/wallet"},
	} {
		_, err := spendassurance.Service.Evaluate(merged(t, tc.patch))
		var refusal *policy.Error
		if !errors.As(err, &refusal) || refusal.Code != tc.code || refusal.Path != tc.path {
			t.Errorf("%s: got %#v, want %s at %s", tc.patch, err, tc.code, tc.path)
		}
	}
}

// An optional member that is null counts as absent, at any depth.
func TestNullIsAbsent(t *testing.T) {
	without := string(merged(t, `{"wallet":null,"evidence":null}`))
	want := run(t, []byte(without))
	nulls := strings.NewReplacer(`"method"`, `"metadata":null,"amountUsd":null,"maxTimeoutSeconds":null,"nonce":null,"method"`,
		`"policyId"`, `"allowedHosts":null,"requireHttps":null,"requireWalletScreening":null,"maxUsdPerTransaction":null,"policyId"`,
		`"payment":`, `"wallet":null,"evidence":null,"expected":null,"spend":null,"replay":null,"serviceRisk":null,"reference":null,"payment":`).Replace(without)
	if diff := cmp.Diff(want, run(t, []byte(nulls))); diff != "" {
		t.Error(diff)
	}
}

// The decision is the strictest decision of the parts.
func TestDecisionIsTheStrictest(t *testing.T) {
	rank := map[string]int{"allow": 0, "needs_review": 1, "deny": 2}
	payments := []string{`{}`, `{"policy":null}`, `{"payment":{"amountUnits":"2"},"expected":{"amountUnits":"1"}}`}
	wallets := []string{`"wallet":{}`, `"wallet":{"exposures":null}`, `"wallet":null`,
		`"wallet":{"address":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","sanctionsHits":[{"list":"x","matchType":"exact"}]}`}
	bundles := []string{`"evidence":{}`, `"evidence":{"bundle":{"receipt":null}}`, `"evidence":null`, `"evidence":{"bundle":{"source":{"kind":"test"}}}`}
	parts := []int{0, 1, 1, 2} // rank of the decision for each item of wallets and of bundles
	for p, payment := range payments {
		for w, wallet := range wallets {
			for e, bundle := range bundles {
				body, err := policytest.Merge(merged(t, payment), []byte(`{`+wallet+`,`+bundle+`}`))
				if err != nil {
					t.Fatal(err)
				}
				if out := run(t, body); rank[out.Decision] != max(p, parts[w], parts[e]) {
					t.Errorf("parts %d %d %d give %s", p, w, e, out.Decision)
				}
			}
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add([]byte(good))
	f.Add(merged(f, `{"wallet":null,"evidence":null}`))
	policytest.FuzzPure(f, spendassurance.Service)
}

func Example() {
	answer, err := spendassurance.Service.Evaluate([]byte(spendassurance.Service.Example))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out spendassurance.Output
	_ = json.Unmarshal(answer.Body, &out)
	fmt.Println(out.Decision, out.Components.Payment.Decision, out.Components.Wallet.Decision, out.Components.Evidence == nil)
	// Output: allow allow allow false
}
