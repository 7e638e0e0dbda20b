// Package bond analyzes a bond (price or yield, durations, convexity, calls) or, if the request
// has a principal, a level-payment loan with its schedule.
//
// At yield y with f coupons a year, a bond's dirty price is the sum over its flows of CF_k / (1 +
// y/f)^(k-1+w), where w is the remaining part of the current coupon period (the street
// convention). With one coupon left it is CF / (1 + w*y/f), simple interest, unless lastPeriod is
// compound. An irregular first or last period is divided into notional regular periods. The coupon
// and the length of the irregular period are the sums over the parts of the notional periods that
// it covers. The clean price is the dirty price less accrued interest. For 4.25 % semi-annual,
// settled 2025-05-20, due 2031-11-15, at 3.91 %: dirty 101.988602632, clean 101.930858067.
//
// The formulas are those of the ISMA (Stigum and Robinson 1996, "Money Market and Bond
// Calculations"; Fabozzi, "Bond Markets, Analysis and Strategies"). For the last period and
// irregular periods they are those of SIFMA's Standard Securities Calculation Methods, which
// spreadsheets use.
//
// A loan's payment is (P - B*(1+i)^-n)*i / (1 - (1+i)^-n) with i = annualRate/12. Its schedule is
// in cents, and every interest amount is rounded half to even. 18500 at 6.49 % over 36 months is
// 566.92 a month and 566.98 in the last month.
//
// Rates are annual decimals. Prices are amounts of money for the original face value.
package bond

import (
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/money"
)

// Service is the declaration of bond/analyze.
var Service = policy.Declare(policy.Service{
	Name:       "bond/analyze",
	PriceCents: 25,
	Group:      policy.GroupFinance,
	Title:      "Bond or loan analysis",
	Summary: "Bond: clean and dirty price from a yield or the yield from a price, accrued interest in five day counts, current yield, " +
		"Macaulay and modified duration, convexity, irregular first and last coupons, stepped, amortizing, callable and puttable bonds with yield to worst. " +
		"Loan (send principal, annualRate, termMonths): level payment, totals, APR and the schedule to the cent.",
	Example:    `{"faceValue":100,"couponRate":0.0425,"settlementDate":"2025-05-20","maturityDate":"2031-11-15","yieldToMaturity":0.0391}`,
	Rules:      documented,
	Conditions: conditions,
	Reasons:    []string{"yield_not_found", "invalid_date", "inconsistent_input", "out_of_range"},
	Charts:     charts,
}, Evaluate)

