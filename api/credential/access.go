// Package credential is where the service finds out who is calling: it reads API
// keys, access tokens of agents, tokens of organizations, OAuth clients and the
// cookies of sessions, and nothing else does. A payment is a credential, too, but
// what it is good for depends on what is for sale, so api reads it first.
//
// An operation says with an Access who may call it, and a Reader finds out whether
// that is who calls. The rules that hold for all of them:
//
//	a header given twice is refused, and nothing in the query ever counts
//	with a credential in a header, the cookie does not count
//	a cookie counts only from the origin of the service
//	a credential that is there and not good is refused, also where none is needed
package credential

import (
	"context"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
)

type contextKey int

const resourceKey contextKey = 0

// At is a context of requests to a resource for which access tokens are made of their
// own (RFC 8707): they are good there beside those for the whole service, and nowhere
// else.
func At(ctx context.Context, resource string) context.Context {
	return context.WithValue(ctx, resourceKey, resource)
}

func resourcesOf(ctx context.Context) []string {
	if resource, ok := ctx.Value(resourceKey).(string); ok {
		return []string{resource}
	}
	return nil
}

// Kind is who may call.
type Kind int

// Who may call an operation.
const (
	Anybody     Kind = iota // and no credential is read
	Payer                   // whoever pays: with an API key, as an agent with credit, or by a payment
	KeyHolder               // an API key or an agent's token; nothing is charged
	Member                  // an organization's token, or a member's session, that has the right
	Person                  // a session, of whomever
	Customer                // a session, or an agent's token with the scope: for a customer's own things
	AnyCustomer             // the same, or nobody
	Client                  // an OAuth client, by Basic authorization or by members of the body
	Claimant                // a session and an agent's token together
)

// Access says who may call an operation. The zero value is anybody.
type Access struct {
	Kind  Kind
	Right organizations.Right // of a member
	Scope string              // of a customer's agent
}

// WithRight is access for whoever has a right in an organization.
func WithRight(r organizations.Right) Access { return Access{Kind: Member, Right: r} }

// WithScope is access to a customer's own things, also for agents with a scope.
func WithScope(scope string) Access { return Access{Kind: Customer, Scope: scope} }

// challenged is the scope that a refusal names. Without one clients ask for every
// scope there is.
func (a Access) challenged() string {
	switch a.Kind {
	case Member:
		return organizations.ScopeOf(a.Right)
	case Payer, KeyHolder:
		return accounts.ScopeCatalog
	}
	return a.Scope
}

// Means is the kind of thing a caller shows for itself.
type Means int

// What a caller may show.
const (
	Nothing        Means = iota
	ByPayment            // PAYMENT-SIGNATURE
	ByKey                // an API key
	ByAgent              // an agent's access token
	ByOrganization       // an organization's token: good, and cannot pay
)

// Caller is who calls, as far as its credentials were found good.
type Caller struct {
	Means     Means
	Payment   payments.Payment        // ByPayment
	Key       accounts.Caller         // ByKey
	Agent     accounts.Agent          // ByAgent
	Client    accounts.Client         // of an OAuth endpoint
	Principal organizations.Principal // of an operation with a right
	Session   *Session                // nil without one
	Customer  string                  // cus_… whose things an operation with a scope is about; empty for nobody's
}
