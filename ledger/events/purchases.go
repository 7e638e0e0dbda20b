package events

import "reflect"

// Types of events about purchases, subscriptions, entitlements and downloads, in the tenant
// service.
const (
	TypeCustomerBound       = "customer.bound"
	TypePurchaseFulfilled   = "purchase.fulfilled"
	TypePurchaseRefunded    = "purchase.refunded"
	TypeSubscriptionUpdated = "subscription.updated"
	TypeSubscriptionCharged = "subscription.charged"
	TypeInvoicePaid         = "invoice.paid"
	TypeEntitlementGranted  = "entitlement.granted"
	TypeEntitlementRevoked  = "entitlement.revoked"
	TypeDownloadConsumed    = "download.consumed"
)

var purchases = []kind{
	{name: TypeCustomerBound, stored: reflect.TypeFor[CustomerBound](), shown: nowhere, golden: []string{
		`{"customerId":"cus_1","product":"team","providerCustomer":"cus_p","subscription":"sub_p"}`,
	}},
	{name: TypePurchaseFulfilled, stored: reflect.TypeFor[PurchaseFulfilled](), shown: nowhere, golden: []string{
		`{"customerId":"cus_1","payment":"pi_p","priceCents":100,"product":"kit","purchaseId":"pur_1","session":"cs_p","source":"card"}`,
		`{"buyerRef":"ee","identifierHash":"ff","paymentId":"pay_1","priceCents":100,"product":"kit","purchaseId":"pur_1","source":"x402"}`,
	}},
	{name: TypePurchaseRefunded, stored: reflect.TypeFor[PurchaseRefunded](), shown: nowhere, golden: []string{
		`{"amountCents":100,"cause":"refund","object":"ch_p","payment":"pi_p","providerAt":1795186800,"state":"full"}`,
	}},
	{name: TypeSubscriptionUpdated, stored: reflect.TypeFor[SubscriptionUpdated](), shown: nowhere, golden: []string{
		`{"change":"updated","ends":false,"periodEnd":1797778800,"periodStart":1795186800,"product":"team","providerAt":1795186801,"providerEvent":"evt_p","status":"active","subscription":"sub_p"}`,
	}},
	{name: TypeSubscriptionCharged, stored: reflect.TypeFor[SubscriptionCharged](), shown: nowhere, golden: []string{
		`{"invoice":"in_p","payment":"pi_p","periodEnd":1797778800,"providerAt":1795186800,"status":"refunded","subscription":"sub_p"}`,
	}},
	{name: TypeInvoicePaid, stored: reflect.TypeFor[InvoicePaid](), shown: nowhere, golden: []string{
		`{"invoice":"in_p","payment":"pi_p","periodEnd":1797778800,"providerAt":1795186800,"providerCustomer":"cus_p","subscription":"sub_p"}`,
		`{"invoice":"in_p","providerAt":1795186800}`,
	}},
	{name: TypeEntitlementGranted, stored: reflect.TypeFor[EntitlementGranted](), shown: nowhere, golden: []string{
		`{"product":"kit","purchaseId":"pur_1","reason":"r","source":"operator","validUntil":"2027-01-01T00:00:00.000Z"}`,
	}},
	{name: TypeEntitlementRevoked, stored: reflect.TypeFor[EntitlementRevoked](), shown: nowhere, golden: []string{
		`{"product":"kit","reason":"r"}`,
	}},
	{name: TypeDownloadConsumed, stored: reflect.TypeFor[DownloadConsumed](), shown: nowhere, golden: []string{
		`{"fileHash":"aa","product":"kit","purchaseId":"pur_1"}`,
	}},
}

// CustomerBound is customer.bound, schema version 1. It links a customer of the checkout provider
// to our customer. It is in the stream billing/<provider customer> and in the stream
// customer/<customer id>. Subscription is set if a completed checkout has started one.
type CustomerBound struct {
	CustomerID       string `json:"customerId"`       // our customer, cus_…
	ProviderCustomer string `json:"providerCustomer"` // the provider's customer
	Product          string `json:"product,omitempty"`
	Subscription     string `json:"subscription,omitempty"`
}

