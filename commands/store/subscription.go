package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// ProviderEvent identifies an event of the card provider, so that no event is recorded twice.
type ProviderEvent struct {
	ID string // the provider's id, evt_…
	At int64  // time in Unix seconds
}

// key returns the idempotency key and content hash of the append for this event. The content is
// only the event's id, because repeated deliveries may differ in other members.
func (e ProviderEvent) key() (key, content ledger.Hash) {
	return ledger.IdemKey("webhook", "stripe:"+e.ID), sha256.Sum256([]byte(e.ID))
}

// RecordSubscription records the state of a subscription as the provider reports it, and updates
// the organization that depends on it. customer is the provider's id. A report without a product
// is recorded only if an earlier one named a product of the catalogue.
func (a *Store) RecordSubscription(ctx context.Context, from ProviderEvent, customer string, s events.SubscriptionUpdated) error {
	if s.Product == "" {
		b, _, err := a.readBilling(ctx, customer)
		if err != nil {
			return ground.Refusal(err)
		}
		_, told := b.subscriptions[s.Subscription]
		began, sold := b.began[s.Subscription]
		if !told && !sold {
			return nil
		}
		s.Product = cmp.Or(b.subscriptions[s.Subscription].Product, began.Product)
	}
	s.ProviderAt, s.ProviderEvent = from.At, from.ID
	if err := a.recordFact(ctx, from, billingStream(customer), events.TypeSubscriptionUpdated, s); err != nil {
		return err
	}
	b, _, err := a.readBilling(ctx, customer)
	if err != nil {
		return ground.Refusal(err)
	}
	return a.followOwner(ctx, b, s.Subscription)
}

// followOwner updates the organization of the customer who owns a subscription.
func (a *Store) followOwner(ctx context.Context, b billing, subscription string) error {
	owner := b.ownerOf(subscription)
	if owner == "" {
		return nil // the owner is unknown until the checkout is reported
	}
	return a.followPlan(ctx, owner)
}

// recordFact appends one fact, once, at the end of its stream.
func (a *Store) recordFact(ctx context.Context, from ProviderEvent, stream, eventType string, stored any) error {
	return a.recordFacts(ctx, from, providerFact{stream, eventType, stored})
}

// providerFact is a fact that can be at any position in its stream.
type providerFact struct {
	stream, eventType string
	stored            any
}

// recordFacts appends the facts of one event of the provider, once. The facts of each tenant are
// one append, and these appends have the same idempotency key. If a crash prevents one of them, it
// is made when the provider delivers the event again.
func (a *Store) recordFacts(ctx context.Context, from ProviderEvent, facts ...providerFact) error {
	key, content := from.key()
	var order []string // tenants in the order of their first fact
	pending := map[string][]ledger.Pending{}
	for _, f := range facts {
		payload, err := canon.Marshal(f.stored)
		if err != nil {
			return err
		}
		tenant := a.ServiceOf(ground.IDOf(f.stream))
		if pending[tenant] == nil {
			order = append(order, tenant)
		}
		pending[tenant] = append(pending[tenant], ledger.Pending{Stream: f.stream, Expect: organizations.Unlimited, ID: a.NewID("evt_"), Type: f.eventType,
			SchemaVersion: 1, Actor: "stripe", Payload: payload})
	}
	for _, tenant := range order {
		if _, err := a.Ledger.Append(ctx, ledger.Append{Tenant: tenant, IdemKey: key, ContentHash: content, Events: pending[tenant]}); err != nil {
			return ground.Refusal(err)
		}
	}
	return nil
}

// organizationOfSubscriptions returns the id of the organization that a customer's Team and
// Business subscriptions pay for. A customer has only one such organization: its id is computed from
// the customer's id, so a later subscription continues the same organization.
func organizationOfSubscriptions(customerID string) string {
	return "org_" + strings.TrimPrefix(customerID, "cus_")
}

