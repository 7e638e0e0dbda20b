package events

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Types of events about an organization, its members, its tokens and its policy. All except
// customer.created are in the organization's own tenant.
const (
	TypeCustomerCreated          = "customer.created"
	TypeOrganizationCreated      = "organization.created"
	TypeOrganizationUpdated      = "organization.updated"
	TypeMemberAdded              = "member.added"
	TypeMemberRemoved            = "member.removed"
	TypeOrganizationTokenIssued  = "organization_token.issued"
	TypeOrganizationTokenRevoked = "organization_token.revoked"
	TypePolicyDrafted            = "policy.drafted"
	TypePolicyActivated          = "policy.activated"
)

var organizations = []kind{
	{name: TypeCustomerCreated, stored: reflect.TypeFor[CustomerCreated](), shown: nowhere, golden: []string{
		`{"customerId":"cus_1","email":"ada@example.com","subject":"sub_1"}`,
	}},
	{name: TypeOrganizationCreated, stored: reflect.TypeFor[OrganizationCreated](), shown: in("access", "organizations"), golden: []string{
		`{"name":"Acme","orgId":"org_1","plan":"team"}`,
	}},
	{name: TypeOrganizationUpdated, stored: reflect.TypeFor[OrganizationUpdated](), shown: in("access", "organizations"), golden: []string{
		`{"planEndedAt":"2026-11-20T15:00:00.000Z","reason":"unpaid","state":"lapsed"}`,
		`{"arguments":"reviews","name":"Acme","plan":"team","reason":"renamed"}`,
	}},
	{name: TypeMemberAdded, stored: reflect.TypeFor[MemberAdded](), shown: in("access", "organizations"), about: "memberId", golden: []string{
		`{"email":"ada@example.com","memberId":"cus_1","role":"owner"}`,
	}},
	{name: TypeMemberRemoved, stored: reflect.TypeFor[MemberRemoved](), shown: in("access", "organizations"), about: "memberId", golden: []string{
		`{"memberId":"cus_1"}`,
		`{"memberId":"cus_1","reason":"left the company"}`,
	}},
	{name: TypeOrganizationTokenIssued, stored: reflect.TypeFor[OrganizationTokenIssued](), shown: in("access"), about: "tokenId", golden: []string{
		`{"addresses":["192.0.2.0/24"],"createdBy":"cus_1","expiresAt":"2027-02-18T15:00:00.000Z","member":"cus_2","name":"ci","rotates":"ba9876543210","scopes":["assurance:decide"],"secretHash":"ff","tokenId":"0123456789ab"}`,
	}},
	{name: TypeOrganizationTokenRevoked, stored: reflect.TypeFor[OrganizationTokenRevoked](), shown: in("access"), about: "tokenId", golden: []string{
		`{"effectiveAt":"2026-11-21T15:00:00.000Z","reason":"rotated","tokenId":"0123456789ab"}`,
	}},
	{name: TypePolicyDrafted, stored: reflect.TypeFor[PolicyDrafted](), shown: in("access"), about: "policyId", golden: []string{
		`{"author":"cus_1","lint":[{"field":"/maxUsdPerTransaction","message":"m","ruleId":"policy.no_maximum","severity":"medium"}],"policy":{"policyId":"default"},"policyHash":"aa","policyId":"default"}`,
		`{"author":"cus_1","lint":[],"policy":{"policyId":"default"},"policyHash":"aa","policyId":"default","reason":"r"}`,
	}},
	{name: TypePolicyActivated, stored: reflect.TypeFor[PolicyActivated](), shown: in("access"), about: "policyId", golden: []string{
		`{"activator":"cus_2","author":"cus_1","changed":["allowedHosts"],"draftId":"evt_1","policy":{"policyId":"default","version":2},"policyHash":"bb","policyId":"default","reason":"r","selfActivated":false,"version":2}`,
	}},
}

// CustomerCreated is customer.created, schema version 1, the first event of the stream
// customer/<customer id> in the tenant service. Its idempotency key is the data key of the e-mail
// address. So an address has one customer until it is erased.
type CustomerCreated struct {
	CustomerID string `json:"customerId"` // cus_…
	Email      any    `json:"email" personal:"true"`
	Subject    string `json:"subject"` // id of the data key of the address
}