// PurchaseFulfilled is purchase.fulfilled, schema version 1: a one-time product was paid for. For a
// payment by card it is in the stream billing/<provider customer>; for x402 it is the first event
// of the stream purchase/<purchase id>.
type PurchaseFulfilled struct {
	PurchaseID string `json:"purchaseId"` // pur_…
	Product    string `json:"product"`
	Source     string `json:"source"`               // "card" or "x402"
	CustomerID string `json:"customerId,omitempty"` // cus_…; empty for an x402 purchase without an e-mail address
	PriceCents int64  `json:"priceCents"`           // price that was paid

	// Only for card payments.
	Session string `json:"session,omitempty"` // checkout session of the provider
	Payment string `json:"payment,omitempty"` // payment of the provider, which refunds name; empty if nothing had to be paid

	// Only for x402 payments.
	PaymentID      string `json:"paymentId,omitempty"`      // pay_…
	IdentifierHash string `json:"identifierHash,omitempty"` // SHA-256 of the payment identifier, if the buyer sent one
	BuyerRef       string `json:"buyerRef,omitempty"`       // keyed hash of the e-mail address in the payment's request
}

// PurchaseRefunded is purchase.refunded, schema version 1: a refund or dispute of a card payment.
// It is in the stream billing/<provider payment>, because not every such event of the provider
// names its customer.
type PurchaseRefunded struct {
	Payment     string `json:"payment"`
	Cause       string `json:"cause"`  // "refund" or "dispute"
	State       string `json:"state"`  // of a refund "full", "part" or "failed"; of a dispute "open", "won" or "lost"
	Object      string `json:"object"` // the provider's charge (full, part), refund (failed) or dispute
	AmountCents int64  `json:"amountCents"`
	ProviderAt  int64  `json:"providerAt"` // time of the provider's event in Unix seconds
}

// SubscriptionUpdated is subscription.updated, schema version 1, in the stream
// billing/<provider customer>: the state of a subscription at the provider at time ProviderAt.
type SubscriptionUpdated struct {
	Subscription  string `json:"subscription"`
	Product       string `json:"product,omitempty"`
	Status        string `json:"status"`      // status in the provider's words
	Change        string `json:"change"`      // "created", "updated", "deleted", "paused" or "resumed" by an event of the provider; "read" if we queried it
	PeriodStart   int64  `json:"periodStart"` // Unix seconds
	PeriodEnd     int64  `json:"periodEnd"`   // Unix seconds
	Ends          bool   `json:"ends"`        // it will not be renewed
	ProviderAt    int64  `json:"providerAt"`  // time of the provider's event in Unix seconds
	ProviderEvent string `json:"providerEvent"`
}

// InvoicePaid is invoice.paid, schema version 1: a report of the provider about a paid invoice. It
// is in the stream billing/<invoice> and, if it names a payment, in the stream
// billing/<provider payment>. One report names the subscription and its customer, another the
// payment.
type InvoicePaid struct {
	Invoice          string `json:"invoice"`
	Payment          string `json:"payment,omitempty"` // payment of the provider, which refunds name
	Subscription     string `json:"subscription,omitempty"`
	ProviderCustomer string `json:"providerCustomer,omitempty"`
	PeriodEnd        int64  `json:"periodEnd,omitzero"` // end of the paid period in Unix seconds
	ProviderAt       int64  `json:"providerAt"`         // time of the provider's event in Unix seconds
}

// SubscriptionCharged is subscription.charged, schema version 1, in the stream
// billing/<provider customer>: the status of the payment of a subscription's invoice, combined from
// the provider's events about invoice and payment. For each payment the last event counts.
type SubscriptionCharged struct {
	Subscription string `json:"subscription"`
	Invoice      string `json:"invoice"`
	Payment      string `json:"payment"`
	PeriodEnd    int64  `json:"periodEnd,omitzero"` // end of the paid period in Unix seconds; 0 if unknown
	ProviderAt   int64  `json:"providerAt"`         // time of the invoice's newest event in Unix seconds
	Status       string `json:"status"`             // "active", "refunded" or "disputed"
}

// EntitlementGranted is entitlement.granted, schema version 1, in the stream
// customer/<customer id>: access without a card payment.
type EntitlementGranted struct {
	Product    string `json:"product"`
	Source     string `json:"source"`               // "operator" or "x402"
	PurchaseID string `json:"purchaseId"`           // pur_…, under which downloads are counted
	ValidUntil string `json:"validUntil,omitempty"` // RFC 3339; empty means without end
	Reason     string `json:"reason,omitempty"`     // reason that the operator gave
}

// EntitlementRevoked is entitlement.revoked, schema version 1, in the stream
// customer/<customer id>: the operator ends the access to a product, from any source, until a
// later grant.
type EntitlementRevoked struct {
	Product string `json:"product"`
	Reason  string `json:"reason"`
}

// DownloadConsumed is download.consumed, schema version 1, in the stream download/<purchase id>.
// It is appended just before the file is sent. The link's secret is not stored; the append's
// idempotency key contains a hash of the secret's hash.
type DownloadConsumed struct {
	PurchaseID string `json:"purchaseId"`
	Product    string `json:"product"`
	FileHash   string `json:"fileHash"` // SHA-256, hex
}