// Input is a bond or a loan. A request must not have members of both.
type Input struct {
	policy.Common
	Mode *string `json:"mode,omitempty" jsonschema:"enum=bond,enum=loan" jsonschema_description:"Optional: loan if principal is sent, else bond. Another value is refused."`

	FaceValue       *float64 `json:"faceValue,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000000000000,default=100" jsonschema_description:"Original face value, in currency; prices are for this amount."`
	CouponRate      *float64 `json:"couponRate,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Nominal annual coupon as a decimal; required for a bond, 0 for a zero coupon bond."`
	Frequency       *int     `json:"frequency,omitempty" jsonschema:"enum=1,enum=2,enum=4,enum=12,default=2" jsonschema_description:"Coupons a year, and number of times a year that the yield is compounded."`
	SettlementDate  *string  `json:"settlementDate,omitempty" jsonschema:"format=date" jsonschema_description:"Day of settlement, YYYY-MM-DD, before maturityDate. Send either both dates or yearsToMaturity."`
	MaturityDate    *string  `json:"maturityDate,omitempty" jsonschema:"format=date" jsonschema_description:"Day of maturity, YYYY-MM-DD, from which coupon dates are counted back."`
	YearsToMaturity *float64 `json:"yearsToMaturity,omitempty" jsonschema:"exclusiveMinimum=0,maximum=100" jsonschema_description:"Years to maturity, if the dates are not known."`
	DayCount        *string  `json:"dayCount,omitempty" jsonschema:"enum=ACT/ACT-ICMA,enum=30/360-US,enum=30E/360,enum=ACT/360,enum=ACT/365F,enum=ACT/ACT,enum=ACT/ACT-ISMA,enum=30/360,enum=30U/360,enum=30/360-NASD,enum=30E/360-ISMA,enum=ACT/365,enum=0,enum=1,enum=2,enum=3,enum=4,default=ACT/ACT-ICMA" jsonschema_description:"Day count of accrued interest and of the current period (with dates only). Other names of the first five: ACT/ACT and ACT/ACT-ISMA are ACT/ACT-ICMA; 30/360, 30U/360 and 30/360-NASD are 30/360-US; 30E/360-ISMA is 30E/360; ACT/365 is ACT/365F; 0 to 4 as in basis."`
	Basis           *int     `json:"basis,omitempty" jsonschema:"enum=0,enum=1,enum=2,enum=3,enum=4" jsonschema_description:"The day count by its number in spreadsheets, instead of dayCount: 0 is 30/360-US, 1 ACT/ACT-ICMA, 2 ACT/360, 3 ACT/365F, 4 30E/360."`
	IssueDate       *string  `json:"issueDate,omitempty" jsonschema:"format=date" jsonschema_description:"Day from which interest accrues, YYYY-MM-DD, on or before settlementDate. A first period that is not a whole coupon period is irregular: it pays as much a day as a regular period."`
	FirstCouponDate *string  `json:"firstCouponDate,omitempty" jsonschema:"format=date" jsonschema_description:"First coupon date, YYYY-MM-DD, if the first period is longer than a regular one; needs issueDate. Default: the first regular coupon date after issueDate."`
	LastCouponDate  *string  `json:"lastCouponDate,omitempty" jsonschema:"format=date" jsonschema_description:"Last coupon date before maturityDate, YYYY-MM-DD, for an irregular last period. Earlier coupon dates are then counted back from it."`
	LastPeriod      *string  `json:"lastPeriod,omitempty" jsonschema:"enum=simple,enum=compound,default=simple" jsonschema_description:"How a bond with one coupon left is discounted: simple interest (Excel, SIFMA, Bloomberg) or compounded like the others (ISMA)."`
	Redemption      *float64 `json:"redemption,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Amount paid at maturity, in currency; default faceValue. Excludes amortization."`
	YieldToMaturity *float64 `json:"yieldToMaturity,omitempty" jsonschema:"maximum=10" jsonschema_description:"Annual yield as a decimal, above -0.99 times frequency. Send exactly one of yieldToMaturity, cleanPrice and dirtyPrice."`
	CleanPrice      *float64 `json:"cleanPrice,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Price without accrued interest, for faceValue."`
	DirtyPrice      *float64 `json:"dirtyPrice,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Price with accrued interest, for faceValue."`

	CouponSteps  []CouponStep   `json:"couponSteps,omitempty" jsonschema:"maxItems=100" jsonschema_description:"Later coupon rates, ascending by date (with dates only)."`
	Amortization []Amortization `json:"amortization,omitempty" jsonschema:"maxItems=400" jsonschema_description:"Principal repaid before maturity, ascending by date (with dates only); together less than faceValue."`
	CallSchedule []Call         `json:"callSchedule,omitempty" jsonschema:"maxItems=100" jsonschema_description:"Days on which the issuer may redeem, ascending, after settlement and before maturity (with dates only)."`

	PutSchedule []Call `json:"putSchedule,omitempty" jsonschema:"maxItems=100" jsonschema_description:"Days on which the holder may demand repayment, in the form of callSchedule."`

	Principal           *float64 `json:"principal,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Loan amount, in currency, with at most two decimals. A request with this member is a loan."`
	AnnualRate          *float64 `json:"annualRate,omitempty" jsonschema:"minimum=0,maximum=2" jsonschema_description:"Nominal annual rate as a decimal, compounded monthly; required for a loan."`
	TermMonths          *int     `json:"termMonths,omitempty" jsonschema:"minimum=1,maximum=600" jsonschema_description:"Number of monthly payments; required for a loan."`
	StartDate           *string  `json:"startDate,omitempty" jsonschema:"format=date" jsonschema_description:"Day of the loan, YYYY-MM-DD; the first payment is a month later."`
	BalloonAmount       *float64 `json:"balloonAmount,omitempty" jsonschema:"minimum=0,default=0" jsonschema_description:"Principal left for the last payment, in currency, less than principal."`
	InterestOnlyMonths  *int     `json:"interestOnlyMonths,omitempty" jsonschema:"minimum=0,default=0" jsonschema_description:"Months at the start that pay interest only, less than termMonths."`
	ExtraMonthlyPayment *float64 `json:"extraMonthlyPayment,omitempty" jsonschema:"minimum=0,maximum=1000000000000,default=0" jsonschema_description:"Amount paid in addition to every level payment, in currency."`
	UpfrontFees         *float64 `json:"upfrontFees,omitempty" jsonschema:"minimum=0,default=0" jsonschema_description:"Fees that the lender keeps at the start, in currency, less than principal; they raise apr."`
	IncludeSchedule     *bool    `json:"includeSchedule,omitempty" jsonschema:"default=true" jsonschema_description:"Whether the answer has the schedule; if false, it is empty."`
}

