package bond

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/money"
)

// terms is a bond that was read and checked.
type terms struct {
	face, coupon, redemption float64
	frequency                int
	settlement, maturity     money.Day // set if dated
	anchor                   money.Day // date from which regular coupon dates are counted back: lastCouponDate or maturity
	issue, first             money.Day // start and first coupon date of an irregular first period
	dated, compound          bool
	years                    float64 // years to maturity, if not dated
	dayCount                 string
	steps                    []step
	amortization             []repayment
	calls, puts              []repayment
}

type step struct {
	from money.Day
	rate float64
}

// repayment is principal that is paid on a day, by amortization or by a call.
type repayment struct {
	day    money.Day
	amount float64
}

// flow is one payment. periods is the number of coupon periods from settlement to the payment.
type flow struct {
	day               money.Day
	periods           float64
	coupon, principal float64
}

// schedule contains the payments after settlement, and the values of the coupon period in which
// settlement is.
type schedule struct {
	flows          []flow
	accrued        float64 // accrued interest, in currency units
	previous, next money.Day
	days, period   float64 // days from the start of the coupon period to settlement, and in the complete period, by the day count
	rate, balance  float64 // coupon rate and face value in the period
}

// couponDate returns the regular coupon date k periods before the anchor. It counts from the
// anchor itself, so that a short month does not shift earlier dates.
func (b *terms) couponDate(k int) money.Day {
	day := b.anchor.AddMonths(-k * 12 / b.frequency)
	if b.anchor.MonthEnd() {
		for !day.MonthEnd() {
			day++
		}
	}
	return day
}

// periodOf returns the number k of the regular period that contains a day: the period from
// couponDate(k) to couponDate(k-1).
func (b *terms) periodOf(day money.Day) int {
	k := int(b.anchor-day) * b.frequency / 366
	for b.couponDate(k) > day {
		k++
	}
	for b.couponDate(k-1) <= day {
		k--
	}
	return k
}

// isCouponDate reports whether a day not after the anchor is a coupon date.
func (b *terms) isCouponDate(day money.Day) bool {
	return day <= b.anchor && day >= b.first && b.couponDate(b.periodOf(day)) == day
}

// rateFrom returns the coupon rate of the period that starts on a day.
func (b *terms) rateFrom(start money.Day) float64 {
	rate := b.coupon
	for _, s := range b.steps {
		if s.from <= start {
			rate = s.rate
		}
	}
	return rate
}

// balanceFrom returns the outstanding face value in the period that starts on a day.
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
	s := schedule{previous: b.previous()}
	start, from, periods := s.previous, b.settlement, 0.0
	for k := b.periodOf(b.settlement) - 1; start < b.maturity; k-- {
		day := b.couponDate(k)
		switch {
		case day > b.anchor:
			day = b.maturity
		case day < b.first:
			continue
		}
		periods += b.distance(from, day)
		parts, _ := b.accrual(start, day)
		balance := b.balanceFrom(start)
		f := flow{day: day, periods: periods, coupon: float64(float64(balance*b.rateFrom(start)) / float64(b.frequency) * parts), principal: balance - b.balanceFrom(day)}
		if day == b.maturity {
			f.periods = max(0, f.periods) // the last flow must not have a negative time
			f.principal = b.redemption
			if len(b.amortization) > 0 {
				f.principal = balance
			}
		}
		s.flows = append(s.flows, f)
		start, from = day, day
	}
	s.next = s.flows[0].day
	s.rate, s.balance = b.rateFrom(s.previous), b.balanceFrom(s.previous)
	var parts float64
	parts, s.days = b.accrual(s.previous, b.settlement)
	_, s.period = b.accrual(s.previous, s.next)
	s.accrued = float64(float64(s.balance*s.rate) / float64(b.frequency) * parts)
	return s
}

// previous returns the start of the coupon period that contains the settlement.
func (b *terms) previous() money.Day {
	if b.settlement < b.first {
		return b.issue
	}
	return min(b.couponDate(b.periodOf(b.settlement)), b.anchor)
}

// accrual returns the interest from one day to another, as a number of regular coupons, and the
// number of days by the day count. It adds up the parts of the regular periods between the days;
// in an irregular period these are notional. A complete regular period pays exactly one coupon,
// whatever its number of days is.
func (b *terms) accrual(from, to money.Day) (coupons, days float64) {
	for from < to {
		start, end := b.period(from)
		until := min(to, end)
		n, period := b.days(from, until), b.periodDays(start, end)
		if from == start && until == end {
			n = period
		}
		coupons, days = coupons+n/period, days+n
		from = until
	}
	return coupons, days
}

