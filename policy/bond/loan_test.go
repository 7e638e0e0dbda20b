package bond_test

import (
	"math"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/bond"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/money"
	"github.com/countersign/countersign/policy/policytest"
)

func (c loanCase) input() bond.Input {
	return bond.Input{Principal: &c.principal, AnnualRate: &c.rate, TermMonths: &c.months, BalloonAmount: &c.balloon,
		InterestOnlyMonths: &c.interestOnly, ExtraMonthlyPayment: &c.extra, UpfrontFees: &c.fees}
}

func TestLoansAgainstAnotherComputation(t *testing.T) {
	for _, tc := range loanCases {
		out := evaluate(t, tc.input())
		got := loanValues{out.MonthlyPayment.String(), out.UnroundedPayment, out.FinalPayment.String(), out.TotalPaid.String(),
			out.TotalInterest.String(), out.PaymentsCount, out.APR, out.EffectiveAnnualRate}
		within := cmp.Comparer(near)
		if diff := cmp.Diff(tc.want, got, within, cmp.AllowUnexported(loanValues{})); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.loanCase, diff)
		}
	}
}

func TestWorkedExampleOfALoan(t *testing.T) {
	a, err := bond.Service.Evaluate([]byte(`{"principal":18500,"annualRate":0.0649,"termMonths":36,"startDate":"2025-01-31"}`))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Mode             string           `json:"mode"`
		UnroundedPayment float64          `json:"unroundedPayment"`
		MonthlyPayment   float64          `json:"monthlyPayment"`
		FinalPayment     float64          `json:"finalPayment"`
		TotalPaid        float64          `json:"totalPaid"`
		TotalInterest    float64          `json:"totalInterest"`
		TotalPrincipal   float64          `json:"totalPrincipal"`
		Schedule         []map[string]any `json:"schedule"`
		Rest             map[string]any   `json:",inline"`
	}
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatal(err)
	}
	if got.UnroundedPayment != 566.922352453 || got.MonthlyPayment != 566.92 || got.FinalPayment != 566.98 ||
		got.TotalPaid != 20409.18 || got.TotalInterest != 1909.18 || got.TotalPrincipal != 18500 || got.Mode != "loan" {
		t.Errorf("got %+v", got)
	}
	first := map[string]any{"period": 1.0, "date": "2025-02-28", "payment": 566.92, "interest": 100.05, "principal": 466.87, "balance": 18033.13}
	if diff := cmp.Diff(first, got.Schedule[0]); diff != "" {
		t.Error(diff)
	}
	if got.Schedule[1]["date"] != "2025-03-31" || len(got.Schedule) != 36 || got.Schedule[35]["balance"] != 0.0 {
		t.Errorf("schedule %v", got.Schedule)
	}
	if _, there := got.Rest["cleanPrice"]; there {
		t.Error("a loan has no clean price")
	}
}

// In every schedule the rows and their sums agree to the cent, and the last balance is 0.
func TestSchedulesAddUpToTheCent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		principal := money.Cents(rapid.Int64Range(1, 1e11).Draw(t, "principal"))
		months := rapid.IntRange(1, 600).Draw(t, "months")
		tc := loanCase{
			principal: principal.Float(), rate: float64(rapid.IntRange(0, 20000).Draw(t, "rate")) / 1e4, months: months,
			balloon: money.Cents(rapid.Int64Range(0, int64(principal)-1).Draw(t, "balloon")).Float(), interestOnly: rapid.IntRange(0, months-1).Draw(t, "interestOnly"),
			extra: money.Cents(rapid.Int64Range(0, int64(principal)).Draw(t, "extra")).Float(),
			fees:  money.Cents(rapid.Int64Range(0, int64(principal)-1).Draw(t, "fees")).Float(),
		}
		out := evaluate(t, tc.input())
		balance, paid, interest, repaid := principal, money.Cents(0), money.Cents(0), money.Cents(0)
		for i, r := range out.Schedule {
			if r.Period != i+1 || r.Interest+r.Principal != r.Payment || r.Balance != balance-r.Principal || r.Principal < 0 || r.Balance < 0 {
				t.Fatalf("row %+v after balance %v", r, balance)
			}
			balance = r.Balance
			paid, interest, repaid = paid+r.Payment, interest+r.Interest, repaid+r.Principal
		}
		if balance != 0 || paid != out.TotalPaid || interest != out.TotalInterest || repaid != principal || out.TotalPrincipal != principal ||
			paid != interest+principal || out.PaymentsCount != len(out.Schedule) || out.PaymentsCount > months {
			t.Fatalf("paid %v, interest %v, repaid %v, balance %v of %+v", paid, interest, repaid, balance, out.Loan)
		}
		if out.APR < tc.rate-1e-9 || tc.fees == 0 && out.APR != tc.rate {
			t.Fatalf("apr %v below rate %v", out.APR, tc.rate)
		}
	})
}