// CouponStep is a new coupon rate for the periods that start on or after FromDate, a coupon date.
type CouponStep struct {
	FromDate   string  `json:"fromDate" jsonschema:"format=date" jsonschema_description:"A coupon date before maturity, YYYY-MM-DD."`
	CouponRate float64 `json:"couponRate" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Nominal annual coupon as a decimal."`
}

// Amortization is principal that is repaid on a coupon date.
type Amortization struct {
	Date   string  `json:"date" jsonschema:"format=date" jsonschema_description:"A coupon date before maturity, YYYY-MM-DD. On or before settlement it is already repaid."`
	Amount float64 `json:"amount" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Principal repaid, in currency."`
}

// Call is a day on which the issuer may end the bond at a price. In a put schedule the holder may
// do so.
type Call struct {
	Date  string  `json:"date" jsonschema:"format=date" jsonschema_description:"A coupon date, YYYY-MM-DD."`
	Price float64 `json:"price" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Price paid in addition to the coupon of that day, in currency for the original faceValue. It replaces all later flows and the amortization of that day."`
}

// Output is the analysis. It has the members of Bond or those of Loan, depending on Mode.
type Output struct {
	Mode string `json:"mode" jsonschema:"enum=bond,enum=loan" jsonschema_description:"bond or loan."`
	*Bond
	*Loan
	Findings []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Bond contains the members of the answer for a bond. Prices are for the original face value.
type Bond struct {
	CleanPrice           float64    `json:"cleanPrice" jsonschema_description:"Price without accrued interest."`
	DirtyPrice           float64    `json:"dirtyPrice" jsonschema_description:"Price with accrued interest, which the buyer pays."`
	AccruedInterest      float64    `json:"accruedInterest" jsonschema_description:"Part of the current coupon that belongs to the seller."`
	YieldToMaturity      float64    `json:"yieldToMaturity" jsonschema_description:"Annual yield, compounded with the coupon frequency."`
	CurrentYield         *float64   `json:"currentYield" jsonschema:"nullable" jsonschema_description:"Current annual coupon / clean price; null if that is not positive."`
	EffectiveAnnualYield float64    `json:"effectiveAnnualYield" jsonschema_description:"The yield compounded annually."`
	MacaulayDuration     float64    `json:"macaulayDuration" jsonschema_description:"Years."`
	ModifiedDuration     float64    `json:"modifiedDuration" jsonschema_description:"Relative price change per 1.00 of yield, in years."`
	Convexity            float64    `json:"convexity" jsonschema_description:"Convexity, in years squared."`
	DV01                 float64    `json:"dv01" jsonschema_description:"Price change per basis point, in currency."`
	PriceType            string     `json:"priceType" jsonschema:"enum=premium,enum=par,enum=discount" jsonschema_description:"Whether the clean price is above, at or below redemption."`
	CouponsRemaining     int        `json:"couponsRemaining" jsonschema_description:"Number of coupon dates after settlement."`
	PreviousCouponDate   *string    `json:"previousCouponDate" jsonschema:"nullable" jsonschema_description:"Last coupon date on or before settlement, or issueDate in the first period; null without dates."`
	NextCouponDate       *string    `json:"nextCouponDate" jsonschema:"nullable" jsonschema_description:"First coupon date after settlement; null without dates."`
	DayCount             *string    `json:"dayCount" jsonschema:"nullable" jsonschema_description:"The day count used; null without dates."`
	DaysAccrued          *float64   `json:"daysAccrued" jsonschema:"nullable" jsonschema_description:"Days of accrued interest by the day count; null without dates."`
	DaysInPeriod         *float64   `json:"daysInPeriod" jsonschema:"nullable" jsonschema_description:"Days of the current coupon period by the day count; null without dates."`
	YieldToCall          *float64   `json:"yieldToCall" jsonschema:"nullable" jsonschema_description:"Yield to the first call; null without calls."`
	YieldToPut           *float64   `json:"yieldToPut" jsonschema:"nullable" jsonschema_description:"Yield to the first put; null without puts."`
	YieldToWorst         *float64   `json:"yieldToWorst" jsonschema:"nullable" jsonschema_description:"Lowest of the yields to calls and maturity; null without calls."`
	WorstDate            *string    `json:"worstDate" jsonschema:"nullable" jsonschema_description:"Day of the call or maturity with the lowest yield."`
	CashFlows            []CashFlow `json:"cashFlows" jsonschema_description:"Every payment after settlement."`
}

// CashFlow is one payment of a bond.
type CashFlow struct {
	Date           *string `json:"date" jsonschema:"nullable" jsonschema_description:"Day of the payment; null without dates."`
	TimeYears      float64 `json:"timeYears" jsonschema_description:"Years from settlement that are used to discount the payment."`
	Coupon         float64 `json:"coupon" jsonschema_description:"Interest, in currency."`
	Principal      float64 `json:"principal" jsonschema_description:"Repayment, in currency."`
	Total          float64 `json:"total" jsonschema_description:"Both."`
	DiscountFactor float64 `json:"discountFactor" jsonschema_description:"Present value of 1 at the yield."`
	PresentValue   float64 `json:"presentValue" jsonschema_description:"The payment times discountFactor."`
}

// Loan contains the members of the answer for a loan. Amounts are exact to the cent.
type Loan struct {
	MonthlyPayment      money.Cents `json:"monthlyPayment" jsonschema_description:"Level payment, rounded to the cent."`
	UnroundedPayment    float64     `json:"unroundedPayment" jsonschema_description:"Level payment before rounding."`
	FinalPayment        money.Cents `json:"finalPayment" jsonschema_description:"Last payment; it includes the balloon and the rounding differences."`
	TotalPaid           money.Cents `json:"totalPaid" jsonschema_description:"Sum of the payments."`
	TotalInterest       money.Cents `json:"totalInterest" jsonschema_description:"Sum of the interest."`
	TotalPrincipal      money.Cents `json:"totalPrincipal" jsonschema_description:"Sum of the repayments, which is the principal."`
	PaymentsCount       int         `json:"paymentsCount" jsonschema_description:"Number of payments made."`
	APR                 float64     `json:"apr" jsonschema_description:"12 times the monthly rate at which the scheduled payments are worth principal less fees."`
	EffectiveAnnualRate float64     `json:"effectiveAnnualRate" jsonschema_description:"Annual rate that equals annualRate compounded monthly."`
	Schedule            []Payment   `json:"schedule" jsonschema_description:"Every payment; empty if includeSchedule is false."`
}

// Payment is one row of a loan's schedule.
type Payment struct {
	Period    int         `json:"period" jsonschema_description:"1 for the first month."`
	Date      *string     `json:"date" jsonschema:"nullable" jsonschema_description:"Day of the payment; null without startDate."`
	Payment   money.Cents `json:"payment" jsonschema_description:"Interest plus principal."`
	Interest  money.Cents `json:"interest" jsonschema_description:"Balance before the payment, times annualRate / 12."`
	Principal money.Cents `json:"principal" jsonschema_description:"Repayment."`
	Balance   money.Cents `json:"balance" jsonschema_description:"Principal that remains after the payment."`
}

// Evaluate analyzes one bond or loan. The codes of its errors are missing_field,
// mutually_exclusive, invalid_enum, invalid_date, inconsistent_input, too_many_items,
// yield_not_found, and out_of_range (for an input, or for a result that JSON cannot represent
// exactly).
func Evaluate(in Input) (Output, error) {
	if in.Principal == nil {
		if in.Mode != nil && *in.Mode == "loan" {
			return Output{}, policy.Refuse("missing_field", "/principal", "principal is required")
		}
		return evaluateBond(in)
	}
	if in.Mode != nil && *in.Mode == "bond" {
		return Output{}, policy.Refuse("inconsistent_input", "/mode", "mode must be loan or absent if principal is sent")
	}
	return evaluateLoan(in)
}

// given says whether an optional member is present.
type given struct {
	path string
	is   bool
}

// exclude refuses the first present one of the members, because it cannot be combined with the
// member that the parameter other names.
func exclude(c *money.Check, other string, members ...given) {
	for _, m := range members {
		if m.is {
			c.Exclusive(m.path, other)
		}
	}
}
