package cashflow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/money"
)

// Flow is one cash flow: a number, or an object with a date. All flows of a list must have the
// same form.
type Flow struct {
	Dated  bool     // the flow is an object
	Date   *string  // YYYY-MM-DD
	Amount *float64 // in currency units; nil if the object has none
}

// Periodic returns flows that are plain numbers.
func Periodic(amounts ...float64) []Flow {
	flows := make([]Flow, len(amounts))
	for i := range amounts {
		flows[i].Amount = &amounts[i]
	}
	return flows
}

// UnmarshalJSONFrom decodes a number or {"date", "amount"}.
func (f *Flow) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '0':
		f.Amount = new(float64)
		return json.UnmarshalDecode(dec, f.Amount)
	case '{':
		var object struct {
			Date   *string  `json:"date"`
			Amount *float64 `json:"amount"`
		}
		err := json.UnmarshalDecode(dec, &object)
		*f = Flow{true, object.Date, object.Amount}
		return err
	}
	return fmt.Errorf("neither a number nor an object")
}

// JSONSchemaForms returns the two JSON forms of a flow, because struct tags cannot express "number
// or object". Evaluate checks that all flows of a list have the same form.
func (Flow) JSONSchemaForms() []any { return []any{float64(0), datedFlow{}} }

// datedFlow is the form of a flow with a date, for the schema.
type datedFlow struct {
	Date   string  `json:"date" jsonschema:"format=date" jsonschema_description:"Day of the flow, YYYY-MM-DD."`
	Amount float64 `json:"amount" jsonschema_description:"Amount in currency, from -1e15 to 1e15; a negative amount is paid in."`
}

// series is a list of flows that was read and checked, in ascending order of time.
type series struct {
	dated             bool
	times             []float64 // in periods, or in years if dated
	amounts           []float64 // if dated, one sum per day
	days              []money.Day
	valued            []valued
	residual          float64
	perYear           float64 // periods per year; 1 if dated
	rate              *float64
	finance, reinvest *float64
}

// withResidual returns the amounts, with the residual value added to the last.
func (s *series) withResidual() []float64 {
	if s.residual == 0 {
		return s.amounts
	}
	amounts := slices.Clone(s.amounts)
	var last money.Sum
	last.Add(amounts[len(amounts)-1])
	last.Add(s.residual)
	amounts[len(amounts)-1] = last.Float()
	return amounts
}

// read reads and checks an input. It returns a nil series if the request has only a valuation.
func read(in Input) (*series, error) {
	var c money.Check
	if in.CashFlows == nil && in.DCF == nil {
		c.Missing("/cashFlows")
	}
	s := &series{perYear: float64(money.Or(in.PeriodsPerYear, 1)), residual: money.Or(in.ResidualValue, 0),
		rate: in.DiscountRate, finance: in.FinanceRate, reinvest: in.ReinvestRate}
	if in.CashFlows != nil {
		c.Length("/cashFlows", len(in.CashFlows), 1, maxFlows)
	}
	if c.Err() == nil && in.CashFlows != nil {
		s.dated = in.CashFlows[0].Dated
		s.readFlows(&c, in.CashFlows)
	}
	rate := func(path string, x *float64) { c.Above(path, money.Or(x, 0), minRate, maxRate) }
	rate("/discountRate", in.DiscountRate)
	c.Between("/periodsPerYear", s.perYear, 1, maxPeriods)
	c.Between("/residualValue", s.residual, 0, maxAmount)
	rate("/financeRate", in.FinanceRate)
	rate("/reinvestRate", in.ReinvestRate)
	if in.FinanceRate != nil && in.ReinvestRate == nil {
		c.Missing("/reinvestRate")
	}
	if in.ReinvestRate != nil && in.FinanceRate == nil {
		c.Missing("/financeRate")
	}
	if s.dated && in.PeriodsPerYear != nil {
		c.Exclusive("/periodsPerYear", "dated cashFlows")
	}
	if s.dated && in.FinanceRate != nil {
		c.Exclusive("/financeRate", "dated cashFlows")
	}
	s.readValuations(&c, in.Valuations)
	if in.DCF != nil {
		in.DCF.Check(&c, "/dcf")
	}
	if in.CashFlows == nil {
		return nil, c.Err()
	}
	return s, c.Err()
}

