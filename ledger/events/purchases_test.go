package events_test

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// A change of any of these bytes is a new schema version.
func TestGoldenBytesOfPurchases(t *testing.T) {
	for _, g := range []struct {
		eventType string
		stored    any
		bytes     string
	}{
		{events.TypeCustomerBound, events.CustomerBound{CustomerID: "cus_1", ProviderCustomer: "cus_p", Product: "team", Subscription: "sub_p"},
			`{"customerId":"cus_1","product":"team","providerCustomer":"cus_p","subscription":"sub_p"}`},
		{events.TypePurchaseFulfilled, events.PurchaseFulfilled{PurchaseID: "pur_1", Product: "kit", Source: "card", CustomerID: "cus_1", PriceCents: 100, Session: "cs_p", Payment: "pi_p"},
			`{"customerId":"cus_1","payment":"pi_p","priceCents":100,"product":"kit","purchaseId":"pur_1","session":"cs_p","source":"card"}`},
		{events.TypePurchaseFulfilled, events.PurchaseFulfilled{PurchaseID: "pur_1", Product: "kit", Source: "x402", PriceCents: 100, PaymentID: "pay_1", IdentifierHash: "ff"},
			`{"identifierHash":"ff","paymentId":"pay_1","priceCents":100,"product":"kit","purchaseId":"pur_1","source":"x402"}`},
		{events.TypePurchaseRefunded, events.PurchaseRefunded{Payment: "pi_p", Cause: "refund", State: "full", Object: "ch_p", AmountCents: 100, ProviderAt: 1795186800},
			`{"amountCents":100,"cause":"refund","object":"ch_p","payment":"pi_p","providerAt":1795186800,"state":"full"}`},
		{events.TypeInvoicePaid, events.InvoicePaid{Invoice: "in_p", Payment: "pi_p", Subscription: "sub_p", ProviderCustomer: "cus_p", PeriodEnd: 1797778800, ProviderAt: 1795186800},
			`{"invoice":"in_p","payment":"pi_p","periodEnd":1797778800,"providerAt":1795186800,"providerCustomer":"cus_p","subscription":"sub_p"}`},
		{events.TypeInvoicePaid, events.InvoicePaid{Invoice: "in_p", ProviderAt: 1795186800}, `{"invoice":"in_p","providerAt":1795186800}`},
		{events.TypeSubscriptionCharged, events.SubscriptionCharged{Subscription: "sub_p", Invoice: "in_p", Payment: "pi_p", PeriodEnd: 1797778800, ProviderAt: 1795186800, Status: "refunded"},
			`{"invoice":"in_p","payment":"pi_p","periodEnd":1797778800,"providerAt":1795186800,"status":"refunded","subscription":"sub_p"}`},
		{events.TypeSubscriptionUpdated, events.SubscriptionUpdated{Subscription: "sub_p", Product: "team", Status: "active", Change: "updated",
			PeriodStart: 1795186800, PeriodEnd: 1797778800, ProviderAt: 1795186801, ProviderEvent: "evt_p"},
			`{"change":"updated","ends":false,"periodEnd":1797778800,"periodStart":1795186800,"product":"team","providerAt":1795186801,"providerEvent":"evt_p","status":"active","subscription":"sub_p"}`},
		{events.TypeEntitlementGranted, events.EntitlementGranted{Product: "kit", Source: "operator", PurchaseID: "pur_1", ValidUntil: "2027-01-01T00:00:00.000Z", Reason: "r"},
			`{"product":"kit","purchaseId":"pur_1","reason":"r","source":"operator","validUntil":"2027-01-01T00:00:00.000Z"}`},
		{events.TypeEntitlementRevoked, events.EntitlementRevoked{Product: "kit", Reason: "r"}, `{"product":"kit","reason":"r"}`},
		{events.TypeDownloadConsumed, events.DownloadConsumed{PurchaseID: "pur_1", Product: "kit", FileHash: "aa"},
			`{"fileHash":"aa","product":"kit","purchaseId":"pur_1"}`},
	} {
		if got, err := canon.Marshal(g.stored); err != nil || string(got) != g.bytes {
			t.Errorf("%s\ngot  %s, %v\nwant %s", g.eventType, got, err, g.bytes)
		}
		if !slices.Contains(events.Types, g.eventType) {
			t.Errorf("%s is not among the types", g.eventType)
		}
	}
}
