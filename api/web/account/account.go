package account

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy"
)

func (r *Room) showAccount(v *web.Visit) (web.View, error) {
	as, err := r.Credentials.Describe(v.Request.Context(), v.Session)
	if err != nil {
		return web.View{}, err
	}
	bought, err := r.bought(v.Request.Context(), v.Session.Customer)
	if err != nil {
		return web.View{}, err
	}
	keys, err := r.Commands.AccountKeys(v.Request.Context(), v.Session.Customer)
	if err != nil {
		return web.View{}, err
	}
	usage, err := r.Commands.AccountUsage(v.Request.Context(), v.Session.Customer)
	if err != nil {
		return web.View{}, err
	}
	agents, err := r.Commands.AccountAgents(v.Request.Context(), v.Session.Customer)
	if err != nil {
		return web.View{}, err
	}
	used, err := r.lastUse(v.Request.Context(), v.Session.Customer, keys, agents)
	if err != nil {
		return web.View{}, err
	}
	count, err := r.Credentials.Sessions.Count(v.Request.Context(), v.Session.Customer)
	if err != nil {
		return web.View{}, ground.Unreadable(err)
	}
	page := accountPage{SignedIn: as, Bought: bought, Keys: keys, Agents: agents, LastUse: used, Usage: usage, Free: accounts.FreeCallsPerMonth, NearLimit: web.NearLimit, Sessions: count}
	if next := v.Request.URL.Query().Get("next"); next != "" && len(as.Organizations) > 0 {
		page.GoesOn = accounts.LocalPath(next)
	}
	shows := web.View{Template: "account.html"}
	page.Issued, shows.Cookie = v.ShownOnce()
	shows.Data = page
	return shows, nil
}

// accountPage is the data of the account page.
type accountPage struct {
	credential.SignedIn
	Bought []boughtProduct
	Keys   []accounts.AccountKey
	Agents []accounts.AccountAgent
	accounts.Usage
	LastUse         map[string]time.Time // time of the newest call of a key or agent, by its id
	Free, NearLimit int64                // free calls in a month, and the number of used calls from which the page shows a warning
	GoesOn          string               // page to open after an organization is chosen; empty means this page
	Sessions        int
	Issued          string // new key, which only this answer shows
}

// lastUse returns the time of the newest call of each key and agent, by its id.
func (r *Room) lastUse(ctx context.Context, customerID string, keys []accounts.AccountKey, agents []accounts.AccountAgent) (map[string]time.Time, error) {
	var actors []string
	for _, k := range keys {
		actors = append(actors, k.KeyID)
	}
	for _, g := range agents {
		actors = append(actors, g.ClientID)
	}
	last, err := r.Projections.LastUse(ctx, customerID, actors)
	if err != nil {
		return nil, query.Error(err)
	}
	return last, nil
}

// postKey issues a key of the account and redirects to the page that shows the key once.
func (r *Room) postKey(v *web.Visit) (web.View, error) {
	issued, err := r.Commands.IssueAccountKey(v.Request.Context(), v.Session.Customer)
	if err != nil {
		return web.View{}, err
	}
	return v.ShowOnce("/account", issued.APIKey)
}

func (r *Room) postRevokeKey(v *web.Visit) (web.View, error) {
	err := r.Commands.RevokeAccountKey(v.Request.Context(), v.Session.Customer, v.Form.Get("keyId"), strings.TrimSpace(v.Form.Get("reason")))
	return web.View{Location: "/account", Done: "API key revoked."}, err
}

func (r *Room) postRevokeAgent(v *web.Visit) (web.View, error) {
	err := r.Commands.RevokeAccountAgent(v.Request.Context(), v.Session.Customer, v.Form.Get("clientId"))
	return web.View{Location: "/account", Done: "Agent revoked. Its tokens are refused from now on."}, err
}

// boughtProduct is a product to which the customer has or had access.
type boughtProduct struct {
	store.Entitlement
	Name         string
	Downloadable bool
	Subscription bool
}

func (r *Room) bought(ctx context.Context, customer string) ([]boughtProduct, error) {
	r.Purchases.Resync(ctx, customer)
	list, err := r.Commands.Entitlements(ctx, customer)
	if err != nil {
		return nil, err
	}
	var bought []boughtProduct
	for _, e := range list {
		b := boughtProduct{Entitlement: e, Name: e.Product}
		if p, known := r.Commands.Product(e.Product); known {
			b.Name = p.Name
			b.Downloadable = p.FileName != "" && e.Status == store.StatusActive
			b.Subscription = p.Kind == store.Subscription && r.Purchases.CardCheckout
		}
		bought = append(bought, b)
	}
	return bought, nil
}

// postDownload redirects to the page with the button that downloads a file.
func (r *Room) postDownload(v *web.Visit) (web.View, error) {
	l, err := r.Commands.CustomerDownload(v.Request.Context(), v.Session.Customer, v.Form.Get("slug"))
	return web.View{Location: r.Purchases.DownloadURL(l)}, err
}

// postBilling redirects to the billing page at the payment provider.
func (r *Room) postBilling(v *web.Visit) (web.View, error) {
	to, err := r.Purchases.Portal(v.Request.Context(), v.Session.Customer)
	return web.View{Location: to}, err
}

func (r *Room) postOrganization(v *web.Visit) (web.View, error) {
	list, err := r.Projections.Memberships(v.Request.Context(), v.Session.Customer)
	if err != nil {
		return web.View{}, err
	}
	for _, m := range list {
		if m.OrgID == v.Form.Get("orgId") {
			v.Session.Choose(m.OrgID)
			return web.View{Location: goesOnTo(v), Done: "You now act for " + words.Visible(m.Name) + "."}, nil
		}
	}
	return web.View{}, policy.Refuse(organizations.CodeForbidden, "", "organization credential required")
}

// goesOnTo returns the page to open after an organization was chosen: the one that the form names,
// or the "next" parameter of the account page that had the form.
func goesOnTo(v *web.Visit) string {
	if next := v.Form.Get("next"); next != "" {
		return accounts.LocalPath(next)
	}
	at, err := url.Parse(v.Form.Get(web.FormPlace))
	if err != nil || at.Path != "/account" {
		return "/account"
	}
	return accounts.LocalPath(at.Query().Get("next"))
}
