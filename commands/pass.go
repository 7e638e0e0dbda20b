package commands

import (
	"context"
	"slices"
	"strconv"

	"github.com/countersign/countersign/ledger"
)

// A pass is a subscription that adds credit to each paid period. Its stream
// pass/<subscription>/<period start> holds the calls it has paid for; what is
// left lapses with the period, since the next one has another stream.
func passStream(x access) string {
	return "pass/" + x.subscription.Subscription + "/" + strconv.FormatInt(x.subscription.PeriodStart, 10)
}

// passesOf are the customer's live passes, the one that ends first in front, and
// the streams that say so.
func (a *Services) passesOf(ctx context.Context, customerID string) ([]access, []ledger.Guard, error) {
	acc, err := a.readSubscriptions(ctx, customerID)
	if err != nil {
		return nil, nil, err
	}
	live := slices.DeleteFunc(acc.accesses, func(x access) bool {
		return x.subscription == nil || x.status != StatusActive || acc.revoked[x.product] || a.creditOf(x) == 0
	})
	slices.SortFunc(live, func(a, b access) int { return a.until.Compare(b.until) })
	return live, acc.guards, nil
}

// creditOf is what a paid period of a subscription adds, in cents.
func (a *Services) creditOf(x access) int {
	product, _ := a.Product(x.product)
	return int(product.CreditCents)
}

// chargePass is the fund that a call of this price may draw from the customer's
// monthly pass; false if there is none, or too little is left: calls are paid
// whole. The call lands only if the subscription is still as it was judged, by its
// position where that is comparable, else right before.
func (a *Services) chargePass(ctx context.Context, customerID string, priceCents int) (fund, bool, error) {
	if customerID == "" {
		return fund{}, false, nil
	}
	live, guards, err := a.passesOf(ctx, customerID)
	if err != nil {
		return fund{}, false, err
	}
	for _, x := range live {
		last, used, err := a.drawn(ctx, customerID, passStream(x))
		if err != nil {
			return fund{}, false, err
		}
		if used+priceCents <= a.creditOf(x) {
			return fund{charge: chargedPass, home: customerID, stream: last.Stream, expect: last.At(), used: used + priceCents, guards: guards}, true, nil
		}
	}
	return fund{}, false, nil
}

// Pass is what the customer's live passes hold together; nil without one.
func (a *Services) Pass(ctx context.Context, customerID string) (*Balance, error) {
	if customerID == "" {
		return nil, nil
	}
	live, _, err := a.passesOf(ctx, customerID)
	if err != nil || len(live) == 0 {
		return nil, refusal(err)
	}
	b := &Balance{EndsAt: live[0].until, Product: live[0].product}
	for _, x := range live {
		last, used, err := a.drawn(ctx, customerID, passStream(x))
		if err != nil {
			return nil, refusal(err)
		}
		b.TotalCents, b.UsedCents, b.Calls = b.TotalCents+a.creditOf(x), b.UsedCents+used, b.Calls+last.Version()
	}
	return b, nil
}

// PassProduct is the pass of the catalogue: what somebody at the quota is told
// of. False if none is sold.
func (a *Services) PassProduct() (Product, bool) {
	i := slices.IndexFunc(a.Products, func(p Product) bool { return p.CreditCents > 0 })
	if i < 0 {
		return Product{}, false
	}
	return a.Products[i], true
}
