// Package waterfall splits the distributions of a fund between its investors and its general
// partner (GP), exact to the cent.
//
// The tiers apply in this order. Each takes what it needs from what the earlier tiers left:
//
//	return_of_capital   the capital not yet returned                  all to investors
//	preferred_return    the preferred return not yet paid             all to investors
//	gp_catch_up         carry*P/(catchUp-carry), P the pref paid      catchUp to the GP
//	carried_interest    the rest                                      carry to the GP
//
// Example: 4,000,000 returns 7,500,000 after 4 years, with 8 % a year preferred, 20 % carry and
// full catch-up. The preferred return is 1,441,955.84, the catch-up 360,488.96, and of the rest of
// 1,697,555.20 the GP gets 339,511.04. The GP gets 700,000 in all, 20 % of the profit. The model
// is that of the ILPA Principles (3.0, 2019): whole-fund (European) or deal by deal (American),
// both with a clawback, or several hurdles, each with its own carry.
//
// Every amount is rounded half to even to cents where it is computed: preferred returns, the needs
// of tiers, and the GP's part of each payment. Investors get the payment less the GP's part.
// Growth factors are exact decimals.
package waterfall

import (
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/money"
)

// Service is the declaration of waterfall/distribute.
var Service = policy.Declare(policy.Service{
	Name:       "waterfall/distribute",
	PriceCents: 25,
	Group:      policy.GroupFinance,
	Title:      "Distribution waterfall",
	Summary: "Splits distributions between investors and general partner to the cent: return of capital, preferred return, GP catch-up, carried interest; " +
		"one distribution or dated events, whole fund or deal by deal, with clawback, one hurdle or several. Gives tiers, LP and GP totals, LP MOIC and IRR, effective carry.",
	Example:    `{"contributedCapital":4000000,"distributableAmount":7500000,"preferredReturnRate":0.08,"holdingPeriodYears":4,"carryRate":0.2}`,
	Rules:      documented,
	Conditions: conditions,
	Reasons:    []string{"catch_up_not_above_carry", "too_many_items", "inconsistent_input", "out_of_range"},
	Charts:     charts,
}, Evaluate)

// Input is one distribution after a holding period, or dated events.
type Input struct {
	policy.Common
	ContributedCapital  *float64 `json:"contributedCapital,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Capital paid in at the start, in currency, at most two decimals. Required without events."`
	DistributableAmount *float64 `json:"distributableAmount,omitempty" jsonschema:"minimum=0,maximum=1000000000000" jsonschema_description:"Amount paid out at the end, in currency, at most two decimals. Required without events."`
	HoldingPeriodYears  *float64 `json:"holdingPeriodYears,omitempty" jsonschema:"minimum=0,maximum=100" jsonschema_description:"Years between contribution and distribution. Required without events."`
	Events              []Event  `json:"events,omitempty" jsonschema:"minItems=2,maxItems=1000" jsonschema_description:"Contributions and distributions with dates, in any order, instead of contributedCapital, distributableAmount and holdingPeriodYears. On one day contributions come first."`
	Style               *string  `json:"style,omitempty" jsonschema:"enum=european,enum=american,default=european" jsonschema_description:"european: the split is computed for the whole fund; american: for each deal alone (with events only). Both have a clawback at the last event."`
	PreferredReturnRate *float64 `json:"preferredReturnRate,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Annual preferred return as a decimal. Required without hurdles."`
	Compounding         *string  `json:"compounding,omitempty" jsonschema:"enum=annual,enum=simple,enum=quarterly,enum=monthly,default=annual" jsonschema_description:"How the preferred return is compounded; with events annual or simple."`
	CarryRate           *float64 `json:"carryRate,omitempty" jsonschema:"minimum=0,maximum=0.99,default=0.2" jsonschema_description:"GP's share of the profit as a decimal."`
	CatchUpRate         *float64 `json:"catchUpRate,omitempty" jsonschema:"minimum=0,maximum=1,default=1" jsonschema_description:"GP's share in the catch-up, above carryRate; 0 for no catch-up (hard hurdle)."`
	Hurdles             []Hurdle `json:"hurdles,omitempty" jsonschema:"minItems=1,maxItems=6" jsonschema_description:"Several hurdles, rates strictly ascending, instead of preferredReturnRate, carryRate and catchUpRate."`
	GPCommitmentRate    *float64 `json:"gpCommitmentRate,omitempty" jsonschema:"minimum=0,maximum=0.99,default=0" jsonschema_description:"GP's share of the contributed capital. The GP invests and pays carry like the other investors."`
}

