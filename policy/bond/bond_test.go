package bond_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/bond"
	"github.com/countersign/countersign/policy/money"
	"github.com/countersign/countersign/policy/policytest"
)

func ptr[T any](x T) *T { return &x }

func (c bondCase) input() bond.Input {
	in := bond.Input{
		FaceValue: &c.face, CouponRate: &c.coupon, Frequency: &c.frequency, DayCount: &c.dayCount,
		SettlementDate: &c.settlement, MaturityDate: &c.maturity, YieldToMaturity: &c.yield,
		CouponSteps: c.steps, Amortization: c.amortization, CallSchedule: c.calls,
	}
	if c.redemption != 0 {
		in.Redemption = &c.redemption
	}
	if c.want.coupons == 1 {
		in.LastPeriod = ptr("compound")
	}
	return in
}

func evaluate(t policytest.TB, in bond.Input) bond.Output {
	t.Helper()
	return policytest.Must(t, bond.Evaluate, in)
}

// near reports whether two numbers agree to 12 digits. The last digit may differ by one.
func near(got, want float64) bool { return math.Abs(got-want) <= 1.2e-11*math.Abs(want) }

func ExampleEvaluate() {
	// the example of PRICE in the Excel manual, which gives 94.63436
	settlement, maturity, dayCount := "2008-02-15", "2017-11-15", "30/360-US"
	coupon, yield := 0.0575, 0.065
	out, err := bond.Evaluate(bond.Input{
		SettlementDate: &settlement, MaturityDate: &maturity, DayCount: &dayCount, CouponRate: &coupon, YieldToMaturity: &yield,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("clean %.5f accrued %.4f %s\n", out.CleanPrice, out.AccruedInterest, out.PriceType)

	principal, rate, months := 18500.0, 0.0649, 36
	out, err = bond.Evaluate(bond.Input{Principal: &principal, AnnualRate: &rate, TermMonths: &months})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("monthly", out.MonthlyPayment, "final", out.FinalPayment, "interest", out.TotalInterest)
	// Output:
	// clean 94.63436 accrued 1.4375 discount
	// monthly 566.92 final 566.98 interest 1909.18
}

func TestBondsAgainstAnotherComputation(t *testing.T) {
	for _, tc := range bondCases {
		out := evaluate(t, tc.input())
		w := tc.want
		for name, pair := range map[string][2]float64{
			"dirty": {out.DirtyPrice, w.dirty}, "clean": {out.CleanPrice, w.clean}, "accrued": {out.AccruedInterest, w.accrued},
			"macaulay": {out.MacaulayDuration, w.macaulay}, "modified": {out.ModifiedDuration, w.modified},
			"convexity": {out.Convexity, w.convexity}, "dv01": {out.DV01, w.dv01}, "current": {*out.CurrentYield, w.currentYield},
			"effective": {out.EffectiveAnnualYield, w.effective}, "days": {*out.DaysAccrued, w.days}, "period": {*out.DaysInPeriod, w.period},
			"coupons": {float64(out.CouponsRemaining), float64(w.coupons)}, "yield": {out.YieldToMaturity, tc.yield},
		} {
			if !near(pair[0], pair[1]) {
				t.Errorf("%s %s %s: got %v, want %v", tc.dayCount, tc.maturity, name, pair[0], pair[1])
			}
		}
		if *out.PreviousCouponDate != w.previous || *out.NextCouponDate != w.next {
			t.Errorf("%s: coupons %s and %s, want %s and %s", tc.maturity, *out.PreviousCouponDate, *out.NextCouponDate, w.previous, w.next)
		}
	}
}

// The service gives the example of the contract, digit by digit.
func TestWorkedExample(t *testing.T) {
	got := policytest.Members(t, bond.Service, bond.Service.Example)
	for name, want := range map[string]any{
		"mode": "bond", "accruedInterest": 0.0577445652174, "cleanPrice": 101.930858067, "dirtyPrice": 101.988602632,
		"couponsRemaining": 13.0, "macaulayDuration": 5.74245333887, "modifiedDuration": 5.63234107093,
		"convexity": 36.9933769398, "daysAccrued": 5.0, "daysInPeriod": 184.0, "priceType": "premium",
		"yieldToCall": nil, "yieldToWorst": nil, "worstDate": nil, "findings": []any{}, "service": "bond-analyze",
	} {
		value, there := got[name]
		if diff := cmp.Diff(want, value); diff != "" || !there {
			t.Errorf("%s there %v (-want +got):\n%s", name, there, diff)
		}
	}
	if _, there := got["monthlyPayment"]; there {
		t.Error("a bond has no monthly payment")
	}
}

// The examples of the Excel manual: DURATION of 8 % at 9 % from 2018-07-01 to 2048-01-01 is
// 10.9191453; MDURATION from 2008-01-01 to 2016-01-01 is 5.73567; YIELD of 5.75 % at 95.04287 from
// 2008-02-15 to 2016-11-15 is 6.5 %.
func TestSpreadsheetManualExamples(t *testing.T) {
	out := evaluate(t, bondCase{coupon: 0.08, frequency: 2, settlement: "2018-07-01", maturity: "2048-01-01", yield: 0.09, face: 100, dayCount: "ACT/ACT-ICMA"}.input())
	if math.Abs(out.MacaulayDuration-10.9191453) > 5e-8 {
		t.Errorf("duration %v", out.MacaulayDuration)
	}
	out = evaluate(t, bondCase{coupon: 0.08, frequency: 2, settlement: "2008-01-01", maturity: "2016-01-01", yield: 0.09, face: 100, dayCount: "ACT/ACT-ICMA"}.input())
	if math.Abs(out.ModifiedDuration-5.73567) > 5e-6 {
		t.Errorf("modified duration %v", out.ModifiedDuration)
	}
	in := bondCase{coupon: 0.0575, frequency: 2, settlement: "2008-02-15", maturity: "2016-11-15", face: 100, dayCount: "30/360-US"}.input()
	in.YieldToMaturity, in.CleanPrice = nil, ptr(95.04287)
	if out = evaluate(t, in); math.Abs(out.YieldToMaturity-0.065) > 1e-8 {
		t.Errorf("yield %v", out.YieldToMaturity)
	}
}

// The values are those of the Excel and LibreOffice manuals for ODDFPRICE, ODDFYIELD, ODDLPRICE
// and ODDLYIELD (support.microsoft.com, "ODDFPRICE function" and the others).
func TestIrregularCouponsOfTheSpreadsheetManuals(t *testing.T) {
	for members, want := range map[string]struct {
		member string
		value  float64
		within float64
	}{
		`"basis":1,"settlementDate":"2008-11-11","maturityDate":"2021-03-01","issueDate":"2008-10-15","firstCouponDate":"2009-03-01","couponRate":0.0785,"yieldToMaturity":0.0625`: {"cleanPrice", 113.597717474079, 5e-9},
		`"basis":0,"settlementDate":"2008-11-11","maturityDate":"2021-03-01","issueDate":"2008-10-15","firstCouponDate":"2009-03-01","couponRate":0.0575,"cleanPrice":84.5`:        {"yieldToMaturity", 0.0772455415972249, 5e-9},
		`"basis":0,"settlementDate":"2008-02-07","maturityDate":"2008-06-15","lastCouponDate":"2007-10-15","couponRate":0.0375,"yieldToMaturity":0.0405`:                           {"cleanPrice", 99.8782860147213, 5e-9},
		`"dayCount":"30/360","settlementDate":"2008-04-20","maturityDate":"2008-06-15","lastCouponDate":"2007-12-24","couponRate":0.0375,"cleanPrice":99.875`:                      {"yieldToMaturity", 0.0451922356291692, 5e-9},
	} {
		got := policytest.Members(t, bond.Service, "{"+members+"}")
		if value, _ := got[want.member].(float64); math.Abs(value-want.value) > want.within {
			t.Errorf("%s: %s %v, want %v", members, want.member, got[want.member], want.value)
		}
	}
}

// With one coupon left, SIFMA's formula 6 and PRICE of a spreadsheet use simple interest: (100 +
// C)/(1 + DSC/E*y/f) - C*A/E. The textbook case is an annual 4.2 % note that matures in half a
// year, at 5 %: (104.2)/(1 + 0.5*0.05) less half a coupon.
func TestLastPeriod(t *testing.T) {
	const members = `{"couponRate":0.05,"settlementDate":"2025-04-01","maturityDate":"2025-09-30","yieldToMaturity":0.3`
	price := func(more string) float64 {
		return policytest.Members(t, bond.Service, members+more+"}")["cleanPrice"].(float64)
	}
	if got, want := price(""), 102.5/(1+182.0/183*0.15)-2.5/183; !near(got, want) {
		t.Errorf("simple: %v, want %v", got, want)
	}
	if got, want := price(`,"lastPeriod":"compound"`), 102.5/math.Pow(1.15, 182.0/183)-2.5/183; !near(got, want) {
		t.Errorf("compound: %v, want %v", got, want)
	}
	half := `{"couponRate":0.042,"frequency":1,"yearsToMaturity":0.5,"yieldToMaturity":0.05}`
	if got, want := policytest.Members(t, bond.Service, half)["dirtyPrice"].(float64), 104.2/1.025; !near(got, want) {
		t.Errorf("half a year: %v, want %v", got, want)
	}
	// The yield of a price gives that price again. With a call on the next coupon date, the period
	// until then also has simple interest.
	back := policytest.Members(t, bond.Service, fmt.Sprintf(`{"couponRate":0.05,"settlementDate":"2025-04-01","maturityDate":"2025-09-30","cleanPrice":%v}`, price("")))
	if y := back["yieldToMaturity"].(float64); math.Abs(y-0.3) > 1e-11 {
		t.Errorf("yield %v", y)
	}
	called := policytest.Members(t, bond.Service, `{"couponRate":0.05,"settlementDate":"2025-04-01","maturityDate":"2030-09-30","dirtyPrice":100,"callSchedule":[{"date":"2025-09-30","price":100}]}`)
	if got, want := called["yieldToCall"].(float64), (102.5/100-1)/(182.0/183)*2; !near(got, want) {
		t.Errorf("yield to call %v, want %v", got, want)
	}
}

// A regular first or last coupon date in the request changes nothing. A long first period pays the
// sum of its parts. Aliases of a day count give the same result.
func TestIrregularAndRegularAgree(t *testing.T) {
	const plain = `"couponRate":0.04,"settlementDate":"2025-05-20","maturityDate":"2031-11-15","yieldToMaturity":0.03`
	same := func(a, b string) {
		t.Helper()
		x, y := policytest.Members(t, bond.Service, "{"+a+"}"), policytest.Members(t, bond.Service, "{"+b+"}")
		for _, m := range []map[string]any{x, y} {
			delete(m, "inputHash")
			delete(m, "outputHash")
		}
		if diff := cmp.Diff(x, y); diff != "" {
			t.Errorf("%s (-%s):\n%s", b, a, diff)
		}
	}
	same(plain, plain+`,"issueDate":"2025-05-15"`)
	same(plain, plain+`,"issueDate":"2021-11-15","firstCouponDate":"2022-05-15"`)
	same(plain, plain+`,"lastCouponDate":"2031-05-15"`)
	for alias, name := range map[string]string{"30/360": "30/360-US", "ACT/ACT": "ACT/ACT-ICMA", "ACT/365": "ACT/365F", "30U/360": "30/360-US", "0": "30/360-US", "1": "ACT/ACT-ICMA", "2": "ACT/360", "3": "ACT/365F", "4": "30E/360"} {
		same(plain+`,"dayCount":"`+name+`"`, plain+`,"dayCount":"`+alias+`"`)
		if len(alias) == 1 {
			same(plain+`,"dayCount":"`+name+`"`, plain+`,"basis":`+alias)
		}
	}
	out := policytest.Ask(t, bond.Evaluate, plain+`,"issueDate":"2025-03-15","firstCouponDate":"2025-11-15","dayCount":"30/360"`)
	if got := out.CashFlows[0].Coupon; !near(got, 2*(1+2.0/6)) { // the first period has eight months
		t.Errorf("long first coupon %v", got)
	}
	if got := out.AccruedInterest; !near(got, 2*65.0/180) || *out.PreviousCouponDate != "2025-03-15" || *out.NextCouponDate != "2025-11-15" {
		t.Errorf("accrued %v from %s to %s", got, *out.PreviousCouponDate, *out.NextCouponDate)
	}
}

func TestYieldToPut(t *testing.T) {
	got := policytest.Members(t, bond.Service, `{"couponRate":0.03,"settlementDate":"2025-05-15","maturityDate":"2035-05-15","cleanPrice":90,"putSchedule":[{"date":"2028-05-15","price":100}]}`)
	same := policytest.Members(t, bond.Service, `{"couponRate":0.03,"settlementDate":"2025-05-15","maturityDate":"2028-05-15","cleanPrice":90}`)
	if got["yieldToPut"] != same["yieldToMaturity"] || got["yieldToWorst"] != nil {
		t.Errorf("yield to put %v, of a bond to that day %v; worst %v", got["yieldToPut"], same["yieldToMaturity"], got["yieldToWorst"])
	}
}

func TestCallsAndWorst(t *testing.T) {
	tc := bondCases[len(bondCases)-1]
	out := evaluate(t, tc.input())
	if !near(*out.YieldToCall, tc.want.callYields[0]) {
		t.Errorf("yield to call %v, want %v", *out.YieldToCall, tc.want.callYields[0])
	}
	if !near(*out.YieldToWorst, tc.want.callYields[2]) || *out.WorstDate != "2029-05-15" {
		t.Errorf("worst %v on %s", *out.YieldToWorst, *out.WorstDate)
	}
	if !cmp.Equal(policytest.IDs(out.Findings), []string{"callable_below_worst"}) {
		t.Errorf("findings %v", out.Findings)
	}
	dear := bondCases[0].input()
	dear.CallSchedule = []bond.Call{{Date: "2029-05-15", Price: 1e6}}
	if out := evaluate(t, dear); out.YieldToCall == nil || *out.YieldToWorst != 0.0391 || *out.WorstDate != "2031-11-15" {
		t.Errorf("a call nobody makes: %+v", out.Bond)
	}
	never := bondCases[0].input()
	never.CallSchedule = []bond.Call{{Date: "2025-11-15", Price: 1e12}}
	if out := evaluate(t, never); out.YieldToCall != nil || *out.YieldToWorst != 0.0391 {
		t.Errorf("a call without a yield: %+v", out.Bond)
	}
	// At par the yield to every call is the coupon rate. The earliest day is reported as the
	// worst.
	par := bondCase{coupon: 0.05, frequency: 2, settlement: "2025-03-31", maturity: "2035-09-30", yield: 0.05, face: 100, dayCount: "ACT/ACT-ICMA",
		calls: []bond.Call{{Date: "2027-03-31", Price: 100}, {Date: "2029-03-31", Price: 100}}}
	if out := evaluate(t, par.input()); *out.YieldToWorst != 0.05 || *out.WorstDate != "2027-03-31" {
		t.Errorf("worst %v on %s", *out.YieldToWorst, *out.WorstDate)
	}
}

func TestYearsToMaturity(t *testing.T) {
	for _, tc := range []struct {
		years         float64
		frequency     int
		coupons       int
		left, accrued float64
	}{
		{10, 2, 20, 1, 0}, {0.75, 2, 2, 0.5, 1.5}, {1.0 / 3, 12, 4, 1, 0}, {0.1, 1, 1, 0.1, 5.4}, {1e-12, 1, 1, 1e-12, 6},
		{2.5, 1, 3, 0.5, 3}, {100, 12, 1200, 1, 0}, {7.0 / 12 * 3, 4, 7, 1, 0},
	} {
		out := evaluate(t, bond.Input{CouponRate: ptr(0.06), Frequency: &tc.frequency, YearsToMaturity: &tc.years, YieldToMaturity: ptr(0.06)})
		if out.CouponsRemaining != tc.coupons || math.Abs(out.AccruedInterest-tc.accrued) > 1e-8 ||
			math.Abs(out.CashFlows[0].TimeYears*float64(tc.frequency)-tc.left) > 1e-8 {
			t.Errorf("%v years of %d: %d coupons, accrued %v, first after %v years", tc.years, tc.frequency,
				out.CouponsRemaining, out.AccruedInterest, out.CashFlows[0].TimeYears)
		}
		if out.PreviousCouponDate != nil || out.NextCouponDate != nil || out.DaysAccrued != nil || out.DaysInPeriod != nil || out.CashFlows[0].Date != nil {
			t.Error("dates without dates")
		}
	}
	// closed form: at par, on a coupon date, the price is the redemption
	out := evaluate(t, bond.Input{CouponRate: ptr(0.06), YearsToMaturity: ptr(10.0), YieldToMaturity: ptr(0.06)})
	if out.CleanPrice != 100 || out.PriceType != "par" || *out.CurrentYield != 0.06 {
		t.Errorf("par bond: %+v", out.Bond)
	}
	// closed form of the Macaulay duration at par: (1+y)/y*(1-(1+y)^-n)
	y := 0.03
	if want := (1 + y) / y * (1 - math.Pow(1+y, -20)) / 2; !near(out.MacaulayDuration, want) {
		t.Errorf("duration %v, want %v", out.MacaulayDuration, want)
	}
}

func TestCouponDatesDoNotDrift(t *testing.T) {
	for _, tc := range []struct {
		maturity  string
		frequency int
		want      string
	}{
		{"2030-08-30", 2, "2025-02-28 2025-08-30 2026-02-28 2026-08-30 2027-02-28 2027-08-30 2028-02-29"},
		{"2030-02-28", 2, "2025-02-28 2025-08-31 2026-02-28 2026-08-31 2027-02-28 2027-08-31 2028-02-29"},
		{"2030-03-31", 12, "2025-01-31 2025-02-28 2025-03-31 2025-04-30 2025-05-31 2025-06-30 2025-07-31"},
		{"2030-02-28", 1, "2025-02-28 2026-02-28 2027-02-28 2028-02-29 2029-02-28 2030-02-28"},
	} {
		out := evaluate(t, bondCase{coupon: 0.05, frequency: tc.frequency, settlement: "2025-01-15", maturity: tc.maturity, yield: 0.04, face: 100, dayCount: "ACT/ACT-ICMA"}.input())
		var dates []string
		for _, f := range out.CashFlows[:min(7, len(out.CashFlows))] {
			dates = append(dates, *f.Date)
		}
		if got := strings.Join(dates, " "); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.maturity, got, tc.want)
		}
	}
}

