package bond

import (
	"fmt"
	"math"

	"github.com/countersign/countersign/policy/money"
)

// terms is a checked bond.
type terms struct {
	face, coupon, redemption float64
	frequency                int
	settlement, maturity     money.Day // with dates
	dated                    bool
	years                    float64 // without dates
	dayCount                 string
	steps                    []step
	amortization             []repayment
	calls                    []repayment
}

type step struct {
	from money.Day
	rate float64
}

// repayment is principal paid on a day: an amortization or a call.
type repayment struct {
	day    money.Day
	amount float64
}

// flow is one payment; k counts coupon dates after settlement from 1.
type flow struct {
	day               money.Day
	k                 int
	coupon, principal float64
}

// schedule is what is paid after settlement, and where settlement stands in the
// current coupon period.
type schedule struct {
	flows         []flow
	left          float64 // w: part of the current period until the next coupon
	accrued       float64 // money
	previous      money.Day
	next          money.Day
	days, period  float64 // accrued and whole, by the day count
	rate, balance float64 // of the current period
}

// couponDate is the coupon date k periods before maturity. Each is counted from
// maturity itself, so that a short month does not shift the earlier ones.
func (b *terms) couponDate(k int) money.Day {
	day := b.maturity.AddMonths(-k * 12 / b.frequency)
	if b.maturity.MonthEnd() {
		for !day.MonthEnd() {
			day++
		}
	}
	return day
}

// isCouponDate reports whether a day up to maturity is a coupon date.
func (b *terms) isCouponDate(day money.Day) bool {
	y1, m1, _ := day.Date()
	y2, m2, _ := b.maturity.Date()
	months, period := (y2-y1)*12+m2-m1, 12/b.frequency
	return months >= 0 && months%period == 0 && b.couponDate(months/period) == day
}

// rateFrom is the coupon rate of a period that starts on a day.
func (b *terms) rateFrom(start money.Day) float64 {
	rate := b.coupon
	for _, s := range b.steps {
		if s.from <= start {
			rate = s.rate
		}
	}
	return rate
}

// balanceFrom is the face outstanding in a period that starts on a day.
func (b *terms) balanceFrom(start money.Day) float64 {
	balance := b.face
	for _, a := range b.amortization {
		if a.day <= start {
			balance -= a.amount
		}
	}
	return balance
}

func (b *terms) schedule() schedule {
	if !b.dated {
		return b.undated()
	}
	n := 0
	for b.couponDate(n) > b.settlement {
		n++
	}
	s := schedule{previous: b.couponDate(n), next: b.couponDate(n - 1)}
	start := s.previous
	for k := 1; k <= n; k++ {
		day := b.couponDate(n - k)
		balance := b.balanceFrom(start)
		f := flow{day: day, k: k, coupon: float64(balance*b.rateFrom(start)) / float64(b.frequency), principal: balance - b.balanceFrom(day)}
		if k == n {
			f.principal = b.redemption
			if len(b.amortization) > 0 {
				f.principal = balance
			}
		}
		s.flows = append(s.flows, f)
		start = day
	}
	s.rate, s.balance = b.rateFrom(s.previous), b.balanceFrom(s.previous)
	s.days, s.period, s.left = stub(b.dayCount, b.frequency, s.previous, b.settlement, s.next)
	if s.next == b.maturity {
		s.left = max(0, s.left) // the last flow does not lie in the past
	}
	s.accrued = float64(s.flows[0].coupon*s.days) / s.period
	return s
}

// undated lays a schedule over a number of years: whole periods counted back
// from the end, and what is left before them.
func (b *terms) undated() schedule {
	periods := float64(b.years * float64(b.frequency))
	n := max(int(math.Ceil(periods-wholePeriod)), 1)
	s := schedule{left: periods - float64(n-1), rate: b.coupon, balance: b.face}
	if math.Abs(s.left-1) <= wholePeriod {
		s.left = 1
	}
	coupon := float64(b.face*b.coupon) / float64(b.frequency)
	for k := 1; k <= n; k++ {
		f := flow{k: k, coupon: coupon}
		if k == n {
			f.principal = b.redemption
		}
		s.flows = append(s.flows, f)
	}
	s.accrued = float64(coupon * (1 - s.left))
	return s
}

// stub counts the days accrued and the days of the period, and gives the part
// of the period that is left, all by the day count. 30/360 counts 181 days from
// 28 February to 29 August, so that the part left may be a day below zero.
func stub(dayCount string, frequency int, previous, settlement, next money.Day) (days, period, left float64) {
	f := float64(frequency)
	switch dayCount {
	case "30/360-US", "30E/360":
		days, period = float64(days360(dayCount, previous, settlement)), 360/f
		return days, period, 1 - days/period
	case "ACT/360":
		period = 360 / f
	case "ACT/365F":
		period = 365 / f
	default:
		period = float64(next - previous)
	}
	return float64(settlement - previous), period, float64(next-settlement) / period
}

