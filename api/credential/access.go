// Package credential finds out who is calling. It reads API keys, access tokens of agents, tokens
// of organizations, OAuth clients and the cookies of sessions, and no other package does. A payment
// is a credential, too, but whether it suffices depends on what is for sale, so package request
// reads it first.
//
// An operation declares with an Access who may call it, and a Reader checks whether the caller is
// one of them. The rules for all operations:
//
//	a header given twice is refused, and nothing in the query ever counts
//	with a credential in a header, the cookie does not count
//	a cookie counts only from the origin of the service
//	a credential that was sent and is not valid is refused, also if none is needed
package credential

import (
	"context"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
)

type contextKey int

const resourceKey contextKey = 0

// At returns a context for requests to a resource that has access tokens of its own (RFC 8707).
// There both these tokens and those for the whole service are valid. Elsewhere the resource's own
// tokens are not.
func At(ctx context.Context, resource string) context.Context {
	return context.WithValue(ctx, resourceKey, resource)
}

func resourcesOf(ctx context.Context) []string {
	if resource, ok := ctx.Value(resourceKey).(string); ok {
		return []string{resource}
	}
	return nil
}

// Kind is the kind of caller that may call an operation.
type Kind int

// The kinds of callers.
const (
	Anybody     Kind = iota // anybody: no credential is read
	Payer                   // any caller who pays: with an API key, as an agent with credit, or by a payment
	KeyHolder               // an API key or an agent's token; nothing is charged
	Member                  // an organization's token, or a member's session, that has the right
	Person                  // the session of any customer
	Customer                // a session, or an agent's token with the scope: for what belongs to a customer
	AnyCustomer             // the same, or no credential
	Client                  // an OAuth client, by Basic authorization or by members of the body
	Claimant                // a session and an agent's token together
)

// Access says who may call an operation. The zero value lets everybody call.
type Access struct {
	Kind  Kind
	Right organizations.Right // that the member needs
	Scope string              // that the customer's agent needs
}

// WithRight returns the access of those who have a right in an organization.
func WithRight(r organizations.Right) Access { return Access{Kind: Member, Right: r} }

// WithScope returns the access to what belongs to a customer, also for agents with a scope.
func WithScope(scope string) Access { return Access{Kind: Customer, Scope: scope} }

// challenged is the scope that a refusal names. If it names none, clients ask for every scope.
func (a Access) challenged() string {
	switch a.Kind {
	case Member:
		return organizations.ScopeOf(a.Right)
	case Payer, KeyHolder:
		return accounts.ScopeCatalog
	}
	return a.Scope
}

// Means is the kind of credential that a caller sent.
type Means int

// The kinds of credentials.
const (
	Nothing        Means = iota
	ByPayment            // PAYMENT-SIGNATURE
	ByKey                // an API key
	ByAgent              // an agent's access token
	ByOrganization       // an organization's token: valid, but it cannot pay
)

// Caller is the caller, as far as its credentials were verified.
type Caller struct {
	Means     Means
	Payment   payments.Payment        // ByPayment
	Key       accounts.Caller         // ByKey
	Agent     accounts.Agent          // ByAgent
	Client    accounts.Client         // of an OAuth endpoint
	Principal organizations.Principal // of an operation with a right
	Session   *Session                // nil without one
	Customer  string                  // the customer (cus_…) that an operation with a scope is about; empty if there is none
}
