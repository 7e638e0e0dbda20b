package waterfall_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/money"
	"github.com/countersign/countersign/policy/policytest"
	"github.com/countersign/countersign/policy/waterfall"
)

func ptr[T any](x T) *T { return &x }

func evaluate(t policytest.TB, in waterfall.Input) waterfall.Output {
	t.Helper()
	return policytest.Must(t, waterfall.Evaluate, in)
}

// ask evaluates a request that is given as JSON members.
func ask(t *testing.T, members string) waterfall.Output {
	t.Helper()
	return policytest.Ask(t, waterfall.Evaluate, members)
}

func ExampleEvaluate() {
	out, err := waterfall.Evaluate(waterfall.Input{
		ContributedCapital: ptr(4e6), DistributableAmount: ptr(7.5e6), PreferredReturnRate: ptr(0.08), HoldingPeriodYears: ptr(4.0),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tier := range out.Tiers {
		fmt.Println(tier.Name, tier.Amount, "GP", tier.GP)
	}
	fmt.Println("effective carry", out.EffectiveCarryPercent, "%")
	// Output:
	// return_of_capital 4000000 GP 0
	// preferred_return 1441955.84 GP 0
	// gp_catch_up 360488.96 GP 360488.96
	// carried_interest 1697555.2 GP 339511.04
	// effective carry 20 %
}

// In testdata/splits.txtar each request is followed by its answer, which was computed
// independently. Amounts must agree exactly, and rates to 10 digits.
func TestSplitsAgainstAnotherComputation(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/splits.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		request, want := archive.Files[i], archive.Files[i+1]
		a, err := waterfall.Service.Evaluate(request.Data)
		if err != nil {
			t.Errorf("%s: %v", request.Name, err)
			continue
		}
		var got map[string]any
		if err := json.Unmarshal(a.Body, &got); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(want.Data)) {
			var members map[string]any
			if err := json.Unmarshal([]byte(line), &members); err != nil {
				t.Fatal(err)
			}
			for name, value := range members {
				if rate, ok := value.(float64); ok && name == "lpIrr" {
					if irr, ok := got[name].(float64); !ok || math.Abs(irr-rate) > 1e-10*math.Max(1, math.Abs(rate)) {
						t.Errorf("%s: lpIrr %v, want %v", request.Name, got[name], rate)
					}
				} else if diff := cmp.Diff(value, got[name]); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", request.Name, name, diff)
				}
			}
		}
		if (got["deals"] != nil) != (got["style"] == "american") || (got["clawback"] != nil) != (got["mode"] == "dated") {
			t.Errorf("%s: deals %v, clawback %v", request.Name, got["deals"], got["clawback"])
		}
	}
}

// draw draws an agreement. For dated funds, the caller adds events.
func draw(t *rapid.T, dated bool) waterfall.Input {
	in := waterfall.Input{GPCommitmentRate: ptr(float64(rapid.IntRange(0, 99).Draw(t, "commitment")) / 100)}
	compounding := []string{"annual", "simple"}
	if !dated {
		compounding = append(compounding, "quarterly", "monthly")
	}
	in.Compounding = ptr(rapid.SampledFrom(compounding).Draw(t, "compounding"))
	if rapid.Bool().Draw(t, "hurdles") {
		rate := 0.0
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			rate += float64(rapid.IntRange(1, 10).Draw(t, "step")) / 100
			in.Hurdles = append(in.Hurdles, waterfall.Hurdle{Rate: rate, CarryRate: float64(rapid.IntRange(0, 99).Draw(t, "carry")) / 100})
		}
		return in
	}
	carry := rapid.IntRange(0, 99).Draw(t, "carry")
	in.PreferredReturnRate = ptr(float64(rapid.IntRange(0, 30).Draw(t, "pref")) / 100)
	in.CarryRate = ptr(float64(carry) / 100)
	in.CatchUpRate = ptr(float64(rapid.IntRange(carry+1, 100).Draw(t, "catchUp")) / 100)
	if rapid.Bool().Draw(t, "hard") {
		*in.CatchUpRate = 0
	}
	return in
}

