package bond

import (
	"cmp"
	"math"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/money"
)

func evaluateBond(in Input) (Output, error) {
	var c money.Check
	exclude(&c, "the members of a bond", given{"/annualRate", in.AnnualRate != nil}, given{"/termMonths", in.TermMonths != nil},
		given{"/startDate", in.StartDate != nil}, given{"/balloonAmount", in.BalloonAmount != nil},
		given{"/interestOnlyMonths", in.InterestOnlyMonths != nil}, given{"/extraMonthlyPayment", in.ExtraMonthlyPayment != nil},
		given{"/upfrontFees", in.UpfrontFees != nil}, given{"/includeSchedule", in.IncludeSchedule != nil})
	if in.Mode != nil {
		c.OneOf("/mode", *in.Mode, "bond", "loan")
	}
	b := readTerms(&c, in)
	checkPrice(&c, in, b)
	if err := c.Err(); err != nil {
		return Output{}, err
	}
	s := b.schedule()
	y, dirty, err := b.solvePrice(in, s)
	if err != nil {
		return Output{}, err
	}
	clean := dirty - s.accrued
	if in.CleanPrice != nil {
		clean = *in.CleanPrice
	}
	out, err := b.report(s, y, clean, dirty, in.YieldToMaturity)
	if err != nil {
		return Output{}, err
	}
	b.addCalls(out, s, dirty)
	return Output{Mode: "bond", Bond: out, Findings: policy.SortFindings(b.findings(s, out))}, nil
}

// checkPrice requires exactly one of yield, clean price and dirty price.
func checkPrice(c *money.Check, in Input, b *terms) {
	switch {
	case in.YieldToMaturity != nil:
		exclude(c, "yieldToMaturity", given{"/cleanPrice", in.CleanPrice != nil}, given{"/dirtyPrice", in.DirtyPrice != nil})
		c.Above("/yieldToMaturity", *in.YieldToMaturity, minPeriodicYield*float64(b.frequency), maxYield)
	case in.CleanPrice != nil:
		exclude(c, "cleanPrice", given{"/dirtyPrice", in.DirtyPrice != nil})
		c.Above("/cleanPrice", *in.CleanPrice, 0, maxMoney)
	case in.DirtyPrice != nil:
		c.Above("/dirtyPrice", *in.DirtyPrice, 0, maxMoney)
	default:
		c.Missing("/yieldToMaturity")
	}
}

// solvePrice returns the yield per coupon period and the dirty price.
func (b *terms) solvePrice(in Input, s schedule) (y, dirty float64, err error) {
	if in.YieldToMaturity != nil {
		y = *in.YieldToMaturity / float64(b.frequency)
		dirty, _ = b.value(s.flows, y)
		if dirty <= 0 {
			return 0, 0, policy.Refuse("out_of_range", "/yieldToMaturity", "yieldToMaturity must leave a positive price with simple interest; set lastPeriod to compound")
		}
		return y, dirty, nil
	}
	path := "/dirtyPrice"
	if in.CleanPrice != nil {
		path, dirty = "/cleanPrice", *in.CleanPrice+s.accrued
	} else {
		dirty = *in.DirtyPrice
	}
	y, ok := b.yield(s.flows, dirty)
	if !ok {
		return 0, 0, policy.Refuse("yield_not_found", path, path[1:]+" has no single yield between -99 % and 1000 % a coupon period")
	}
	return y, dirty, nil
}

// simple reports whether the flows are discounted with simple interest: only one is left, and
// lastPeriod is not compound.
func (b *terms) simple(flows []flow) bool { return len(flows) == 1 && !b.compound }

// discount returns the discount factor of a flow after a number of periods, at the periodic yield
// y.
func (b *terms) discount(flows []flow, periods, y float64) float64 {
	if b.simple(flows) {
		return 1 / (1 + float64(periods*y))
	}
	return math.Exp(-periods * math.Log1p(y))
}