// A longer term means lower payments and more interest. A higher rate means higher payments.
func TestPaymentsAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := loanCase{principal: 100000, rate: rapid.Float64Range(0.001, 1).Draw(t, "rate"), months: rapid.IntRange(1, 599).Draw(t, "months")}
		longer, dearer := a, a
		longer.months++
		dearer.rate += 0.01
		base, b, c := evaluate(t, a.input()), evaluate(t, longer.input()), evaluate(t, dearer.input())
		if b.UnroundedPayment > base.UnroundedPayment || b.TotalInterest < base.TotalInterest-money.Cents(a.months) || c.UnroundedPayment <= base.UnroundedPayment {
			t.Fatalf("%v, longer %v, dearer %v", base.UnroundedPayment, b.UnroundedPayment, c.UnroundedPayment)
		}
	})
}

func TestTinyRatesAreNoZeroDivision(t *testing.T) {
	for _, rate := range []float64{5e-324, 1e-30, 1.2e-17, 1.3e-17, 1.2e-11, 1e-6} {
		out := evaluate(t, loanCase{principal: 12000, rate: rate, months: 12}.input())
		want := 1000 + 12000*rate/12*13/24 // approximation of first order in the rate
		if math.Abs(out.UnroundedPayment-want) > 1e-8 || out.FinalPayment.String() != "1000" && rate < 1e-7 {
			t.Errorf("rate %v: payment %v, want %v, final %v", rate, out.UnroundedPayment, want, out.FinalPayment)
		}
	}
}

func TestScheduleOnRequest(t *testing.T) {
	in := loanCase{principal: 1000, rate: 0.05, months: 12}.input()
	with := evaluate(t, in)
	in.IncludeSchedule = ptr(false)
	without := evaluate(t, in)
	if len(with.Schedule) != 12 || without.Schedule == nil || len(without.Schedule) != 0 || without.TotalPaid != with.TotalPaid {
		t.Errorf("%d rows with, %d without", len(with.Schedule), len(without.Schedule))
	}
	if text, err := canon.Marshal(without); err != nil || len(text) == 0 {
		t.Error(err)
	}
}

func TestRefusalsOfALoan(t *testing.T) {
	for members, want := range map[string][2]string{
		`"annualRate":0.05,"termMonths":12,"mode":"loan"`:                                                            {"missing_field", "/principal"},
		`"principal":100,"termMonths":12`:                                                                            {"missing_field", "/annualRate"},
		`"principal":100,"annualRate":0.05`:                                                                          {"missing_field", "/termMonths"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"mode":"bond"`:                                            {"inconsistent_input", "/mode"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"mode":"lease"`:                                           {"invalid_enum", "/mode"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"couponRate":0.05`:                                        {"mutually_exclusive", "/couponRate"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"cleanPrice":99`:                                          {"mutually_exclusive", "/cleanPrice"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"couponSteps":[{"fromDate":"2025-01-01","couponRate":0}]`: {"mutually_exclusive", "/couponSteps"},
		`"principal":100.001,"annualRate":0.05,"termMonths":12`:                                                      {"out_of_range", "/principal"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"balloonAmount":100`:                                      {"out_of_range", "/balloonAmount"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"balloonAmount":0.001`:                                    {"out_of_range", "/balloonAmount"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"interestOnlyMonths":12`:                                  {"out_of_range", "/interestOnlyMonths"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"upfrontFees":100`:                                        {"out_of_range", "/upfrontFees"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"extraMonthlyPayment":0.001`:                              {"out_of_range", "/extraMonthlyPayment"},
		`"principal":100,"annualRate":0.05,"termMonths":12,"startDate":"2025-02-29"`:                                 {"invalid_date", "/startDate"},
		`"principal":100,"annualRate":0.05,"termMonths":12.5`:                                                        {"wrong_type", "/termMonths"},
		`"principal":1e12,"annualRate":2,"termMonths":600,"interestOnlyMonths":599`:                                  {"out_of_range", ""},
	} {
		refused(t, "{"+members+"}", want[0], want[1])
	}
}

func TestFindingsOfALoan(t *testing.T) {
	for _, tc := range []struct {
		loanCase
		want []string
	}{
		{loanCase{principal: 1000, rate: 0.05, months: 12}, []string{}},
		{loanCase{principal: 1000, rate: 0.05, months: 12, balloon: 500}, []string{"balloon_payment"}},
		{loanCase{principal: 1000, rate: 0.36, months: 12}, []string{}},
		{loanCase{principal: 1000, rate: 0.3601, months: 12}, []string{"high_rate"}},
		{loanCase{principal: 1000, rate: 0.05, months: 12, extra: 50}, []string{"early_payoff"}},
		{loanCase{principal: 1200, rate: 0, months: 12}, []string{"zero_rate"}},
	} {
		if got := policytest.IDs(evaluate(t, tc.input()).Findings); !cmp.Equal(got, tc.want) {
			t.Errorf("%+v: got %v, want %v", tc.loanCase, got, tc.want)
		}
	}
}

func BenchmarkLoan600Months(b *testing.B) {
	in := loanCase{principal: 350000, rate: 0.06493827, months: 600, fees: 4200}.input()
	for b.Loop() {
		if _, err := bond.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkYieldOf30Years(b *testing.B) {
	in := bondCases[0].input()
	in.MaturityDate, in.YieldToMaturity, in.CleanPrice = ptr("2055-05-15"), nil, ptr(93.5)
	for b.Loop() {
		if _, err := bond.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}
