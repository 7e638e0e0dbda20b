package cashflow

import (
	"math"
	"slices"

	"github.com/countersign/countersign/policy/money"
)

// The internal rates of return are the roots of g(x) = sum of c_i*exp(-x*t_i) with x = ln(1+rate).
// This file finds every root in a range.
//
// The search starts at x = 0 and goes in both directions. To the right, exp(-x*t) is taken
// relative to the first flow, to the left relative to the last. In both directions this gives h(z)
// = sum of c_i*exp(-z*s_i) for z >= 0 and s_i >= 0. The flow that dominates for large z has s = 0,
// and no term exceeds its amount. Every term, and every term times a power of s, falls as z grows.
// So on a box [a,b] the sums over positive and over negative amounts, computed at a and at b,
// bound h and its derivatives from both sides. That gives three tests:
//
//   - by the bounds of h', h cannot reach 0: the box has no root;
//   - the bounds of h' exclude 0: h is monotone, so the box has exactly one root if
//     the signs at a and b differ, and otherwise none;
//   - neither: split the box.
//
// A box that is too narrow to split, or on which h is only rounding error, remains undecided:
// there h is 0 as far as a double can represent it. Adjacent undecided boxes are reported as one
// tangent root.

// point contains h and its derivatives at z, in sums over positive (up) and negative (down)
// amounts: h = up[0]-down[0], h' = down[1]-up[1], h” = up[2]-down[2].
type point struct {
	z        float64
	h        float64
	up, down [3]float64
	noise    [2]float64 // bounds of the rounding errors of h and of h'
}

// sum is the function h: amounts c with their distances s, in ascending order of s.
type sum struct {
	s, c []float64
}

// at evaluates h at z. It stops at the first term that is too small for a double, because all
// later terms are smaller.
func (f sum) at(z float64) point {
	p := point{z: z}
	var h money.Compensated
	var up, down [3]money.Compensated
	for i, s := range f.s {
		if z*s > 745 {
			break
		}
		term := float64(f.c[i] * math.Exp(-z*s))
		h.Add(term)
		moments := [3]float64{term, float64(term * s), float64(term * s * s)}
		for k, m := range moments {
			if term > 0 {
				up[k].Add(m)
			} else {
				down[k].Add(-m)
			}
		}
	}
	p.h = h.Float()
	for k := range p.up {
		p.up[k], p.down[k] = up[k].Float(), down[k].Float()
	}
	for k := range p.noise {
		p.noise[k] = rounding * (p.up[k] + p.down[k] + float64(z*(p.up[k+1]+p.down[k+1])))
	}
	return p
}

// box is a part of the range between two evaluated points.
type box struct{ a, b point }

// slope returns bounds of h' on the box: those from the sums at its ends, narrowed by h' at each
// end plus the most that h” can change it over the width. slack covers rounding errors.
func (k box) slope() (low, high float64) {
	a, b, w := k.a, k.b, k.b.z-k.a.z
	low, high = b.down[1]-a.up[1], a.down[1]-b.up[1]
	bendLow, bendHigh := float64((b.up[2]-a.down[2])*w), float64((a.up[2]-b.down[2])*w)
	atA, atB := a.down[1]-a.up[1], b.down[1]-b.up[1]
	low = max(low, atA+min(bendLow, 0), atB-max(bendHigh, 0))
	high = min(high, atA+max(bendHigh, 0), atB-min(bendLow, 0))
	slack := 4*max(a.noise[1], b.noise[1]) + float64(4*rounding*w*(a.up[2]+a.down[2]))
	return low - slack, high + slack
}

// distance returns a lower bound of |h| on the box, from the values at both ends and the bounds of
// the slope. If h may reach 0, the bound is not positive.
func (k box) distance(low, high float64) float64 {
	a, b := k.a.h, k.b.h
	if a < 0 { // consider -h instead
		a, b, low, high = -a, -b, -high, -low
	}
	if high <= low { // h is constant
		return math.Min(a, b)
	}
	// The line from (a.z, a) with slope low and the line into (b.z, b) with slope high meet at
	// this height.
	return (float64(a*high) - float64(b*low) + float64(float64(low*high)*(k.b.z-k.a.z))) / (high - low)
}

// flat reports whether h is only rounding error on the whole box.
func (k box) flat(low, high, noise float64) bool {
	reach := math.Max(math.Abs(k.a.h), math.Abs(k.b.h)) + float64((k.b.z-k.a.z)*math.Max(math.Abs(low), math.Abs(high)))/2
	return reach <= 4*noise
}