// value returns the dirty price at the periodic yield y, and the mean time of the flows in periods
// (Macaulay duration times frequency).
func (b *terms) value(flows []flow, y float64) (price, mean float64) {
	for _, f := range flows {
		pv := float64((f.coupon + f.principal) * b.discount(flows, f.periods, y))
		price += pv
		mean += float64(f.periods * pv)
	}
	return price, mean / price
}

// yield returns the periodic yield at which the flows have the price dirty. ln(price) falls with x
// = ln(1+y) and is convex and nearly linear, so Newton's method needs few steps. If a step leaves
// the bracket or a number overflows, yield bisects.
//
// ok is false if the price is outside the bracket, or if every yield gives the same price. The
// latter happens if no day is left by the day count: 30/360 counts no day from the 30th to the
// 31st.
func (b *terms) yield(flows []flow, dirty float64) (float64, bool) {
	if b.simple(flows) {
		y := ((flows[0].coupon+flows[0].principal)/dirty - 1) / flows[0].periods
		return y, y > minPeriodicYield && y <= maxPeriodicYield
	}
	low, high := lowestX, highestX
	top, _ := b.value(flows, minPeriodicYield)
	bottom, _ := b.value(flows, maxPeriodicYield)
	if !(top >= dirty && dirty >= bottom && top > bottom) {
		return 0, false
	}
	x := math.Log1p(0.02)
	for range solveSteps {
		price, mean := b.value(flows, math.Expm1(x))
		if price > dirty {
			low = x
		} else {
			high = x
		}
		next := x + math.Log(price/dirty)/mean
		if !(next > low && next < high) {
			next = low + (high-low)/2
		}
		if math.Abs(next-x) <= 1e-16 || high-low <= 1e-16 {
			break
		}
		x = next
	}
	return math.Expm1(x), true
}

// report computes the answer from price and yield.
func (b *terms) report(s schedule, periodic, clean, dirty float64, given *float64) (*Bond, error) {
	var n money.Report
	f := float64(b.frequency)
	y := f * periodic
	if given != nil {
		y = *given
	}
	// Discount each flow, and add up the terms of duration and convexity.
	growth := 1 + periodic // discount of one more period; with simple interest, that of the last period
	var mean, square float64
	rows := make([]CashFlow, 0, len(s.flows))
	for _, flow := range s.flows {
		t := flow.periods / f
		discount := b.discount(s.flows, flow.periods, periodic)
		total := flow.coupon + flow.principal
		pv := float64(total * discount)
		mean += float64(t * pv)
		if b.simple(s.flows) {
			growth = 1 / discount
			square += float64(2 * t * t * pv)
		} else {
			square += float64(float64(t*(t+1/f)) * pv)
		}
		row := CashFlow{
			TimeYears: n.Number(t), Coupon: n.Number(flow.coupon), Principal: n.Number(flow.principal),
			Total: n.Number(total), DiscountFactor: n.Number(discount), PresentValue: n.Number(pv),
		}
		if b.dated {
			row.Date = text(flow.day)
		}
		rows = append(rows, row)
	}
	// Divide the sums by the price, which gives duration and convexity.
	macaulay := mean / dirty
	modified := macaulay / growth
	out := &Bond{
		CleanPrice: n.Number(clean), DirtyPrice: n.Number(dirty), AccruedInterest: n.Number(s.accrued),
		YieldToMaturity: n.Number(y), EffectiveAnnualYield: n.Number(math.Expm1(f * math.Log1p(periodic))),
		MacaulayDuration: n.Number(macaulay), ModifiedDuration: n.Number(modified),
		Convexity: n.Number(square / growth / growth / dirty), DV01: n.Number(modified * dirty * basisPoint),
		PriceType: priceType(clean-b.par(s), parWithin*b.face), CouponsRemaining: len(rows), CashFlows: rows,
	}
	if clean > 0 {
		out.CurrentYield = money.Number(s.rate * s.balance / clean)
	}
	if b.dated {
		out.PreviousCouponDate, out.NextCouponDate = text(s.previous), text(s.next)
		out.DayCount = &b.dayCount
		out.DaysAccrued, out.DaysInPeriod = money.Number(s.days), money.Number(s.period)
	}
	return out, n.Err()
}

