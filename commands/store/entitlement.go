package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// The states of an entitlement. Only StatusActive gives access.
const (
	StatusActive   = "active"
	StatusCanceled = "canceled"
	StatusPastDue  = "past_due"
	StatusExpired  = "expired"
	StatusRefunded = "refunded"
	StatusDisputed = "disputed"
	StatusRevoked  = "revoked"
)

// The sources of an entitlement.
const (
	SourceCard     = "card"
	SourceX402     = "x402"
	SourceOperator = "operator"
)

// CodeNoEntitlement is the code of a refusal for a product that the customer has never had. If the
// customer had it, the code is the state of the entitlement.
const CodeNoEntitlement = "none"

// Entitlement is the state of a customer's access to one product.
type Entitlement struct {
	Product    string  `json:"product"`
	Status     string  `json:"status" jsonschema:"enum=active,enum=canceled,enum=past_due,enum=expired,enum=refunded,enum=disputed,enum=revoked"`
	ValidUntil *string `json:"validUntil" jsonschema:"nullable"`
	Source     string  `json:"source" jsonschema:"enum=card,enum=x402,enum=operator"`

	reference    string // id of the purchase (pur_…) or the provider's id of the subscription
	provider     string // provider's id of the customer who has the subscription
	subscription *events.SubscriptionUpdated
}

// Entitlements returns a customer's entitlements to all products that were ever bought or granted,
// sorted by product. It refuses an unknown customer with CodeNotFound.
func (a *Store) Entitlements(ctx context.Context, customerID string) ([]Entitlement, error) {
	acc, err := a.readAccount(ctx, customerID)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	return acc.entitlements(), nil
}

// entitlements returns the best access to each product.
func (acc account) entitlements() []Entitlement {
	list := []Entitlement{}
	best := map[string]Access{}
	for _, x := range acc.Accesses {
		if known, ok := best[x.Product]; !ok || x.better(known) {
			best[x.Product] = x
		}
	}
	for product := range acc.Revoked {
		x := best[product]
		x.Product, x.Status, x.source = product, StatusRevoked, cmp.Or(x.source, SourceOperator)
		best[product] = x
	}
	for _, x := range best {
		e := Entitlement{Product: x.Product, Status: x.Status, Source: x.source,
			reference: x.reference, provider: x.provider, subscription: x.Subscription}
		if !x.Until.IsZero() {
			until := canon.Stamp(x.Until)
			e.ValidUntil = &until
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entitlement) int { return strings.Compare(a.Product, b.Product) })
	return list
}

// worse lists the states from best to worst.
var worse = []string{StatusActive, StatusPastDue, StatusDisputed, StatusCanceled, StatusExpired, StatusRefunded}

// better reports whether access x is better than another: by its state, then by its end.
func (x Access) better(than Access) bool {
	if x.Status != than.Status {
		return slices.Index(worse, x.Status) < slices.Index(worse, than.Status)
	}
	if !x.Until.Equal(than.Until) {
		return x.Until.IsZero() || !than.Until.IsZero() && x.Until.After(than.Until)
	}
	return x.reference < than.reference
}

// Entitlement returns a customer's entitlement to a product. If it is not active, it also returns
// a refusal whose code is the state, or CodeNoEntitlement.
func (a *Store) Entitlement(ctx context.Context, customerID, product string) (Entitlement, error) {
	list, err := a.Entitlements(ctx, customerID)
	if err != nil {
		return Entitlement{}, err
	}
	for _, e := range list {
		if e.Product != product {
			continue
		}
		if e.Status != StatusActive {
			return e, policy.Refuse(e.Status, "", "no active entitlement")
		}
		return e, nil
	}
	return Entitlement{}, policy.Refuse(CodeNoEntitlement, "", "no active entitlement")
}

// ProviderCustomer returns the provider's id of the customer who has an active subscription or
// else a subscription with a payment past due, so that it can be managed. If there is neither, it
// returns the refusal CodeNotFound.
func (a *Store) ProviderCustomer(ctx context.Context, customerID string) (string, error) {
	list, err := a.Entitlements(ctx, customerID)
	if err != nil {
		return "", err
	}
	for _, status := range []string{StatusActive, StatusPastDue} {
		for _, e := range list {
			if e.subscription != nil && e.Status == status {
				return e.provider, nil
			}
		}
	}
	return "", policy.Refuse(ground.CodeNotFound, "", "no active subscription")
}

