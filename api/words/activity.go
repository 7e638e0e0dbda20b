package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/ledger/events"
)

// Activity describes what the actor of an event did.
type Activity struct {
	Did    string // text that begins with a verb in the past tense, such as "removed the member"
	Whom   string // id (cus_…) of the affected member; empty if there is none
	As     string // text after the member, such as "as admin"
	Reason string // reason that a person wrote
	Href   string // page about the subject of the event; empty if there is none
}

// Did describes an event. stored is its payload; encrypted personal members are not needed. ok is
// false for a type without a description.
func Did(stored any) (a Activity, ok bool) {
	switch e := stored.(type) {
	case events.OrganizationCreated:
		return Activity{Did: "created the organization, with the plan " + e.Plan, Href: "/overview"}, true
	case events.OrganizationUpdated:
		return Activity{Did: organizationChange(e), Reason: e.Reason}, true
	case events.MemberAdded:
		return Activity{Did: "added the member", Whom: e.MemberID, As: "as " + e.Role, Href: "/members"}, true
	case events.MemberRemoved:
		return Activity{Did: "removed the member", Whom: e.MemberID, Reason: e.Reason, Href: "/members"}, true
	case events.OrganizationTokenIssued:
		did := "issued the token svco_" + e.TokenID
		if e.Rotates != "" {
			did += ", which replaces svco_" + e.Rotates
		}
		return Activity{Did: did + ": it may " + strings.Join(e.Scopes, ", "), Href: "/keys"}, true
	case events.OrganizationTokenRevoked:
		return Activity{Did: "revoked the token svco_" + e.TokenID + ", from " + e.EffectiveAt + " on", Reason: e.Reason, Href: "/keys"}, true
	case events.PolicyDrafted:
		return Activity{Did: "drafted a policy", Href: "/policies"}, true
	case events.PolicyActivated:
		did := fmt.Sprintf("activated version %d of the policy", e.Version)
		if len(e.Changed) > 0 {
			did += ", which changes " + strings.Join(e.Changed, ", ")
		}
		return Activity{Did: did, Reason: e.Reason, Href: fmt.Sprintf("/policies/%d", e.Version)}, true
	case events.WebhookCreated:
		return Activity{Did: "created the webhook " + e.WebhookID + " for " + strings.Join(e.Topics, ", "), Href: "/webhooks/" + e.WebhookID}, true
	case events.WebhookRotated:
		return Activity{Did: "rotated the secret of the webhook " + e.WebhookID, Href: "/webhooks/" + e.WebhookID}, true
	case events.WebhookRemoved:
		return Activity{Did: "removed the webhook " + e.WebhookID, Reason: e.Reason, Href: "/webhooks"}, true
	case events.SubjectErased:
		return Activity{Did: "erased the personal data under the key " + e.KeyID}, true
	case events.ExportRequested:
		return Activity{Did: "requested an export", Href: "/evidence"}, true
	case events.ExportCreated:
		return Activity{Did: "exported records", Href: "/evidence"}, true
	case events.ExportVerified:
		if e.Valid {
			return Activity{Did: "verified the export " + e.ExportID + ": it is valid"}, true
		}
		return Activity{Did: "verified the export " + e.ExportID + ": it is not valid", Reason: e.Reason}, true
	case events.PersonalOpened:
		return Activity{Did: "read personal data in " + e.Place}, true
	}
	return a, false
}

// organizationChange describes the changes in an update of an organization.
func organizationChange(e events.OrganizationUpdated) string {
	var changes []string
	for _, change := range []struct{ what, to string }{
		{"its name to ", e.Name}, {"its plan to ", e.Plan}, {"its state to ", e.State}, {"its setting for storing the arguments of tools to ", e.Arguments},
	} {
		if change.to != "" {
			changes = append(changes, change.what+change.to)
		}
	}
	if len(changes) == 0 {
		return "updated the organization"
	}
	return "changed " + strings.Join(changes, " and ")
}

// ActivityKinds lists the kinds by which the list of activities can be filtered, with their event
// types.
var ActivityKinds = []struct {
	Name  string
	Types []string
}{
	{"Members", []string{events.TypeOrganizationCreated, events.TypeOrganizationUpdated, events.TypeMemberAdded, events.TypeMemberRemoved}},
	{"Tokens", []string{events.TypeOrganizationTokenIssued, events.TypeOrganizationTokenRevoked}},
	{"Policies", []string{events.TypePolicyDrafted, events.TypePolicyActivated}},
	{"Webhooks", []string{events.TypeWebhookCreated, events.TypeWebhookRotated, events.TypeWebhookRemoved}},
	{"Data", []string{events.TypeExportRequested, events.TypeExportCreated, events.TypeExportVerified, events.TypePersonalOpened, events.TypeSubjectErased}},
}

// ActivityTypes returns the event types of a kind. An empty kind means no filter. ok is false for
// an unknown kind.
func ActivityTypes(kind string) (types []string, ok bool) {
	for _, k := range ActivityKinds {
		if k.Name == kind {
			return slices.Clone(k.Types), true
		}
	}
	return nil, kind == ""
}