func drawBond(t *rapid.T) bondCase {
	settlement := money.Day(rapid.IntRange(0, 20000).Draw(t, "settlement"))
	return bondCase{
		dayCount:   rapid.SampledFrom([]string{"ACT/ACT-ICMA", "30/360-US", "30E/360", "ACT/360", "ACT/365F"}).Draw(t, "dayCount"),
		coupon:     rapid.Float64Range(0, 0.15).Draw(t, "coupon"),
		frequency:  rapid.SampledFrom([]int{1, 2, 4, 12}).Draw(t, "frequency"),
		settlement: settlement.String(),
		maturity:   (settlement + money.Day(rapid.IntRange(1, 12000).Draw(t, "days"))).String(),
		yield:      rapid.Float64Range(-0.02, 0.3).Draw(t, "yield"),
		face:       100,
	}
}

func TestYieldInvertsPrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tc := drawBond(t)
		out := evaluate(t, tc.input())
		for _, clean := range []bool{true, false} {
			in := tc.input()
			in.YieldToMaturity, in.DirtyPrice = nil, &out.DirtyPrice
			if clean {
				in.DirtyPrice, in.CleanPrice = nil, &out.CleanPrice
			}
			if out.CleanPrice <= 0 {
				continue
			}
			if out.ModifiedDuration == 0 { // no day left; see TestNoDayLeft
				continue
			}
			back := evaluate(t, in)
			// The price has twelve digits, so the yield has an error of about 1e-12/duration.
			tolerance := 1e-11*math.Max(1, out.DirtyPrice/out.CleanPrice)/math.Max(out.ModifiedDuration, 1e-3) + 1e-12
			if math.Abs(back.YieldToMaturity-tc.yield) > tolerance {
				t.Fatalf("yield %v came back as %v", tc.yield, back.YieldToMaturity)
			}
		}
	})
}

