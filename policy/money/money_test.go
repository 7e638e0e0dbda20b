package money_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/money"
)

func ExampleCents_Times() {
	balance, _ := money.FromNumber(18500)
	interest := balance.Times(new(big.Rat).Quo(money.Exact(0.0649), big.NewRat(12, 1)))
	fmt.Println(interest) // 18500 * 0.0649 / 12 = 100.05416...
	// Output: 100.05
}

func TestAmountsReadFromNumbers(t *testing.T) {
	for _, tc := range []struct {
		in   float64
		want money.Cents
		ok   bool
	}{
		{0, 0, true},
		{0.01, 1, true},
		{-0.01, -1, true},
		{math.Nextafter(0.3, 1), 0, false}, // 0.30000000000000004, the result of 0.1+0.2
		{566.92, 56692, true},
		{1e12, 1e14, true},
		{999999999999.99, 99999999999999, true},
		{70368744177664, money.MaxCents, true},
		{70368744177664.02, 0, false},
		{0.001, 0, false},
		{1.005, 0, false},
		{5e-324, 0, false},
		{math.NaN(), 0, false},
		{math.Inf(1), 0, false},
		{math.Inf(-1), 0, false},
	} {
		if got, ok := money.FromNumber(tc.in); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%v: got %v %v, want %v %v", tc.in, got, ok, tc.want, tc.ok)
		}
	}
}

func TestRoundingIsHalfToEven(t *testing.T) {
	for text, want := range map[string]string{
		"0.125": "0.12", "0.135": "0.14", "0.115": "0.12", "-0.125": "-0.12", "-0.135": "-0.14",
		"0.12500000000001": "0.13", "0.005": "0", "0.015": "0.02", "-0.005": "0", "-0.0051": "-0.01",
		"1.995": "2", "2.675": "2.68", "1/3": "0.33", "-2/3": "-0.67", "100": "100", "-7.5": "-7.5",
	} {
		r, _ := new(big.Rat).SetString(text)
		if got := money.Round(r).String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestAmountsStopAtOverflow(t *testing.T) {
	huge := money.Exact(1e300)
	if got := money.Cents(1).Times(huge); got != money.Overflow {
		t.Error(got)
	}
	if got := money.Cents(-1).Times(huge); got != -money.Overflow {
		t.Error(got)
	}
	if got := money.Overflow.Plus(money.Overflow); got != money.Overflow {
		t.Error(got)
	}
	if got := (-money.Overflow).Plus(-1); got != -money.Overflow {
		t.Error(got)
	}
	if money.Overflow.Reportable() || !money.MaxCents.Reportable() || (money.MaxCents + 1).Reportable() {
		t.Error("reportable beyond MaxCents")
	}
}

// An amount that is written as canonical JSON and parsed again is the same amount, up to MaxCents.
func TestAmountsSurviveCanonicalJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := money.Cents(rapid.Int64Range(-int64(money.MaxCents), int64(money.MaxCents)).Draw(t, "cents"))
		text, err := canon.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		x, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			t.Fatal(err)
		}
		back, ok := money.FromNumber(x)
		if !ok || back != c || string(text) != c.String() {
			t.Fatalf("%d printed as %s, %s; back as %d", c, c, text, back)
		}
		if x != c.Float() && math.Abs(x-c.Float()) > 1e-2 {
			t.Fatalf("%v is not %v", c.Float(), x)
		}
	})
}

func TestTimesIsTheNearestCent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := money.Cents(rapid.Int64Range(-1e12, 1e12).Draw(t, "cents"))
		r := big.NewRat(rapid.Int64Range(-1e6, 1e6).Draw(t, "n"), rapid.Int64Range(1, 1e6).Draw(t, "d"))
		exact := new(big.Rat).Mul(big.NewRat(int64(c), 1), r)
		off := exact.Sub(exact, new(big.Rat).SetInt64(int64(c.Times(r))))
		if off.Abs(off).Cmp(big.NewRat(1, 2)) > 0 {
			t.Fatalf("%v cents off", off)
		}
	})
}

func TestAmountSchemaIsThatOfANumber(t *testing.T) {
	if _, ok := money.Cents(0).JSONSchemaAlias().(float64); !ok {
		t.Error("an amount is a number in JSON")
	}
	text, err := json.Marshal([]money.Cents{0, 5, -5, 10, 123456, -100})
	if err != nil || string(text) != "[0,0.05,-0.05,0.1,1234.56,-1]" {
		t.Error(string(text), err)
	}
}

func TestNumbersHaveTwelveDigitsOrAreNull(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 9007199254740992, -1e300} {
		if money.Number(x) != nil {
			t.Errorf("%v is reported", x)
		}
	}
	for in, want := range map[float64]float64{
		1.0 / 3: 0.333333333333, 9007199254740991: 9007199254740000, math.Copysign(0, -1): 0, 5e-324: 5e-324,
	} {
		if got := money.Number(in); got == nil || *got != want || math.Signbit(*got) != math.Signbit(want) {
			t.Errorf("%v: got %v, want %v", in, got, want)
		}
		if _, err := canon.Marshal(money.Number(in)); err != nil {
			t.Errorf("%v: %v", in, err)
		}
	}
}

