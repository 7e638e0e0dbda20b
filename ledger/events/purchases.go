package events

import "reflect"

// Types of purchases, subscriptions, the entitlements that follow from them, and downloads.
// All are in the tenant service.
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

// CustomerBound is customer.bound, schema version 1: a customer of the checkout
// provider is this customer. It is in billing/<provider customer> and in
// customer/<customer id>. Subscription is the one that a completed checkout began.
type CustomerBound struct {
	CustomerID       string `json:"customerId"`       // cus_…, ours
	ProviderCustomer string `json:"providerCustomer"` // theirs
	Product          string `json:"product,omitempty"`
	Subscription     string `json:"subscription,omitempty"`
}

// PurchaseFulfilled is purchase.fulfilled, schema version 1: a one-time product
// was paid for. If it was paid by card it is in billing/<provider customer>, if by x402 it
// is the first event of purchase/<purchase id>.
type PurchaseFulfilled struct {
	PurchaseID string `json:"purchaseId"` // pur_…
	Product    string `json:"product"`
	Source     string `json:"source"`               // "card" or "x402"
	CustomerID string `json:"customerId,omitempty"` // cus_…; none for an x402 purchase without an e-mail address
	PriceCents int64  `json:"priceCents"`           // as paid

	// By card.
	Session string `json:"session,omitempty"` // the provider's checkout
	Payment string `json:"payment,omitempty"` // the provider's payment; refunds name it. None if nothing had to be paid

	// By x402.
	PaymentID      string `json:"paymentId,omitempty"`      // pay_…
	IdentifierHash string `json:"identifierHash,omitempty"` // SHA-256 of the payment identifier, if the buyer sent one
	BuyerRef       string `json:"buyerRef,omitempty"`       // keyed hash of the e-mail address that the payment was made with
}

// PurchaseRefunded is purchase.refunded, schema version 1: a refund or dispute of a payment by
// card, in billing/<provider payment>, since not every such event of the provider names its
// customer.
type PurchaseRefunded struct {
	Payment     string `json:"payment"`
	Cause       string `json:"cause"`  // "refund" or "dispute"
	State       string `json:"state"`  // refund: "full", "part" or "failed"; dispute: "open", "won" or "lost"
	Object      string `json:"object"` // the provider's charge (full, part), refund (failed) or dispute
	AmountCents int64  `json:"amountCents"`
	ProviderAt  int64  `json:"providerAt"` // Unix seconds of the provider's event
}

// SubscriptionUpdated is subscription.updated, schema version 1, in
// billing/<provider customer>: a subscription as the provider had it at
// ProviderAt.
type SubscriptionUpdated struct {
	Subscription  string `json:"subscription"`
	Product       string `json:"product,omitempty"`
	Status        string `json:"status"`      // as the provider names it
	Change        string `json:"change"`      // "created", "updated", "deleted", "paused", "resumed", or "read" when we asked
	PeriodStart   int64  `json:"periodStart"` // Unix seconds
	PeriodEnd     int64  `json:"periodEnd"`   // Unix seconds
	Ends          bool   `json:"ends"`        // it will not be renewed
	ProviderAt    int64  `json:"providerAt"`  // Unix seconds of the provider's event
	ProviderEvent string `json:"providerEvent"`
}

// InvoicePaid is invoice.paid, schema version 1, in billing/<invoice> and, if it names a
// payment, in billing/<provider payment>: what the provider reports of a paid invoice.
// One of its events names the subscription and its customer, another the payment.
type InvoicePaid struct {
	Invoice          string `json:"invoice"`
	Payment          string `json:"payment,omitempty"` // the provider's; refunds name it
	Subscription     string `json:"subscription,omitempty"`
	ProviderCustomer string `json:"providerCustomer,omitempty"`
	PeriodEnd        int64  `json:"periodEnd,omitzero"` // Unix seconds; the end of what was paid for
	ProviderAt       int64  `json:"providerAt"`         // Unix seconds of the provider's event
}

// SubscriptionCharged is subscription.charged, schema version 1, in
// billing/<provider customer>: the status of the payment of an invoice of a subscription, as
// the provider's events about both say. Of one payment the last event counts.
type SubscriptionCharged struct {
	Subscription string `json:"subscription"`
	Invoice      string `json:"invoice"`
	Payment      string `json:"payment"`
	PeriodEnd    int64  `json:"periodEnd,omitzero"` // Unix seconds; 0 if no event says it
	ProviderAt   int64  `json:"providerAt"`         // Unix seconds of the invoice's newest event
	Status       string `json:"status"`             // "active", "refunded" or "disputed"
}

// EntitlementGranted is entitlement.granted, schema version 1, in
// customer/<customer id>: access that no card payment gives.
type EntitlementGranted struct {
	Product    string `json:"product"`
	Source     string `json:"source"`               // "operator" or "x402"
	PurchaseID string `json:"purchaseId"`           // pur_…: what downloads are counted under
	ValidUntil string `json:"validUntil,omitempty"` // RFC 3339; without it for ever
	Reason     string `json:"reason,omitempty"`     // of the operator
}

// EntitlementRevoked is entitlement.revoked, schema version 1, in
// customer/<customer id>: the operator ends access to a product, however the customer got it,
// until a later grant.
type EntitlementRevoked struct {
	Product string `json:"product"`
	Reason  string `json:"reason"`
}

// DownloadConsumed is download.consumed, schema version 1, in
// download/<purchase id>: its file was about to be sent. The link's secret is
// not stored; the hash of its hash is in the append's idempotency key.
type DownloadConsumed struct {
	PurchaseID string `json:"purchaseId"`
	Product    string `json:"product"`
	FileHash   string `json:"fileHash"` // SHA-256, hex
}
