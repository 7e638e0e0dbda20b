package waterfall

import (
	"fmt"
	"math/big"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/money"
)

// read reads and checks an input. It returns the terms, and the events if the request has any.
func read(in Input, fewest int) (*terms, []event, error) {
	var c money.Check
	simple := []member{{"/contributedCapital", in.ContributedCapital}, {"/distributableAmount", in.DistributableAmount},
		{"/holdingPeriodYears", in.HoldingPeriodYears}}
	t := &terms{compounding: money.Or(in.Compounding, "annual")}
	if in.Events == nil {
		for _, m := range simple {
			if m.value == nil {
				c.Missing(m.path)
			}
		}
		capital, amount := money.Or(in.ContributedCapital, 1), money.Or(in.DistributableAmount, 0)
		c.Above("/contributedCapital", capital, 0, maxAmount)
		c.Amount("/contributedCapital", capital)
		c.Between("/distributableAmount", amount, 0, maxAmount)
		c.Amount("/distributableAmount", amount)
		c.Between("/holdingPeriodYears", money.Or(in.HoldingPeriodYears, 0), 0, maxYears)
		c.OneOf("/compounding", t.compounding, "annual", "simple", "quarterly", "monthly")
	} else {
		for _, m := range simple {
			if m.value != nil {
				c.Exclusive(m.path, "events")
			}
		}
		c.OneOf("/compounding", t.compounding, "annual", "simple")
	}
	style := money.Or(in.Style, "european")
	c.OneOf("/style", style, "european", "american")
	t.american = style == "american"
	if t.american && in.Events == nil {
		c.Refuse("inconsistent_input", "/style", "style must be european if events are absent")
	}
	t.readRates(&c, in)
	var events []event
	if in.Events != nil {
		events = t.readEvents(&c, in.Events, fewest)
	}
	return t, events, c.Err()
}

// member is an optional number with its JSON pointer.
type member struct {
	path  string
	value *float64
}

// readRates reads and checks preferred return, carry, catch-up, hurdles and GP commitment.
func (t *terms) readRates(c *money.Check, in Input) {
	pref, carry, catchUp := money.Or(in.PreferredReturnRate, 0), money.Or(in.CarryRate, 0.2), money.Or(in.CatchUpRate, 1)
	commitment := money.Or(in.GPCommitmentRate, 0)
	c.Between("/preferredReturnRate", pref, 0, maxRate)
	c.Between("/carryRate", carry, 0, maxCarry)
	c.Between("/catchUpRate", catchUp, 0, 1)
	c.Between("/gpCommitmentRate", commitment, 0, maxCarry)
	if in.Hurdles != nil {
		for _, m := range []member{{"/preferredReturnRate", in.PreferredReturnRate}, {"/carryRate", in.CarryRate}, {"/catchUpRate", in.CatchUpRate}} {
			if m.value != nil {
				c.Exclusive(m.path, "hurdles")
			}
		}
		c.Length("/hurdles", len(in.Hurdles), 1, maxHurdles)
	} else if in.PreferredReturnRate == nil {
		c.Missing("/preferredReturnRate")
	}
	if in.Hurdles == nil && catchUp > 0 && catchUp <= carry {
		c.Refuse("catch_up_not_above_carry", "/catchUpRate", "catchUpRate must be 0 or above carryRate")
	}
	for i, h := range in.Hurdles {
		c.Between(fmt.Sprintf("/hurdles/%d/rate", i), h.Rate, 0, maxRate)
		c.Between(fmt.Sprintf("/hurdles/%d/carryRate", i), h.CarryRate, 0, maxCarry)
		if i > 0 && !(h.Rate > in.Hurdles[i-1].Rate) {
			c.Refuse("inconsistent_input", fmt.Sprintf("/hurdles/%d/rate", i), "hurdles must be in ascending order of rate, without equal rates")
		}
	}
	if c.Err() != nil {
		return
	}
	// Convert the rates to exact fractions. The headline carry is the highest carry rate.
	t.commitment, t.catchUp, t.headline = money.Exact(commitment), money.Exact(catchUp), money.Exact(carry)
	t.given = in.Hurdles
	list := in.Hurdles
	if list == nil {
		list = []Hurdle{{pref, carry}}
	} else {
		t.headline = new(big.Rat)
	}
	for _, h := range list {
		rate := money.Exact(h.Rate)
		own := hurdle{rate: rate, carry: money.Exact(h.CarryRate), factors: map[int]*big.Rat{}}
		if in.Events != nil {
			own.yearly = money.NewYearly(rate)
		}
		if own.carry.Cmp(t.headline) > 0 {
			t.headline = own.carry
		}
		t.hurdles = append(t.hurdles, own)
	}
}

// readEvents reads and checks the events, in the order of the request.
func (t *terms) readEvents(c *money.Check, list []Event, fewest int) []event {
	c.Length("/events", len(list), fewest, maxEvents)
	if c.Err() != nil {
		return nil
	}
	events := make([]event, 0, len(list))
	var in, out money.Cents
	for i, e := range list {
		path := fmt.Sprintf("/events/%d", i)
		own := event{day: c.Day(path+"/date", e.Date), contribution: e.Type == "contribution", deal: money.Or(e.DealID, "")}
		c.OneOf(path+"/type", e.Type, "contribution", "distribution")
		c.Above(path+"/amount", e.Amount, 0, maxAmount)
		own.amount = c.Amount(path+"/amount", e.Amount)
		if t.american && e.DealID == nil {
			c.Missing(path + "/dealId")
		}
		if e.DealID != nil && own.deal == "" {
			c.Refuse("out_of_range", path+"/dealId", path[1:]+"/dealId must not be empty")
		}
		if utf8.RuneCountInString(own.deal) > maxDealID {
			c.Refuse("too_long", path+"/dealId", path[1:]+"/dealId must have at most 64 characters")
		}
		if own.contribution {
			in += own.amount
		} else {
			out += own.amount
		}
		if in > maxTotal || out > maxTotal {
			c.Refuse("out_of_range", path+"/amount", "the contributions, and the distributions, of events must each sum to at most 70368744177664")
		}
		if c.Err() != nil {
			return nil
		}
		events = append(events, own)
	}
	if in == 0 {
		c.Refuse("inconsistent_input", "/events", "events must have at least one contribution")
	}
	return events
}
