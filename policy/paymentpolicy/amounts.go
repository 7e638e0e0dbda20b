package paymentpolicy

import (
	"math/big"
	"strconv"

	"github.com/countersign/countersign/policy/normal"
)

var slack = func() *big.Rat {
	r, err := normal.Decimal(amountSlack)
	if err != nil {
		panic(err)
	}
	return r
}()

// price contains the paid and the expected amount of one comparison, as exact numbers in the same
// unit: token units or US dollars.
type price struct {
	path, measure string
	paid, wanted  *big.Rat
}

// prices returns the comparisons with the expected amounts that are possible, and the paths of the
// expected amounts that cannot be compared.
func (c *call) prices() (possible []price, impossible []string) {
	if c.Expected == nil {
		return nil, nil
	}
	units, _ := normal.Units(c.Expected.AmountUnits)
	switch {
	case units == nil:
	case c.units != nil:
		possible = append(possible, price{"/expected/amountUnits", "units", new(big.Rat).SetInt(c.units), new(big.Rat).SetInt(units)})
	default:
		wanted := usdOf(c.network, c.Payment.Asset, units, nil)
		if c.usd == nil || wanted == nil {
			impossible = append(impossible, "/expected/amountUnits")
			break
		}
		possible = append(possible, price{"/expected/amountUnits", "USD", c.usd, wanted})
	}
	if c.Expected.AmountUSD != nil {
		if c.usd == nil {
			return possible, append(impossible, "/expected/amountUsd")
		}
		possible = append(possible, price{"/expected/amountUsd", "USD", c.usd, normal.Float(*c.Expected.AmountUSD)})
	}
	return possible, impossible
}

func amountAbove(c *call) (faults []fault, compared bool) {
	possible, _ := c.prices()
	for _, p := range possible {
		limit := new(big.Rat).Mul(p.wanted, big.NewRat(int64(10000+c.Expected.ToleranceBps), 10000))
		if p.paid.Cmp(limit) > 0 {
			faults = append(faults, fault{path: p.path, expected: "at most " + number(limit) + " " + p.measure, actual: number(p.paid) + " " + p.measure,
				message: "the payment is above the expected amount"})
		}
	}
	return faults, len(possible) > 0
}

func amountBelow(c *call) (faults []fault, compared bool) {
	possible, _ := c.prices()
	for _, p := range possible {
		if p.paid.Cmp(p.wanted) < 0 {
			faults = append(faults, fault{path: p.path, expected: number(p.wanted) + " " + p.measure, actual: number(p.paid) + " " + p.measure,
				message: "the payment is below the expected amount"})
		}
	}
	return faults, len(possible) > 0
}

func amountGiven(c *call) ([]fault, bool) {
	return one(c.units == nil && c.Payment.AmountUSD == nil, fault{path: "/payment/amountUnits", expected: "present", actual: "absent",
		message: "the payment states no amount"})
}

func amountsAgree(c *call) ([]fault, bool) {
	if c.units == nil || c.Payment.AmountUSD == nil || c.Payment.Asset == "" || !normal.IsUSDC(c.network, c.Payment.Asset) {
		return skipped()
	}
	units := normal.Scale(c.units, normal.USDCDecimals)
	gap := new(big.Rat).Sub(c.usd, units)
	return one(gap.Abs(gap).Cmp(slack) > 0, fault{path: "/payment/amountUsd", expected: number(units) + " USD", actual: number(c.usd) + " USD",
		message: "amountUsd and amountUnits state different amounts"})
}

// over applies one limit in US dollars to the sum of the payment and the amount before, which was
// spent earlier.
func (c *call) over(limit *float64, before float64, path, message string) ([]fault, bool) {
	if limit == nil || c.usd == nil {
		return skipped()
	}
	total := new(big.Rat).Add(normal.Float(before), c.usd)
	allowed := normal.Float(*limit)
	return one(total.Cmp(allowed) > 0, fault{path: path, expected: "at most " + number(allowed) + " USD", actual: number(total) + " USD", message: message})
}

func (c *call) spent() Spend {
	if c.Spend == nil {
		return Spend{}
	}
	return *c.Spend
}

func transactionLimit(c *call) ([]fault, bool) {
	return c.over(c.policy.MaxUSDPerTransaction, 0, "/policy/maxUsdPerTransaction", "the payment is above the limit of one transaction")
}

func dailyLimit(c *call) ([]fault, bool) {
	return c.over(c.policy.DailyLimitUSD, c.spent().TodayUSD, "/policy/dailyLimitUsd", "the payment goes above the daily limit")
}

func monthlyLimit(c *call) ([]fault, bool) {
	return c.over(c.policy.MonthlyLimitUSD, c.spent().MonthUSD, "/policy/monthlyLimitUsd", "the payment goes above the monthly limit")
}

func reviewThreshold(c *call) ([]fault, bool) {
	return c.over(c.policy.ReviewAboveUSD, 0, "/policy/reviewAboveUsd", "the payment is above the review threshold")
}

// limitVerifiable reports each limit and expected amount that cannot be checked, because the value
// of the payment is unknown.
func limitVerifiable(c *call) (faults []fault, compared bool) {
	for _, limit := range []struct {
		value *float64
		path  string
	}{
		{c.policy.MaxUSDPerTransaction, "/policy/maxUsdPerTransaction"},
		{c.policy.DailyLimitUSD, "/policy/dailyLimitUsd"},
		{c.policy.MonthlyLimitUSD, "/policy/monthlyLimitUsd"},
		{c.policy.ReviewAboveUSD, "/policy/reviewAboveUsd"},
	} {
		if limit.value != nil {
			compared = true
			if c.usd == nil {
				faults = append(faults, fault{path: limit.path, expected: "an amount in US dollars", actual: "unknown", message: "the limit cannot be checked without the amount in US dollars"})
			}
		}
	}
	_, impossible := c.prices()
	for _, path := range impossible {
		faults = append(faults, fault{path: path, expected: "an amount in the same measure", actual: "unknown", message: "the payment cannot be compared with the expected amount"})
	}
	return faults, compared || len(impossible) > 0
}

// number returns an amount as a decimal. An amount without a finite decimal form is rounded to 12
// decimals.
func number(r *big.Rat) string {
	text, err := normal.DecimalString(r)
	if err != nil {
		return r.FloatString(12)
	}
	return text
}

func integer(n int) string { return strconv.Itoa(n) }