// 30/360 counts no day from the 30th to the 31st. Then every yield gives the same price, and a
// price gives no yield.
func TestNoDayLeft(t *testing.T) {
	body := `{"couponRate":0.15,"frequency":1,"settlementDate":"1970-01-30","maturityDate":"1970-01-31","dayCount":"30/360-US",`
	for _, yield := range []string{"-0.02", "0.3"} {
		result, err := bond.Service.Evaluate([]byte(body + `"yieldToMaturity":` + yield + "}"))
		if err != nil || !strings.Contains(string(result.Body), `"dirtyPrice":115,`) {
			t.Errorf("at %s: %s (%v)", yield, result.Body, err)
		}
	}
	refused(t, body+`"dirtyPrice":115}`, "yield_not_found", "/dirtyPrice")
	refused(t, body+`"cleanPrice":100}`, "yield_not_found", "/cleanPrice")
}

// 30E/360 counts 181 days from 28 February to 29 August, one more than a half-year has. The last
// flow must not get a negative time.
func TestLastFlowIsNotPast(t *testing.T) {
	out := evaluate(t, bondCase{coupon: 0.1, frequency: 2, settlement: "2010-08-29", maturity: "2010-08-30", yield: 0.3, face: 100, dayCount: "30E/360"}.input())
	if out.DirtyPrice != 105 || out.MacaulayDuration != 0 || *out.DaysAccrued != 181 {
		t.Errorf("price %v, duration %v, %v days", out.DirtyPrice, out.MacaulayDuration, *out.DaysAccrued)
	}
}

