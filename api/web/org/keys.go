package org

import (
	"context"
	"strings"
	"time"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// keyPage is the data of the page that lists tokens.
type keyPage struct {
	Tokens    []organizations.TokenInfo
	Used      map[string]time.Time // when a token last caused an event, by token
	People    web.People
	Scopes    []scopeShown
	Issued    string // new token, which only this answer shows
	MayManage bool
	Fresh     bool
}

// scopeShown is a scope with a description of what it allows.
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

// Name returns the name by which the page shows a member.
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
	if page.Tokens, err = r.Commands.Tokens(ctx, p); err != nil {
		return page, err
	}
	page.Used, err = r.queries().LastUse(ctx, p, page.Tokens)
	return page, err
}

// postToken issues a token and redirects to the page that shows it once. The new token may replace
// another one.
func (r *Room) postToken(v *web.Visit) (web.View, error) {
	if len(v.Form["scope"]) == 0 { // the API takes an empty list as the usual scopes; on the page it means that no box was ticked
		return web.View{}, policy.Refuse("missing_field", "/scope", "tick at least one box for what the token may do")
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