func TestReportsRefuseWhatTheyCannotPrint(t *testing.T) {
	var r money.Report
	if r.Number(1.0/3) != 0.333333333333 || r.Err() != nil {
		t.Error("a good number is refused")
	}
	r.Number(math.NaN())
	r.Number(1)
	var refusal *policy.Error
	if !errors.As(r.Err(), &refusal) || refusal.Code != "out_of_range" {
		t.Errorf("got %+v", refusal)
	}
}

func TestDays(t *testing.T) {
	for text, ok := range map[string]bool{
		"1900-01-01": true, "2199-12-31": true, "1899-12-31": false, "2200-01-01": false,
		"2024-02-29": true, "2023-02-29": false, "1900-02-29": false, "2000-02-29": true,
		"2025-1-01": false, "2025-01-01T00:00:00Z": false, "": false, " 2025-01-01": false,
		"2025-13-01": false, "2025-00-10": false, "20250101": false, "٢٠٢٥-01-01": false,
	} {
		day, got := money.ParseDay(text)
		if got != ok || ok && day.String() != text {
			t.Errorf("%s: got %v %v, want %v", text, day, got, ok)
		}
	}
}

// The test counts days by the Gregorian rule for leap years, not with package time, which ParseDay
// uses.
func TestDaysAreCountedByTheGregorianRule(t *testing.T) {
	months := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	day, _ := money.ParseDay("1900-01-01")
	for year := 1900; year <= 2199; year++ {
		for month, length := range months {
			if month == 1 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
				length++
			}
			want := fmt.Sprintf("%04d-%02d-%02d", year, month+1, length)
			last := day + money.Day(length-1)
			if last.String() != want || !last.MonthEnd() || length > 1 && (last-1).MonthEnd() {
				t.Fatalf("got %v, want %v, month end", last, want)
			}
			day += money.Day(length)
		}
	}
}

func TestMonthsAreClippedToTheirLength(t *testing.T) {
	for _, tc := range []struct {
		from string
		n    int
		want string
	}{
		{"2025-01-31", 1, "2025-02-28"}, {"2024-01-31", 1, "2024-02-29"}, {"2025-01-31", 2, "2025-03-31"},
		{"2025-03-31", -1, "2025-02-28"}, {"2025-12-15", 1, "2026-01-15"}, {"2025-01-15", -1, "2024-12-15"},
		{"2025-05-31", 600, "2075-05-31"}, {"2025-05-31", -25, "2023-04-30"},
	} {
		from, _ := money.ParseDay(tc.from)
		if got := from.AddMonths(tc.n).String(); got != tc.want {
			t.Errorf("%s plus %d months: got %s, want %s", tc.from, tc.n, got, tc.want)
		}
	}
}

func TestCheckKeepsTheFirstRefusal(t *testing.T) {
	var none money.Check
	none.Between("/a", 1, 1, 2)
	none.Above("/a", 2, 1, 2)
	none.Length("/a", 3, 3, 3)
	none.OneOf("/a", "x", "y", "x")
	if none.Amount("/a", 1.25) != 125 || none.Day("/a", "1970-01-02") != 1 || none.Err() != nil {
		t.Error("good values refused", none.Err())
	}
	for code, offend := range map[string]func(*money.Check){
		"out_of_range":       func(c *money.Check) { c.Between("/a", math.NaN(), 0, 1) },
		"invalid_date":       func(c *money.Check) { c.Day("/a", "x") },
		"too_many_items":     func(c *money.Check) { c.Length("/a", 4, 1, 3) },
		"invalid_enum":       func(c *money.Check) { c.OneOf("/a", "z", "x") },
		"missing_field":      func(c *money.Check) { c.Missing("/a") },
		"mutually_exclusive": func(c *money.Check) { c.Exclusive("/a", "b") },
	} {
		var c money.Check
		offend(&c)
		c.Above("/b", 0, 0, 1)
		var refusal *policy.Error
		if !errors.As(c.Err(), &refusal) || refusal.Code != code || refusal.Path != "/a" {
			t.Errorf("%s: got %+v", code, refusal)
		}
	}
	for _, offend := range []func(*money.Check){
		func(c *money.Check) { c.Above("/a", 1, 1, 2) },
		func(c *money.Check) { c.Length("/a", 0, 1, 3) },
		func(c *money.Check) { c.Amount("/a", 0.001) },
	} {
		var c money.Check
		offend(&c)
		var refusal *policy.Error
		if !errors.As(c.Err(), &refusal) || refusal.Code != "out_of_range" {
			t.Errorf("got %+v", refusal)
		}
	}
	if two := 2; money.Or(&two, 1) != 2 || money.Or(nil, 1) != 1 {
		t.Error("optional members")
	}
}

