package projections

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/migrations"
)

// shownNowhere are the types of events that no read model follows: commands read
// them in their streams.
var shownNowhere = []string{
	events.TypeSigningKeyActivated, events.TypeSigningKeyRetired,
	events.TypeKeyRequested, events.TypeKeyIssued, events.TypeKeyRevoked, events.TypeCustomerCreated,
	events.TypeOrganizationTokenIssued, events.TypeOrganizationTokenRevoked, events.TypePolicyDrafted, events.TypePolicyActivated,
	events.TypeCustomerBound, events.TypePurchaseFulfilled, events.TypePurchaseRefunded, events.TypeSubscriptionUpdated,
	events.TypeSubscriptionCharged, events.TypeInvoicePaid,
	events.TypeEntitlementGranted, events.TypeEntitlementRevoked, events.TypeDownloadConsumed, events.TypeIdentifierReserved,
	events.TypeAgentRegistered, events.TypeAgentVerified, events.TypeAgentClaimed, events.TypeAccessTokenRevoked, events.TypeCreditGranted,
	events.TypeWebhookCreated, events.TypeWebhookRotated, events.TypeWebhookRemoved,
	events.TypeCheckpointsBegun, events.TypeRollbackDeclared, events.TypeSubjectErased, events.TypeExportCreated, events.TypeGuardReported,
	events.TypeWebhookCreated, events.TypeWebhookRotated, events.TypeWebhookRemoved,
}

// No type is skipped because nobody thought of it: each is followed by a read model,
// or named above.
func TestEveryTypeIsFollowedOrShownNowhere(t *testing.T) {
	t.Parallel()
	known := slices.Clone(shownNowhere)
	for _, p := range all {
		if p.version < 1 || len(p.tables) == 0 || p.apply == nil || len(p.handles) == 0 {
			t.Errorf("projection %s is incomplete", p.name)
		}
		if once := slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.handles, p.signed)))); len(once) != len(p.handles)+len(p.signed) {
			t.Errorf("%s names a type twice", p.name)
		}
		for _, name := range slices.Concat(p.handles, p.signed) {
			if slices.Contains(shownNowhere, name) {
				t.Errorf("%s follows %s, which is said to be shown nowhere", p.name, name)
			}
		}
		known = append(append(known, p.handles...), p.signed...)
	}
	known, types := slices.Compact(slices.Sorted(slices.Values(known))), slices.Sorted(slices.Values(events.Types))
	if diff := cmp.Diff(slices.Compact(slices.Clone(types)), types); diff != "" {
		t.Errorf("the catalogue of types names one twice:\n%s", diff)
	}
	if diff := cmp.Diff(types, known); diff != "" {
		t.Errorf("types of events (-there are +known here):\n%s", diff)
	}
}

func TestEveryReadModelHasItsFile(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	slices.Sort(names)
	if files := migrations.ReadModels(); !slices.Equal(names, files) {
		t.Errorf("projections %v, files %v", names, files)
	}
}
