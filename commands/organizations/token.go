package organizations

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// An organization token has the form of an API key, with another prefix:
//
//	svco_<12 id>_<43 secret>_<6 check>
const tokenPrefix = "svco_"

// organizationToken is the state of a token, folded from its stream.
type organizationToken struct {
	id, name     string
	orgID        string
	hash         [32]byte
	scopes       []string
	createdBy    string
	member       string // id of the member who owns the token
	created      time.Time
	expires      time.Time
	revoked      time.Time // time of the revocation; zero if not revoked
	rotates      string
	addresses    []netip.Prefix
	precondition ledger.Precondition
}

// live reports whether the token is valid at a time.
func (t organizationToken) live(now time.Time) bool {
	return t.id != "" && now.Before(t.expires) && (t.revoked.IsZero() || now.Before(t.revoked))
}

// Apply returns the state after one more event of organization_token/<id>.
func (t organizationToken) Apply(e ledger.Event) (organizationToken, error) {
	stored, err := e.Stored()
	switch fact := stored.(type) {
	case events.OrganizationTokenIssued:
		return t.issued(e, fact)
	case events.OrganizationTokenRevoked:
		at, err := time.Parse(time.RFC3339, fact.EffectiveAt)
		if err != nil {
			return t, ledger.ErrTampered
		}
		if t.revoked.IsZero() || at.Before(t.revoked) {
			t.revoked = at
		}
	}
	return t, err
}

func (t organizationToken) issued(e ledger.Event, issued events.OrganizationTokenIssued) (organizationToken, error) {
	if n, err := hex.Decode(t.hash[:], []byte(issued.SecretHash)); err != nil || n != len(t.hash) {
		return t, ledger.ErrTampered
	}
	expires, err := time.Parse(time.RFC3339, issued.ExpiresAt)
	if err != nil {
		return t, ledger.ErrTampered
	}
	for _, text := range issued.Addresses {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return t, ledger.ErrTampered
		}
		t.addresses = append(t.addresses, network)
	}
	t.id, t.name, t.orgID, t.scopes = issued.TokenID, issued.Name, e.Tenant, issued.Scopes
	t.createdBy, t.created, t.expires, t.rotates = issued.CreatedBy, e.Occurred(), expires, issued.Rotates
	if t.member = issued.Member; t.member == "" {
		t.member = issued.CreatedBy
	}
	return t, nil
}

// tokenPrincipal returns the principal of an organization token, and refuses an invalid one.
func (a *Organizations) tokenPrincipal(ctx context.Context, bearer string) (Principal, error) {
	id, secret, ok := ground.ParseCredential(tokenPrefix, bearer)
	var t organizationToken
	if ok {
		var err error
		if t, err = a.token(ctx, "", id); err != nil {
			return Principal{}, err
		}
	}
	hash := sha256.Sum256(secret)
	if subtle.ConstantTimeCompare(hash[:], t.hash[:]) != 1 || !t.live(a.Clock()) {
		return Principal{}, ErrToken
	}
	o, err := a.organizationOf(ctx, t.orgID)
	if err != nil {
		return Principal{}, err
	}
	p := o.principal(a.Clock())
	p.ActorID, p.Member, p.Role, p.Scopes = TokenActor(t.id), t.member, RoleToken, t.scopes
	p.tokenID, p.addresses = t.id, t.addresses
	p.Preconditions = append(p.Preconditions, t.precondition)
	return p, nil
}

// TokenActor returns the actor of the events that a token causes.
func TokenActor(id string) string { return tokenPrefix + id }

// token returns the state of a token, from the cache or its stream. If orgID is empty, it searches
// for the organization. For an unknown id it returns the zero state.
func (a *Organizations) token(ctx context.Context, orgID, id string) (organizationToken, error) {
	if t, ok := a.tokens.Get(id); ok {
		return t, nil
	}
	if orgID == "" {
		var err error
		if orgID, err = a.tenantOfToken(ctx, id); err != nil || orgID == "" {
			return organizationToken{}, err
		}
	}
	t, err := a.readToken(ctx, orgID, id)
	if err == nil && t.id != "" { // guessed ids must not fill the cache
		a.tokens.Put(t.id, t)
	}
	return t, err
}

