package api_test

import (
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger"
)

// TestAnErasureEndsTheSessionsOfThePerson checks that an erased customer is signed out at once in
// every browser, that others stay signed in, and that the same person can sign in again.
func TestAnErasureEndsTheSessionsOfThePerson(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	ada, elsewhere, bob := s.signedIn(t, "ada@example.com"), s.signedIn(t, "ada@example.com"), s.signedIn(t, "bob@example.com")
	const session = "/api/auth/session"
	for _, b := range []*browser{ada, elsewhere, bob} {
		b.want(b.get(session), 200, "customerId")
	}
	if _, err := s.app.EraseSubject(t.Context(), evidence.Erasure{Tenant: ledger.ServiceTenant, Subject: "email:ada@example.com", Reason: "asked for", RequestedBy: "a", ApprovedBy: "b"}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*browser{ada, elsewhere} {
		b.want(b.get(session), 401, "")
	}
	bob.want(bob.get(session), 200, "customerId")
	again := s.signedIn(t, "ada@example.com")
	again.want(again.get(session), 200, "customerId")
}