func drawSimple(t *rapid.T) waterfall.Input {
	in := draw(t, false)
	capital := rapid.Int64Range(1, 1e10).Draw(t, "capital")
	in.ContributedCapital = ptr(money.Cents(capital).Float())
	in.DistributableAmount = ptr(money.Cents(rapid.Int64Range(0, 4*capital).Draw(t, "amount")).Float())
	in.HoldingPeriodYears = ptr(float64(rapid.IntRange(0, 40).Draw(t, "quarters")) / 4)
	return in
}

func drawDated(t *rapid.T) waterfall.Input {
	in := draw(t, true)
	if rapid.Bool().Draw(t, "american") {
		in.Style = ptr("american")
	}
	for i := range rapid.IntRange(2, 25).Draw(t, "events") {
		e := waterfall.Event{
			Date:   money.Day(rapid.IntRange(10000, 14000).Draw(t, "day")).String(),
			Type:   rapid.SampledFrom([]string{"contribution", "distribution"}).Draw(t, "type"),
			Amount: money.Cents(rapid.Int64Range(1, 1e9).Draw(t, "amount")).Float(),
			DealID: ptr(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "deal")),
		}
		if i == 0 {
			e.Type = "contribution"
		}
		in.Events = append(in.Events, e)
	}
	return in
}

// checkInvariants checks the invariants of the contract, to the cent.
func checkInvariants(t *rapid.T, in waterfall.Input, out waterfall.Output) {
	var amount, lp, gp money.Cents
	for _, tier := range out.Tiers {
		if tier.LP+tier.GP != tier.Amount || tier.LP < 0 || tier.GP < 0 {
			t.Fatalf("tier %+v", tier)
		}
		amount, lp, gp = amount+tier.Amount, lp+tier.LP, gp+tier.GP
	}
	if amount != out.TotalDistributed || lp != out.InvestorTotal || gp != out.GPCarry || out.LPTotal+out.GPTotal != amount ||
		out.LPTotal < 0 || out.GPTotal < 0 || out.LPTotal+out.GPCoInvest != lp {
		t.Fatalf("sums %v %v %v of %+v", amount, lp, gp, out)
	}
	wanted := money.Cents(0)
	if in.DistributableAmount != nil {
		wanted, _ = money.FromNumber(*in.DistributableAmount)
	}
	for _, e := range in.Events {
		if e.Type == "distribution" {
			part, _ := money.FromNumber(e.Amount)
			wanted += part
		}
	}
	if amount != wanted || out.UnreturnedCapital < 0 || *out.UnpaidPreferredReturn < 0 || out.Profit != amount-out.TotalContributed {
		t.Fatalf("distributed %v of %v: %+v", amount, wanted, out)
	}
	if out.Clawback == nil {
		return
	}
	if c := out.Clawback; c.Amount > gp || c.Amount < 0 || c.Required != (c.Amount > 0) || c.ExcessCarry < 0 || c.LPShortfall < 0 {
		t.Fatalf("clawback %+v", c)
	}
	if out.Deals == nil {
		return
	}
	var ofDeals money.Cents
	for _, d := range *out.Deals {
		for _, tier := range d.Tiers {
			ofDeals += tier.Amount
		}
	}
	if ofDeals != amount {
		t.Fatalf("deals sum to %v", ofDeals)
	}
}

func TestTiersSumToTheCent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawSimple(t)
		checkInvariants(t, in, evaluate(t, in))
	})
	rapid.Check(t, func(t *rapid.T) {
		in := drawDated(t)
		checkInvariants(t, in, evaluate(t, in))
	})
}

// If one cent more is distributed, either the investors or the GP get this cent, and the other
// side gets as much as before.
func TestBothSidesGainWithTheAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawSimple(t)
		a := evaluate(t, in)
		for _, step := range []money.Cents{1, 2, 100001} {
			more := in
			more.DistributableAmount = ptr((a.TotalDistributed + step).Float())
			if b := evaluate(t, more); b.LPTotal < a.LPTotal || b.GPTotal < a.GPTotal {
				t.Fatalf("%v more: LP %v to %v, GP %v to %v", step, a.LPTotal, b.LPTotal, a.GPTotal, b.GPTotal)
			}
		}
	})
}

