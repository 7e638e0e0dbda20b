package money

import (
	"cmp"
	"math"

	"github.com/cockroachdb/apd/v3"
)

// Sum adds numbers exactly, as the decimals that the caller wrote: 0.1 + 0.2 - 0.3 is 0. The zero
// value is an empty sum. A Sum must not be copied.
type Sum struct {
	total apd.Decimal
	ticks int64 // ten-thousandths that total does not include yet; a fast path, because most amounts are whole ten-thousandths
}

// A double x is r ten-thousandths if r/1e4 gives the same double: below 1e15 no other decimal with
// at most 15 digits has that double.
const (
	ticksPerUnit = 1e4
	maxTicks     = 1e15
)

// Add adds a number. It ignores numbers that are not finite.
func (s *Sum) Add(x float64) {
	if r := math.Round(x * ticksPerUnit); math.Abs(r) < maxTicks && r/ticksPerUnit == x {
		if s.ticks += int64(r); s.ticks > maxTicks || s.ticks < -maxTicks {
			s.flush()
		}
		return
	}
	d := new(apd.Decimal)
	if _, err := d.SetFloat64(x); err != nil || d.Form != apd.Finite {
		return
	}
	ignore(apd.BaseContext.Add(&s.total, &s.total, d))
}

func (s *Sum) flush() {
	ignore(apd.BaseContext.Add(&s.total, &s.total, apd.New(s.ticks, -4)))
	s.ticks = 0
}

// Float returns the double nearest to the sum.
func (s *Sum) Float() float64 {
	if s.total.IsZero() {
		return float64(s.ticks) / ticksPerUnit
	}
	s.flush()
	f, err := s.total.Float64()
	if err != nil {
		return 0
	}
	return f
}

// Sign returns the sign of the sum: -1, 0 or 1.
func (s *Sum) Sign() int {
	if s.ticks != 0 && !s.total.IsZero() {
		s.flush()
	}
	if s.total.IsZero() {
		return cmp.Compare(s.ticks, 0)
	}
	return s.total.Sign()
}

// Compensated adds doubles in any order with an error of about one rounding (Neumaier 1974). The
// zero value is an empty sum.
type Compensated struct{ sum, lost float64 }

// Add adds a number. The conversion to float64 prevents a processor from fusing a product in the
// argument with the addition, so that the result has the same bits everywhere.
func (c *Compensated) Add(x float64) {
	x = float64(x)
	sum := c.sum + x
	if math.Abs(c.sum) >= math.Abs(x) {
		c.lost += (c.sum - sum) + x
	} else {
		c.lost += (x - sum) + c.sum
	}
	c.sum = sum
}

// Float returns the sum with the compensation for rounding errors.
func (c *Compensated) Float() float64 { return c.sum + c.lost }