// followPlan changes a customer's organization to match the customer's subscriptions. It creates
// the organization for the first active subscription, gives it the highest plan of the active
// subscriptions, and lets it lapse if no subscription is active. A suspended organization stays
// suspended. If everything matches, it changes nothing. It runs after every fact, so a later
// report completes what a crash has prevented.
//
// If customer and organization belong to different partitions, no append can have both as
// preconditions. Then followPlan reads the account again after it has changed the organization,
// and so does each command that changes the account.
func (a *Store) followPlan(ctx context.Context, customerID string) error {
	_, err := ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (struct{}, error) {
		acc, err := a.ReadSubscriptions(ctx, customerID)
		if err != nil {
			return struct{}{}, err
		}
		plan, ever := a.planOf(acc)
		if !ever {
			return struct{}{}, nil
		}
		orgID := organizationOfSubscriptions(customerID)
		o, history, err := a.ReadOrganization(ctx, orgID)
		switch {
		case errors.Is(err, organizations.ErrNoOrganization):
			return struct{}{}, a.startOrganization(ctx, acc, orgID, plan)
		case err != nil:
			return struct{}{}, err
		}
		return struct{}{}, a.changePlan(ctx, acc, o, history, plan)
	})
	return err
}

// planOf returns the highest plan of the account's active subscriptions, or "" if none is active.
// ever reports whether the account ever had such a subscription.
func (a *Store) planOf(acc account) (plan string, ever bool) {
	for _, x := range acc.Accesses {
		product, _ := a.Product(x.Product)
		if x.Subscription == nil || product.Plan == "" {
			continue
		}
		ever = true
		if x.Status == StatusActive && plan != organizations.PlanBusiness && !acc.Revoked[x.Product] {
			plan = product.Plan
		}
	}
	return plan, ever
}

func (a *Store) startOrganization(ctx context.Context, acc account, orgID, plan string) error {
	if plan == "" {
		return nil
	}
	address, err := a.AddressOf(ctx, acc.created)
	if err != nil || address == "" {
		return err // an erased customer gets no organization
	}
	name := strings.ToUpper(plan[:1]) + plan[1:] + " organization"
	here, elsewhere := a.Apart(orgID, acc.Preconditions)
	if _, err = a.AppendOrganization(ctx, orgID, acc.customerID, name, plan, acc.customerID, address, here...); err != nil {
		return err
	}
	return a.Unmoved(ctx, elsewhere)
}

// changePlan appends the change of an organization that the account requires. If possible, the
// account's streams are preconditions.
func (a *Store) changePlan(ctx context.Context, acc account, o organizations.Organization, history ledger.History, plan string) error {
	change := a.changeOf(o, plan)
	if change == (events.OrganizationUpdated{}) {
		return nil
	}
	here, elsewhere := a.Apart(o.ID, acc.Preconditions)
	p := organizations.Principal{OrgID: o.ID, ActorID: "stripe", Preconditions: here}
	_, err := a.AppendAs(ctx, p, []ledger.Pending{{Stream: organizations.OrganizationStream, Expect: history.At(), Type: events.TypeOrganizationUpdated}}, []any{change})
	if err != nil {
		return err
	}
	return a.Unmoved(ctx, elsewhere)
}

// changeOf returns the change that gives an organization this plan, or lets it lapse if plan is
// "".
func (a *Store) changeOf(o organizations.Organization, plan string) events.OrganizationUpdated {
	switch {
	case o.State == organizations.StateSuspended:
	case plan == "" && o.State == organizations.StateActive:
		return events.OrganizationUpdated{State: organizations.StateLapsed, PlanEndedAt: canon.Stamp(a.Now()), Reason: "the subscription is not live"}
	case plan != "" && (o.State != organizations.StateActive || o.Plan != plan):
		return events.OrganizationUpdated{State: organizations.StateActive, Plan: plan, Reason: "the subscription is live"}
	}
	return events.OrganizationUpdated{}
}

// StaleSubscriptions returns a customer's subscriptions whose paid period has ended without a
// report of the provider, so that the caller can ask the provider. It leaves out those about which
// it was asked in the last askAgain seconds.
func (a *Store) StaleSubscriptions(ctx context.Context, customerID string) ([]string, error) {
	list, err := a.Entitlements(ctx, customerID)
	if err != nil {
		var refused *policy.Error
		if errors.As(err, &refused) && refused.Code == ground.CodeNotFound {
			return nil, nil
		}
		return nil, err
	}
	var stale []string
	for _, e := range list {
		if s := e.subscription; s != nil && e.Status == StatusExpired && s.Status != "incomplete_expired" &&
			(s.Change != "read" || a.Now().Unix()-s.ProviderAt >= askAgain) {
			stale = append(stale, s.Subscription)
		}
	}
	return stale, nil
}
