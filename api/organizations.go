package api

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/countersign/countersign/commands/organizations"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// organizationOperations are what members do with their organization, beside
// decisions and receipts.
func (s *Server) organizationOperations() []*operation {
	table := []*operation{
		getOrganization.does(s.getOrganization), chooseOrganization.does(s.chooseOrganization), renameOrganization.does(s.renameOrganization), listMembers.does(s.listMembers), addMember.does(s.addMember), removeMember.does(s.removeMember), listTokens.does(s.listTokens), issueToken.does(s.issueToken), revokeToken.does(s.revokeToken),
		listPolicies.does(s.listPolicies), draftPolicy.does(s.draftPolicy), previewPolicy.does(s.previewPolicy), activatePolicy.does(s.activatePolicy), freezePolicy.does(s.freezePolicy),
		requestSignIn.does(s.requestSignIn), getSession.does(s.getSession), signOut.does(s.signOut), createExport.does(s.createExport), getExport.does(s.getExport), getEvent.does(s.getEvent), reportGuard.does(s.reportGuard), listGuard.does(s.listGuard),
	}
	table = append(table, s.webhookOperations()...)
	for _, op := range table {
		op.bareErrors = strings.HasPrefix(op.path, "/api/assurance/")
	}
	return table
}

var getOrganization = &operation{
	id: "get_organization", method: http.MethodGet, path: "/api/assurance/organization",
	summary: "The organization the credential acts for: plan, state, number of members.",
	access:  credential.WithRight(organizations.RightPolicies), output: reflect.TypeFor[organizations.OrganizationInfo](), errors: []int{401, 403, 503},
}

func (s *Server) getOrganization(c *call) (reply, error) {
	o, err := s.app.Organization(c.request.Context(), c.Principal.OrgID)
	return reply{value: o}, err
}

type organizationChoice struct {
	OrgID string `json:"orgId" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"One of the member's organizations."`
}

var chooseOrganization = &operation{
	id: "choose_organization", method: http.MethodPost, path: "/api/assurance/organization",
	summary: "Choose the organization a session acts for; members of one organization need not.",
	access:  credential.Access{Kind: credential.Person}, input: reflect.TypeFor[organizationChoice](), output: reflect.TypeFor[projections.Membership](),
	example: `{"orgId":"org_01JD3Z8W5T0000000000000000"}`, errors: []int{400, 401, 403, 413, 503},
}

func (s *Server) chooseOrganization(c *call) (reply, error) {
	var in organizationChoice
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	list, err := s.projections.Memberships(c.request.Context(), c.Session.Customer)
	if err != nil {
		return reply{}, web.HistoryError(err)
	}
	i := slices.IndexFunc(list, func(m projections.Membership) bool { return m.OrgID == in.OrgID })
	if i < 0 { // unknown or somebody else's: one answer
		return reply{}, policy.Refuse(organizations.CodeForbidden, "", "organization credential required")
	}
	c.Session.Choose(in.OrgID)
	return reply{value: list[i]}, nil
}

type newName struct {
	Name   string `json:"name" jsonschema:"minLength=1,maxLength=200"`
	Reason string `json:"reason" jsonschema:"minLength=1,maxLength=1000" jsonschema_description:"Why; it stands in the ledger."`
}

var renameOrganization = &operation{
	id: "rename_organization", method: http.MethodPatch, path: "/api/assurance/organization",
	summary: "Rename the organization. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), input: reflect.TypeFor[newName](), output: reflect.TypeFor[organizations.OrganizationInfo](),
	example: `{"name":"Acme","reason":"merger"}`, errors: []int{400, 401, 403, 413, 503},
}

func (s *Server) renameOrganization(c *call) (reply, error) {
	var in newName
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	o, err := s.app.RenameOrganization(c.request.Context(), c.Principal, in.Name, in.Reason)
	return reply{value: o}, err
}

type memberList struct {
	Members []organizations.MemberInfo `json:"members"`
	paged
}

var listMembers = &operation{
	id: "list_members", method: http.MethodGet, path: "/api/assurance/members",
	summary: "The organization's members and their roles." + pagedBy,
	access:  credential.WithRight(organizations.RightMembers), output: reflect.TypeFor[memberList](), errors: []int{400, 401, 403, 503},
}

func (s *Server) listMembers(c *call) (reply, error) {
	list, err := s.app.Members(c.request.Context(), c.Principal)
	if err != nil {
		return reply{}, err
	}
	list, page, err := pageOf(c.request.URL.RawQuery, list, func(m organizations.MemberInfo) string { return m.MemberID })
	return reply{value: memberList{list, page}}, err
}

type newMember struct {
	Email string `json:"email" jsonschema:"minLength=3,maxLength=254" jsonschema_description:"Where the member signs in. It is stored sealed."`
	Role  string `json:"role" jsonschema:"enum=owner,enum=admin,enum=developer,enum=auditor"`
}

