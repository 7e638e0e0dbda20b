package web

import (
	"context"
	"net/url"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
)

func showAccount(s *Handler, v *visit) (view, error) {
	as, err := s.credentials.Describe(v.request.Context(), v.session)
	if err != nil {
		return view{}, err
	}
	bought, err := s.bought(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	keys, err := s.app.AccountKeys(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	usage, err := s.app.AccountUsage(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	agents, err := s.app.AccountAgents(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	count, err := s.sessions.Count(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, ground.Unreadable(err)
	}
	page := accountPage{SignedIn: as, Bought: bought, Keys: keys, Agents: agents, Usage: usage, Free: accounts.FreeCallsPerMonth, NearLimit: nearLimit, Sessions: count}
	if next := v.request.URL.Query().Get("next"); next != "" && len(as.Organizations) > 0 {
		page.GoesOn = accounts.LocalPath(next)
	}
	shows := view{template: "account.html"}
	page.Issued, shows.cookie = s.shownOnce(v)
	shows.data = page
	return shows, nil
}

// nearLimit is the use of the free calls of a month from which on it is said.
const nearLimit = accounts.FreeCallsPerMonth * 8 / 10

// accountPage is what somebody who is signed in sees.
type accountPage struct {
	credential.SignedIn
	Bought []boughtProduct
	Keys   []accounts.AccountKey
	Agents []accounts.AccountAgent
	accounts.Usage
	Free, NearLimit int64  // calls a month, and from which use on it is said
	GoesOn          string // where a choice of organization leads; empty: nowhere else
	Sessions        int
	Issued          string // a new key, this once
}

// postKey issues a key of the account and leads to the page that shows it once.
func postKey(s *Handler, v *visit) (view, error) {
	issued, err := s.app.IssueAccountKey(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	return s.showOnce(v, "/account", issued.APIKey)
}

// postRevokeKey ends a key of the account.
func postRevokeKey(s *Handler, v *visit) (view, error) {
	err := s.app.RevokeAccountKey(v.request.Context(), v.session.Customer, v.form.Get("keyId"))
	return view{location: "/account"}, err
}

// postRevokeAgent ends an agent of the account.
func postRevokeAgent(s *Handler, v *visit) (view, error) {
	err := s.app.RevokeAccountAgent(v.request.Context(), v.session.Customer, v.form.Get("clientId"))
	return view{location: "/account"}, err
}

// boughtProduct is a product the customer has, or had, access to.
type boughtProduct struct {
	store.Entitlement
	Name         string
	Downloadable bool
	Subscription bool
}

func (s *Handler) bought(ctx context.Context, customer string) ([]boughtProduct, error) {
	s.Resync(ctx, customer)
	list, err := s.app.Entitlements(ctx, customer)
	if err != nil {
		return nil, err
	}
	var bought []boughtProduct
	for _, e := range list {
		b := boughtProduct{Entitlement: e, Name: e.Product}
		if p, known := s.app.Product(e.Product); known {
			b.Name = p.Name
			b.Downloadable = p.FileName != "" && e.Status == store.StatusActive
			b.Subscription = p.Kind == store.Subscription && s.CardCheckout
		}
		bought = append(bought, b)
	}
	return bought, nil
}

// postDownload leads to the page with the button.
func postDownload(s *Handler, v *visit) (view, error) {
	l, err := s.app.CustomerDownload(v.request.Context(), v.session.Customer, v.form.Get("slug"))
	return view{location: s.DownloadURL(l)}, err
}

// postBilling leads to the provider's page.
func postBilling(s *Handler, v *visit) (view, error) {
	to, err := s.BillingPortal(v.request.Context(), v.session.Customer)
	return view{location: to}, err
}

func postOrganization(s *Handler, v *visit) (view, error) {
	list, err := s.projections.Memberships(v.request.Context(), v.session.Customer)
	if err != nil {
		return view{}, err
	}
	for _, m := range list {
		if m.OrgID == v.form.Get("orgId") {
			v.session.Choose(m.OrgID)
			return view{location: goesOnTo(v)}, nil
		}
	}
	return view{}, policy.Refuse(organizations.CodeForbidden, "", "organization credential required")
}

// goesOnTo is where a choice of organization leads: where its form says, or the page on
// which it stood waited to go.
func goesOnTo(v *visit) string {
	if next := v.form.Get("next"); next != "" {
		return accounts.LocalPath(next)
	}
	at, err := url.Parse(v.form.Get(formPlace))
	if err != nil || at.Path != "/account" {
		return "/account"
	}
	return accounts.LocalPath(at.Query().Get("next"))
}
