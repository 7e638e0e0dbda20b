package events_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// golden are the bytes of one event of each type of organizations, members,
// tokens and policies. A change of any of them is a new schema version.
var golden = []struct {
	eventType string
	stored    any
	bytes     string
}{
	{events.TypeCustomerCreated, events.CustomerCreated{CustomerID: "cus_1", Email: "ada@example.com", Subject: "sub_1"},
		`{"customerId":"cus_1","email":"ada@example.com","subject":"sub_1"}`},
	{events.TypeOrganizationCreated, events.OrganizationCreated{OrgID: "org_1", Name: "Acme", Plan: "team"},
		`{"name":"Acme","orgId":"org_1","plan":"team"}`},
	{events.TypeOrganizationUpdated, events.OrganizationUpdated{State: "lapsed", PlanEndedAt: "2026-11-20T15:00:00.000Z", Reason: "unpaid"},
		`{"planEndedAt":"2026-11-20T15:00:00.000Z","reason":"unpaid","state":"lapsed"}`},
	{events.TypeMemberAdded, events.MemberAdded{MemberID: "cus_1", Role: "owner", Email: "ada@example.com"},
		`{"email":"ada@example.com","memberId":"cus_1","role":"owner"}`},
	{events.TypeMemberRemoved, events.MemberRemoved{MemberID: "cus_1"}, `{"memberId":"cus_1"}`},
	{events.TypeOrganizationTokenIssued, events.OrganizationTokenIssued{TokenID: "0123456789ab", Name: "ci", SecretHash: "ff", Scopes: []string{"assurance:decide"},
		CreatedBy: "cus_1", Member: "cus_2", ExpiresAt: "2027-02-18T15:00:00.000Z", Addresses: []string{"192.0.2.0/24"}, Rotates: "ba9876543210"},
		`{"addresses":["192.0.2.0/24"],"createdBy":"cus_1","expiresAt":"2027-02-18T15:00:00.000Z","member":"cus_2","name":"ci","rotates":"ba9876543210","scopes":["assurance:decide"],"secretHash":"ff","tokenId":"0123456789ab"}`},
	{events.TypeOrganizationTokenRevoked, events.OrganizationTokenRevoked{TokenID: "0123456789ab", Reason: "rotated", EffectiveAt: "2026-11-21T15:00:00.000Z"},
		`{"effectiveAt":"2026-11-21T15:00:00.000Z","reason":"rotated","tokenId":"0123456789ab"}`},
	{events.TypePolicyDrafted, events.PolicyDrafted{PolicyID: "default", Policy: jsontext.Value(`{"policyId":"default"}`), PolicyHash: "aa",
		Lint: []events.PolicyLint{{RuleID: "policy.no_maximum", Severity: "medium", Field: "/maxUsdPerTransaction", Message: "m"}}, Author: "cus_1"},
		`{"author":"cus_1","lint":[{"field":"/maxUsdPerTransaction","message":"m","ruleId":"policy.no_maximum","severity":"medium"}],"policy":{"policyId":"default"},"policyHash":"aa","policyId":"default"}`},
	{events.TypePolicyActivated, events.PolicyActivated{PolicyID: "default", Version: 2, Policy: jsontext.Value(`{"policyId":"default","version":2}`), PolicyHash: "bb",
		DraftID: "evt_1", Author: "cus_1", Activator: "cus_2", Reason: "r", Changed: []string{"allowedHosts"}},
		`{"activator":"cus_2","author":"cus_1","changed":["allowedHosts"],"draftId":"evt_1","policy":{"policyId":"default","version":2},"policyHash":"bb","policyId":"default","reason":"r","selfActivated":false,"version":2}`},
	{events.TypeGuardReported, events.GuardReported{Machine: "34750f98bd59fcfc", PublicKey: "k", First: 1, Last: 2, Before: "", Head: "aa", Signature: "s", Counts: map[string]int{"deny": 1, "pass": 1}, Lines: []int{}},
		`{"before":"","counts":{"deny":1,"pass":1},"first":1,"head":"aa","last":2,"lines":[],"machine":"34750f98bd59fcfc","publicKey":"k","signature":"s"}`},
}

func TestGoldenBytes(t *testing.T) {
	for _, g := range golden {
		got, err := canon.Marshal(g.stored)
		if err != nil || string(got) != g.bytes {
			t.Errorf("%s: %s, %v\nwant %s", g.eventType, got, err, g.bytes)
		}
		if !slices.Contains(events.Types, g.eventType) {
			t.Errorf("%s is not among the types", g.eventType)
		}
	}
}

func TestTypesAreListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range events.Types {
		noun, verb, ok := strings.Cut(name, ".")
		if seen[name] || !ok || noun == "" || verb == "" {
			t.Errorf("type %q", name)
		}
		seen[name] = true
	}
}
