package organizations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// TokenOrder describes a token to issue. The zero value means: the scopes to decide, to bind
// receipts and to read, 90 days, any network, for the principal itself, replacing no token.
type TokenOrder struct {
	Name      string
	Scopes    []string
	Days      int
	Addresses []string // networks from which the token may be used, such as 192.0.2.0/24; empty means any
	Member    string   // id of the member who gets the token; empty means the principal's own
	Rotates   string   // id of the token to replace, which stays valid for RotationOverlap
}

// IssuedToken is a newly issued token. Token contains the secret: it is shown once and not stored.
type IssuedToken struct {
	Token string `json:"token"`
	TokenInfo
}

// IssueToken issues a token for the principal's organization. It refuses if the principal lacks
// the right, or if a field of the order is not allowed.
func (a *Organizations) IssueToken(ctx context.Context, p Principal, order TokenOrder) (IssuedToken, error) {
	p, err := a.Permit(ctx, p, RightManage)
	if err != nil {
		return IssuedToken{}, err
	}
	order, err = order.check()
	if err != nil {
		return IssuedToken{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, RightManage), func(ctx context.Context) (IssuedToken, error) {
		return a.issueToken(ctx, p, order)
	})
}

func (o TokenOrder) check() (TokenOrder, error) {
	if len(o.Scopes) == 0 {
		o.Scopes = []string{ScopeDecide, ScopeReceipt, ScopeRead}
	}
	o.Scopes = slices.Compact(slices.Sorted(slices.Values(o.Scopes)))
	for _, scope := range o.Scopes {
		if !slices.Contains(Scopes, scope) {
			return o, policy.Refuse("invalid_enum", "/scopes", "scopes must contain only assurance:decide, assurance:receipt, assurance:read, export:read and policy:draft")
		}
	}
	if o.Days == 0 {
		o.Days = tokenDays
	}
	if o.Days < 1 || o.Days > maxTokenDays {
		return o, policy.Refuse("out_of_range", "/expiresInDays", "expiresInDays must be 1 to 365")
	}
	if o.Name != "" {
		if err := ground.CheckText("name", o.Name, ground.MaxName); err != nil {
			return o, err
		}
	}
	if len(o.Addresses) > maxAddresses {
		return o, policy.Refuse("too_many_items", "/addresses", "addresses must have at most 100 items")
	}
	for i, text := range o.Addresses {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			ip, err := netip.ParseAddr(text)
			if err != nil || ip.Zone() != "" {
				return o, policy.Refuse("out_of_range", "/addresses", "addresses must contain networks such as 192.0.2.0/24")
			}
			network = netip.PrefixFrom(ip, ip.BitLen())
		}
		o.Addresses[i] = network.Masked().String()
	}
	return o, nil
}

func (a *Organizations) issueToken(ctx context.Context, p Principal, order TokenOrder) (IssuedToken, error) {
	now := a.Now()
	if order.Member != "" {
		o, err := a.organizationOf(ctx, p.OrgID) // this stream is one of p's preconditions, so the append fails if the state is outdated
		if err != nil {
			return IssuedToken{}, err
		}
		if o.members[order.Member] == "" {
			return IssuedToken{}, a.RefuseUnlessMoved(ctx, p, nil, errNoMember)
		}
	}
	text, id, secret := a.NewCredential(tokenPrefix, p.OrgID)
	hash := sha256.Sum256(secret)
	event := events.OrganizationTokenIssued{
		TokenID: id, Name: order.Name, SecretHash: hex.EncodeToString(hash[:]), Scopes: order.Scopes, CreatedBy: p.Member,
		ExpiresAt: canon.Stamp(now.AddDate(0, 0, order.Days)), Addresses: order.Addresses, Member: order.Member, Rotates: order.Rotates,
	}
	pending := []ledger.Pending{{Stream: tokenStream(id), Expect: ledger.New(), Type: events.TypeOrganizationTokenIssued}}
	stored := []any{event}
	if order.Rotates != "" {
		old, err := a.readToken(ctx, p.OrgID, order.Rotates)
		if err != nil {
			return IssuedToken{}, err
		}
		if !old.live(now) {
			return IssuedToken{}, policy.Refuse(ground.CodeNotFound, "", "token not found")
		}
		pending = append(pending, ledger.Pending{Stream: tokenStream(old.id), Expect: old.at(), Type: events.TypeOrganizationTokenRevoked})
		stored = append(stored, events.OrganizationTokenRevoked{TokenID: old.id, Reason: "rotated", EffectiveAt: canon.Stamp(now.Add(RotationOverlap))})
	}
	appended, err := a.AppendAs(ctx, p, pending, stored)
	if err != nil {
		return IssuedToken{}, err
	}
	t, err := organizationToken{}.Apply(appended[0])
	return IssuedToken{Token: text, TokenInfo: t.info(now)}, err
}