func FuzzParseDay(f *testing.F) {
	f.Add("2025-02-28")
	f.Fuzz(func(t *testing.T, text string) {
		if day, ok := money.ParseDay(text); ok && day.String() != text {
			t.Errorf("%q read as %v", text, day)
		}
	})
}

func FuzzFromNumber(f *testing.F) {
	f.Add(566.92)
	f.Fuzz(func(t *testing.T, x float64) {
		c, ok := money.FromNumber(x)
		if back, _ := strconv.ParseFloat(c.String(), 64); ok && back != x && x != 0 {
			t.Errorf("%v read as %v", x, c)
		}
	})
}

func TestGrowthIsExactWhereItEnds(t *testing.T) {
	for _, tc := range []struct {
		rate, periods float64
		want          string
	}{
		{0.08, 4, "36048896/100000000"}, {0.01, 1, "1/100"}, {0, 100, "0"}, {0.5, 0, "0"}, {1, 100, "1267650600228229401496703205375"},
		{0.0225, 0.5, "0.01118742080783417"}, // sqrt(1.0225) = 1.01118742...
	} {
		want, _ := new(big.Rat).SetString(tc.want)
		got := money.Growth(money.Exact(tc.rate), money.Exact(tc.periods))
		if off, _ := new(big.Rat).Sub(got, want).Float64(); math.Abs(off) > 1e-16 || tc.periods != 0.5 && got.Cmp(want) != 0 {
			t.Errorf("%v for %v: got %v, want %v", tc.rate, tc.periods, got, want)
		}
	}
}

// Growth over days equals growth over the same time in years. The factor of two consecutive times
// is the product of their factors.
func TestYearlyGrowth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := big.NewRat(rapid.Int64Range(0, 1000).Draw(t, "rate"), 1000)
		a, b := rapid.IntRange(0, 4000).Draw(t, "a"), rapid.IntRange(0, 4000).Draw(t, "b")
		y := money.NewYearly(rate)
		one := big.NewRat(1, 1)
		factor := func(days int) *big.Rat { return new(big.Rat).Add(one, y.Growth(days)) }
		product := new(big.Rat).Mul(factor(a), factor(b))
		other := new(big.Rat).Add(one, money.Growth(rate, big.NewRat(int64(a+b), 365)))
		for _, got := range []*big.Rat{product, other} {
			off, _ := new(big.Rat).Sub(new(big.Rat).Quo(got, factor(a+b)), one).Float64()
			if math.Abs(off) > 1e-45 {
				t.Fatalf("relative difference %v", off)
			}
		}
		want := math.Pow(1+float64(rate.Num().Int64())/float64(rate.Denom().Int64()), float64(a)/365)
		if got, _ := factor(a).Float64(); math.Abs(got/want-1) > 1e-12 {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
	if got := money.NewYearly(big.NewRat(8, 100)).Growth(4 * 365); got.Cmp(big.NewRat(36048896, 100000000)) != 0 {
		t.Error("four years at 8 % are not exact", got)
	}
}

func BenchmarkYearlyGrowth(b *testing.B) {
	y := money.NewYearly(big.NewRat(8, 100))
	for b.Loop() {
		y.Growth(1234)
	}
}

func BenchmarkGrowth(b *testing.B) {
	rate, years := big.NewRat(8, 100), big.NewRat(37, 10)
	for b.Loop() {
		money.Growth(rate, years)
	}
}

func TestSumsAreExact(t *testing.T) {
	var s money.Sum
	for _, x := range []float64{0.1, 0.2, -0.3, 1e15, 1e-30, -1e15} {
		s.Add(x)
	}
	if s.Float() != 1e-30 || s.Sign() != 1 {
		t.Errorf("got %v", s.Float())
	}
	s.Add(-1e-30)
	s.Add(math.NaN()) // not a number, so Add ignores it
	if s.Sign() != 0 || s.Float() != 0 {
		t.Errorf("got %v", s.Float())
	}
	var c money.Compensated
	for _, x := range []float64{1, 1e100, 1, -1e100} {
		c.Add(x)
	}
	if c.Float() != 2 {
		t.Errorf("compensated %v", c.Float())
	}
}

// The sum equals the sum of the same decimals as fractions, for any size and order.
func TestSumsAgreeWithFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s money.Sum
		want := new(big.Rat)
		number := rapid.OneOf(rapid.Float64Range(-1e15, 1e15),
			rapid.Map(rapid.Int64Range(-1e14, 1e14), func(n int64) float64 { return float64(n) / 1e4 }))
		for _, x := range rapid.SliceOf(number).Draw(t, "numbers") {
			s.Add(x)
			want.Add(want, money.Exact(x))
			if s.Sign() != want.Sign() {
				t.Fatalf("sign %d of %v", s.Sign(), want)
			}
		}
		if f, _ := want.Float64(); s.Float() != f {
			t.Fatalf("got %v, want %v", s.Float(), f)
		}
	})
}

func BenchmarkSum(b *testing.B) {
	for b.Loop() {
		var s money.Sum
		for i := range 2000 {
			s.Add(float64(i) * 1.25)
		}
	}
}
