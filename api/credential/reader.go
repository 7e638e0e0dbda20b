package credential

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// Reader identifies the caller of a request.
type Reader struct {
	Organizations *organizations.Organizations
	Projections   *projections.Projections
	Sessions      *Sessions
	Address       func(*http.Request) string // returns the network address of the caller
	// Saw is called with the public ids of the caller: the organization, if the caller acts for
	// one, and the member, token, key or agent. It may be nil.
	Saw func(ctx context.Context, tenant, actor string)
}

// Read checks whether the caller has access. The result contains the session even if access is
// refused, because the session may have changed and must be saved. For a client that authenticates
// in the body, call ReadClient after the body is read.
func (d *Reader) Read(r *http.Request, a Access) (c Caller, err error) {
	switch a.Kind {
	case Member, Person:
		err = d.readMember(r, a, &c)
	case Customer, AnyCustomer:
		err = d.readCustomer(r, a, &c)
	case Claimant:
		err = d.readClaimant(r, &c)
	case Payer, KeyHolder:
		var text string
		var present bool
		if text, present, err = Key(r.Header); err == nil && present {
			c, err = d.ReadKey(r.Context(), a, text)
		}
	}
	if err == nil {
		d.saw(r.Context(), c.Principal.OrgID, cmp.Or(c.Principal.ActorID, c.Key.KeyID, c.Agent.ClientID, c.Customer))
	}
	return c, err
}

func (d *Reader) saw(ctx context.Context, tenant, actor string) {
	if d.Saw != nil && actor != "" {
		d.Saw(ctx, tenant, actor)
	}
}

// ReadKey verifies an API key, an agent's token or an organization's token, and sets Means. It
// accepts an organization's token only on priced operations.
func (d *Reader) ReadKey(ctx context.Context, a Access, text string) (c Caller, err error) {
	switch {
	case a.Kind == Payer && strings.HasPrefix(text, organizationPrefix):
		// The token is valid but cannot pay. The caller may pay in another way.
		c.Means = ByOrganization
		_, err = d.Organizations.AuthenticateOrganization(ctx, text)
	case strings.HasPrefix(text, organizationPrefix):
		err = policy.Refuse(ground.CodeUnauthorized, "", "an organization's token is not an API key: send an API key or an agent's token")
	case isJWT(text):
		c.Means = ByAgent
		c.Agent, err = d.Organizations.AuthenticateAgent(ctx, text, resourcesOf(ctx)...)
	default:
		c.Means = ByKey
		c.Key, err = d.Organizations.Authenticate(ctx, text)
	}
	return c, err
}

// ReadClient authenticates an OAuth client by Basic authorization or by members of the body.
func (d *Reader) ReadClient(r *http.Request, body ClientSecret) (accounts.Client, error) {
	shown, err := clientSecret(r.Header, body)
	if err != nil {
		return accounts.Client{}, err
	}
	return d.Organizations.AuthenticateClient(r.Context(), shown.ClientID, shown.Secret)
}

// errForeign refuses a cookie on a request that a page of another origin sent.
var errForeign = policy.Refuse(organizations.CodeForbidden, "", "cross-origin request refused")

// readCustomer determines the customer for whom an operation with a scope is called:
//
//	a session                     the session's customer; the request must have the same origin
//	an agent with that scope      the customer who claimed the agent; empty if no customer did
//	                              and the scope allows that
//	no credential                 empty, if the operation allows that (AnyCustomer)
func (d *Reader) readCustomer(r *http.Request, a Access, c *Caller) error {
	bearer, present, err := Bearer(r.Header)
	switch {
	case err != nil:
		return err
	case present && !(a.Kind == AnyCustomer && isOurs(bearer)): // an operation that is open to everybody ignores API keys and organization tokens
		return d.readAgent(r.Context(), a, bearer, c)
	}
	if a.Scope != accounts.ScopeSupport { // no customer has the scope support, so a session does not suffice
		if c.Session, err = d.Sessions.Load(r); err != nil {
			return err
		}
	}
	switch foreign := !d.Sessions.SameOrigin(r); {
	case c.Session != nil && !foreign:
		c.Customer = c.Session.Customer
	case a.Kind == AnyCustomer:
	case c.Session != nil:
		return errForeign
	default:
		return organizations.ErrNoOrganizationCredential
	}
	return nil
}

func (d *Reader) readAgent(ctx context.Context, a Access, bearer string, c *Caller) error {
	if isOurs(bearer) {
		_, err := d.Organizations.AuthenticateOrganization(ctx, bearer)
		if err == nil || isRefusal(err, accounts.CodeInsufficientScope) {
			err = policy.Refuse(accounts.CodeInsufficientScope, "", "missing scope "+a.Scope)
		}
		return err
	}
	agent, err := d.Organizations.AuthenticateAgent(ctx, bearer, resourcesOf(ctx)...)
	if err != nil {
		return err
	}
	c.Means, c.Agent, c.Customer = ByAgent, agent, agent.CustomerID
	return agent.May(a.Scope)
}