// days360 counts months as 30 days. 30/360-US is the rule of the NASD (and of
// SIFMA's Standard Securities Calculation Methods), 30E/360 that of ISMA.
func days360(rule string, from, to money.Day) int {
	y1, m1, d1 := from.Date()
	y2, m2, d2 := to.Date()
	if rule == "30E/360" {
		d1, d2 = min(d1, 30), min(d2, 30)
	} else {
		endOfFebruary := m1 == 2 && from.MonthEnd()
		if endOfFebruary && m2 == 2 && to.MonthEnd() {
			d2 = 30
		}
		if endOfFebruary {
			d1 = 30
		}
		if d2 == 31 && d1 >= 30 {
			d2 = 30
		}
		d1 = min(d1, 30)
	}
	return (y2-y1)*360 + (m2-m1)*30 + d2 - d1
}

// readTerms checks a bond; how it is priced is checked by readPrice.
func readTerms(c *money.Check, in Input) *terms {
	b := &terms{frequency: money.Or(in.Frequency, 2), face: money.Or(in.FaceValue, 100)}
	c.Above("/faceValue", b.face, 0, maxMoney)
	if in.CouponRate == nil {
		c.Missing("/couponRate")
	}
	b.coupon = money.Or(in.CouponRate, 0)
	c.Between("/couponRate", b.coupon, 0, maxCoupon)
	if f := b.frequency; f != 1 && f != 2 && f != 4 && f != 12 {
		c.Refuse("invalid_enum", "/frequency", "frequency is not 1, 2, 4 or 12")
	}
	b.dayCount = money.Or(in.DayCount, "ACT/ACT-ICMA")
	c.OneOf("/dayCount", b.dayCount, "ACT/ACT-ICMA", "30/360-US", "30E/360", "ACT/360", "ACT/365F")
	b.redemption = money.Or(in.Redemption, b.face)
	c.Above("/redemption", b.redemption, 0, maxMoney)
	if in.Redemption != nil && len(in.Amortization) > 0 {
		c.Exclusive("/redemption", "amortization")
	}
	if in.YearsToMaturity != nil {
		exclude(c, "yearsToMaturity", given{"/settlementDate", in.SettlementDate != nil}, given{"/maturityDate", in.MaturityDate != nil},
			given{"/dayCount", in.DayCount != nil}, given{"/couponSteps", len(in.CouponSteps) > 0},
			given{"/amortization", len(in.Amortization) > 0}, given{"/callSchedule", len(in.CallSchedule) > 0})
		b.years = *in.YearsToMaturity
		c.Above("/yearsToMaturity", b.years, 0, maxYears)
		return b
	}
	if in.SettlementDate == nil {
		c.Missing("/settlementDate")
	}
	if in.MaturityDate == nil {
		c.Missing("/maturityDate")
	}
	if c.Err() != nil {
		return b
	}
	b.dated = true
	b.settlement, b.maturity = c.Day("/settlementDate", *in.SettlementDate), c.Day("/maturityDate", *in.MaturityDate)
	if b.settlement >= b.maturity {
		c.Refuse("inconsistent_input", "/settlementDate", "settlementDate is not before maturityDate")
	}
	b.readExtensions(c, in)
	return b
}

// readExtensions checks steps, amortization and calls.
func (b *terms) readExtensions(c *money.Check, in Input) {
	c.Length("/couponSteps", len(in.CouponSteps), 0, maxSteps)
	c.Length("/amortization", len(in.Amortization), 0, maxAmortizations)
	c.Length("/callSchedule", len(in.CallSchedule), 0, maxSteps)
	if c.Err() != nil {
		return
	}
	var last money.Day
	for i, s := range in.CouponSteps {
		path := fmt.Sprintf("/couponSteps/%d", i)
		c.Between(path+"/couponRate", s.CouponRate, 0, maxCoupon)
		last = b.couponDay(c, path+"/fromDate", s.FromDate, i, last)
		b.steps = append(b.steps, step{last, s.CouponRate})
	}
	total := 0.0
	for i, a := range in.Amortization {
		path := fmt.Sprintf("/amortization/%d", i)
		c.Above(path+"/amount", a.Amount, 0, maxMoney)
		last = b.couponDay(c, path+"/date", a.Date, i, last)
		b.amortization = append(b.amortization, repayment{last, a.Amount})
		total += a.Amount
	}
	if total >= b.face {
		c.Refuse("inconsistent_input", "/amortization", "amortization repays the whole faceValue before maturity")
	}
	for i, call := range in.CallSchedule {
		path := fmt.Sprintf("/callSchedule/%d", i)
		c.Above(path+"/price", call.Price, 0, maxMoney)
		last = b.couponDay(c, path+"/date", call.Date, i, last)
		if last <= b.settlement {
			c.Refuse("inconsistent_input", path+"/date", "callSchedule has a date on or before settlementDate")
		}
		b.calls = append(b.calls, repayment{last, call.Price})
	}
}

// couponDay reads the date of item i of a list: a coupon date before maturity,
// after that of the item before.
func (b *terms) couponDay(c *money.Check, path, text string, i int, last money.Day) money.Day {
	day := c.Day(path, text)
	if c.Err() != nil {
		return day
	}
	if day >= b.maturity || !b.isCouponDate(day) {
		c.Refuse("inconsistent_input", path, path[1:]+" is not a coupon date before maturityDate")
	}
	if i > 0 && day <= last {
		c.Refuse("inconsistent_input", path, path[1:]+" is not after the date before it")
	}
	return day
}
