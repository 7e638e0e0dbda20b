package services

import (
	"context"
	"slices"
	"strconv"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger"
)

// A pass is a subscription that adds credit to each paid period. Its stream
// pass/<subscription>/<period start> holds the calls it has paid for; what is
// left lapses with the period, since the next one has another stream.
func passStream(x store.Access) string {
	return "pass/" + x.Subscription.Subscription + "/" + strconv.FormatInt(x.Subscription.PeriodStart, 10)
}

// passesOf are the customer's live passes, the one that ends first in front, and
// the streams that say so.
func (a *Services) passesOf(ctx context.Context, customerID string) ([]store.Access, []ledger.Precondition, error) {
	acc, err := a.ReadSubscriptions(ctx, customerID)
	if err != nil {
		return nil, nil, err
	}
	live := slices.DeleteFunc(acc.Accesses, func(x store.Access) bool {
		return x.Subscription == nil || x.Status != store.StatusActive || acc.Revoked[x.Product] || a.creditOf(x) == 0
	})
	slices.SortFunc(live, func(a, b store.Access) int { return a.Until.Compare(b.Until) })
	return live, acc.Preconditions, nil
}

// creditOf is what a paid period of a subscription adds, in cents.
func (a *Services) creditOf(x store.Access) int {
	product, _ := a.Product(x.Product)
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
	live, preconditions, err := a.passesOf(ctx, customerID)
	if err != nil {
		return fund{}, false, err
	}
	for _, x := range live {
		last, used, err := a.drawn(ctx, customerID, passStream(x))
		if err != nil {
			return fund{}, false, err
		}
		if used+priceCents <= a.creditOf(x) {
			return fund{charge: chargedPass, home: customerID, stream: last.Stream, expect: last.At(), used: used + priceCents, preconditions: preconditions}, true, nil
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
		return nil, ground.Refusal(err)
	}
	b := &Balance{EndsAt: live[0].Until, Product: live[0].Product}
	for _, x := range live {
		last, used, err := a.drawn(ctx, customerID, passStream(x))
		if err != nil {
			return nil, ground.Refusal(err)
		}
		b.TotalCents, b.UsedCents, b.Calls = b.TotalCents+a.creditOf(x), b.UsedCents+used, b.Calls+last.Version()
	}
	return b, nil
}

// PassProduct is the pass of the catalogue: what somebody at the quota is told
// of. False if none is sold.
func (a *Services) PassProduct() (store.Product, bool) {
	i := slices.IndexFunc(a.Products, func(p store.Product) bool { return p.CreditCents > 0 })
	if i < 0 {
		return store.Product{}, false
	}
	return a.Products[i], true
}