// par returns the price with which the clean price is compared: the redemption, or for an
// amortizing bond the outstanding face value.
func (b *terms) par(s schedule) float64 {
	if len(b.amortization) > 0 {
		return s.balance
	}
	return b.redemption
}

func priceType(above, within float64) string {
	switch {
	case above > within:
		return "premium"
	case above < -within:
		return "discount"
	}
	return "par"
}

// addCalls sets the yield to the first call, the lowest yield to a call or to maturity, and the
// yield to the first put, all at the same dirty price.
func (b *terms) addCalls(out *Bond, s schedule, dirty float64) {
	if len(b.puts) > 0 {
		out.YieldToPut = b.yieldTo(b.puts[0], s, dirty)
	}
	if len(b.calls) == 0 {
		return
	}
	worst, day := out.YieldToMaturity, b.maturity
	for i, call := range b.calls {
		y := b.yieldTo(call, s, dirty)
		if y == nil {
			continue
		}
		if i == 0 {
			out.YieldToCall = y
		}
		if c := cmp.Compare(*y, worst); c < 0 || c == 0 && call.day < day {
			worst, day = *y, call.day
		}
	}
	out.YieldToWorst, out.WorstDate = &worst, text(day)
}

// yieldTo returns the annual yield if the bond ends early, on a coupon date and at a price. It is
// rounded as in the answer, so that equal yields compare as equal. It returns nil if there is no
// such yield.
func (b *terms) yieldTo(end repayment, s schedule, dirty float64) *float64 {
	var flows []flow
	for _, f := range s.flows {
		if f.day < end.day {
			flows = append(flows, f)
		} else if f.day == end.day {
			flows = append(flows, flow{f.day, f.periods, f.coupon, end.amount})
		}
	}
	periodic, ok := b.yield(flows, dirty)
	if !ok {
		return nil
	}
	y := policy.Sig12(float64(b.frequency) * periodic)
	return &y
}

// findings returns the findings about unusual terms and results of a bond.
func (b *terms) findings(s schedule, out *Bond) []policy.Finding {
	var f []policy.Finding
	add := func(id, severity, path, message string) {
		f = append(f, policy.Finding{ID: id, Severity: severity, Path: path, Message: message})
	}
	if out.YieldToMaturity < 0 {
		add("negative_yield", "medium", "", "The yield is negative: holding to maturity loses money.")
	}
	if out.CleanPrice < distressedPrice*b.par(s) || out.YieldToMaturity > distressedYield {
		add("distressed_price", "high", "", "The price is below 40 % of the redemption or the yield above 25 %: default is priced in.")
	}
	if out.CleanPrice > farAbovePar*b.par(s) {
		add("price_far_above_par", "medium", "", "The clean price is more than twice the redemption: prices are for faceValue, not for 1,000.")
	}
	if b.coupon > percentRate {
		add("rate_looks_like_percent", "medium", "/couponRate", "The coupon is above 50 % a year; 5 % is written 0.05.")
	}
	if out.ModifiedDuration > longDuration {
		add("long_duration", "medium", "", "The modified duration is above 15 years.")
	}
	zero := true
	for _, flow := range s.flows {
		zero = zero && flow.coupon == 0
	}
	if zero {
		add("zero_coupon", "info", "", "The bond pays no coupon.")
	}
	if out.YieldToWorst != nil && *out.YieldToWorst < out.YieldToMaturity-basisPoint {
		add("callable_below_worst", "medium", "/callSchedule", "A call would lower the yield by more than a basis point.")
	}
	return f
}

func text(day money.Day) *string {
	s := day.String()
	return &s
}