// search returns the simple roots of h on [0, end], and the undecided boxes. It splits the widest
// boxes first, so that all undecided boxes are narrow if the limit of work is reached.
func (f sum) search(end float64) (roots []float64, left []box) {
	budget := min(maxTerms/len(f.s), maxPoints)
	queue := []box{{f.at(0), f.at(end)}}
	for i := 0; i < len(queue); i++ {
		k := queue[i]
		low, high := k.slope()
		noise := math.Max(k.a.noise[0], k.b.noise[0])
		crosses := k.a.h <= 0 && k.b.h >= 0 || k.a.h >= 0 && k.b.h <= 0
		switch {
		case low > 0 || high < 0:
			if crosses {
				roots = append(roots, f.refine(k))
			}
		case !crosses && k.distance(low, high) > noise:
		case k.b.z-k.a.z <= narrowest || k.flat(low, high, noise) || len(queue) >= 2*budget:
			left = append(left, k)
		default:
			middle := f.at(k.a.z + (k.b.z-k.a.z)/2)
			queue = append(queue, box{k.a, middle}, box{middle, k.b})
		}
	}
	return roots, left
}

// refine returns the root in a box at whose ends h has different signs. It uses Newton's method,
// and bisects if a step leaves the bracket.
func (f sum) refine(k box) float64 {
	low, high := k.a.z, k.b.z
	rising := k.a.h < k.b.h
	z := low + (high-low)/2
	for range 200 {
		p := f.at(z)
		if p.h == 0 {
			return z
		}
		if (p.h > 0) == rising {
			high = z
		} else {
			low = z
		}
		next := z - p.h/(p.down[1]-p.up[1])
		if !(next > low && next < high) {
			next = low + (high-low)/2
		}
		if math.Abs(next-z) <= 2e-16*z || high-low <= 2e-16*high || next == low || next == high {
			return next
		}
		z = next
	}
	return z
}

// allRates returns every rate in the range at which the present value is 0, in ascending order.
// tangent is true if one of them is a tangent root.
func allRates(times, amounts []float64) (rates []float64, tangent bool) {
	right, left := sides(times, amounts)
	var xs []float64
	var touching []span
	roots, boxes := right.search(highestX)
	xs = append(xs, roots...)
	for _, k := range boxes {
		touching = append(touching, span{k.a.z, k.b.z})
	}
	roots, boxes = left.search(lowestX)
	for _, z := range roots {
		xs = append(xs, -z)
	}
	for _, k := range boxes {
		touching = append(touching, span{-k.b.z, -k.a.z})
	}
	touching = joined(touching)
	xs = slices.DeleteFunc(xs, func(x float64) bool {
		return slices.ContainsFunc(touching, func(t span) bool { return t.near(x) })
	})
	for _, t := range touching {
		xs = append(xs, t.low+(t.high-t.low)/2)
	}
	slices.Sort(xs)
	xs = slices.CompactFunc(xs, func(a, b float64) bool { return math.Abs(b-a) <= together })
	for _, x := range xs {
		if math.Abs(x) < nothing {
			x = 0
		}
		rates = append(rates, math.Expm1(x))
	}
	return rates, len(touching) > 0
}

// sides returns h for both directions, with the amounts scaled to at most 1.
func sides(times, amounts []float64) (right, left sum) {
	largest := 0.0
	first, last := -1, -1
	for i, c := range amounts {
		if c != 0 {
			largest = math.Max(largest, math.Abs(c))
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	for i := first; i <= last; i++ {
		right.s, right.c = append(right.s, times[i]-times[first]), append(right.c, amounts[i]/largest)
		j := first + last - i
		left.s, left.c = append(left.s, times[last]-times[j]), append(left.c, amounts[j]/largest)
	}
	return right, left
}

// span is an interval of x.
type span struct{ low, high float64 }

// near reports whether x is in the span or close to it. Inside the span h is only rounding error,
// so a root that was found close to the span is the same root.
func (t span) near(x float64) bool {
	margin := together + (t.high - t.low)
	return x >= t.low-margin && x <= t.high+margin
}

// joined merges spans that overlap or touch.
func joined(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.low < b.low:
			return -1
		case a.low > b.low:
			return 1
		}
		return 0
	})
	var merged []span
	for _, s := range spans {
		if n := len(merged); n > 0 && s.low <= merged[n-1].high+together {
			merged[n-1].high = math.Max(merged[n-1].high, s.high)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// Rate returns the internal rate of return that cashflow/analyze reports for flows at times in
// years (in ascending order), or nil if there is none.
func Rate(times, amounts []float64) *float64 {
	s := series{dated: true, times: times, amounts: amounts, perYear: 1}
	var out Output
	s.returns(&out, new(notes))
	return out.XIRR
}
