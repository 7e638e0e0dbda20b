package web

import (
	"context"
	"slices"
	"strings"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// memberPage is who belongs to the organization.
type memberPage struct {
	Members   []organizations.MemberInfo
	Roles     []roleShown
	Self      string
	MayManage bool
	Fresh     bool // signed in a moment ago, as changes need
	Setting   string
}

// roleShown is a role and what it is for.
type roleShown struct{ Name, About string }

var roles = []roleShown{
	{organizations.RoleOwner, "everything, and other owners"},
	{organizations.RoleAdmin, "members, tokens, reviews, policies"},
	{organizations.RoleDeveloper, "decisions, drafts; sees their own"},
	{organizations.RoleAuditor, "reads and exports everything"},
}

func showMembers(s *Handler, v *visit) (view, error) {
	p := v.principal
	ctx := v.request.Context()
	page := memberPage{Roles: roles, Self: p.Member, MayManage: organizations.RoleMay(p.Role, organizations.RightManage), Fresh: p.FreshSignIn}
	var err error
	if page.Members, err = s.app.Members(ctx, p); err != nil {
		return view{}, err
	}
	org, err := s.app.Organization(ctx, p.OrgID)
	page.Setting = org.Arguments
	return view{template: "members.html", data: page}, err
}

// postMember adds a member, or changes the role of the one in whose row the form stood.
func postMember(s *Handler, v *visit) (view, error) {
	ctx, p, email := v.request.Context(), v.principal, strings.TrimSpace(v.form.Get("email"))
	list, err := s.app.Members(ctx, p)
	if err != nil {
		return view{}, err
	}
	i := slices.IndexFunc(list, func(m organizations.MemberInfo) bool { return m.Email != "" && strings.EqualFold(m.Email, email) })
	if i >= 0 && list[i].MemberID != v.form.Get("memberId") {
		return view{}, policy.Refuse(organizations.CodeConflict, "/email", "email is already a member's, as "+list[i].Role+": change the role in the member's row")
	}
	_, err = s.app.AddMember(ctx, p, email, v.form.Get("role"))
	return view{location: "/members"}, err
}

func postRemoveMember(s *Handler, v *visit) (view, error) {
	if v.form.Get("sure") != "yes" {
		return view{}, policy.Refuse("missing_field", "/sure", "tick the box: the member's tokens end, too")
	}
	err := s.app.RemoveMember(v.request.Context(), v.principal, v.form.Get("memberId"))
	return view{location: "/members"}, err
}

func postArguments(s *Handler, v *visit) (view, error) {
	_, err := s.app.KeepArguments(v.request.Context(), v.principal, v.form.Get("arguments"), "changed on the page of members")
	return view{location: "/members"}, err
}

// keyPage is what has access for the organization.
type keyPage struct {
	Tokens    []organizations.TokenInfo
	People    map[string]string
	Scopes    []scopeShown
	Issued    string // a new token, this once
	MayManage bool
	Fresh     bool
}

// scopeShown is a scope and what it is for.
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

// Name is a member's address, or what somebody else is called.
func (k keyPage) Name(member string) string { return named(k.People, member) }

func showKeys(s *Handler, v *visit) (view, error) {
	page, err := s.keyPage(v.request.Context(), v.principal)
	if err != nil {
		return view{}, err
	}
	shows := view{template: "keys.html"}
	page.Issued, shows.cookie = s.shownOnce(v)
	shows.data = page
	return shows, nil
}

func (s *Handler) keyPage(ctx context.Context, p organizations.Principal) (keyPage, error) {
	page := keyPage{Scopes: tokenScopes, People: s.people(ctx, p), MayManage: organizations.RoleMay(p.Role, organizations.RightManage), Fresh: p.FreshSignIn}
	var err error
	page.Tokens, err = s.app.Tokens(ctx, p)
	return page, err
}

// postToken issues a token, or one that follows another, and leads to the page that shows
// it once.
func postToken(s *Handler, v *visit) (view, error) {
	if len(v.form["scope"]) == 0 { // a program that names none gets the usual ones; a person has seen the boxes
		return view{}, policy.Refuse("missing_field", "/scope", "tick what the token may do: at least one box")
	}
	issued, err := s.app.IssueToken(v.request.Context(), v.principal, organizations.TokenOrder{Name: strings.TrimSpace(v.form.Get("name")), Scopes: v.form["scope"], Rotates: v.form.Get("rotates")})
	if err != nil {
		return view{}, err
	}
	return s.showOnce(v, "/keys", issued.Token)
}

func postRevokeToken(s *Handler, v *visit) (view, error) {
	err := s.app.RevokeToken(v.request.Context(), v.principal, v.form.Get("tokenId"), strings.TrimSpace(v.form.Get("reason")))
	return view{location: "/keys"}, err
}
