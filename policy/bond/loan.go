package bond

import (
	"math"
	"math/big"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/money"
)

// loan is a loan that was read and checked.
type loan struct {
	principal, balloon, extra, fees money.Cents
	annualRate                      float64
	monthly                         *big.Rat // annualRate / 12, exact
	term, interestOnly              int
	start                           *money.Day
}

func evaluateLoan(in Input) (Output, error) {
	var c money.Check
	l := readLoan(&c, in)
	if err := c.Err(); err != nil {
		return Output{}, err
	}
	level := l.levelPayment()
	payment := money.Round(level)
	rows := l.amortize(payment)
	out := &Loan{MonthlyPayment: payment, PaymentsCount: len(rows), Schedule: []Payment{}}
	negative := false
	for _, r := range rows {
		out.TotalPaid += r.Payment
		out.TotalInterest += r.Interest
		out.TotalPrincipal += r.Principal
		out.FinalPayment = r.Payment
		negative = negative || r.Principal < 0
	}
	if !out.TotalPaid.Reportable() {
		return Output{}, policy.Refuse("out_of_range", "", "the sum of all payments must be at most 70368744177664")
	}
	var n money.Report
	unrounded, _ := level.Float64()
	out.UnroundedPayment = n.Number(unrounded)
	out.APR = l.annualRate
	if l.fees > 0 {
		out.APR = n.Number(l.apr(unrounded))
	}
	out.EffectiveAnnualRate = n.Number(math.Expm1(12 * math.Log1p(l.annualRate/12)))
	if money.Or(in.IncludeSchedule, true) {
		out.Schedule = rows
	}
	return Output{Mode: "loan", Loan: out, Findings: policy.SortFindings(l.findings(out, negative))}, n.Err()
}

func readLoan(c *money.Check, in Input) loan {
	exclude(c, "principal", given{"/faceValue", in.FaceValue != nil}, given{"/couponRate", in.CouponRate != nil},
		given{"/frequency", in.Frequency != nil}, given{"/settlementDate", in.SettlementDate != nil},
		given{"/maturityDate", in.MaturityDate != nil}, given{"/yearsToMaturity", in.YearsToMaturity != nil},
		given{"/dayCount", in.DayCount != nil}, given{"/basis", in.Basis != nil}, given{"/issueDate", in.IssueDate != nil},
		given{"/firstCouponDate", in.FirstCouponDate != nil}, given{"/lastCouponDate", in.LastCouponDate != nil}, given{"/lastPeriod", in.LastPeriod != nil}, given{"/redemption", in.Redemption != nil},
		given{"/yieldToMaturity", in.YieldToMaturity != nil}, given{"/cleanPrice", in.CleanPrice != nil},
		given{"/dirtyPrice", in.DirtyPrice != nil}, given{"/couponSteps", len(in.CouponSteps) > 0},
		given{"/amortization", len(in.Amortization) > 0}, given{"/callSchedule", len(in.CallSchedule) > 0}, given{"/putSchedule", len(in.PutSchedule) > 0})
	if in.Mode != nil {
		c.OneOf("/mode", *in.Mode, "bond", "loan")
	}
	if in.AnnualRate == nil {
		c.Missing("/annualRate")
	}
	if in.TermMonths == nil {
		c.Missing("/termMonths")
	}
	l := loan{annualRate: money.Or(in.AnnualRate, 0), term: money.Or(in.TermMonths, 1), interestOnly: money.Or(in.InterestOnlyMonths, 0)}
	c.Above("/principal", *in.Principal, 0, maxMoney)
	c.Between("/annualRate", l.annualRate, 0, maxLoanRate)
	c.Between("/termMonths", float64(l.term), 1, maxTermMonths)
	c.Between("/interestOnlyMonths", float64(l.interestOnly), 0, float64(l.term-1))
	l.principal = c.Amount("/principal", *in.Principal)
	part := func(path string, x *float64) money.Cents {
		amount := c.Amount(path, money.Or(x, 0))
		if amount < 0 || amount >= l.principal {
			c.Refuse("out_of_range", path, path[1:]+" must be at least 0 and below principal")
		}
		return amount
	}
	l.balloon = part("/balloonAmount", in.BalloonAmount)
	l.fees = part("/upfrontFees", in.UpfrontFees)
	extra := money.Or(in.ExtraMonthlyPayment, 0)
	c.Between("/extraMonthlyPayment", extra, 0, maxMoney)
	l.extra = c.Amount("/extraMonthlyPayment", extra)
	if in.StartDate != nil {
		day := c.Day("/startDate", *in.StartDate)
		l.start = &day
	}
	if c.Err() == nil {
		l.monthly = money.Exact(l.annualRate)
		l.monthly.Quo(l.monthly, big.NewRat(12, 1))
	}
	return l
}

