// Package organizations serves the endpoints for the members of an organization: its name, its
// members with their roles, and its tokens.
package organizations

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// Organizations serves an organization to its members.
type Organizations struct {
	Commands    *organizations.Organizations
	Projections *projections.Projections
}

// Operations lists the operations on an organization, its members and its tokens.
func (s *Organizations) Operations() []*op.Operation {
	return []*op.Operation{
		getOrganization.Does(s.getOrganization), chooseOrganization.Does(s.chooseOrganization), renameOrganization.Does(s.renameOrganization),
		listMembers.Does(s.listMembers), addMember.Does(s.addMember), removeMember.Does(s.removeMember),
		listTokens.Does(s.listTokens), issueToken.Does(s.issueToken), revokeToken.Does(s.revokeToken),
	}
}

var getOrganization = &op.Operation{
	ID: "get_organization", Method: http.MethodGet, Path: "/api/assurance/organization",
	Summary: "The organization of the credential: its plan, state and number of members.",
	Access:  credential.WithRight(organizations.RightPolicies), Output: reflect.TypeFor[organizations.OrganizationInfo](), Errors: []int{401, 403, 503},
}

func (s *Organizations) getOrganization(c *op.Call) (op.Reply, error) {
	o, err := s.Commands.Organization(c.Request.Context(), c.Principal.OrgID)
	return op.Reply{Value: o}, err
}

type organizationChoice struct {
	OrgID string `json:"orgId" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"Id of one of the member's organizations."`
}

var chooseOrganization = &op.Operation{
	ID: "choose_organization", Method: http.MethodPost, Path: "/api/assurance/organization",
	Summary: "Choose the organization that the session acts for. A member of only one organization does not need this call.",
	Access:  credential.Access{Kind: credential.Person}, Input: reflect.TypeFor[organizationChoice](), Output: reflect.TypeFor[projections.Membership](),
	Example: `{"orgId":"org_01JD3Z8W5T0000000000000000"}`, Errors: []int{400, 401, 403, 413, 503},
}

func (s *Organizations) chooseOrganization(c *op.Call) (op.Reply, error) {
	var in organizationChoice
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	list, err := s.Projections.Memberships(c.Request.Context(), c.Session.Customer)
	if err != nil {
		return op.Reply{}, query.Error(err)
	}
	i := slices.IndexFunc(list, func(m projections.Membership) bool { return m.OrgID == in.OrgID })
	if i < 0 { // an unknown organization and one of other people get the same answer
		return op.Reply{}, policy.Refuse(organizations.CodeForbidden, "", "organization credential required")
	}
	c.Session.Choose(in.OrgID)
	return op.Reply{Value: list[i]}, nil
}

type newName struct {
	Name   string `json:"name" jsonschema:"minLength=1,maxLength=200"`
	Reason string `json:"reason" jsonschema:"minLength=1,maxLength=1000" jsonschema_description:"Reason of the change, recorded in the ledger."`
}

var renameOrganization = &op.Operation{
	ID: "rename_organization", Method: http.MethodPatch, Path: "/api/assurance/organization",
	Summary: "Rename the organization. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Input: reflect.TypeFor[newName](), Output: reflect.TypeFor[organizations.OrganizationInfo](),
	Example: `{"name":"Acme","reason":"merger"}`, Errors: []int{400, 401, 403, 413, 503},
	Refuses: []string{"out_of_range"},
}

func (s *Organizations) renameOrganization(c *op.Call) (op.Reply, error) {
	var in newName
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	o, err := s.Commands.RenameOrganization(c.Request.Context(), c.Principal, in.Name, in.Reason)
	return op.Reply{Value: o}, err
}

type memberList struct {
	Members []organizations.MemberInfo `json:"members"`
	op.Paged
}

var listMembers = &op.Operation{
	ID: "list_members", Method: http.MethodGet, Path: "/api/assurance/members",
	Summary: "The organization's members and their roles." + op.PagedBy,
	Access:  credential.WithRight(organizations.RightMembers), Output: reflect.TypeFor[memberList](), Errors: []int{400, 401, 403, 503},
}

func (s *Organizations) listMembers(c *op.Call) (op.Reply, error) {
	list, err := s.Commands.Members(c.Request.Context(), c.Principal)
	if err != nil {
		return op.Reply{}, err
	}
	list, page, err := op.Page(c.Request.URL.RawQuery, list, func(m organizations.MemberInfo) string { return m.MemberID })
	return op.Reply{Value: memberList{list, page}}, err
}

type newMember struct {
	Email string `json:"email" jsonschema:"minLength=3,maxLength=254" jsonschema_description:"Address that the member signs in with. It is stored encrypted."`
	Role  string `json:"role" jsonschema:"enum=owner,enum=admin,enum=developer,enum=auditor"`
}