// Modified duration is minus the relative slope of the price, and convexity its relative
// curvature. The present values of the flows add up to the price. Accrued interest is not
// negative. A higher yield means a lower price.
func TestDurationIsTheDerivative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tc := drawBond(t)
		out := evaluate(t, tc.input())
		h := 1e-4
		price := func(y float64) float64 {
			c := tc
			c.yield = y
			return evaluate(t, c.input()).DirtyPrice
		}
		up, down := price(tc.yield+h), price(tc.yield-h)
		duration := (down - up) / (2 * h) / out.DirtyPrice
		curvature := (up - 2*out.DirtyPrice + down) / (h * h) / out.DirtyPrice
		if math.Abs(duration-out.ModifiedDuration) > 1e-4*(1+out.ModifiedDuration) || up > out.DirtyPrice+1e-9 {
			t.Fatalf("duration %v, slope %v", out.ModifiedDuration, duration)
		}
		if math.Abs(curvature-out.Convexity) > 5e-3*(1+out.Convexity) {
			t.Fatalf("convexity %v, curvature %v", out.Convexity, curvature)
		}
		sum := 0.0
		for _, f := range out.CashFlows {
			sum += f.PresentValue
		}
		if math.Abs(sum-out.DirtyPrice) > 1e-9*out.DirtyPrice || out.AccruedInterest < 0 {
			t.Fatalf("flows are worth %v, price %v, accrued %v", sum, out.DirtyPrice, out.AccruedInterest)
		}
	})
}

