package x402provenance_test

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/policytest"
	"github.com/countersign/countersign/policy/x402provenance"
)

type (
	input  = x402provenance.Input
	record = x402provenance.Record
)

func check(t testing.TB, in input) x402provenance.Output {
	t.Helper()
	out, err := x402provenance.Evaluate(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// paid returns payment number n: a payment of the amount units from payer to the wallet 0x99, with
// all evidence.
func paid(n int, payer, units string) record {
	at := time.Date(2026, 1, 1, 0, 10*n, 0, 0, time.UTC).Format(time.RFC3339)
	return record{TxHash: fmt.Sprintf("0x%064x", n), Network: "eip155:8453", Asset: "0xUSDC", Payer: payer, PayTo: "0x99", AmountUnits: units,
		Timestamp: at, Resource: "https://api.example/", Facilitator: "https://x402.example/"}
}

func ids(out x402provenance.Output) string {
	var all []string
	for _, f := range out.Findings {
		all = append(all, f.ID)
	}
	return strings.Join(all, " ")
}

var owners = []string{"0xAA"}

func TestWorkedExample(t *testing.T) {
	answer, err := x402provenance.Service.Evaluate([]byte(x402provenance.Service.Example))
	if err != nil {
		t.Fatal(err)
	}
	var out x402provenance.Output
	if err := json.Unmarshal(answer.Body, &out); err != nil || out.RecordsKept != 2 || out.DuplicatesDropped != 1 || out.RecordsTotal != 3 {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestClassesAndTotals(t *testing.T) {
	no := false
	failed := paid(7, "0x01", "1000")
	failed.Success = &no
	other := paid(8, "Bob", "115792089237316195423570985008687907853269984665640564039457584007913129639935")
	other.Asset = "EURC"
	again := other
	again.TxHash = fmt.Sprintf("0x%064x", 9)
	out := check(t, input{OwnerWallets: owners, Records: []record{
		paid(1, "0xaa", "5"), paid(2, "0X99", "7"), paid(3, "0x01", "10"), paid(4, "0x02", "20"), paid(5, "0x03", "30"), failed, other, again,
	}})
	if out.RecordsTotal != 8 || out.RecordsKept != 7 || out.FailedExcluded != 1 || out.OwnerCount != 1 || out.SelfCount != 1 || out.ExternalCount != 5 || out.ExternalPayerCount != 4 {
		t.Errorf("got %+v", out)
	}
	want := []x402provenance.Total{{Asset: "0xusdc", OwnerUnits: "5", SelfUnits: "7", ExternalUnits: "60"},
		{Asset: "EURC", OwnerUnits: "0", SelfUnits: "0", ExternalUnits: "231584178474632390847141970017375815706539969331281128078915168015826259279870"}}
	if diff := cmp.Diff(want, out.Totals); diff != "" {
		t.Error(diff)
	}
	if out.Verdict != "external_demand_supported" || ids(out) != "self_payments" {
		t.Errorf("got %s %s", out.Verdict, ids(out))
	}
	if *out.FirstTimestamp != "2026-01-01T00:10:00Z" || *out.LastTimestamp != "2026-01-01T01:20:00Z" || out.ActiveDays != 1 {
		t.Errorf("got %v %v %d", *out.FirstTimestamp, *out.LastTimestamp, out.ActiveDays)
	}
}

func TestConcentration(t *testing.T) {
	out := check(t, input{OwnerWallets: owners, Records: []record{
		paid(1, "0x04", "10"), paid(2, "0x01", "30"), paid(3, "0x01", "20"), paid(4, "0x02", "30"), paid(5, "0x03", "10"),
	}})
	share := func(x float64) *float64 { return &x }
	want := &x402provenance.Concentration{TopPayerShare: share(.5), Top3Share: share(.9), HHI: share(.36), EffectivePayers: share(2.77777777778), CountHHI: .28, PayersWithMultiplePayments: 1}
	if diff := cmp.Diff(want, out.Concentration); diff != "" {
		t.Error(diff)
	}
	payers := []x402provenance.Payer{{Payer: "0x01", Count: 2, Units: "50", Share: share(.5)}, {Payer: "0x02", Count: 1, Units: "30", Share: share(.3)},
		{Payer: "0x03", Count: 1, Units: "10", Share: share(.1)}, {Payer: "0x04", Count: 1, Units: "10", Share: share(.1)}}
	if diff := cmp.Diff(payers, out.CandidateExternalPayers); diff != "" {
		t.Error(diff)
	}
	if out.Verdict != "external_demand_supported" {
		t.Errorf("half of the amount by one payer is %s", out.Verdict)
	}
}

func TestOnlyFiftyPayersAreListed(t *testing.T) {
	var records []record
	for i := range 60 {
		records = append(records, paid(i, fmt.Sprintf("0x%02d", i), "5"))
	}
	if out := check(t, input{Records: records, OwnerWallets: owners}); len(out.CandidateExternalPayers) != 50 || out.ExternalPayerCount != 60 {
		t.Errorf("%d of %d payers", len(out.CandidateExternalPayers), out.ExternalPayerCount)
	}
}

func TestZeroAmountsHaveNoShares(t *testing.T) {
	out := check(t, input{OwnerWallets: owners, Records: []record{paid(1, "0x01", "0")}})
	if c := out.Concentration; c.HHI != nil || c.TopPayerShare != nil || c.CountHHI != 1 || out.CandidateExternalPayers[0].Share != nil {
		t.Errorf("got %+v", c)
	}
}

func TestVerdictsAndFindings(t *testing.T) {
	three := []record{paid(1, "0x01", "10"), paid(2, "0x02", "10"), paid(3, "0x03", "10")}
	with := func(change func([]record)) []record {
		all := append([]record{}, three...)
		change(all)
		return all
	}
	duplicate := three[0]
	duplicate.TxHash = strings.ToUpper(duplicate.TxHash[2:])
	duplicate.TxHash = "0x" + duplicate.TxHash
	conflicting := duplicate
	conflicting.AmountUnits = "11"
	entry, second := 0, 1
	burst := func(n, inside int) []record {
		var all []record
		for i := range n {
			r := paid(i, fmt.Sprintf("0x%02d", i), "10")
			if i < inside {
				r.Timestamp = "2026-01-01T00:00:00Z"
				if i == 0 {
					r.Timestamp = "2025-12-31T23:59:00Z"
				}
			} else {
				r.Timestamp = time.Date(2026, 2, i+1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
			}
			all = append(all, r)
		}
		return all
	}
	back := func(from, to string, n int) record {
		r := paid(n, from, "1")
		r.PayTo = to
		return r
	}
	for _, tc := range []struct {
		name       string
		records    []record
		undeclared bool
		verdict    string
		findings   string
	}{
		{"external demand", three, false, "external_demand_supported", ""},
		{"no wallets declared", three, true, "external_demand_supported", "owner_wallets_not_declared"},
		{"a duplicate", append(three, duplicate), false, "external_demand_supported", "duplicates_dropped"},
		{"a conflicting duplicate", append(three, conflicting), false, "external_demand_supported", "conflicting_duplicate duplicates_dropped"},
		{"two log entries are two payments", with(func(r []record) { r[1].TxHash, r[0].LogIndex, r[1].LogIndex = r[0].TxHash, &entry, &second }), false, "external_demand_supported", ""},
		{"one hash on two networks", with(func(r []record) { r[1].TxHash, r[1].Network = r[0].TxHash, "eip155:1" }), false, "external_demand_supported", ""},
		{"an alias is the same network", with(func(r []record) { r[1].TxHash, r[1].Network, r[1].Payer = r[0].TxHash, "base", r[0].Payer }), false, "concentrated", "duplicates_dropped"},
		{"two payers", with(func(r []record) { r[2].Payer = "0x02" }), false, "concentrated", "high_concentration"},
		{"one payer", with(func(r []record) { r[1].Payer, r[2].Payer = "0x01", "0x01" }), false, "concentrated", "single_payer high_concentration"},
		{"one payer above half", with(func(r []record) { r[0].AmountUnits = "21" }), false, "concentrated", "high_concentration"},
		{"one payer at half", with(func(r []record) { r[0].AmountUnits = "20" }), false, "external_demand_supported", ""},
		{"own payments above half", with(func(r []record) { r[0].Payer, r[1].Payer = "0xaa", "0xAA" }), false, "self_dealing_suspected", "owner_dominated single_payer high_concentration"},
		{"only own payments", with(func(r []record) { r[0].Payer, r[1].Payer, r[2].Payer = "0xaa", "0x99", "0xaa" }), false, "insufficient_evidence", "owner_dominated self_payments"},
		{"two of four kinds of evidence", with(func(r []record) {
			for i := range r {
				r[i].Resource, r[i].Facilitator = "", ""
			}
		}), false, "external_demand_supported", ""},
		{"too little evidence", with(func(r []record) {
			for i := range r {
				r[i].Resource, r[i].Facilitator, r[i].Timestamp = "", "", ""
			}
		}), false, "insufficient_evidence", "missing_timestamps"},
		{"a malformed hash", with(func(r []record) { r[0].TxHash = "0xdead" }), false, "external_demand_supported", "malformed_hash"},
		{"a signature of Solana", with(func(r []record) { r[0].Network, r[0].TxHash = "solana", strings.Repeat("5", 88) }), false, "external_demand_supported", ""},
		{"burst", burst(10, 6), false, "external_demand_supported", "burst_activity"},
		{"no burst: half is not more than half", burst(10, 5), false, "external_demand_supported", ""},
		{"no burst: nine records", burst(9, 9), false, "external_demand_supported", ""},
		{"round trip", append(three, back("0x99", "0x02", 9), paid(10, "0x04", "10")), false, "external_demand_supported", "round_trip"},
		{"round trip from the other side", append([]record{back("0x99", "0x02", 0)}, three...), false, "external_demand_supported", "round_trip"},
		{"a recipient pays somebody who never paid", append(three, back("0x99", "0x55", 9)), false, "external_demand_supported", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := input{Records: tc.records, OwnerWallets: owners}
			if tc.undeclared {
				in.OwnerWallets = nil
			}
			out := check(t, in)
			if out.Verdict != tc.verdict || ids(out) != tc.findings {
				t.Errorf("got %s %q, want %s %q", out.Verdict, ids(out), tc.verdict, tc.findings)
			}
			if out.RecordsKept+out.DuplicatesDropped+out.FailedExcluded != out.RecordsTotal || out.SelfCount+out.OwnerCount+out.ExternalCount != out.RecordsKept {
				t.Errorf("counts do not add up: %+v", out)
			}
		})
	}
}

func TestCoverage(t *testing.T) {
	out := check(t, input{Records: []record{paid(1, "a", "1"), {TxHash: "x", Network: "n", Asset: "a", Payer: "b", PayTo: "c", AmountUnits: "1", Resource: "r"}}})
	want := x402provenance.Coverage{Timestamp: .5, Resource: 1, Facilitator: .5, WellFormedHash: .5, EvidenceCoverage: .625}
	if diff := cmp.Diff(want, out.Coverage); diff != "" {
		t.Error(diff)
	}
	no := false
	failed := paid(1, "a", "1")
	failed.Success = &no
	out = check(t, input{Records: []record{failed}})
	if out.Verdict != "insufficient_evidence" || out.Concentration != nil || out.FirstTimestamp != nil || len(out.Totals) != 0 || out.Totals == nil || out.CandidateExternalPayers == nil {
		t.Errorf("got %+v", out)
	}
}

func TestRefusals(t *testing.T) {
	const good = `{"txHash":"a","network":"n","asset":"a","payer":"p","payTo":"t","amountUnits":"1"}`
	list := func(n int) string { return `{"records":[` + strings.Repeat(good+",", n-1) + good + `]}` }
	wallets := func(n int) string { return `["` + strings.Repeat(`a","`, n-1) + `a"]` }
	for _, tc := range []struct{ body, code, path string }{
		{`{}`, "missing_field", "/records"},
		{`{"records":[]}`, "missing_field", "/records"},
		{list(5001), "too_many_items", "/records"},
		{`{"records":[` + good + `],"ownerWallets":` + wallets(501) + `}`, "too_many_items", "/ownerWallets"},
		{strings.Replace(list(1), `"payer":"p",`, "", 1), "missing_field", "/records/0/payer"},
		{strings.Replace(list(2), `"a","network"`, `"`+strings.Repeat("a", 129)+`","network"`, 1), "too_long", "/records/0/txHash"},
		{strings.Replace(list(1), `"n"`, `"`+strings.Repeat("a", 65)+`"`, 1), "too_long", "/records/0/network"},
		{strings.Replace(list(1), `"1"`, `"1.5"`, 1), "out_of_range", "/records/0/amountUnits"},
		{strings.Replace(list(1), `"1"`, `"`+strings.Repeat("9", 78)+`"`, 1), "out_of_range", "/records/0/amountUnits"},
		{strings.Replace(list(1), `"1"`, `1`, 1), "wrong_type", "/records/0/amountUnits"},
		{strings.Replace(list(1), `"1"`, `"1","timestamp":"now"`, 1), "invalid_date", "/records/0/timestamp"},
		{strings.Replace(list(1), `"1"`, `"1","logIndex":-1`, 1), "out_of_range", "/records/0/logIndex"},
		{strings.Replace(list(1), `"1"`, `"1","memo":"x"`, 1), "unknown_field", "/records/0"},
		{`{"records":[` + good + `],"asOf":"2026-01-01"}`, "invalid_date", "/asOf"},
		{`{"records":[` + good + `],"assetDecimals":{"a":37}}`, "out_of_range", "/assetDecimals"},
		{`{"records":[` + good + `],"assetDecimals":{"a":-1}}`, "out_of_range", "/assetDecimals"},
	} {
		_, err := x402provenance.Service.Evaluate([]byte(tc.body))
		var refusal *policy.Error
		if !errors.As(err, &refusal) || refusal.Code != tc.code || refusal.Path != tc.path {
			t.Errorf("%.100s: got %#v, want %s at %s", tc.body, err, tc.code, tc.path)
		}
	}
	if _, err := x402provenance.Service.Evaluate([]byte(strings.TrimSuffix(list(5000), "}") + `,"ownerWallets":` + wallets(500) + `,"assetDecimals":{"a":36}}`)); err != nil {
		t.Errorf("at every limit: %v", err)
	}
}

// Repeated records change only the number of duplicates. The order of distinct payments does not
// change any figure.
func TestRepeatingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []record
		for i := range rapid.IntRange(1, 12).Draw(t, "n") {
			records = append(records, paid(i, fmt.Sprintf("0x%d", rapid.IntRange(0, 5).Draw(t, "payer")), rapid.StringMatching(`[1-9][0-9]{0,20}`).Draw(t, "units")))
		}
		once, err := x402provenance.Evaluate(input{Records: records, OwnerWallets: owners})
		if err != nil {
			t.Fatal(err)
		}
		twice, err := x402provenance.Evaluate(input{Records: append(append([]record{}, records...), records...), OwnerWallets: owners})
		if err != nil || twice.DuplicatesDropped != len(records) || !cmp.Equal(once.Concentration, twice.Concentration) || !cmp.Equal(once.Totals, twice.Totals) || once.Verdict != twice.Verdict {
			t.Fatalf("%+v\n%+v, %v", once, twice, err)
		}
		sum := new(big.Int)
		for _, r := range records {
			n, _ := new(big.Int).SetString(r.AmountUnits, 10)
			sum.Add(sum, n)
		}
		if once.Totals[0].ExternalUnits != sum.String() {
			t.Fatalf("total %s, want %s", once.Totals[0].ExternalUnits, sum)
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	policytest.FuzzPure(f, x402provenance.Service)
}

func Example() {
	answer, err := x402provenance.Service.Evaluate([]byte(x402provenance.Service.Example))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out x402provenance.Output
	_ = json.Unmarshal(answer.Body, &out)
	fmt.Println(out.RecordsKept, "kept,", out.DuplicatesDropped, "dropped,", *out.Concentration.TopPayerShare, out.Verdict)
	// Output: 2 kept, 1 dropped, 0.5 insufficient_evidence
}