// readFlows reads and checks the flows. It sorts dated flows and adds up those of the same day.
func (s *series) readFlows(c *money.Check, flows []Flow) {
	days := make(map[money.Day]*money.Sum)
	for i, f := range flows {
		path := fmt.Sprintf("/cashFlows/%d", i)
		if f.Dated != s.dated {
			c.Refuse("wrong_type", path, strings.ReplaceAll(path[1:], "/", ".")+" must have the type of the first item: all items are numbers, or all are objects with date and amount")
		}
		if f.Dated && f.Date == nil {
			c.Missing(path + "/date")
		}
		if f.Dated && f.Amount == nil {
			c.Missing(path + "/amount")
		}
		amount := money.Or(f.Amount, 0)
		if f.Dated {
			c.Between(path+"/amount", amount, -maxAmount, maxAmount)
		} else {
			c.Between(path, amount, -maxAmount, maxAmount)
		}
		if f.Dated && f.Date != nil {
			day := c.Day(path+"/date", *f.Date)
			if days[day] == nil {
				days[day] = new(money.Sum)
			}
			days[day].Add(amount)
			continue
		}
		s.times, s.amounts = append(s.times, float64(i)), append(s.amounts, amount)
	}
	if c.Err() == nil && s.dated {
		s.net(days)
	}
	if !slices.ContainsFunc(s.amounts, func(x float64) bool { return x != 0 }) {
		c.Refuse("no_cash_flows", "/cashFlows", "cashFlows must have an amount other than 0")
	}
}

// net sets times, amounts and days from the sum of each day.
func (s *series) net(days map[money.Day]*money.Sum) {
	var order []money.Day
	for day := range days {
		order = append(order, day)
	}
	slices.Sort(order)
	for _, day := range order {
		s.times = append(s.times, float64(day-order[0])/daysPerYear)
		s.amounts, s.days = append(s.amounts, days[day].Float()), append(s.days, day)
	}
}

// payback returns the time at which the sum of the flows first returns from below zero,
// interpolated linearly between two flows. It is 0 if the sum is never below zero.
func (s *series) payback(n *notes) *float64 {
	var cumulated money.Sum
	signs, levels := make([]int, len(s.amounts)), make([]float64, len(s.amounts))
	for i, c := range s.amounts {
		cumulated.Add(c)
		signs[i], levels[i] = cumulated.Sign(), cumulated.Float()
	}
	at, again := s.crossing(signs, levels, s.amounts)
	if at < 0 {
		n.add("payback_not_reached", "medium", "", "The flows never recover what was paid in.")
		return nil
	}
	if again {
		n.add("payback_not_final", "low", "", "After payback the sum of the flows falls below zero again.")
	}
	return n.number(at)
}

// discountedPayback is like payback, for discounted flows. x is ln(1+rate) per year.
func (s *series) discountedPayback(x float64, n *notes) *float64 {
	var cumulated, volume money.Compensated
	signs, levels := make([]int, len(s.amounts)), make([]float64, len(s.amounts))
	flows := make([]float64, len(s.amounts))
	for i, c := range s.amounts {
		flows[i] = float64(c * math.Exp(-x*s.times[i]/s.perYear))
		cumulated.Add(flows[i])
		volume.Add(math.Abs(flows[i]))
		levels[i] = cumulated.Float()
		if levels[i] < -recovered*volume.Float() {
			signs[i] = -1
		}
	}
	at, _ := s.crossing(signs, levels, flows)
	if at < 0 {
		return nil
	}
	return n.number(at)
}

// crossing returns the time at which the level first returns from below zero, or a negative number
// if it never does. again is true if the level is below zero again later.
func (s *series) crossing(signs []int, levels, flows []float64) (at float64, again bool) {
	below := slices.Index(signs, -1)
	if below < 0 {
		return 0, false
	}
	for k := below + 1; k < len(signs); k++ {
		if signs[k] >= 0 {
			part := math.Min(-levels[k-1]/flows[k], 1)
			at = s.times[k-1] + float64((s.times[k]-s.times[k-1])*part)
			return at, slices.Contains(signs[k:], -1)
		}
	}
	return -1, false
}

// modified returns the modified internal rate of return per period. It returns NaN if it is not
// defined: for one flow, or if nothing was paid in.
func (s *series) modified(contributed float64) float64 {
	last := len(s.amounts) - 1
	if last == 0 || contributed == 0 {
		return math.NaN()
	}
	reinvest, finance := math.Log1p(*s.reinvest), math.Log1p(*s.finance)
	var positive, negative money.Compensated
	for k, c := range s.withResidual() {
		if c > 0 {
			positive.Add(c * math.Exp(reinvest*float64(last-k)))
		} else {
			negative.Add(-c * math.Exp(-finance*float64(k)))
		}
	}
	return math.Pow(positive.Float()/negative.Float(), 1/float64(last)) - 1
}
