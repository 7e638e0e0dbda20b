package org

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
)

// memberPage is the data of the page that lists members.
type memberPage struct {
	Members   []organizations.MemberInfo
	Roles     []roleShown
	Self      string
	MayManage bool
	Fresh     bool // the person signed in recently enough for changes
	Setting   string
}

// roleShown is a role with a description of what it may do.
type roleShown struct{ Name, About string }

var roles = []roleShown{
	{organizations.RoleOwner, "can do everything, and manage other owners"},
	{organizations.RoleAdmin, "manages members, tokens, reviews and policies"},
	{organizations.RoleDeveloper, "requests decisions and drafts policies; sees only their own decisions"},
	{organizations.RoleAuditor, "reads and exports all records"},
}

func (r *Room) showMembers(v *web.Visit) (web.View, error) {
	ctx, p := v.Request.Context(), v.Principal
	page := memberPage{Roles: roles, Self: p.Member, MayManage: organizations.RoleMay(p.Role, organizations.RightManage), Fresh: p.FreshSignIn}
	var err error
	if page.Members, err = r.Commands.Members(ctx, p); err != nil {
		return web.View{}, err
	}
	org, err := r.Commands.Organization(ctx, p.OrgID)
	page.Setting = org.Arguments
	return web.View{Template: "members.html", Data: page}, err
}

// reasonIn returns the reason that the person wrote to confirm a change that cannot be undone, or
// an error if the reason is empty.
func reasonIn(v *web.Visit) (string, error) {
	reason := strings.TrimSpace(v.Form.Get("reason"))
	if reason == "" {
		return "", policy.Refuse("missing_field", "/reason", "reason must be given: it is recorded in the ledger")
	}
	return reason, nil
}

// postMember adds a member. If the form is that of a member's row, it changes this member's role.
func (r *Room) postMember(v *web.Visit) (web.View, error) {
	ctx, p, email := v.Request.Context(), v.Principal, strings.TrimSpace(v.Form.Get("email"))
	list, err := r.Commands.Members(ctx, p)
	if err != nil {
		return web.View{}, err
	}
	i := slices.IndexFunc(list, func(m organizations.MemberInfo) bool { return m.Email != "" && strings.EqualFold(m.Email, email) })
	if i >= 0 && list[i].MemberID != v.Form.Get("memberId") {
		return web.View{}, policy.Refuse(organizations.CodeConflict, "/email", "email belongs to a member already, with the role "+list[i].Role+": change the role in the member's row")
	}
	role, done := v.Form.Get("role"), " was added as "
	if i >= 0 {
		done = " is now "
	}
	_, err = r.Commands.AddMember(ctx, p, email, role)
	return web.View{Location: "/members", Done: email + done + role + "."}, err
}

func (r *Room) postRemoveMember(v *web.Visit) (web.View, error) {
	reason, err := reasonIn(v)
	if err != nil {
		return web.View{}, err
	}
	err = r.Commands.RemoveMember(v.Request.Context(), v.Principal, v.Form.Get("memberId"), reason)
	return web.View{Location: "/members", Done: "Member removed. The member's tokens are revoked."}, err
}

func (r *Room) postArguments(v *web.Visit) (web.View, error) {
	_, err := r.Commands.KeepArguments(v.Request.Context(), v.Principal, v.Form.Get("arguments"), "changed on the page of members")
	return web.View{Location: "/members", Done: "The setting for the arguments of tools was changed."}, err
}