// Event is one dated payment.
type Event struct {
	Date   string  `json:"date" jsonschema:"format=date" jsonschema_description:"Day of the event, YYYY-MM-DD."`
	Type   string  `json:"type" jsonschema:"enum=contribution,enum=distribution" jsonschema_description:"contribution: paid in; distribution: paid out."`
	Amount float64 `json:"amount" jsonschema:"exclusiveMinimum=0,maximum=1000000000000" jsonschema_description:"Amount in currency, at most two decimals."`
	DealID *string `json:"dealId,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"Id of the deal; required for american style."`
}

// Hurdle is a return of the investors above which the GP's share of the profit changes.
type Hurdle struct {
	Rate      float64 `json:"rate" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Annual return of the investors as a decimal."`
	CarryRate float64 `json:"carryRate" jsonschema:"minimum=0,maximum=0.99" jsonschema_description:"GP's share of the amounts above this hurdle and below the next, as a decimal."`
}

// Tier contains the amount of one tier, and its parts for limited partners and GP. Amounts are
// exact to the cent.
type Tier struct {
	Name   string      `json:"name" jsonschema_description:"return_of_capital, preferred_return, gp_catch_up or carried_interest; with hurdles also hurdle_2_split, hurdle_3_split and so on, and residual_split."`
	Amount money.Cents `json:"amount" jsonschema_description:"Amount of the tier, in currency."`
	LP     money.Cents `json:"lp" jsonschema_description:"Part that the investors get, including the GP for its commitment."`
	GP     money.Cents `json:"gp" jsonschema_description:"Part that the GP gets as carry."`
}

// Clawback is the amount that the GP must pay back if the fund ends at its last event.
type Clawback struct {
	Required    bool        `json:"required" jsonschema_description:"Whether the GP must pay anything back."`
	Amount      money.Cents `json:"amount" jsonschema_description:"Amount to pay back: the larger of excessCarry and lpShortfall, at most the carry paid."`
	ExcessCarry money.Cents `json:"excessCarry" jsonschema_description:"Carry paid above carryRate (with hurdles the highest) of the whole fund's profit."`
	LPShortfall money.Cents `json:"lpShortfall" jsonschema_description:"Capital and preferred return (first hurdle) that the whole fund still owes its investors."`
}

// Deal is one deal of a deal-by-deal fund.
type Deal struct {
	DealID  string      `json:"dealId" jsonschema_description:"The id as sent."`
	Tiers   []Tier      `json:"tiers" jsonschema_description:"Every tier of the deal, in order."`
	GPCarry money.Cents `json:"gpCarry" jsonschema_description:"Carry of the GP, in currency."`
	Profit  money.Cents `json:"profit" jsonschema_description:"Distributions less contributions of the deal."`
}