// One contribution and one distribution that are a whole number of years apart give the result of
// the simple mode. The order of the events does not matter. A single deal is split as a whole fund
// is.
func TestModesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawSimple(t)
		if c := *in.Compounding; c != "annual" && c != "simple" || *in.DistributableAmount == 0 {
			t.Skip("no dated counterpart")
		}
		in.GPCommitmentRate = nil // rounding the GP's commitment to cents would change lpMoic
		years := rapid.IntRange(1, 10).Draw(t, "years")
		in.HoldingPeriodYears = ptr(float64(years))
		dated := in
		dated.ContributedCapital, dated.DistributableAmount, dated.HoldingPeriodYears = nil, nil, nil
		dated.Events = []waterfall.Event{
			{Date: money.Day(10000 + 365*years).String(), Type: "distribution", Amount: *in.DistributableAmount, DealID: ptr("A")},
			{Date: money.Day(10000).String(), Type: "contribution", Amount: *in.ContributedCapital, DealID: ptr("A")},
		}
		american := dated
		american.Style = ptr("american")
		a, b, c := evaluate(t, in), evaluate(t, dated), evaluate(t, american)
		if diff := cmp.Diff(a.Tiers, b.Tiers); diff != "" || a.UnreturnedCapital != b.UnreturnedCapital || *a.UnpaidPreferredReturn != *b.UnpaidPreferredReturn {
			t.Fatalf("simple and dated: %s", diff)
		}
		if diff := cmp.Diff(b.Tiers, c.Tiers); diff != "" || c.Clawback == nil {
			t.Fatalf("whole fund and single deal: %s", diff)
		}
		if a.LPIrr != nil && b.LPIrr != nil && math.Abs(*a.LPIrr-*b.LPIrr) > 1e-9 {
			t.Fatalf("irr %v, dated %v", *a.LPIrr, *b.LPIrr)
		}
	})
}

// If a whole fund lost money in the end, the answer has a clawback for the carry that the GP got
// earlier: 10 m in, 20 m out, 30 m in, 10 m out.
func TestClawbackOfAWholeFund(t *testing.T) {
	const events = `"events":[{"date":"2020-01-01","type":"contribution","amount":10000000},{"date":"2021-01-01","type":"distribution","amount":20000000},
		{"date":"2021-02-01","type":"contribution","amount":30000000},{"date":"2025-01-01","type":"distribution","amount":10000000}]`
	out := ask(t, `"preferredReturnRate":0.08,`+events)
	if c := out.Clawback; out.Profit >= 0 || out.GPCarry <= 0 || c == nil || !c.Required || c.Amount != out.GPCarry || c.ExcessCarry != out.GPCarry {
		t.Errorf("carry %v, profit %v, clawback %+v", out.GPCarry, out.Profit, c)
	}
	if ids := policytest.IDs(out.Findings); !slices.Contains(ids, "clawback_due") {
		t.Errorf("findings %v", ids)
	}
	out = ask(t, `"preferredReturnRate":0.08,"events":[{"date":"2020-01-01","type":"contribution","amount":10000000},{"date":"2021-01-01","type":"distribution","amount":20000000}]`)
	if c := out.Clawback; c == nil || c.Required || c.Amount != 0 {
		t.Errorf("a fund that gained: %+v", c)
	}
}

