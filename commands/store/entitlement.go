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

// States of an entitlement. Only an active one is live.
const (
	StatusActive   = "active"
	StatusCanceled = "canceled"
	StatusPastDue  = "past_due"
	StatusExpired  = "expired"
	StatusRefunded = "refunded"
	StatusDisputed = "disputed"
	StatusRevoked  = "revoked"
)

// What an entitlement comes from.
const (
	SourceCard     = "card"
	SourceX402     = "x402"
	SourceOperator = "operator"
)

// CodeNoEntitlement is the code for a product that was never bought or granted;
// of any other entitlement that is not live, its state is the code.
const CodeNoEntitlement = "none"

// Entitlement is a customer's access to one product, in its state at the time of the request.
type Entitlement struct {
	Product    string  `json:"product"`
	Status     string  `json:"status" jsonschema:"enum=active,enum=canceled,enum=past_due,enum=expired,enum=refunded,enum=disputed,enum=revoked"`
	ValidUntil *string `json:"validUntil" jsonschema:"nullable"`
	Source     string  `json:"source" jsonschema:"enum=card,enum=x402,enum=operator"`

	reference    string // pur_… or the provider's subscription
	provider     string // the provider's customer of a subscription
	subscription *events.SubscriptionUpdated
}

// Entitlements lists a customer's access to every product that was ever bought or granted, by
// product. For an unknown customer the refusal is CodeNotFound.
func (a *Store) Entitlements(ctx context.Context, customerID string) ([]Entitlement, error) {
	acc, err := a.readAccount(ctx, customerID)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	return acc.entitlements(), nil
}

// entitlements returns for each product the best of what gives access to it.
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

// worse lists the states from the best to the worst, in the order in which they are preferred.
var worse = []string{StatusActive, StatusPastDue, StatusDisputed, StatusCanceled, StatusExpired, StatusRefunded}

// better reports whether x is shown instead of than: live access before lost access, then the
// one that lasts longer.
func (x Access) better(than Access) bool {
	if x.Status != than.Status {
		return slices.Index(worse, x.Status) < slices.Index(worse, than.Status)
	}
	if !x.Until.Equal(than.Until) {
		return x.Until.IsZero() || !than.Until.IsZero() && x.Until.After(than.Until)
	}
	return x.reference < than.reference
}

// Entitlement returns a customer's access to a product. Unless it is live, the refusal has its
// state, or "none", as its code.
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
			return e, policy.Refuse(e.Status, "", "no live entitlement")
		}
		return e, nil
	}
	return Entitlement{}, policy.Refuse(CodeNoEntitlement, "", "no live entitlement")
}

// ProviderCustomer returns the provider's customer whose subscription a customer can manage:
// that of a live subscription, or else of one that a payment would make live again. Without
// either the refusal is CodeNotFound.
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

// CheckoutIdentity returns what the provider is told about a signed-in buyer: the id of the
// provider's customer for the buyer if there is one, otherwise the e-mail address.
func (a *Store) CheckoutIdentity(ctx context.Context, customerID string) (providerCustomer, email string, err error) {
	acc, err := a.readCustomer(ctx, customerID)
	if err != nil {
		return "", "", ground.Refusal(err)
	}
	for _, provider := range acc.providers {
		if strings.HasPrefix(provider, "cus_") { // a checkout may have created no customer
			return provider, "", nil
		}
	}
	email, err = a.AddressOf(ctx, acc.created)
	return "", email, err
}

// Address returns a customer's e-mail address, or an empty text if it was erased.
func (a *Store) Address(ctx context.Context, customerID string) (string, error) {
	acc, err := a.readCustomer(ctx, customerID)
	if err != nil {
		return "", ground.Refusal(err)
	}
	return a.AddressOf(ctx, acc.created)
}

// CustomerByEmail finds the customer of an e-mail address. It creates none.
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

// GrantEntitlement gives a customer access to a product of the catalogue, without end or until
// a time, as the operator. It also ends a revocation.
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

// RevokeEntitlement ends a customer's access to a product, wherever the access comes from, as
// the operator.
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
	return e, a.followPlan(ctx, customerID) // an organization may depend on the product
}