// tenantOfToken finds the organization of a token in the partition of the token's id, where both
// are stored. The result only tells where to read the token's stream; it authenticates nothing.
func (a *Organizations) tenantOfToken(ctx context.Context, id string) (string, error) {
	tenants, err := a.Ledger.Home(id).Directory(ctx, tokenStream(id))
	if err != nil || len(tenants) == 0 {
		return "", err
	}
	return tenants[0], nil
}

func tokenStream(id string) string { return "organization_token/" + id }

func (a *Organizations) readToken(ctx context.Context, orgID, id string) (organizationToken, error) {
	t, history, err := ground.Fold(ctx, a.Ground, orgID, tokenStream(id), organizationToken{})
	t.precondition = history.Precondition()
	return t, err
}

// tokensOf returns all tokens of an organization, the oldest first.
func (a *Organizations) tokensOf(ctx context.Context, orgID string) ([]organizationToken, error) {
	streams, err := a.Ledger.Home(orgID).Directory(ctx, events.TokensOf(orgID))
	if err != nil {
		return nil, err
	}
	var tokens []organizationToken
	for _, stream := range streams {
		t, err := a.readToken(ctx, orgID, strings.TrimPrefix(stream, tokenStream("")))
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

// TokenInfo describes a token to members, without its secret.
type TokenInfo struct {
	TokenID   string   `json:"tokenId"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	CreatedBy string   `json:"createdBy"`
	MemberID  string   `json:"memberId"`
	CreatedAt string   `json:"createdAt" jsonschema:"format=date-time"`
	ExpiresAt string   `json:"expiresAt" jsonschema:"format=date-time"`
	Addresses []string `json:"addresses"`
	State     string   `json:"state" jsonschema:"enum=active,enum=rotating,enum=expired,enum=revoked"`
}

// at returns the precondition that the token's stream has no event after those that were read.
func (t organizationToken) at() ledger.Expect {
	return ledger.History{Events: make([]ledger.Event, t.precondition.Version)}.At()
}

func (t organizationToken) info(now time.Time) TokenInfo {
	info := TokenInfo{TokenID: t.id, Name: t.name, Scopes: t.scopes, CreatedBy: t.createdBy, MemberID: t.member,
		CreatedAt: canon.Stamp(t.created), ExpiresAt: canon.Stamp(t.expires), Addresses: []string{}, State: "active"}
	for _, network := range t.addresses {
		info.Addresses = append(info.Addresses, network.String())
	}
	switch {
	case !t.revoked.IsZero() && !now.Before(t.revoked):
		info.State = "revoked"
	case !now.Before(t.expires):
		info.State = "expired"
	case !t.revoked.IsZero():
		info.State = "rotating"
	}
	if !t.revoked.IsZero() && t.revoked.Before(t.expires) {
		info.ExpiresAt = canon.Stamp(t.revoked)
	}
	return info
}

// Tokens returns an organization's tokens, the oldest first.
func (a *Organizations) Tokens(ctx context.Context, p Principal) ([]TokenInfo, error) {
	p, err := a.Permit(ctx, p, RightMembers)
	if err != nil {
		return nil, err
	}
	tokens, err := a.tokensOf(ctx, p.OrgID)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	list := []TokenInfo{}
	for _, t := range tokens {
		list = append(list, t.info(a.Clock()))
	}
	return list, nil
}

// AppendAs appends events without personal data for a principal. The principal's preconditions
// make the append fail if the principal's state has changed.
func (a *Organizations) AppendAs(ctx context.Context, p Principal, pending []ledger.Pending, stored []any) ([]ledger.Event, error) {
	for i := range pending {
		payload, err := canon.Marshal(stored[i])
		if err != nil {
			return nil, err
		}
		if pending[i].ID == "" {
			pending[i].ID = a.NewID("evt_")
		}
		pending[i].SchemaVersion, pending[i].Actor, pending[i].Payload = 1, p.ActorID, payload
	}
	result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: p.OrgID, Events: pending, Preconditions: p.Preconditions})
	a.forgetOrganization(p.OrgID)
	return result.Events, err
}
