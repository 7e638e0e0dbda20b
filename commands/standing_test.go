package commands_test

import (
	"testing"
	"time"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// stopWorld is an organization on two nodes, with a developer who requests decisions and an admin
// who reviews them.
type stopWorld struct {
	t        *testing.T
	one, two *commands.App
	clock    *ledgertest.Clock
	orgID    string
	agent    string // member id
	reviewer string
}

func newStopWorld(t *testing.T) *stopWorld {
	db, c := ledgertest.New(t), newClock()
	w := &stopWorld{t: t, one: openApp(t, db, c), two: openApp(t, db, c), clock: c}
	var operator organizations.Principal
	w.orgID, operator = newOrganization(t, w.one, "business")
	withPolicy(t, w.one, operator)
	w.agent = memberOf(t, w.one, w.orgID, "dev@example.com", "developer").Member
	w.reviewer = memberOf(t, w.one, w.orgID, "adm@example.com", "admin").Member
	return w
}

func (w *stopWorld) as(member string) organizations.Principal {
	return session(w.t, w.one, w.orgID, member)
}

// activate activates a policy on node two, so that node one has not seen it yet. If text is empty,
// it activates the emergency stop.
func (w *stopWorld) activate(text string) {
	w.t.Helper()
	operator, err := w.two.Operator(w.t.Context(), w.orgID)
	if err != nil {
		w.t.Fatal(err)
	}
	if text == "" {
		_, err = w.two.FreezePolicy(w.t.Context(), operator, "leak")
	} else {
		_, err = w.two.DraftAndActivate(w.t.Context(), operator, []byte(text), "changed")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *stopWorld) approve(d signedDecision, verdict string) error {
	_, err := w.one.Approve(w.t.Context(), w.as(w.reviewer), d.record.DecisionID, assurance.ApprovalInput{Verdict: verdict, Reason: "seen"})
	return err
}

func (w *stopWorld) standing(d signedDecision) string {
	w.t.Helper()
	s, err := w.one.Standing(w.t.Context(), w.as(w.agent), d.record.DecisionID)
	if err != nil || s.OrgID != w.orgID || s.DecisionRecordHash != d.hash || s.DecisionID != d.record.DecisionID || s.Holds != (s.Reason == nil) {
		w.t.Fatalf("%+v %v", s, err)
	}
	if s.Holds {
		return "holds until " + *s.ValidUntil
	}
	return *s.Reason
}

const tightened = `{"policyId":"default","maxUsdPerTransaction":0.1,"allowedNetworks":["base"]}`

// After an emergency stop, or after the policy is tightened, a pending decision cannot be approved
// if the active policy denies it.
func TestWhatTheActivePolicyDeniesIsNotApproved(t *testing.T) {
	t.Parallel()
	const denied = "the active policy denies this action"
	for name, text := range map[string]string{"stop": "", "tightened": tightened} {
		t.Run(name, func(t *testing.T) {
			w := newStopWorld(t)
			first, second := decided(t, w.one, w.as(w.agent), "k1", "needs_review"), decided(t, w.one, w.as(w.agent), "k2", "needs_review")
			if got := w.standing(first); got != "the decision needs an approval" {
				t.Error(got)
			}
			// The approving node has the previous policy in its cache. Its append is refused, and
			// it evaluates the decision again.
			w.activate(text)
			wantRefusal(t, w.approve(first, "approved"), "conflict", denied)
			if got := w.standing(first); got != denied {
				t.Error(got)
			}
			if err := w.approve(second, "rejected"); err != nil {
				t.Errorf("what is denied can be rejected: %v", err)
			}
			// When the policy is loosened again, the same decision can be approved.
			w.activate(testPolicy)
			if got := w.standing(first); got != "the decision needs an approval" {
				t.Error(got)
			}
			if err := w.approve(first, "approved"); err != nil {
				t.Errorf("after the stop: %v", err)
			}
			if got := w.standing(first); got != "holds until "+canon.Stamp(w.one.Clock().Add(15*time.Minute)) {
				t.Error(got)
			}
			clean(t, w.one)
		})
	}
}

// If an action was permitted before a stop and executed after it, its receipt is a violation, even
// if the stop was lifted before the receipt.
func TestReceiptsAfterAStop(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"stop": "", "tightened": tightened} {
		t.Run(name, func(t *testing.T) {
			w := newStopWorld(t)
			var ds []signedDecision
			for _, key := range []string{"a1", "a2", "a3", "a4"} {
				ds = append(ds, decided(t, w.one, w.as(w.agent), key, "allow"))
			}
			review := decided(t, w.one, w.as(w.agent), "r1", "needs_review")
			if err := w.approve(review, "approved"); err != nil {
				t.Fatal(err)
			}
			w.clock.Add(time.Minute)
			before := w.one.Clock()
			w.clock.Add(time.Minute)
			w.activate(text)
			w.clock.Add(time.Minute)
			is := func(d signedDecision, outcome string, observed time.Time, want string) {
				t.Helper()
				r := outcomeOf(t, d, outcome, w.one.Clock())
				if r.Observed = observed; observed.IsZero() {
					r.ObservedAt = ""
				}
				got := bind(t, w.one, w.as(w.agent), r)
				if got.Conformance+" "+got.Findings[0].RuleID != want {
					t.Errorf("%s at %s: %s %+v, want %s", outcome, observed, got.Conformance, got.Findings, want)
				}
			}
			if got := w.standing(ds[0]); got != "the active policy denies this action" {
				t.Error(got)
			}
			is(ds[0], "failed", w.one.Clock(), "violation receipt.executed_after_stop")
			is(ds[1], "failed", time.Time{}, "violation receipt.executed_after_stop")
			is(ds[2], "failed", before, "conforming receipt.reported_after_stop")
			is(review, "failed", w.one.Clock(), "violation receipt.executed_after_stop")
			if got := w.standing(ds[0]); got != "a receipt is already recorded for this decision" {
				t.Error(got)
			}
			w.activate(testPolicy)
			w.clock.Add(time.Minute)
			if got := w.standing(ds[3]); got != "a policy that denies this action was activated after the action was permitted" {
				t.Error(got)
			}
			is(ds[3], "failed", w.one.Clock(), "violation receipt.executed_after_stop")
			// An earlier stop does not affect a decision that is made after it was lifted.
			fresh := decided(t, w.one, w.as(w.agent), "f1", "allow")
			if got := w.standing(fresh); got != "holds until "+*fresh.record.ValidUntil {
				t.Error(got)
			}
			is(fresh, "fulfilled", w.one.Clock(), "conforming receipt.response_unbound")
			clean(t, w.one)
		})
	}
}

// Only principals who may read a decision can read its standing.
func TestStandingIsForTheOrganization(t *testing.T) {
	t.Parallel()
	w := newStopWorld(t)
	d := decided(t, w.one, w.as(w.agent), "k", "allow")
	otherID, _ := newOrganization(t, w.one, "team")
	for _, p := range []organizations.Principal{memberOf(t, w.one, otherID, "eve@example.com", "admin"), memberOf(t, w.one, w.orgID, "dev2@example.com", "developer")} {
		_, err := w.one.Standing(t.Context(), p, d.record.DecisionID)
		wantRefusal(t, err, "not_found", "not found")
	}
	_, err := w.one.Standing(t.Context(), w.as(w.agent), "asd_unknown")
	wantRefusal(t, err, "not_found", "not found")
	w.clock.Add(16 * time.Minute)
	if got := w.standing(d); got != "the decision or approval has expired" {
		t.Error(got)
	}
}