// negligible is a monthly rate at which 50 years of interest on the largest principal are far
// below a cent.
var negligible = big.NewRat(1, 1e18)

// levelPayment returns the payment of the months in which principal is repaid, in currency units.
// It is as exact as the growth factor, which has 48 digits.
func (l loan) levelPayment() *big.Rat {
	n := int64(l.term - l.interestOnly)
	repaid := big.NewRat(int64(l.principal-l.balloon), 100)
	if l.monthly.Cmp(negligible) < 0 {
		return repaid.Quo(repaid, big.NewRat(n, 1))
	}
	// (P - B*q)*i/(1 - q) with q = (1+i)^-n is P*i + (P-B)*i/((1+i)^n - 1).
	growth := money.Growth(l.monthly, big.NewRat(n, 1))
	payment := repaid.Quo(repaid.Mul(repaid, l.monthly), growth)
	interest := new(big.Rat).Mul(big.NewRat(int64(l.principal), 100), l.monthly)
	return payment.Add(payment, interest)
}

// amortize returns the schedule in cents, until the balance is 0.
func (l loan) amortize(payment money.Cents) []Payment {
	rows := make([]Payment, 0, l.term)
	balance := l.principal
	for k := 1; k <= l.term && balance > 0; k++ {
		r := Payment{Period: k, Interest: balance.Times(l.monthly)}
		switch {
		case k == l.term:
			r.Payment = balance + r.Interest
		case k <= l.interestOnly:
			r.Payment = r.Interest
		default:
			r.Payment = min(payment+l.extra, balance+r.Interest)
		}
		r.Principal = r.Payment - r.Interest
		balance -= r.Principal
		r.Balance = balance
		if l.start != nil {
			r.Date = text(l.start.AddMonths(k))
		}
		rows = append(rows, r)
	}
	return rows
}

// apr returns 12 times the monthly rate at which the present value of the scheduled payments, not
// rounded, is the principal less fees. The present value falls as the rate rises, and at the
// loan's own rate it is the principal, so bisection finds the rate.
func (l loan) apr(level float64) float64 {
	i := l.annualRate / 12
	n, m := float64(l.term-l.interestOnly), float64(l.interestOnly)
	worth := func(j float64) float64 {
		x := math.Log1p(j)
		annuity := func(n float64) float64 {
			if j == 0 {
				return n
			}
			return -math.Expm1(-n*x) / j
		}
		later := float64(level*annuity(n)) + float64(l.balloon.Float()*math.Exp(-n*x))
		return float64(float64(l.principal.Float()*i)*annuity(m)) + float64(math.Exp(-m*x)*later)
	}
	received := (l.principal - l.fees).Float()
	low, high := i, i+1
	for worth(high) > received {
		high *= 2
	}
	for {
		middle := low + (high-low)/2
		if middle <= low || middle >= high {
			return 12 * middle
		}
		if worth(middle) > received {
			low = middle
		} else {
			high = middle
		}
	}
}

// findings returns the findings about unusual terms and results of a loan.
func (l loan) findings(out *Loan, negative bool) []policy.Finding {
	var f []policy.Finding
	add := func(id, severity, path, message string) {
		f = append(f, policy.Finding{ID: id, Severity: severity, Path: path, Message: message})
	}
	if negative {
		add("negative_amortization", "high", "", "A payment is below its interest: the balance grows.")
	}
	if out.FinalPayment.Float() > balloonFactor*out.MonthlyPayment.Float() {
		add("balloon_payment", "medium", "", "The last payment is more than one and a half times the level one.")
	}
	if l.annualRate > highRate {
		add("high_rate", "high", "/annualRate", "The rate is above 36 % a year.")
	}
	if out.PaymentsCount < l.term {
		add("early_payoff", "info", "", "The loan is repaid before its term.")
	}
	if l.annualRate == 0 {
		add("zero_rate", "info", "/annualRate", "The loan bears no interest.")
	}
	return f
}