func refused(t *testing.T, body, code, path string) {
	t.Helper()
	_, err := bond.Service.Evaluate([]byte(body))
	policytest.Refused(t, body, err, code, path)
}

func TestRefusalsOfABond(t *testing.T) {
	dates := `"couponRate":0.05,"settlementDate":"2025-05-20","maturityDate":"2031-11-15","yieldToMaturity":0.04`
	for members, want := range map[string][2]string{
		`"couponRate":0.05,"yearsToMaturity":5`:                                                                                                     {"missing_field", "/yieldToMaturity"},
		`"yearsToMaturity":5,"yieldToMaturity":0.05`:                                                                                                {"missing_field", "/couponRate"},
		`"couponRate":0.05,"yieldToMaturity":0.05`:                                                                                                  {"missing_field", "/settlementDate"},
		`"couponRate":0.05,"yieldToMaturity":0.05,"settlementDate":"2025-05-20"`:                                                                    {"missing_field", "/maturityDate"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"cleanPrice":99`:                                                              {"mutually_exclusive", "/cleanPrice"},
		`"couponRate":0.05,"yearsToMaturity":5,"dirtyPrice":99,"cleanPrice":99`:                                                                     {"mutually_exclusive", "/dirtyPrice"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"frequency":3`:                                                                {"invalid_enum", "/frequency"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":-1.98`:                                                                             {"out_of_range", "/yieldToMaturity"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"mode":"swap"`:                                                                {"invalid_enum", "/mode"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"mode":"loan"`:                                                                {"missing_field", "/principal"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"annualRate":0.05`:                                                            {"mutually_exclusive", "/annualRate"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"dayCount":"30E/360"`:                                                         {"mutually_exclusive", "/dayCount"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"maturityDate":"2031-11-15"`:                                                  {"mutually_exclusive", "/maturityDate"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"callSchedule":[{"date":"2031-11-15","price":100}]`:                           {"mutually_exclusive", "/callSchedule"},
		`"couponRate":0.05,"yearsToMaturity":1,"cleanPrice":1e12`:                                                                                   {"yield_not_found", "/cleanPrice"},
		`"couponRate":0.05,"yearsToMaturity":5,"dirtyPrice":1e-9`:                                                                                   {"yield_not_found", "/dirtyPrice"},
		`"couponRate":0,"yearsToMaturity":100,"frequency":12,"yieldToMaturity":-11.8`:                                                               {"out_of_range", ""},
		dates + `,"dayCount":"30/365"`:                                                                                                              {"invalid_enum", "/dayCount"},
		dates + `,"redemption":100,"amortization":[{"date":"2027-11-15","amount":1}]`:                                                               {"mutually_exclusive", "/redemption"},
		dates + `,"amortization":[{"date":"2027-11-15","amount":60},{"date":"2028-11-15","amount":40}]`:                                             {"inconsistent_input", "/amortization"},
		dates + `,"amortization":[{"date":"2027-11-15","amount":6},{"date":"2027-11-15","amount":4}]`:                                               {"inconsistent_input", "/amortization/1/date"},
		dates + `,"amortization":[{"date":"2031-11-15","amount":6}]`:                                                                                {"inconsistent_input", "/amortization/0/date"},
		dates + `,"couponSteps":[{"fromDate":"2027-11-16","couponRate":0.06}]`:                                                                      {"inconsistent_input", "/couponSteps/0/fromDate"},
		dates + `,"couponSteps":[{"fromDate":"2027-12-15","couponRate":0.06}]`:                                                                      {"inconsistent_input", "/couponSteps/0/fromDate"},
		dates + `,"couponSteps":[{"fromDate":"2027-11-31","couponRate":0.06}]`:                                                                      {"invalid_date", "/couponSteps/0/fromDate"},
		dates + `,"callSchedule":[{"date":"2025-05-15","price":100}]`:                                                                               {"inconsistent_input", "/callSchedule/0/date"},
		dates + `,"callSchedule":[{"date":"2025-11-15","price":0}]`:                                                                                 {"out_of_range", "/callSchedule/0/price"},
		dates + `,"callSchedule":[` + strings.Repeat(`{"date":"2025-11-15","price":100},`, 100) + `{"date":"2025-11-15","price":100}]`:              {"too_many_items", "/callSchedule"},
		dates + `,"couponSteps":[` + strings.Repeat(`{"fromDate":"2025-11-15","couponRate":0},`, 100) + `{"fromDate":"2025-11-15","couponRate":0}]`: {"too_many_items", "/couponSteps"},
		dates + `,"amortization":[` + strings.Repeat(`{"date":"2025-11-15","amount":1},`, 400) + `{"date":"2025-11-15","amount":1}]`:                {"too_many_items", "/amortization"},
		dates + `,"dayCount":"30/360","basis":0`:                                                                                                    {"mutually_exclusive", "/dayCount"},
		dates + `,"basis":5`:                                                                                                                        {"invalid_enum", "/basis"},
		dates + `,"lastPeriod":"linear"`:                                                                                                            {"invalid_enum", "/lastPeriod"},
		dates + `,"issueDate":"2025-05-21"`:                                                                                                         {"inconsistent_input", "/issueDate"},
		dates + `,"firstCouponDate":"2025-11-15"`:                                                                                                   {"missing_field", "/issueDate"},
		dates + `,"issueDate":"2025-01-15","firstCouponDate":"2025-11-16"`:                                                                          {"inconsistent_input", "/firstCouponDate"},
		dates + `,"issueDate":"2025-01-15","firstCouponDate":"2025-01-15"`:                                                                          {"inconsistent_input", "/firstCouponDate"},
		dates + `,"lastCouponDate":"2031-11-15"`:                                                                                                    {"inconsistent_input", "/lastCouponDate"},
		dates + `,"lastCouponDate":"2025-01-15","issueDate":"2025-02-15"`:                                                                           {"inconsistent_input", "/issueDate"},
		dates + `,"putSchedule":[{"date":"2025-05-15","price":100}]`:                                                                                {"inconsistent_input", "/putSchedule/0/date"},
		`"couponRate":0.05,"yearsToMaturity":5,"yieldToMaturity":0.05,"basis":1`:                                                                    {"mutually_exclusive", "/basis"},
		`"couponRate":0.05,"settlementDate":"2031-11-15","maturityDate":"2031-11-15","yieldToMaturity":0.04`:                                        {"inconsistent_input", "/settlementDate"},
		`"couponRate":0.05,"settlementDate":"2031-11-31","maturityDate":"2031-11-15","yieldToMaturity":0.04`:                                        {"invalid_date", "/settlementDate"},
	} {
		refused(t, "{"+members+"}", want[0], want[1])
	}
}

func TestBoundsOfTheSchemaAreKept(t *testing.T) {
	n := policytest.Bounds(t, bond.Service,
		`{"faceValue":100,"couponRate":0.04,"settlementDate":"2025-05-20","maturityDate":"2031-11-15","yieldToMaturity":0.04,"redemption":101,
		  "couponSteps":[{"fromDate":"2027-11-15","couponRate":0.06}],"callSchedule":[{"date":"2027-11-15","price":102}]}`,
		`{"faceValue":100,"couponRate":0.04,"settlementDate":"2025-05-20","maturityDate":"2031-11-15","cleanPrice":99,"amortization":[{"date":"2027-11-15","amount":6}]}`,
		`{"couponRate":0.04,"yearsToMaturity":5,"dirtyPrice":99}`,
		`{"principal":1000,"annualRate":0.05,"termMonths":12,"balloonAmount":10,"interestOnlyMonths":1,"extraMonthlyPayment":1,"upfrontFees":2}`)
	if n != 30 {
		t.Errorf("%d limits tried", n)
	}
}

func TestFindingsOfABond(t *testing.T) {
	for id, members := range map[string]string{
		"negative_yield":   `"couponRate":0.01,"yearsToMaturity":5,"yieldToMaturity":-0.001`,
		"distressed_price": `"couponRate":0.05,"yearsToMaturity":20,"cleanPrice":39.9`,
		"long_duration":    `"couponRate":0.01,"yearsToMaturity":20,"yieldToMaturity":0.01`,
		"zero_coupon":      `"couponRate":0,"yearsToMaturity":5,"yieldToMaturity":0.03`,
	} {
		var in bond.Input
		if err := json.Unmarshal([]byte("{"+members+"}"), &in); err != nil {
			t.Fatal(err)
		}
		if got := policytest.IDs(evaluate(t, in).Findings); !cmp.Equal(got, []string{id}) {
			t.Errorf("%s: got %v", id, got)
		}
	}
	in := bond.Input{CouponRate: ptr(0.05), YearsToMaturity: ptr(5.0), YieldToMaturity: ptr(0.2501)}
	if got := policytest.IDs(evaluate(t, in).Findings); !cmp.Equal(got, []string{"distressed_price"}) {
		t.Errorf("high yield: got %v", got)
	}
	// With a dirty price below the accrued interest the clean price is negative, so there is no
	// current yield.
	in = bond.Input{CouponRate: ptr(1.0), Frequency: ptr(1), YearsToMaturity: ptr(1.5), DirtyPrice: ptr(40.0)}
	if out := evaluate(t, in); out.CleanPrice >= 0 || out.CurrentYield != nil {
		t.Errorf("current yield %v of clean price %v", out.CurrentYield, out.CleanPrice)
	}
}

// A price for a face value of 1,000 with a face value of 100 makes a finding, and so does a coupon
// rate in percent.
func TestSuspiciousNumbersOfABond(t *testing.T) {
	for members, want := range map[string]string{
		`"couponRate":0.05,"yearsToMaturity":30,"cleanPrice":1019`:        "price_far_above_par",
		`"couponRate":0.75,"yearsToMaturity":30,"yieldToMaturity":0.0725`: "rate_looks_like_percent",
	} {
		if got := policytest.IDs(policytest.Ask(t, bond.Evaluate, members).Findings); !slices.Contains(got, want) {
			t.Errorf("%s: %v", members, got)
		}
	}
}

// A stepped bond without coupons before its step is not a zero-coupon bond. A step applies to the
// period that starts on its day.
func TestStepsApplyFromTheirPeriod(t *testing.T) {
	tc := bondCase{coupon: 0, frequency: 2, settlement: "2025-05-20", maturity: "2027-05-15", yield: 0.04, face: 100, dayCount: "ACT/ACT-ICMA",
		steps: []bond.CouponStep{{FromDate: "2026-05-15", CouponRate: 0.06}}}
	out := evaluate(t, tc.input())
	var coupons []float64
	for _, f := range out.CashFlows {
		coupons = append(coupons, f.Coupon)
	}
	if !cmp.Equal(coupons, []float64{0, 0, 3, 3}) || len(out.Findings) != 0 {
		t.Errorf("coupons %v, findings %v", coupons, out.Findings)
	}
}

func FuzzEvaluate(f *testing.F) {
	policytest.FuzzPure(f, bond.Service,
		`{"principal":18500,"annualRate":0.0649,"termMonths":36,"startDate":"2025-01-31","balloonAmount":10,"interestOnlyMonths":3,"upfrontFees":2,"extraMonthlyPayment":1}`,
		`{"couponRate":0.04,"settlementDate":"2025-05-20","maturityDate":"2031-11-15","cleanPrice":99,"amortization":[{"date":"2027-11-15","amount":6}],"callSchedule":[{"date":"2027-11-15","price":102}]}`,
		`{"couponRate":1,"yearsToMaturity":100,"frequency":12,"dirtyPrice":1e-9}`)
}