// readClaimant returns the signed-in customer and the agent whose token the request contains. The
// token protects from cross-site requests, because no other site can make a browser send it.
func (d *Reader) readClaimant(r *http.Request, c *Caller) error {
	bearer, present, err := Bearer(r.Header)
	if err == nil && !present {
		err = errNoAgent
	}
	if err != nil {
		return err
	}
	c.Means = ByAgent
	if c.Agent, err = d.Organizations.AuthenticateAgent(r.Context(), bearer, resourcesOf(r.Context())...); err != nil {
		return err
	}
	if c.Session, err = d.Sessions.Load(r); err != nil {
		return err
	}
	switch {
	case c.Session == nil:
		return errNoCustomer
	case !d.Sessions.SameOrigin(r):
		return errForeign
	}
	c.Customer = c.Session.Customer
	return nil
}

// readMember determines the member or token that acts, and the organization: by a bearer token, or
// else by the session.
func (d *Reader) readMember(r *http.Request, a Access, c *Caller) error {
	bearer, present, err := Bearer(r.Header)
	switch {
	case err != nil:
		return err
	case present:
		c.Principal, err = d.readOrganization(r, a, bearer)
		return err
	}
	if c.Session, err = d.Sessions.Load(r); err != nil {
		return err
	}
	if c.Session == nil {
		return organizations.ErrNoOrganizationCredential
	}
	if !d.Sessions.SameOrigin(r) {
		return errForeign
	}
	if a.Kind == Person {
		return nil
	}
	c.Principal, err = d.Member(r.Context(), c.Session, onlyReads(r))
	return err
}

// onlyReads reports whether a request changes nothing. A command that appends makes sure, by
// preconditions on streams, that the caller's rights are up to date. A request that only reads
// must confirm the principal instead.
func onlyReads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

func (d *Reader) readOrganization(r *http.Request, a Access, bearer string) (organizations.Principal, error) {
	p, err := d.Organizations.AuthenticateOrganization(r.Context(), bearer)
	switch { // these operations require a session, so refuse the token before it is checked further
	case a.Kind == Person && (err == nil || isRefusal(err, accounts.CodeInsufficientScope)):
		return p, policy.Refuse(organizations.CodeForbidden, "", "a signed-in session is required")
	case err != nil:
		return p, err
	}
	if !p.Allows(d.Address(r)) {
		return p, policy.Refuse(organizations.CodeForbidden, "", "token may not be used from this address")
	}
	if onlyReads(r) {
		p, err = d.Organizations.Confirm(r.Context(), p)
	}
	return p, err
}

// Errors for a person who is a member of no organization, or of several without having chosen one.
var (
	ErrNoOrganization = policy.Refuse(organizations.CodeForbidden, "", "organization credential required")
	ErrChooseFirst    = policy.Refuse(organizations.CodeForbidden, "", "choose an organization first")
)

// Member returns the principal of a session in its organization. If the person has left the chosen
// organization and is a member of exactly one other, Member chooses that one.
func (d *Reader) Member(ctx context.Context, as *Session, onlyReads bool) (organizations.Principal, error) {
	chosen := as.Org != ""
	if !chosen {
		if err := d.onlyOrganization(ctx, as); err != nil {
			return organizations.Principal{}, err
		}
	}
	p, err := d.Organizations.SessionPrincipal(ctx, as.Org, as.Customer, as.SignedIn)
	if err == nil && onlyReads {
		p, err = d.Organizations.Confirm(ctx, p)
	}
	var refused *policy.Error
	switch {
	case err == nil:
		d.saw(ctx, p.OrgID, p.ActorID)
		return p, as.as(p.Role)
	case chosen && errors.As(err, &refused) && refused.Code == organizations.CodeForbidden:
		as.Choose("")
		return d.Member(ctx, as, onlyReads)
	}
	return organizations.Principal{}, err
}

// onlyOrganization chooses the organization of a person who is a member of exactly one.
func (d *Reader) onlyOrganization(ctx context.Context, as *Session) error {
	list, err := d.Projections.Memberships(ctx, as.Customer)
	switch {
	case errors.Is(err, projections.ErrBehind):
		return &ground.Unavailable{Cause: err}
	case err != nil:
		return err
	case len(list) == 0:
		return ErrNoOrganization
	case len(list) > 1:
		return ErrChooseFirst
	}
	as.Choose(list[0].OrgID)
	return nil
}
