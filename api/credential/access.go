// Package credential identifies the caller of a request. It is the only package that reads API
// keys, access tokens of agents, tokens of organizations, OAuth clients and session cookies. A
// payment is a credential, too, but whether it suffices depends on the product, so package request
// reads it first.
//
// Each operation declares with an Access who may call it, and a Reader checks the caller. All
// operations follow these rules:
//
//	a header given twice is refused, and a credential in the query is ignored
//	if a header contains a credential, the cookie is ignored
//	a cookie is accepted only from the origin of the service
//	an invalid credential is refused, even if the operation requires none
package credential

import (
	"context"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
)

type contextKey int

const resourceKey contextKey = 0

// At returns a context for requests to a resource that has its own access tokens (RFC 8707). The
// resource accepts these tokens and the tokens for the whole service. Other resources refuse the
// resource's own tokens.
func At(ctx context.Context, resource string) context.Context {
	return context.WithValue(ctx, resourceKey, resource)
}

func resourcesOf(ctx context.Context) []string {
	if resource, ok := ctx.Value(resourceKey).(string); ok {
		return []string{resource}
	}
	return nil
}

// Kind describes which callers may call an operation.
type Kind int

// The kinds of callers that an operation can allow.
const (
	Anybody     Kind = iota // everybody; no credential is read
	Payer                   // every caller who pays: with an API key, as an agent with credit, or by x402
	KeyHolder               // a caller with an API key or an agent's token; the call is free
	Member                  // a caller with an organization's token, or a member's session, that has the right
	Person                  // a signed-in customer
	Customer                // a signed-in customer, or an agent of the customer whose token has the scope
	AnyCustomer             // as Customer, or a caller without a credential
	Client                  // an OAuth client, authenticated by Basic authorization or in the body
	Claimant                // a signed-in customer who also sends an agent's token
)

// Access declares who may call an operation. The zero value allows everybody.
type Access struct {
	Kind  Kind
	Right organizations.Right // required right of a Member
	Scope string              // required scope of an agent's token
}

// WithRight returns the access for callers that have a right in an organization.
func WithRight(r organizations.Right) Access { return Access{Kind: Member, Right: r} }

// WithScope returns the access for customers, and for their agents whose token has the scope.
func WithScope(scope string) Access { return Access{Kind: Customer, Scope: scope} }

// challenged returns the scope that the WWW-Authenticate header of a refusal names. Clients that
// find no scope there ask for all scopes.
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

// The kinds of credentials of a caller.
const (
	Nothing        Means = iota
	ByPayment            // x402 payment in the header PAYMENT-SIGNATURE
	ByKey                // an API key
	ByAgent              // an agent's access token
	ByOrganization       // an organization's token; it is valid but cannot pay
)

// Caller contains the credentials of the caller that were verified.
type Caller struct {
	Means     Means
	Payment   payments.Payment        // if Means is ByPayment
	Key       accounts.Caller         // if Means is ByKey
	Agent     accounts.Agent          // if Means is ByAgent
	Client    accounts.Client         // on an OAuth endpoint
	Principal organizations.Principal // on an operation that requires a right
	Session   *Session                // nil if there is no valid session
	Customer  string                  // id (cus_…) of the customer for whom an operation with a scope acts; may be empty
}