// distance returns the number of coupon periods between two days. In the current period it counts
// the remaining part. It may be slightly negative: by 30/360, a half-year has 180 days, but 181
// days are between 28 February and 29 August.
func (b *terms) distance(from, to money.Day) (periods float64) {
	for from < to {
		start, end := b.period(from)
		until, period := min(to, end), b.periodDays(start, end)
		switch {
		case from == start && until == end:
			periods++
		case until == end && strings.HasPrefix(b.dayCount, "30"):
			periods += 1 - b.days(start, from)/period
		default:
			periods += b.days(from, until) / period
		}
		from = until
	}
	return periods
}

// period returns the regular period that contains a day.
func (b *terms) period(day money.Day) (start, end money.Day) {
	k := b.periodOf(day)
	return b.couponDate(k), b.couponDate(k - 1)
}

// days returns the number of days between two days by the day count.
func (b *terms) days(from, to money.Day) float64 {
	if strings.HasPrefix(b.dayCount, "30") {
		return float64(days360(b.dayCount, from, to))
	}
	return float64(to - from)
}

// periodDays returns the number of days of a regular period by the day count.
func (b *terms) periodDays(start, end money.Day) float64 {
	switch b.dayCount {
	case "30/360-US", "30E/360", "ACT/360":
		return 360 / float64(b.frequency)
	case "ACT/365F":
		return 365 / float64(b.frequency)
	}
	return float64(end - start)
}

// undated returns the schedule of a bond without dates. Complete periods are counted back from the
// end; the rest of the years is before them.
func (b *terms) undated() schedule {
	periods := float64(b.years * float64(b.frequency))
	n := max(int(math.Ceil(periods-wholePeriod)), 1)
	left := periods - float64(n-1)
	if math.Abs(left-1) <= wholePeriod {
		left = 1
	}
	s := schedule{rate: b.coupon, balance: b.face}
	coupon := float64(b.face*b.coupon) / float64(b.frequency)
	for k := 1; k <= n; k++ {
		f := flow{periods: float64(k-1) + left, coupon: coupon}
		if k == n {
			f.principal = b.redemption
		}
		s.flows = append(s.flows, f)
	}
	s.accrued = float64(coupon * (1 - left))
	return s
}

// days360 returns the number of days between two days if every month has 30. The rule 30/360-US is
// that of the NASD (and of SIFMA's Standard Securities Calculation Methods), 30E/360 that of the
// ISMA.
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

// readTerms reads and checks a bond. checkPrice checks yield and prices.
func readTerms(c *money.Check, in Input) *terms {
	b := &terms{frequency: money.Or(in.Frequency, 2), face: money.Or(in.FaceValue, 100)}
	c.Above("/faceValue", b.face, 0, maxMoney)
	if in.CouponRate == nil {
		c.Missing("/couponRate")
	}
	b.coupon = money.Or(in.CouponRate, 0)
	c.Between("/couponRate", b.coupon, 0, maxCoupon)
	if f := b.frequency; f != 1 && f != 2 && f != 4 && f != 12 {
		c.Refuse("invalid_enum", "/frequency", "frequency must be 1, 2, 4 or 12")
	}
	b.readDayCount(c, in)
	last := money.Or(in.LastPeriod, "simple")
	c.OneOf("/lastPeriod", last, "simple", "compound")
	b.compound = last == "compound"
	b.redemption = money.Or(in.Redemption, b.face)
	c.Above("/redemption", b.redemption, 0, maxMoney)
	if in.Redemption != nil && len(in.Amortization) > 0 {
		c.Exclusive("/redemption", "amortization")
	}
	// A bond with a term in years has no dates, and nothing that depends on dates.
	if in.YearsToMaturity != nil {
		exclude(c, "yearsToMaturity", given{"/settlementDate", in.SettlementDate != nil}, given{"/maturityDate", in.MaturityDate != nil},
			given{"/dayCount", in.DayCount != nil}, given{"/basis", in.Basis != nil},
			given{"/issueDate", in.IssueDate != nil}, given{"/firstCouponDate", in.FirstCouponDate != nil}, given{"/lastCouponDate", in.LastCouponDate != nil}, given{"/couponSteps", len(in.CouponSteps) > 0},
			given{"/amortization", len(in.Amortization) > 0}, given{"/callSchedule", len(in.CallSchedule) > 0}, given{"/putSchedule", len(in.PutSchedule) > 0})
		b.years = *in.YearsToMaturity
		c.Above("/yearsToMaturity", b.years, 0, maxYears)
		return b
	}
	// A bond with dates needs both of them, settlement and maturity. The irregular periods and the
	// schedules depend on them.
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
		c.Refuse("inconsistent_input", "/settlementDate", "settlementDate must be before maturityDate")
	}
	b.readIrregular(c, in)
	b.readExtensions(c, in)
	return b
}