var addMember = &op.Operation{
	ID: "add_member", Method: http.MethodPost, Path: "/api/assurance/members",
	Summary: "Add a member with a role, or change the role of a member. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Input: reflect.TypeFor[newMember](), Output: reflect.TypeFor[organizations.MemberInfo](),
	Example: `{"email":"bob@example.com","role":"admin"}`,
	Success: http.StatusCreated, Errors: []int{400, 401, 403, 409, 413, 503},
	Refuses: []string{"invalid_email"},
}

func (s *Organizations) addMember(c *op.Call) (op.Reply, error) {
	var in newMember
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	member, err := s.Commands.AddMember(c.Request.Context(), c.Principal, in.Email, in.Role)
	return op.Reply{Value: member}, err
}

var removeMember = &op.Operation{
	ID: "remove_member", Method: http.MethodDelete, Path: "/api/assurance/members/{id}",
	Summary: "Remove a member at once and revoke the member's tokens. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Output: reflect.TypeFor[op.Ended](), Errors: []int{401, 403, 404, 409, 503},
}

func (s *Organizations) removeMember(c *op.Call) (op.Reply, error) {
	err := s.Commands.RemoveMember(c.Request.Context(), c.Principal, c.Vars["id"], "")
	return op.Reply{Value: op.Ended{ID: c.Vars["id"], State: "removed"}}, err
}

type tokenList struct {
	Tokens []organizations.TokenInfo `json:"tokens"`
	op.Paged
}

var listTokens = &op.Operation{
	ID: "list_organization_tokens", Method: http.MethodGet, Path: "/api/assurance/tokens",
	Summary: "The organization's bearer tokens, without their secrets." + op.PagedBy,
	Access:  credential.WithRight(organizations.RightMembers), Output: reflect.TypeFor[tokenList](), Errors: []int{400, 401, 403, 503},
}

func (s *Organizations) listTokens(c *op.Call) (op.Reply, error) {
	list, err := s.Commands.Tokens(c.Request.Context(), c.Principal)
	if err != nil {
		return op.Reply{}, err
	}
	list, page, err := op.Page(c.Request.URL.RawQuery, list, func(t organizations.TokenInfo) string { return t.TokenID })
	return op.Reply{Value: tokenList{list, page}}, err
}

type tokenOrder struct {
	Name          string   `json:"name,omitempty" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Purpose of the token."`
	Scopes        []string `json:"scopes,omitempty" jsonschema:"minItems=1,maxItems=5,uniqueItems=true,enum=assurance:decide,enum=assurance:receipt,enum=assurance:read,enum=export:read,enum=policy:draft"`
	ExpiresInDays int      `json:"expiresInDays,omitempty" jsonschema:"minimum=1,maximum=365" jsonschema_description:"Days until the token expires; 90 by default."`
	Addresses     []string `json:"addresses,omitempty" jsonschema:"minItems=1,maxItems=100" jsonschema_description:"Networks from which the token may be used, such as 192.0.2.0/24. By default it may be used from everywhere."`
	MemberID      string   `json:"memberId,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"Id of the member that the token is issued for; by default the caller."`
	Rotates       string   `json:"rotates,omitempty" jsonschema:"minLength=12,maxLength=12" jsonschema_description:"Id of a token that the new token replaces. The old token stays valid for 24 hours."`
}

// RefusesNull makes the parser refuse null for a member. Null would silently grant the usual
// scopes or allow any network.
func (tokenOrder) RefusesNull() {}

var issueToken = &op.Operation{
	Creates: true, ID: "issue_organization_token", Method: http.MethodPost, Path: "/api/assurance/tokens",
	Summary: "Issue a bearer token, or replace an old one. The token is shown once. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Input: reflect.TypeFor[tokenOrder](), Output: reflect.TypeFor[organizations.IssuedToken](),
	Example: `{"scopes":["assurance:decide","assurance:receipt"]}`,
	Success: http.StatusCreated, Errors: []int{400, 401, 403, 404, 413, 503},
	Refuses: []string{"out_of_range"},
}

func (s *Organizations) issueToken(c *op.Call) (op.Reply, error) {
	var in tokenOrder
	if err := canon.Decode(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	issued, err := s.Commands.IssueToken(c.Request.Context(), c.Principal, organizations.TokenOrder{Name: in.Name, Scopes: in.Scopes,
		Days: in.ExpiresInDays, Addresses: in.Addresses, Member: in.MemberID, Rotates: in.Rotates})
	return op.Reply{Value: issued}, err
}

var revokeToken = &op.Operation{
	ID: "revoke_organization_token", Method: http.MethodDelete, Path: "/api/assurance/tokens/{id}",
	Summary: "Revoke a token at once. Needs a sign-in within 10 minutes.",
	Access:  credential.WithRight(organizations.RightManage), Output: reflect.TypeFor[op.Ended](), Errors: []int{401, 403, 404, 503},
}

func (s *Organizations) revokeToken(c *op.Call) (op.Reply, error) {
	err := s.Commands.RevokeToken(c.Request.Context(), c.Principal, c.Vars["id"], "")
	return op.Reply{Value: op.Ended{ID: c.Vars["id"], State: "revoked"}}, err
}