// Output is the split. Amounts are in currency units, exact to the cent.
type Output struct {
	Mode                  string           `json:"mode" jsonschema:"enum=simple,enum=dated" jsonschema_description:"dated with events, otherwise simple."`
	Style                 string           `json:"style" jsonschema:"enum=european,enum=american" jsonschema_description:"The style as sent, or the default."`
	Tiers                 []Tier           `json:"tiers" jsonschema_description:"Every tier in order; for american style the sum over all deals."`
	TotalDistributed      money.Cents      `json:"totalDistributed" jsonschema_description:"Sum of the tiers."`
	InvestorTotal         money.Cents      `json:"investorTotal" jsonschema_description:"Amount paid to all investors, including the GP for its commitment."`
	GPCarry               money.Cents      `json:"gpCarry" jsonschema_description:"Catch-up and carried interest of the GP."`
	GPCoInvest            money.Cents      `json:"gpCoInvest" jsonschema_description:"Part of investorTotal that the GP gets for its commitment."`
	LPTotal               money.Cents      `json:"lpTotal" jsonschema_description:"investorTotal less gpCoInvest."`
	GPTotal               money.Cents      `json:"gpTotal" jsonschema_description:"gpCarry plus gpCoInvest."`
	TotalContributed      money.Cents      `json:"totalContributed" jsonschema_description:"Capital paid in."`
	Profit                money.Cents      `json:"profit" jsonschema_description:"totalDistributed less totalContributed; a negative number is a loss."`
	LPMoic                float64          `json:"lpMoic" jsonschema_description:"lpTotal divided by the limited partners' capital."`
	LPIrr                 *float64         `json:"lpIrr" jsonschema:"nullable" jsonschema_description:"Annual internal rate of return of the investors; null if there is none."`
	EffectiveCarryRate    float64          `json:"effectiveCarryRate" jsonschema_description:"gpCarry divided by profit; 0 without profit."`
	EffectiveCarryPercent float64          `json:"effectiveCarryPercent" jsonschema_description:"effectiveCarryRate in percent."`
	UnreturnedCapital     money.Cents      `json:"unreturnedCapital" jsonschema_description:"Capital still owed to investors."`
	UnpaidPreferredReturn *money.Cents     `json:"unpaidPreferredReturn" jsonschema:"nullable" jsonschema_description:"Preferred return still owed (first hurdle); null beyond 70368744177664."`
	FullyCaughtUp         bool             `json:"fullyCaughtUp" jsonschema_description:"Whether capital and preferred return are paid, the catch-up is complete, and the GP has, to the cent, carryRate of preferred return and catch-up."`
	Clawback              *Clawback        `json:"clawback" jsonschema:"nullable" jsonschema_description:"Amount that the GP must pay back if the fund ends at the last event; null without events, because a single distribution never pays too much carry."`
	Deals                 *[]Deal          `json:"deals" jsonschema:"nullable" jsonschema_description:"The deals, in the order of their first events; for american style only."`
	Findings              []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Evaluate computes a waterfall. The codes of its errors are missing_field, mutually_exclusive,
// invalid_enum, invalid_date, out_of_range, too_many_items, too_long, inconsistent_input and
// catch_up_not_above_carry.
func Evaluate(in Input) (Output, error) { return evaluate(in, minEvents) }

// Proceeds is like Evaluate, for the equity flows of one deal. It also accepts a single event, a
// contribution of which nothing returns.
func Proceeds(in Input) (Output, error) { return evaluate(in, 1) }

func evaluate(in Input, fewest int) (Output, error) {
	t, events, err := read(in, fewest)
	if err != nil {
		return Output{}, err
	}
	if len(events) == 0 {
		return t.simple(in), nil
	}
	return t.dated(events), nil
}

// simple computes one distribution after a holding period.
func (t *terms) simple(in Input) Output {
	contributed, _ := money.FromNumber(*in.ContributedCapital)
	distributed, _ := money.FromNumber(*in.DistributableAmount)
	years := money.Exact(*in.HoldingPeriodYears)
	f := t.newFund(0)
	for i := range f.accounts {
		f.accounts[i].capital = contributed
		f.accounts[i].pref = contributed.Times(t.growth(t.hurdles[i].rate, years))
	}
	f.contributed = contributed
	f.distribute(distributed)
	out := t.report("simple", f.tiers, []*fund{f})
	if *in.HoldingPeriodYears > 0 {
		out.LPIrr = money.Number(math.Expm1(math.Log(t.moic(&out)) / *in.HoldingPeriodYears))
	}
	if *in.HoldingPeriodYears > 0 && out.LPIrr == nil {
		out.Findings = append(out.Findings, beyond("lpIrr"))
	}
	out.Findings = policy.SortFindings(out.Findings)
	return out
}

// dated computes the distributions of dated events.
func (t *terms) dated(events []event) Output {
	var funds []*fund
	byDeal := map[string]*fund{}
	first, last := events[0].day, events[0].day
	for _, e := range events { // assigns each event to its fund, in the order of the request
		first, last = min(first, e.day), max(last, e.day)
		deal := e.deal
		if !t.american {
			deal = ""
		}
		if byDeal[deal] == nil {
			byDeal[deal] = t.newFund(e.day)
			byDeal[deal].deal = deal
			funds = append(funds, byDeal[deal])
		}
		byDeal[deal].events = append(byDeal[deal].events, e)
	}
	paid := map[money.Day]money.Cents{} // received by investors less paid in, by day
	var pool []event
	for _, f := range funds {
		for _, e := range f.run(last) {
			if e.contribution {
				paid[e.day] -= e.amount
			} else {
				paid[e.day] += e.amount
			}
			pool = append(pool, e)
		}
	}
	out := t.report("dated", sumTiers(t.newFund(0).tiers, funds), funds)
	var times, amounts []float64
	for _, day := range slices.Sorted(maps.Keys(paid)) {
		times, amounts = append(times, float64(day-first)/365), append(amounts, paid[day].Float())
	}
	out.LPIrr = cashflow.Rate(times, amounts)
	if t.american {
		out.Style = "american"
		addDeals(&out, funds)
	}
	t.addClawback(&out, pool, last)
	out.Findings = policy.SortFindings(out.Findings)
	return out
}

// sumTiers adds the tiers of all funds to tiers.
func sumTiers(tiers []Tier, funds []*fund) []Tier {
	for _, f := range funds {
		for i, tier := range f.tiers {
			tiers[i].Amount += tier.Amount
			tiers[i].LP += tier.LP
			tiers[i].GP += tier.GP
		}
	}
	return tiers
}

// report builds the answer from the results of the funds: one, or one per deal.
func (t *terms) report(mode string, tiers []Tier, funds []*fund) Output {
	out := Output{Mode: mode, Style: "european", Tiers: tiers, Findings: []policy.Finding{}}
	for _, tier := range tiers {
		out.TotalDistributed += tier.Amount
		out.InvestorTotal += tier.LP
		out.GPCarry += tier.GP
	}
	var unpaid, due money.Cents
	caughtUp := true
	for _, f := range funds {
		out.TotalContributed += f.contributed
		out.UnreturnedCapital += f.accounts[0].capital
		unpaid = unpaid.Plus(f.accounts[0].pref)
		due += f.tiers[1].Amount
		if len(t.given) == 0 {
			due += f.tiers[2].Amount
			caughtUp = caughtUp && f.catchUpNeed() <= 0
		}
	}
	out.GPCoInvest = out.InvestorTotal.Times(t.commitment)
	out.LPTotal = out.InvestorTotal - out.GPCoInvest
	out.GPTotal = out.GPCarry + out.GPCoInvest
	out.Profit = out.TotalDistributed - out.TotalContributed
	out.LPMoic = policy.Sig12(t.moic(&out))
	if out.Profit > 0 {
		rate := float64(out.GPCarry) / float64(out.Profit)
		out.EffectiveCarryRate, out.EffectiveCarryPercent = policy.Sig12(rate), policy.Sig12(rate*100)
	}
	if unpaid.Reportable() {
		out.UnpaidPreferredReturn = &unpaid
	} else {
		out.Findings = append(out.Findings, beyond("unpaidPreferredReturn"))
	}
	out.FullyCaughtUp = caughtUp && out.UnreturnedCapital == 0 && unpaid == 0 &&
		out.GPCarry >= due.Times(t.headline)-withinOneCent
	t.addFindings(&out, unpaid, caughtUp)
	return out
}

// moic returns lpTotal divided by the capital of the limited partners.
func (t *terms) moic(out *Output) float64 {
	share := new(big.Rat).Sub(big.NewRat(1, 1), t.commitment)
	own, _ := share.Mul(share, big.NewRat(int64(out.TotalContributed), 1)).Float64()
	return float64(out.LPTotal) / own
}

// addDeals adds the result of each deal to the answer.
func addDeals(out *Output, funds []*fund) {
	deals := []Deal{}
	for _, f := range funds {
		d := Deal{DealID: f.deal, Tiers: f.tiers, Profit: -f.contributed}
		for _, tier := range f.tiers {
			d.GPCarry += tier.GP
			d.Profit += tier.Amount
		}
		deals = append(deals, d)
	}
	out.Deals = &deals
}

// addClawback computes what the GP must pay back if the fund ends at the last event. In a
// deal-by-deal fund a later deal may lose what an earlier one earned. In a whole fund, capital
// that was called after carry was paid may be lost.
func (t *terms) addClawback(out *Output, pool []event, last money.Day) {
	c := Clawback{ExcessCarry: max(0, out.GPCarry-max(0, out.Profit).Times(t.headline))}
	c.LPShortfall = t.shortfall(pool, last)
	c.Amount = min(out.GPCarry, max(c.ExcessCarry, c.LPShortfall))
	c.Required = c.Amount > 0
	if !c.LPShortfall.Reportable() {
		c.LPShortfall = money.MaxCents
		out.Findings = append(out.Findings, beyond("clawback.lpShortfall"))
	}
	out.Clawback = &c
	if c.Required {
		out.Findings = append(out.Findings, policy.Finding{ID: "clawback_due", Severity: "high", Path: "",
			Message: "Over the whole fund the GP has received more carry than it earned."})
	}
}

// addFindings adds the findings about unusual results of a split.
func (t *terms) addFindings(out *Output, unpaid money.Cents, caughtUp bool) {
	add := func(id, severity, message string) {
		out.Findings = append(out.Findings, policy.Finding{ID: id, Severity: severity, Message: message})
	}
	if out.UnreturnedCapital > 0 {
		add("capital_not_returned", "high", "Investors have not got their capital back.")
	}
	if unpaid > 0 {
		add("preferred_return_unpaid", "medium", "Investors have not got their preferred return.")
	}
	if !caughtUp {
		add("catch_up_incomplete", "low", "The GP has not caught up to its share of the profit.")
	}
	headline, _ := t.headline.Float64()
	if out.EffectiveCarryRate > headline+aboveHeadline {
		add("carry_above_headline", "medium", "The GP's carry is a larger part of the profit than the carry rate.")
	}
}

func beyond(name string) policy.Finding {
	return policy.Finding{ID: "number_out_of_range", Severity: "medium", Message: "The value of " + name + " is too large for an exact number."}
}
