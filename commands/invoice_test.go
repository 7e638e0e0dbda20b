package commands_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// A payment, its invoice and its customer may belong to different partitions. If the database
// refuses between two of the appends, the provider's next delivery makes the missing ones.
func TestARefundFindsItsSubscriptionInEveryPartition(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.NewPartitioned(t, 4), newClock()
	a := openTokens(t, db, c)
	a.Products = []store.Product{{Slug: "pass", Name: "Pass", Kind: store.Subscription, PriceCents: 2900, CreditCents: 3500}}
	end := c.Now().Add(30 * 24 * time.Hour).Unix()
	homes := map[int16]bool{}
	for i := range 6 {
		id := func(prefix string) string { return fmt.Sprintf("%s%d", prefix, i) }
		homes[a.Ledger.Home(id("pi_")).Number()*16+a.Ledger.Home(id("in_")).Number()*4+a.Ledger.Home(id("cus_")).Number()] = true
		told := 0
		tell := func(step string, record func(context.Context, store.ProviderEvent) error) {
			t.Helper()
			told++
			from := store.ProviderEvent{ID: fmt.Sprintf("evt_%d_%d", i, told), At: c.Now().Unix() + int64(told)}
			if step != "" && !ledgertest.OnCluster() { // Citus allows no trigger on a distributed table
				allow := refusing(t, db, step)
				if err := record(t.Context(), from); err == nil {
					t.Errorf("%s was refused, and nobody was told", step)
				}
				allow()
			}
			for range 2 { // the provider delivers the same message again
				if err := record(t.Context(), from); err != nil {
					t.Fatal(err)
				}
			}
		}
		address := fmt.Sprintf("buyer%d@example.com", i)
		tell("", func(ctx context.Context, from store.ProviderEvent) error {
			return a.FulfilCheckout(ctx, from, store.CompletedCheckout{Session: id("cs_"), Customer: id("cus_"), Subscription: id("sub_"), Product: "pass", Email: address})
		})
		tell("", func(ctx context.Context, from store.ProviderEvent) error {
			return a.RecordSubscription(ctx, from, id("cus_"), events.SubscriptionUpdated{Subscription: id("sub_"), Product: "pass", Status: "active", Change: "created", PeriodEnd: end})
		})
		tell("billing/"+id("pi_"), func(ctx context.Context, from store.ProviderEvent) error {
			return a.RecordInvoice(ctx, from, events.InvoicePaid{Invoice: id("in_"), Payment: id("pi_")})
		})
		tell("billing/"+id("in_"), func(ctx context.Context, from store.ProviderEvent) error {
			return a.RecordInvoice(ctx, from, events.InvoicePaid{Invoice: id("in_"), Subscription: id("sub_"), ProviderCustomer: id("cus_"), PeriodEnd: end})
		})
		tell("billing/"+id("cus_"), func(ctx context.Context, from store.ProviderEvent) error {
			return a.RecordRefund(ctx, from, events.PurchaseRefunded{Payment: id("pi_"), Cause: "refund", State: "full", Object: id("ch_"), AmountCents: 2900}, "")
		})
		customer, err := a.CustomerByEmail(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := a.Entitlements(t.Context(), customer); err != nil || len(list) != 1 || list[0].Status != store.StatusRefunded {
			t.Errorf("%d: %+v, %v", i, list, err)
		}
		if b, err := a.Pass(t.Context(), customer); err != nil || b != nil {
			t.Errorf("%d: the pass holds %+v, %v", i, b, err)
		}
	}
	if len(homes) < 2 {
		t.Error("all of them are in one partition")
	}
	clean(t, a)
}
