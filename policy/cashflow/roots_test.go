package cashflow_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/money"
)

// sturm counts the distinct roots of a polynomial in (low, high] by Sturm's theorem, with exact
// fractions. It is independent of the interval method.
func sturm(coefficients []float64, low, high *big.Rat) int {
	p := make([]*big.Rat, len(coefficients))
	for i, c := range coefficients {
		p[i] = money.Exact(c)
	}
	p = trim(p)
	chain := [][]*big.Rat{p, derivative(p)}
	for {
		last := chain[len(chain)-1]
		if len(last) == 0 {
			chain = chain[:len(chain)-1]
			break
		}
		chain = append(chain, negatedRemainder(chain[len(chain)-2], last))
	}
	return changes(chain, low) - changes(chain, high)
}

func trim(p []*big.Rat) []*big.Rat {
	for len(p) > 0 && p[len(p)-1].Sign() == 0 {
		p = p[:len(p)-1]
	}
	return p
}

func derivative(p []*big.Rat) []*big.Rat {
	var d []*big.Rat
	for i := 1; i < len(p); i++ {
		d = append(d, new(big.Rat).Mul(p[i], big.NewRat(int64(i), 1)))
	}
	return trim(d)
}

func negatedRemainder(a, b []*big.Rat) []*big.Rat {
	r := make([]*big.Rat, len(a))
	for i := range a {
		r[i] = new(big.Rat).Set(a[i])
	}
	for len(r) >= len(b) {
		factor := new(big.Rat).Quo(r[len(r)-1], b[len(b)-1])
		for i := range b {
			j := len(r) - len(b) + i
			r[j].Sub(r[j], new(big.Rat).Mul(factor, b[i]))
		}
		r = trim(r[:len(r)-1])
	}
	for i := range r {
		r[i].Neg(r[i])
	}
	return r
}

func changes(chain [][]*big.Rat, at *big.Rat) int {
	count, last := 0, 0
	for _, p := range chain {
		value := new(big.Rat)
		for i := len(p) - 1; i >= 0; i-- {
			value.Add(value.Mul(value, at), p[i])
		}
		if s := value.Sign(); s != 0 {
			if last != 0 && s != last {
				count++
			}
			last = s
		}
	}
	return count
}

// The number of rates is the number of roots that Sturm's theorem gives for the polynomial in v =
// 1/(1+rate).
func TestNumberOfRootsIsProvenBySturm(t *testing.T) {
	low, high := big.NewRat(1, 10001), new(big.Rat).Quo(big.NewRat(1, 1), money.Exact(0.0001))
	rapid.Check(t, func(t *rapid.T) {
		flows := make([]float64, rapid.IntRange(2, 14).Draw(t, "n"))
		for i := range flows {
			flows[i] = float64(rapid.IntRange(-50, 50).Draw(t, "flow"))
		}
		compare(t, flows, sturm(flows, low, high))
	})
	// Products of factors (v - 1/(1+r)) have many simple roots at known rates.
	rapid.Check(t, func(t *rapid.T) {
		flows := []float64{1}
		seen := map[int]bool{}
		for range rapid.IntRange(1, 6).Draw(t, "roots") {
			percent := rapid.IntRange(-90, 400).Draw(t, "percent")
			if percent%5 != 0 || seen[percent] {
				continue
			}
			seen[percent] = true
			next := make([]float64, len(flows)+1)
			for i, c := range flows { // multiply by (v*(100+percent) - 100)
				next[i] -= 100 * c
				next[i+1] += float64(100+percent) * c
			}
			flows = next
		}
		for _, c := range flows {
			if math.Abs(c) > 1e15 {
				t.Skip("too large")
			}
		}
		if len(seen) > 0 {
			compare(t, flows, len(seen))
		}
	})
}

func compare(t *rapid.T, flows []float64, want int) {
	out, err := cashflow.Evaluate(cashflow.Input{CashFlows: cashflow.Periodic(flows...)})
	if err != nil {
		t.Skip("all zero")
	}
	tangent := false
	for _, f := range out.Findings {
		tangent = tangent || f.ID == "irr_tangent_root"
	}
	if got := len(out.IRRRoots); got != want && !tangent {
		t.Fatalf("%v: %d roots %v, Sturm counts %d", flows, got, out.IRRRoots, want)
	} else if tangent && (got > want+1 || want > 0 && got == 0) {
		t.Fatalf("%v: tangent, %d roots %v, Sturm counts %d", flows, got, out.IRRRoots, want)
	}
}

// Flows that are difficult for the method: many simple roots, roots of high multiplicity,
// cancellation, and long random lists.
func TestHardLists(t *testing.T) {
	binomial := []float64{1}
	for range 24 {
		next := make([]float64, len(binomial)+1)
		for i, c := range binomial {
			next[i] += c
			next[i+1] -= c
		}
		binomial = next
	}
	alternating := make([]float64, 2000)
	for i := range alternating {
		alternating[i] = 1 - 2*float64(i%2)
	}
	for name, tc := range map[string]struct {
		flows []float64
		want  string
	}{
		"24-fold root at 0":     {binomial, "unique"},
		"alternating":           {alternating, "unique"},
		"two sides of nothing":  {append(append([]float64{-1}, make([]float64, 1998)...), 1), "unique"},
		"all paid in at once":   {[]float64{-1e15, 1e-9, 1e-9, 1e15}, "unique"},
		"difference of squares": {[]float64{-1, 0, 0, 0, 1}, "unique"},
	} {
		out := evaluate(t, cashflow.Input{CashFlows: cashflow.Periodic(tc.flows...)})
		if out.IRRStatus != tc.want || math.Abs(*out.IRR) > 0.2 {
			t.Errorf("%s: %s %v", name, out.IRRStatus, out.IRRRoots)
		}
	}
}

// dailyFlows returns n dated flows from a fixed generator: a large contribution, and then mostly
// positive flows, or flows of random sign.
func dailyFlows(n int, random bool) []cashflow.Flow {
	flows := make([]cashflow.Flow, n)
	state := uint64(42)
	for i := range flows {
		state = state*6364136223846793005 + 1442695040888963407
		amount := float64(state>>40)/1000 + 1
		if random && state>>39&1 == 1 {
			amount = -amount
		}
		if i == 0 && !random {
			amount = -6000 * float64(n)
		}
		day := money.Day(7300 + i*3).String()
		flows[i] = cashflow.Flow{Dated: true, Date: &day, Amount: &amount}
	}
	return flows
}

func BenchmarkXIRR2000(b *testing.B) {
	for _, random := range []bool{false, true} {
		in := cashflow.Input{CashFlows: dailyFlows(2000, random)}
		b.Run(fmt.Sprintf("random=%v", random), func(b *testing.B) {
			for b.Loop() {
				if _, err := cashflow.Evaluate(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHardest(b *testing.B) {
	flows := make([]float64, 2000)
	for i := range flows {
		flows[i] = 1 - 2*float64(i%2)
	}
	in := cashflow.Input{CashFlows: cashflow.Periodic(flows...)}
	for b.Loop() {
		if _, err := cashflow.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRateIsTheReportedRoot(t *testing.T) {
	if r := cashflow.Rate([]float64{0, 1, 2}, []float64{-1600, 10000, -10000}); r == nil || *r != 0.25 {
		t.Errorf("got %v", r)
	}
	if r := cashflow.Rate([]float64{0}, []float64{0}); r != nil {
		t.Errorf("got %v", *r)
	}
}
