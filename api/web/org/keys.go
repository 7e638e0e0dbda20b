package org

import (
	"context"
	"strings"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// keyPage is the data of the page of tokens.
type keyPage struct {
	Tokens    []organizations.TokenInfo
	People    web.People
	Scopes    []scopeShown
	Issued    string // a new token, which is shown this once
	MayManage bool
	Fresh     bool
}

// scopeShown is a scope and what it allows.
type scopeShown struct {
	Name, About string
	Usual       bool
}

var tokenScopes = []scopeShown{
	{organizations.ScopeDecide, "ask for decisions", true},
	{organizations.ScopeReceipt, "report what happened", true},
	{organizations.ScopeRead, "read history and records", true},
	{organizations.ScopeExport, "export", false},
	{organizations.ScopeDraft, "draft policies", false},
}

// Name returns what the page calls the member with an id.
func (k keyPage) Name(member string) string { return k.People.Name(member) }

func (r *Room) showKeys(v *web.Visit) (web.View, error) {
	page, err := r.keyPage(v.Request.Context(), v.Principal)
	if err != nil {
		return web.View{}, err
	}
	shows := web.View{Template: "keys.html"}
	page.Issued, shows.Cookie = v.ShownOnce()
	shows.Data = page
	return shows, nil
}

func (r *Room) keyPage(ctx context.Context, p organizations.Principal) (keyPage, error) {
	page := keyPage{Scopes: tokenScopes, People: web.PeopleOf(ctx, r.Commands.Organizations, p), MayManage: organizations.RoleMay(p.Role, organizations.RightManage), Fresh: p.FreshSignIn}
	var err error
	page.Tokens, err = r.Commands.Tokens(ctx, p)
	return page, err
}

// postToken issues a token, which may replace another one, and leads to the page that shows it once.
func (r *Room) postToken(v *web.Visit) (web.View, error) {
	if len(v.Form["scope"]) == 0 { // the API takes none as the usual ones, but a person has seen the boxes
		return web.View{}, policy.Refuse("missing_field", "/scope", "tick what the token may do: at least one box")
	}
	issued, err := r.Commands.IssueToken(v.Request.Context(), v.Principal, organizations.TokenOrder{Name: strings.TrimSpace(v.Form.Get("name")), Scopes: v.Form["scope"], Rotates: v.Form.Get("rotates")})
	if err != nil {
		return web.View{}, err
	}
	return v.ShowOnce("/keys", issued.Token)
}

func (r *Room) postRevokeToken(v *web.Visit) (web.View, error) {
	err := r.Commands.RevokeToken(v.Request.Context(), v.Principal, v.Form.Get("tokenId"), strings.TrimSpace(v.Form.Get("reason")))
	return web.View{Location: "/keys", Done: "Token revoked. Calls with it are refused from now on."}, err
}