// CheckoutIdentity returns what a new checkout tells the provider about a signed-in buyer: the
// provider's id of the customer or, if there is none, the e-mail address.
func (a *Store) CheckoutIdentity(ctx context.Context, customerID string) (providerCustomer, email string, err error) {
	acc, err := a.readCustomer(ctx, customerID)
	if err != nil {
		return "", "", ground.Refusal(err)
	}
	for _, provider := range acc.providers {
		if strings.HasPrefix(provider, "cus_") { // other ids come from a checkout that created no customer at the provider
			return provider, "", nil
		}
	}
	email, err = a.AddressOf(ctx, acc.created)
	return "", email, err
}

// Address returns a customer's e-mail address, or "" if it was erased.
func (a *Store) Address(ctx context.Context, customerID string) (string, error) {
	acc, err := a.readCustomer(ctx, customerID)
	if err != nil {
		return "", ground.Refusal(err)
	}
	return a.AddressOf(ctx, acc.created)
}

// CustomerByEmail returns the id of the customer with an e-mail address. It does not create one.
func (a *Store) CustomerByEmail(ctx context.Context, email string) (string, error) {
	address, err := accounts.CheckEmail(email)
	if err != nil {
		return "", err
	}
	if a.Vault == nil {
		return "", a.NoVault()
	}
	tenant := a.ServiceOf(a.MailboxRef(address))
	dataKey, err := a.Vault.Find(ctx, tenant, "email:"+address)
	if err != nil {
		return "", ground.Refusal(err)
	}
	if dataKey == "" {
		return "", accounts.ErrNoCustomer
	}
	stored, err := a.Ledger.ByKey(ctx, tenant, accounts.CustomerKey(dataKey), ledger.Hash{})
	if err != nil {
		return "", ground.Refusal(err)
	}
	if stored == nil {
		return "", accounts.ErrNoCustomer
	}
	created, err := events.As[events.CustomerCreated](stored[0])
	return created.CustomerID, err
}

// GrantEntitlement gives a customer access to a product of the catalogue, by decision of the
// operator. If until is zero, the access has no end. The grant also cancels an earlier revocation.
func (a *Store) GrantEntitlement(ctx context.Context, customerID, product string, until time.Time, reason string) (Entitlement, error) {
	if _, known := a.Product(product); !known {
		return Entitlement{}, policy.Refuse(ground.CodeNotFound, "/product", "product not found")
	}
	if !until.IsZero() && !until.After(a.Now()) {
		return Entitlement{}, policy.Refuse("out_of_range", "/until", "until must be in the future")
	}
	granted := events.EntitlementGranted{Product: product, Source: SourceOperator, PurchaseID: a.NewID("pur_"), Reason: reason}
	if !until.IsZero() {
		granted.ValidUntil = canon.Stamp(until)
	}
	return a.operate(ctx, customerID, product, events.TypeEntitlementGranted, reason, granted)
}

// RevokeEntitlement ends a customer's access to a product, from any source, by decision of the
// operator.
func (a *Store) RevokeEntitlement(ctx context.Context, customerID, product, reason string) (Entitlement, error) {
	return a.operate(ctx, customerID, product, events.TypeEntitlementRevoked, reason, events.EntitlementRevoked{Product: product, Reason: reason})
}

func (a *Store) operate(ctx context.Context, customerID, product, eventType, reason string, stored any) (Entitlement, error) {
	if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
		return Entitlement{}, err
	}
	if err := ground.CheckText("product", product, ground.MaxName); err != nil {
		return Entitlement{}, err
	}
	e, err := ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (Entitlement, error) {
		acc, err := a.readAccount(ctx, customerID)
		if err != nil {
			return Entitlement{}, err
		}
		payload, err := canon.Marshal(stored)
		if err != nil {
			return Entitlement{}, err
		}
		result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: acc.Preconditions[0].Tenant, Events: []ledger.Pending{{
			Stream: acc.Preconditions[0].Stream, Expect: organizations.Unlimited, ID: a.NewID("evt_"), Type: eventType, SchemaVersion: 1, Actor: "operator", Payload: payload}}})
		if err != nil {
			return Entitlement{}, err
		}
		if acc, err = acc.Apply(result.Events[0]); err != nil {
			return Entitlement{}, err
		}
		for _, e := range acc.entitlements() {
			if e.Product == product {
				return e, nil
			}
		}
		return Entitlement{}, nil
	})
	if err != nil {
		return e, err
	}
	return e, a.followPlan(ctx, customerID) // the product may give the customer an organization
}