// dayCounts maps other names of day counts, as other libraries use them, and the numbers of a
// spreadsheet's argument "basis".
var dayCounts = map[string]string{
	"ACT/ACT": "ACT/ACT-ICMA", "ACT/ACT-ISMA": "ACT/ACT-ICMA", "30/360": "30/360-US", "30U/360": "30/360-US", "30/360-NASD": "30/360-US", "30E/360-ISMA": "30E/360", "ACT/365": "ACT/365F",
	"0": "30/360-US", "1": "ACT/ACT-ICMA", "2": "ACT/360", "3": "ACT/365F", "4": "30E/360",
}

// readDayCount reads the member dayCount or basis.
func (b *terms) readDayCount(c *money.Check, in Input) {
	b.dayCount = money.Or(in.DayCount, "ACT/ACT-ICMA")
	if in.Basis != nil {
		exclude(c, "basis", given{"/dayCount", in.DayCount != nil})
		b.dayCount = strconv.Itoa(*in.Basis)
		c.OneOf("/basis", b.dayCount, "0", "1", "2", "3", "4")
	}
	if name, is := dayCounts[b.dayCount]; is {
		b.dayCount = name
	}
	c.OneOf("/dayCount", b.dayCount, "ACT/ACT-ICMA", "30/360-US", "30E/360", "ACT/360", "ACT/365F", "ACT/ACT", "ACT/ACT-ISMA", "30/360", "30U/360", "30/360-NASD", "30E/360-ISMA", "ACT/365", "0", "1", "2", "3", "4")
}

// readIrregular reads and checks the dates of an irregular first and last period.
func (b *terms) readIrregular(c *money.Check, in Input) {
	b.anchor, b.first = b.maturity, math.MinInt32
	if in.LastCouponDate != nil {
		b.anchor = c.Day("/lastCouponDate", *in.LastCouponDate)
		if b.anchor >= b.maturity {
			c.Refuse("inconsistent_input", "/lastCouponDate", "lastCouponDate must be before maturityDate")
		}
	}
	if in.IssueDate == nil {
		if in.FirstCouponDate != nil {
			c.Missing("/issueDate")
		}
		return
	}
	b.issue = c.Day("/issueDate", *in.IssueDate)
	switch {
	case c.Err() != nil:
		return
	case b.issue > b.settlement:
		c.Refuse("inconsistent_input", "/issueDate", "issueDate must be on or before settlementDate")
		return
	case b.issue >= b.anchor:
		c.Refuse("inconsistent_input", "/issueDate", "issueDate must be before lastCouponDate")
		return
	}
	b.first = b.couponDate(b.periodOf(b.issue) - 1)
	if in.FirstCouponDate == nil {
		return
	}
	first := c.Day("/firstCouponDate", *in.FirstCouponDate)
	if first <= b.issue {
		c.Refuse("inconsistent_input", "/firstCouponDate", "firstCouponDate must be after issueDate")
	} else if !b.isCouponDate(first) {
		c.Refuse("inconsistent_input", "/firstCouponDate", "firstCouponDate must be a whole number of coupon periods before lastCouponDate (without lastCouponDate: before maturityDate)")
	}
	b.first = first
}

// readExtensions reads and checks coupon steps, amortization, calls and puts.
func (b *terms) readExtensions(c *money.Check, in Input) {
	c.Length("/couponSteps", len(in.CouponSteps), 0, maxSteps)
	c.Length("/amortization", len(in.Amortization), 0, maxAmortizations)
	c.Length("/callSchedule", len(in.CallSchedule), 0, maxSteps)
	c.Length("/putSchedule", len(in.PutSchedule), 0, maxSteps)
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
	b.calls = b.readOptions(c, "/callSchedule", in.CallSchedule)
	b.puts = b.readOptions(c, "/putSchedule", in.PutSchedule)
}

// readOptions reads the days on which the issuer, or the holder, may end the bond.
func (b *terms) readOptions(c *money.Check, list string, calls []Call) (days []repayment) {
	var last money.Day
	for i, call := range calls {
		path := fmt.Sprintf("%s/%d", list, i)
		c.Above(path+"/price", call.Price, 0, maxMoney)
		last = b.couponDay(c, path+"/date", call.Date, i, last)
		if last <= b.settlement {
			c.Refuse("inconsistent_input", path+"/date", list[1:]+" must have dates after settlementDate")
		}
		days = append(days, repayment{last, call.Price})
	}
	return days
}

// couponDay reads the date of item i of a list. It must be a coupon date before maturity, and
// after last, the date of the previous item.
func (b *terms) couponDay(c *money.Check, path, text string, i int, last money.Day) money.Day {
	day := c.Day(path, text)
	if c.Err() != nil {
		return day
	}
	if day >= b.maturity || !b.isCouponDate(day) {
		c.Refuse("inconsistent_input", path, path[1:]+" must be a coupon date before maturityDate")
	}
	if i > 0 && day <= last {
		c.Refuse("inconsistent_input", path, path[1:]+" must be after the date of the previous item")
	}
	return day
}