var addMember = &operation{
	id: "add_member", method: http.MethodPost, path: "/api/assurance/members",
	summary: "Give somebody a role; a member gets another one. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), input: reflect.TypeFor[newMember](), output: reflect.TypeFor[organizations.MemberInfo](),
	example: `{"email":"bob@example.com","role":"admin"}`,
	success: http.StatusCreated, errors: []int{400, 401, 403, 409, 413, 503},
}

func (s *Server) addMember(c *call) (reply, error) {
	var in newMember
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	member, err := s.app.AddMember(c.request.Context(), c.Principal, in.Email, in.Role)
	return reply{value: member}, err
}

// state is the answer to what ends something.
type state struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

var removeMember = &operation{
	id: "remove_member", method: http.MethodDelete, path: "/api/assurance/members/{id}",
	summary: "End a membership at once, and the tokens that are the member's. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), output: reflect.TypeFor[state](), errors: []int{401, 403, 404, 409, 503},
}

func (s *Server) removeMember(c *call) (reply, error) {
	err := s.app.RemoveMember(c.request.Context(), c.Principal, c.vars["id"])
	return reply{value: state{c.vars["id"], "removed"}}, err
}

type tokenList struct {
	Tokens []organizations.TokenInfo `json:"tokens"`
	paged
}

var listTokens = &operation{
	id: "list_organization_tokens", method: http.MethodGet, path: "/api/assurance/tokens",
	summary: "The organization's bearer tokens, without their secrets." + pagedBy,
	access:  credential.WithRight(organizations.RightMembers), output: reflect.TypeFor[tokenList](), errors: []int{400, 401, 403, 503},
}

func (s *Server) listTokens(c *call) (reply, error) {
	list, err := s.app.Tokens(c.request.Context(), c.Principal)
	if err != nil {
		return reply{}, err
	}
	list, page, err := pageOf(c.request.URL.RawQuery, list, func(t organizations.TokenInfo) string { return t.TokenID })
	return reply{value: tokenList{list, page}}, err
}

type tokenOrder struct {
	Name          string   `json:"name,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"What the token is for."`
	Scopes        []string `json:"scopes,omitempty" jsonschema:"minItems=1,maxItems=5,uniqueItems=true,enum=assurance:decide,enum=assurance:receipt,enum=assurance:read,enum=export:read,enum=policy:draft"`
	ExpiresInDays int      `json:"expiresInDays,omitempty" jsonschema:"minimum=1,maximum=365" jsonschema_description:"90 by default."`
	Addresses     []string `json:"addresses,omitempty" jsonschema:"minItems=1,maxItems=100" jsonschema_description:"Networks the token may be used from, such as 192.0.2.0/24. Left out: from anywhere."`
	MemberID      string   `json:"memberId,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"Whose token it shall be; the own by default."`
	Rotates       string   `json:"rotates,omitempty" jsonschema:"minLength=12,maxLength=12" jsonschema_description:"Id of the token this one follows; that one lives 24 hours longer."`
}

// RefusesNull marks what grants rights: null would mean the usual scopes, or any network.
func (tokenOrder) RefusesNull() {}

var issueToken = &operation{
	anew: true, id: "issue_organization_token", method: http.MethodPost, path: "/api/assurance/tokens",
	summary: "Issue a bearer token, or rotate one. It is shown once. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), input: reflect.TypeFor[tokenOrder](), output: reflect.TypeFor[organizations.IssuedToken](),
	example: `{"scopes":["assurance:decide","assurance:receipt"]}`,
	success: http.StatusCreated, errors: []int{400, 401, 403, 404, 413, 503},
}

func (s *Server) issueToken(c *call) (reply, error) {
	var in tokenOrder
	if err := canon.Decode(c.body, &in); err != nil {
		return reply{}, err
	}
	issued, err := s.app.IssueToken(c.request.Context(), c.Principal, organizations.TokenOrder{Name: in.Name, Scopes: in.Scopes,
		Days: in.ExpiresInDays, Addresses: in.Addresses, Member: in.MemberID, Rotates: in.Rotates})
	return reply{value: issued}, err
}

var revokeToken = &operation{
	id: "revoke_organization_token", method: http.MethodDelete, path: "/api/assurance/tokens/{id}",
	summary: "End a token at once. Needs a sign-in within 10 minutes.",
	access:  credential.WithRight(organizations.RightManage), output: reflect.TypeFor[state](), errors: []int{401, 403, 404, 503},
}

func (s *Server) revokeToken(c *call) (reply, error) {
	err := s.app.RevokeToken(c.request.Context(), c.Principal, c.vars["id"], "")
	return reply{value: state{c.vars["id"], "revoked"}}, err
}