func TestFindings(t *testing.T) {
	base := `"contributedCapital":4000000,"preferredReturnRate":0.08,"holdingPeriodYears":4,"distributableAmount":`
	for members, want := range map[string][]string{
		base + `7500000`:               {},
		base + `3999999.99`:            {"capital_not_returned", "preferred_return_unpaid"},
		base + `4000000`:               {"preferred_return_unpaid"},
		base + `5441955.84`:            {"catch_up_incomplete"},
		base + `5802444.79`:            {"catch_up_incomplete"},
		base + `5802444.80`:            {},
		base + `5500000,"carryRate":0`: {},
		`"style":"american","preferredReturnRate":0.08,"events":[{"date":"2020-01-01","type":"contribution","amount":100,"dealId":"A"},
		 {"date":"2021-01-01","type":"distribution","amount":200,"dealId":"A"},{"date":"2020-01-01","type":"contribution","amount":100,"dealId":"B"}]`: {
			"capital_not_returned", "clawback_due", "preferred_return_unpaid"},
		`"preferredReturnRate":0.08,"events":[{"date":"2019-03-15","type":"contribution","amount":100},{"date":"2020-03-15","type":"distribution","amount":200},
		 {"date":"2021-03-15","type":"contribution","amount":90},{"date":"2021-03-16","type":"distribution","amount":1}]`: {
			"capital_not_returned", "clawback_due", "carry_above_headline", "preferred_return_unpaid"},
		`"contributedCapital":1e12,"preferredReturnRate":1,"holdingPeriodYears":100,"distributableAmount":1e12`: {"number_out_of_range", "preferred_return_unpaid"},
		`"contributedCapital":1,"preferredReturnRate":0,"holdingPeriodYears":0.001,"distributableAmount":1e12`:  {"number_out_of_range"},
	} {
		if diff := cmp.Diff(want, policytest.IDs(ask(t, members).Findings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", members, diff)
		}
	}
}

func TestCaughtUp(t *testing.T) {
	base := `"contributedCapital":4000000,"preferredReturnRate":0.08,"holdingPeriodYears":4,"distributableAmount":`
	for members, want := range map[string]bool{
		base + `7500000`: true, base + `5802444.80`: true, base + `5802444.79`: false, base + `5000000`: false, base + `100`: false,
		base + `5600000,"catchUpRate":0`: false, base + `75000000,"catchUpRate":0`: true, base + `5441955.84,"carryRate":0`: true,
		`"contributedCapital":100,"hurdles":[{"rate":0.08,"carryRate":0.2}],"holdingPeriodYears":1,"distributableAmount":109`:  false,
		`"contributedCapital":100,"hurdles":[{"rate":0.08,"carryRate":0.2}],"holdingPeriodYears":1,"distributableAmount":1090`: true,
	} {
		if got := ask(t, members).FullyCaughtUp; got != want {
			t.Errorf("%s: got %v", members, got)
		}
	}
}

// The largest sums do not overflow, and a number that JSON cannot represent exactly is null.
func TestLargestAmounts(t *testing.T) {
	out := ask(t, `"contributedCapital":1e12,"preferredReturnRate":1,"holdingPeriodYears":100,"distributableAmount":1e12`)
	if out.UnpaidPreferredReturn != nil || out.Tiers[0].Amount != 1e14 || out.UnreturnedCapital != 0 {
		t.Errorf("got %+v", out)
	}
	var events []string
	for range 70 {
		events = append(events, `{"date":"1900-01-01","type":"contribution","amount":1e12,"dealId":"A"}`)
	}
	events = append(events, `{"date":"2199-12-31","type":"distribution","amount":1e12,"dealId":"A"}`)
	for _, members := range []string{`"style":"american","preferredReturnRate":1`, `"hurdles":[{"rate":0.99,"carryRate":0.99},{"rate":1,"carryRate":0.5}]`} {
		out := ask(t, members+`,"events":[`+strings.Join(events, ",")+`]`)
		if out.UnpaidPreferredReturn != nil || out.UnreturnedCapital != 69e14 || out.GPCarry != 0 {
			t.Errorf("%s: got %+v", members, out)
		}
	}
	more := strings.Join(append(events, events[0]), ",")
	refused(t, `"preferredReturnRate":1,"events":[`+more+`]`, "out_of_range", "/events/71/amount")
}

func refused(t *testing.T, members, code, path string) {
	t.Helper()
	_, err := waterfall.Service.Evaluate([]byte("{" + members + "}"))
	policytest.Refused(t, members, err, code, path)
}

func TestRefusals(t *testing.T) {
	simple := `"contributedCapital":100,"distributableAmount":200,"holdingPeriodYears":1`
	events := `"events":[{"date":"2020-01-01","type":"contribution","amount":100},{"date":"2021-01-01","type":"distribution","amount":200}]`
	event := `{"date":"2020-01-01","type":"contribution","amount":1}`
	for members, want := range map[string][2]string{
		`"preferredReturnRate":0.08`:                                               {"missing_field", "/contributedCapital"},
		`"contributedCapital":100,"preferredReturnRate":0.08`:                      {"missing_field", "/distributableAmount"},
		`"contributedCapital":100,"distributableAmount":1,"preferredReturnRate":0`: {"missing_field", "/holdingPeriodYears"},
		simple: {"missing_field", "/preferredReturnRate"},
		events: {"missing_field", "/preferredReturnRate"},
		simple + `,"preferredReturnRate":0.08,"catchUpRate":0.2`:                         {"catch_up_not_above_carry", "/catchUpRate"},
		simple + `,"preferredReturnRate":0.08,"catchUpRate":0.1,"carryRate":0.15`:        {"catch_up_not_above_carry", "/catchUpRate"},
		simple + `,"preferredReturnRate":0.08,"style":"american"`:                        {"inconsistent_input", "/style"},
		simple + `,"preferredReturnRate":0.08,"style":"asian"`:                           {"invalid_enum", "/style"},
		simple + `,"preferredReturnRate":0.08,"compounding":"daily"`:                     {"invalid_enum", "/compounding"},
		simple + `,"preferredReturnRate":0.08,` + events:                                 {"mutually_exclusive", "/contributedCapital"},
		events + `,"preferredReturnRate":0.08,"compounding":"monthly"`:                   {"invalid_enum", "/compounding"},
		events + `,"preferredReturnRate":0.08,"style":"american"`:                        {"missing_field", "/events/0/dealId"},
		simple + `,"hurdles":[{"rate":0.08,"carryRate":0.2}],"carryRate":0.2`:            {"mutually_exclusive", "/carryRate"},
		simple + `,"hurdles":[{"rate":0.08,"carryRate":0.2}],"preferredReturnRate":0.08`: {"mutually_exclusive", "/preferredReturnRate"},
		simple + `,"hurdles":[{"rate":0.08,"carryRate":0.2}],"catchUpRate":1`:            {"mutually_exclusive", "/catchUpRate"},
		simple + `,"hurdles":[]`: {"out_of_range", "/hurdles"},
		simple + `,"hurdles":[{"rate":0.08,"carryRate":0.2},{"rate":0.08,"carryRate":0.3}]`:                              {"inconsistent_input", "/hurdles/1/rate"},
		simple + `,"hurdles":[` + strings.Repeat(`{"rate":0.08,"carryRate":0.2},`, 6) + `{"rate":0.08,"carryRate":0.2}]`: {"too_many_items", "/hurdles"},
		`"contributedCapital":100.001,"distributableAmount":200,"holdingPeriodYears":1,"preferredReturnRate":0.08`:       {"out_of_range", "/contributedCapital"},
		`"contributedCapital":100,"distributableAmount":200.001,"holdingPeriodYears":1,"preferredReturnRate":0.08`:       {"out_of_range", "/distributableAmount"},
		`"preferredReturnRate":0.08,"events":[]`:                                                                                                                {"out_of_range", "/events"},
		`"preferredReturnRate":0.08,"events":[` + event + `]`:                                                                                                   {"out_of_range", "/events"},
		`"preferredReturnRate":0.08,"events":[` + strings.Repeat(event+",", 1000) + event + `]`:                                                                 {"too_many_items", "/events"},
		`"preferredReturnRate":0.08,"events":[` + event + `,{"date":"2020-02-30","type":"contribution","amount":1}]`:                                            {"invalid_date", "/events/1/date"},
		`"preferredReturnRate":0.08,"events":[` + event + `,{"date":"2020-02-28","type":"fee","amount":1}]`:                                                     {"invalid_enum", "/events/1/type"},
		`"preferredReturnRate":0.08,"events":[` + event + `,{"date":"2020-02-28","type":"contribution","amount":1.234}]`:                                        {"out_of_range", "/events/1/amount"},
		`"preferredReturnRate":0.08,"events":[` + event + `,{"date":"2020-02-28","type":"contribution","amount":1,"dealId":"` + strings.Repeat("é", 65) + `"}]`: {"too_long", "/events/1/dealId"},
		`"preferredReturnRate":0.08,"events":[` + event + `,{"date":"2020-02-28","type":"contribution","amount":1,"dealId":""}]`:                                {"out_of_range", "/events/1/dealId"},
		`"preferredReturnRate":0.08,"events":[` + strings.ReplaceAll(event+","+event, "contribution", "distribution") + `]`:                                     {"inconsistent_input", "/events"},
	} {
		refused(t, members, want[0], want[1])
	}
	long := strings.Replace(event, `"amount":1`, `"amount":1,"dealId":"`+strings.Repeat("é", 64)+`"`, 1)
	if out := ask(t, `"preferredReturnRate":0.08,"style":"american","events":[`+long+","+long+`]`); len(*out.Deals) != 1 {
		t.Error("a deal id of 64 characters")
	}
}

func TestProceedsOfOneEvent(t *testing.T) {
	in := waterfall.Input{PreferredReturnRate: ptr(0.08), Events: []waterfall.Event{{Date: "2020-01-01", Type: "contribution", Amount: 5}}}
	out, err := waterfall.Proceeds(in)
	if err != nil || out.UnreturnedCapital != 500 || out.TotalDistributed != 0 {
		t.Errorf("got %+v, %v", out, err)
	}
	if _, err := waterfall.Evaluate(in); err == nil {
		t.Error("one event is answered")
	}
}

func TestBoundsOfTheSchemaAreKept(t *testing.T) {
	n := policytest.Bounds(t, waterfall.Service,
		`{"contributedCapital":4000000,"distributableAmount":7500000,"preferredReturnRate":0.08,"holdingPeriodYears":4,"carryRate":0.2,"catchUpRate":0,"gpCommitmentRate":0.02}`,
		`{"contributedCapital":4000000,"distributableAmount":7500000,"holdingPeriodYears":4,"hurdles":[{"rate":0.05,"carryRate":0.2}]}`,
		`{"preferredReturnRate":0.08,"events":[{"date":"2020-01-01","type":"contribution","amount":100},{"date":"2021-01-01","type":"distribution","amount":200}]}`)
	if n != 20 {
		t.Errorf("%d limits tried", n)
	}
}

func FuzzEvaluate(f *testing.F) {
	policytest.FuzzPure(f, waterfall.Service,
		`{"style":"american","preferredReturnRate":0.08,"events":[{"date":"2020-01-01","type":"contribution","amount":100,"dealId":"A"},{"date":"2021-01-01","type":"distribution","amount":200,"dealId":"B"}]}`,
		`{"contributedCapital":1,"distributableAmount":3,"holdingPeriodYears":2.5,"compounding":"monthly","hurdles":[{"rate":0.05,"carryRate":0.2},{"rate":0.5,"carryRate":0.3}]}`)
}

func BenchmarkThousandEventsSixHurdles(b *testing.B) {
	in := waterfall.Input{}
	for k := range 6 {
		in.Hurdles = append(in.Hurdles, waterfall.Hurdle{Rate: 0.05 * float64(k+1), CarryRate: 0.05 * float64(k+1)})
	}
	for i := range 1000 {
		e := waterfall.Event{Date: money.Day(10000 + i*i%7000).String(), Type: "contribution", Amount: 1000}
		if i%2 == 1 {
			e.Type, e.Amount = "distribution", 3000
		}
		in.Events = append(in.Events, e)
	}
	for b.Loop() {
		if _, err := waterfall.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSimple(b *testing.B) {
	in := waterfall.Input{ContributedCapital: ptr(4e6), DistributableAmount: ptr(7.5e6), PreferredReturnRate: ptr(0.08), HoldingPeriodYears: ptr(4.3)}
	for b.Loop() {
		if _, err := waterfall.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}
