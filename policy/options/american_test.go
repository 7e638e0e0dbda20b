package options_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/options"
)

func (o option) american() options.Input {
	in := o.input()
	style := "american"
	in.ExerciseStyle = &style
	return in
}

// The values are those of a plain Cox-Ross-Rubinstein tree in Python: the mean of n and n+1 steps,
// extrapolated from n = 1500 and n = 3000 (4001 and 8002 for the fifth). The contract allows an
// error of 2e-4 of the strike. For the first option Longstaff and Schwartz 2001 give 4.478, with
// 50 exercise dates a year.
func TestAmericanAgainstAnotherTree(t *testing.T) {
	for _, tc := range []struct {
		option
		want float64
	}{
		{option{"put", 36, 40, 1, 0.06, 0, 0.2}, 4.4866338},
		{option{"put", 44, 40, 2, 0.06, 0, 0.4}, 5.6465971},
		{option{"call", 100, 100, 1, 0.03, 0.07, 0.3}, 10.0405078},
		{option{"put", 100, 110, 0.5, 0.05, 0.02, 0.35}, 15.1254858},
		{option{"call", 110, 100, 3, 0.05, 0.1, 0.25}, 16.2063359},
		{option{"put", 1, 1, 1, -0.01, -0.03, 0.2}, 0.0725711},
	} {
		out := evaluate(t, tc.american())
		if math.Abs(out.Price-tc.want) > 5e-5*tc.k {
			t.Errorf("%+v: got %v, want %v", tc.option, out.Price, tc.want)
		}
	}
}

func TestAmericanIsEuropeanWhereWaitingIsBest(t *testing.T) {
	for _, o := range []option{
		{"call", 100, 95, 0.5, 0.03, 0, 0.25}, {"call", 100, 95, 0.5, 0, 0, 0.25}, {"put", 100, 95, 0.5, 0, 0.02, 0.25},
	} {
		a, e := evaluate(t, o.american()), evaluate(t, o.input())
		if a.Price != e.Price || a.Greeks != e.Greeks || *a.EarlyExercisePremium != 0 || a.ExerciseStyle != "american" {
			t.Errorf("%+v: american %v, european %v", o, a.Price, e.Price)
		}
	}
}

func TestAmericanAtTheLimits(t *testing.T) {
	for _, tc := range []struct {
		option
		price, delta float64
	}{
		{option{"put", 80, 100, 2, 0.05, 0, 0}, 20, -1},
		{option{"put", 120, 100, 2, 0.05, 0, 0}, 0, 0},
		{option{"put", 80, 100, 0, 0.05, 0, 0.2}, 20, -1},
		{option{"put", 80, 100, 2, 0.05, 0, 1e-9}, 20, -1},
		{option{"call", 100, 80, 2, 0.05, 0.3, 0}, 20, 1},
	} {
		out := evaluate(t, tc.american())
		if out.Price != tc.price || out.Greeks.Delta != tc.delta || out.Greeks.Theta != 0 {
			t.Errorf("%+v: got %+v", tc.option, out)
		}
	}
}

// An American option has at least the value of the European one and of immediate exercise, and at
// most that of the strike or the spot. A longer time never makes it cheaper. The time value is a
// difference of doubles, so it may be negative by their rounding error.
func TestAmericanBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := draw(t)
		out := evaluate(t, o.american())
		e := evaluate(t, o.input())
		upper := o.s * math.Max(1, math.Exp(-o.q*o.t))
		if o.kind == "put" {
			upper = o.k * math.Max(1, math.Exp(-o.r*o.t))
		}
		if out.Price < e.Price || out.Price < out.IntrinsicValue || out.Price > upper*(1+1e-9) ||
			*out.EarlyExercisePremium < 0 || out.TimeValue < -1e-15*(o.s+o.k) {
			t.Fatalf("price %v, european %v, premium %v, time value %v", out.Price, e.Price, *out.EarlyExercisePremium, out.TimeValue)
		}
		if out.Greeks.Vega < -1e-3*o.s || math.Abs(out.Greeks.Delta) > math.Max(1, math.Exp(-o.q*o.t))+1e-6 {
			t.Fatalf("greeks %+v", out.Greeks)
		}
		longer := o
		longer.t *= 1.1
		if evaluate(t, longer.american()).Price < out.Price-2e-4*o.k { // the guaranteed precision of the tree
			t.Fatal("cheaper with more time")
		}
	})
}

// A call has the value of a put with spot and strike, and rate and yield, exchanged.
func TestAmericanSymmetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := draw(t)
		o.kind = "call"
		dual := option{"put", o.k, o.s, o.t, o.q, o.r, o.v}
		c, p := evaluate(t, o.american()).Price, evaluate(t, dual.american()).Price
		if math.Abs(c-p) > 1e-9*(o.s+o.k) {
			t.Fatalf("call %v, put %v", c, p)
		}
	})
}

func TestAmericanGreeksAreDerivatives(t *testing.T) {
	for _, o := range []option{
		{"put", 36, 40, 1, 0.06, 0, 0.2}, {"put", 44, 40, 2, 0.06, 0.02, 0.4}, {"call", 100, 100, 1, 0.03, 0.07, 0.3},
		{"call", 90, 100, 2, 0.05, 0.04, 0.2}, {"put", 20, 40, 1, 0.06, 0, 0.2},
	} {
		g := evaluate(t, o.american()).Greeks
		price := func(move func(*option)) float64 {
			p := o
			move(&p)
			return evaluate(t, p.american()).Price
		}
		h := 0.01 * o.s
		up, mid, down := price(func(o *option) { o.s += h }), price(func(*option) {}), price(func(o *option) { o.s -= h })
		for name, tc := range map[string][3]float64{
			"delta": {g.Delta, (up - down) / (2 * h), 1e-3},
			"gamma": {g.Gamma, (up - 2*mid + down) / (h * h), 3e-2*g.Gamma + 1e-9},
			"theta": {-g.Theta, (price(func(o *option) { o.t += 0.01 }) - price(func(o *option) { o.t -= 0.01 })) / 0.02, 2e-2*math.Abs(g.Theta) + 1e-9},
			"vega":  {g.Vega, (price(func(o *option) { o.v += 0.01 }) - price(func(o *option) { o.v -= 0.01 })) / 0.02, 1e-2*g.Vega + 1e-9},
			"rho":   {g.Rho, (price(func(o *option) { o.r += 0.005 }) - price(func(o *option) { o.r -= 0.005 })) / 0.01, 2e-2*math.Abs(g.Rho) + 1e-9},
		} {
			if math.Abs(tc[0]-tc[1]) > tc[2] {
				t.Errorf("%+v %s: got %v, difference quotient %v", o, name, tc[0], tc[1])
			}
		}
	}
}

func TestAmericanWithExtremeInputsHasAnAnswer(t *testing.T) {
	for _, kind := range []string{"call", "put"} {
		for _, v := range []float64{0.001, 0.5, 10} {
			for _, years := range []float64{1e-6, 1, 100} {
				for _, rate := range []float64{-0.1, 0, 0.1} {
					o := option{kind, 100, 120, years, rate, 0.05, v}
					out, e := evaluate(t, o.american()), evaluate(t, o.input())
					if out.Price < e.Price || math.IsNaN(out.Price) {
						t.Errorf("%+v: %v below %v", o, out.Price, e.Price)
					}
				}
			}
		}
	}
}

func BenchmarkAmerican(b *testing.B) {
	in := option{"put", 36, 40, 1, 0.06, 0, 0.2}.american()
	for b.Loop() {
		if _, err := options.Evaluate(in); err != nil {
			b.Fatal(err)
		}
	}
}