// OrganizationCreated is organization.created, schema version 1, the first event of the stream
// organization in its tenant.
type OrganizationCreated struct {
	OrgID string `json:"orgId"` // org_…, which is also the tenant
	Name  string `json:"name"`
	Plan  string `json:"plan"` // "team" or "business"
}

// OrganizationUpdated is organization.updated, schema version 1, in the stream organization. An
// absent member has not changed. PlanEndedAt, RFC 3339, is the time at which a lapsed plan ended.
type OrganizationUpdated struct {
	Name        string `json:"name,omitempty"`
	Plan        string `json:"plan,omitempty"`
	State       string `json:"state,omitempty"` // "active", "suspended" or "lapsed"
	PlanEndedAt string `json:"planEndedAt,omitempty"`
	Arguments   string `json:"arguments,omitempty"` // decisions whose tool arguments are kept: "off", "reviews" or "always"
	Reason      string `json:"reason"`
}

// MemberAdded is member.added, schema version 1, in the stream organization. If the customer is
// already a member, the event changes the role.
type MemberAdded struct {
	MemberID string `json:"memberId"` // cus_…
	Role     string `json:"role"`     // "owner", "admin", "developer" or "auditor"
	Email    any    `json:"email" personal:"true"`
}

// MemberRemoved is member.removed, schema version 1, in the stream organization.
type MemberRemoved struct {
	MemberID string `json:"memberId"`
	Reason   string `json:"reason,omitempty"` // reason in the words of the member who removed this one
}

// OrganizationTokenIssued is organization_token.issued, schema version 1, the first event of the
// stream organization_token/<token id>. Only the hash of the secret is stored.
type OrganizationTokenIssued struct {
	TokenID    string   `json:"tokenId"` // 12 characters
	Name       string   `json:"name,omitempty"`
	SecretHash string   `json:"secretHash"` // SHA-256 of the secret's 32 bytes, in hex
	Scopes     []string `json:"scopes"`
	CreatedBy  string   `json:"createdBy"`        // cus_… or "operator"
	Member     string   `json:"member,omitempty"` // owner of the token, if that is not its creator
	ExpiresAt  string   `json:"expiresAt"`        // RFC 3339
	Addresses  []string `json:"addresses,omitempty"`
	Rotates    string   `json:"rotates,omitempty"` // id of the token that this one replaces
}

// OrganizationTokenRevoked is organization_token.revoked, schema version 1. The token is valid
// until EffectiveAt, which is now or after the overlap of a rotation. If there are several events,
// the earliest time counts.
type OrganizationTokenRevoked struct {
	TokenID     string `json:"tokenId"`
	Reason      string `json:"reason"`
	EffectiveAt string `json:"effectiveAt"`
}

// PolicyDrafted is policy.drafted, schema version 1, in the stream policy. The id of the draft is
// the event's id. Policy has no version until it is activated.
type PolicyDrafted struct {
	PolicyID   string         `json:"policyId"`
	Policy     jsontext.Value `json:"policy"`     // canonical
	PolicyHash string         `json:"policyHash"` // SHA-256 of Policy, hex
	Lint       []PolicyLint   `json:"lint"`
	Author     string         `json:"author"`
	Reason     string         `json:"reason,omitempty"` // why the author proposes it
}

// PolicyLint is a warning about a draft at the time when it was saved.
type PolicyLint struct {
	RuleID   string `json:"ruleId"`
	Severity string `json:"severity"`
	Field    string `json:"field"` // JSON pointer into the policy
	Message  string `json:"message"`
	Evidence string `json:"evidence,omitempty"`
}

// PolicyActivated is policy.activated, schema version 1, in the stream policy. It replaces the
// previous activation from its own sequence number on.
type PolicyActivated struct {
	PolicyID      string         `json:"policyId"`
	Version       int            `json:"version"`    // last activated version plus 1
	Policy        jsontext.Value `json:"policy"`     // canonical, including its version
	PolicyHash    string         `json:"policyHash"` // SHA-256 of Policy, hex
	DraftID       string         `json:"draftId"`    // evt_… of policy.drafted
	Author        string         `json:"author"`
	Activator     string         `json:"activator"`
	SelfActivated bool           `json:"selfActivated"` // author and activator are the same person
	Reason        string         `json:"reason"`
	Changed       []string       `json:"changed"` // members that differ from the previous version, sorted
}
