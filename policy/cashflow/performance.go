package cashflow

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/countersign/countersign/policy/money"
)

// valued is a valuation that was read and checked.
type valued struct {
	day   money.Day
	value float64
}

// readValuations reads and checks the valuations, and sorts them by day.
func (s *series) readValuations(c *money.Check, list []Valued) {
	if len(list) == 0 {
		return
	}
	if !s.dated {
		c.Refuse("inconsistent_input", "/valuations", "valuations must be absent if cashFlows have no dates")
	}
	if len(list) == 1 {
		c.Refuse("out_of_range", "/valuations", "valuations must have at least 2 items")
	}
	c.Length("/valuations", len(list), 0, maxValuations)
	for i, v := range list {
		path := fmt.Sprintf("/valuations/%d", i)
		c.Between(path+"/value", v.Value, 0, maxAmount)
		s.valued = append(s.valued, valued{c.Day(path+"/date", v.Date), v.Value})
	}
	slices.SortFunc(s.valued, func(a, b valued) int { return cmp.Compare(a.day, b.day) })
	for i := 1; i < len(s.valued); i++ {
		if s.valued[i].day == s.valued[i-1].day {
			c.Refuse("inconsistent_input", "/valuations", "valuations must have different dates")
		}
	}
}

// performance sets the returns between valuations. A flow belongs to the period that contains its
// day; a flow on the day of a valuation belongs to the period that begins on that day. Flows
// before the first valuation, and on or after the last, are ignored.
func (s *series) performance(out *Output, n *notes) {
	if len(s.valued) == 0 {
		return
	}
	first, last := s.valued[0], s.valued[len(s.valued)-1]
	growth := 1.0
	for i := 1; i < len(s.valued); i++ {
		growth *= 1 + s.dietz(s.valued[i-1], s.valued[i])
	}
	whole := s.dietz(first, last)
	if math.IsNaN(whole) || math.IsNaN(growth) {
		n.add("no_invested_capital", "medium", "/valuations", "In one period no capital was invested, so that it has no return.")
	}
	if !math.IsNaN(whole) {
		out.ModifiedDietz = n.number(whole)
	}
	if math.IsNaN(growth) {
		return
	}
	out.TimeWeightedReturn = n.number(growth - 1)
	if growth >= 0 {
		out.TimeWeightedAnnualized = n.number(math.Expm1(math.Log(growth) * daysPerYear / float64(last.day-first.day)))
	}
}

// dietz returns the modified Dietz return of a period (Dietz 1968; GIPS): the gain divided by the
// mean capital, in which each flow is weighted by the part of the period after it. It returns NaN
// if the mean capital is not positive.
func (s *series) dietz(from, to valued) float64 {
	days := float64(to.day - from.day)
	var gain, capital money.Compensated
	gain.Add(to.value)
	gain.Add(-from.value)
	capital.Add(from.value)
	for i, day := range s.days {
		if day >= from.day && day < to.day {
			paidIn := -s.amounts[i]
			gain.Add(-paidIn)
			capital.Add(float64(paidIn * float64(to.day-day) / days))
		}
	}
	if !(capital.Float() > 0) {
		return math.NaN()
	}
	return gain.Float() / capital.Float()
}
