package waterfall

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/countersign/countersign/policy/money"
)

// terms is an agreement that was read and checked. given contains the hurdles of the request. If
// the request has none, the standard tiers apply, and the field hurdles contains only the
// preferred return.
type terms struct {
	american             bool
	compounding          string
	hurdles              []hurdle
	given                []Hurdle
	catchUp              *big.Rat
	headline, commitment *big.Rat // the highest carry rate, and the GP's share of the capital
}

// hurdle is a rate of return of the investors, with the carry above it.
type hurdle struct {
	rate, carry *big.Rat
	yearly      money.Yearly
	factors     map[int]*big.Rat // growth by number of days; only looked up, so the map order does not matter
}

// event is a payment that was read and checked.
type event struct {
	day          money.Day
	contribution bool
	amount       money.Cents
	deal         string
}

// growth returns the return of one unit of capital over a number of years.
func (t *terms) growth(rate, years *big.Rat) *big.Rat {
	periods := map[string]int64{"annual": 1, "quarterly": 4, "monthly": 12}[t.compounding]
	if periods == 0 { // simple interest
		return new(big.Rat).Mul(rate, years)
	}
	n := big.NewRat(periods, 1)
	return money.Growth(new(big.Rat).Quo(rate, n), n.Mul(n, years))
}

// account contains the capital and the return that investors are still owed at the rate of one
// hurdle.
type account struct {
	capital, pref money.Cents
}

// accrue adds the return of a number of days.
func (a *account) accrue(t *terms, h hurdle, days int) {
	if days == 0 {
		return
	}
	if t.compounding == "simple" {
		part := new(big.Rat).Mul(h.rate, big.NewRat(int64(days), 365))
		a.pref = a.pref.Plus(a.capital.Times(part))
		return
	}
	if h.factors[days] == nil {
		h.factors[days] = h.yearly.Growth(days)
	}
	a.pref = a.pref.Plus(a.capital.Plus(a.pref).Times(h.factors[days]))
}

// pay subtracts a payment to investors, first from the capital and then from the return. A rest is
// profit and does not change the account.
func (a *account) pay(amount money.Cents) {
	toCapital := min(amount, a.capital)
	a.capital -= toCapital
	a.pref -= min(amount-toCapital, a.pref)
}

// fund is one waterfall: that of the whole fund, or that of one deal.
type fund struct {
	t           *terms
	deal        string
	events      []event
	accounts    []account // one account per hurdle
	tiers       []Tier
	contributed money.Cents
	day         money.Day // the day up to which returns are accrued
}

func (t *terms) newFund(day money.Day) *fund {
	names := []string{"return_of_capital", "preferred_return", "gp_catch_up", "carried_interest"}
	if len(t.given) > 0 {
		names = names[:2]
		for k := 2; k <= len(t.given); k++ {
			names = append(names, fmt.Sprintf("hurdle_%d_split", k))
		}
		names = append(names, "residual_split")
	}
	f := &fund{t: t, accounts: make([]account, len(t.hurdles)), day: day}
	for _, name := range names {
		f.tiers = append(f.tiers, Tier{Name: name})
	}
	return f
}

// run processes the events by day, on each day the contributions first, and then accrues returns
// up to last, the last day of the whole fund. It returns what investors paid in and received.
func (f *fund) run(last money.Day) []event {
	slices.SortStableFunc(f.events, func(a, b event) int { return cmp.Compare(a.day, b.day) })
	f.day = f.events[0].day
	var flows []event
	for i := 0; i < len(f.events); {
		day := f.events[i].day
		f.accrue(day)
		var in, out money.Cents
		for ; i < len(f.events) && f.events[i].day == day; i++ {
			if e := f.events[i]; e.contribution {
				in += e.amount
			} else {
				out += e.amount
			}
		}
		f.contributed += in
		for k := range f.accounts {
			f.accounts[k].capital += in
		}
		flows = append(flows, event{day: day, contribution: true, amount: in},
			event{day: day, amount: f.distribute(out)})
	}
	f.accrue(last)
	return flows
}

func (f *fund) accrue(day money.Day) {
	for k := range f.accounts {
		f.accounts[k].accrue(f.t, f.t.hurdles[k], int(day-f.day))
	}
	f.day = day
}

// distribute applies the tiers to one payment and returns the investors' part.
func (f *fund) distribute(amount money.Cents) (investors money.Cents) {
	rest := amount
	take := func(i int, need money.Cents, share *big.Rat) {
		part := min(rest, max(need, 0))
		rest -= part
		gp := part.Times(share)
		f.tiers[i].Amount += part
		f.tiers[i].GP += gp
		f.tiers[i].LP += part - gp
		investors += part - gp
		for k := range f.accounts {
			f.accounts[k].pay(part - gp)
		}
	}
	nothing := new(big.Rat)
	take(0, f.accounts[0].capital, nothing)
	take(1, f.accounts[0].pref, nothing)
	if len(f.t.given) == 0 {
		take(2, f.catchUpNeed(), f.t.catchUp)
		take(3, rest, f.t.headline)
		return investors
	}
	for k := 1; k < len(f.accounts); k++ {
		carry := f.t.hurdles[k-1].carry
		balance := f.accounts[k].capital.Plus(f.accounts[k].pref)
		keep := new(big.Rat).Sub(big.NewRat(1, 1), carry)
		take(k+1, balance.Times(keep.Inv(keep)), carry)
	}
	take(len(f.tiers)-1, rest, f.t.hurdles[len(f.t.hurdles)-1].carry)
	return investors
}

// catchUpNeed returns the amount that the catch-up tier still needs until the GP has its share of
// preferred return and catch-up together: x with catchUp*x = carry*(pref + x).
func (f *fund) catchUpNeed() money.Cents {
	carry, ahead := f.t.headline, new(big.Rat).Sub(f.t.catchUp, f.t.headline)
	if ahead.Sign() <= 0 {
		return 0
	}
	return f.tiers[1].Amount.Times(ahead.Quo(carry, ahead)) - f.tiers[2].Amount
}

// shortfall returns what the fund still owes its investors on the last day, with the payments of
// all deals counted together.
func (t *terms) shortfall(pool []event, last money.Day) money.Cents {
	slices.SortStableFunc(pool, func(a, b event) int {
		if c := cmp.Compare(a.day, b.day); c != 0 {
			return c
		}
		switch {
		case a.contribution == b.contribution:
			return 0
		case a.contribution:
			return -1
		}
		return 1
	})
	var a account
	day := pool[0].day
	for _, e := range pool {
		a.accrue(t, t.hurdles[0], int(e.day-day))
		day = e.day
		if e.contribution {
			a.capital += e.amount
		} else {
			a.pay(e.amount)
		}
	}
	a.accrue(t, t.hurdles[0], int(last-day))
	return a.capital.Plus(a.pref)
}
