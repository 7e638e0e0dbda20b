package commands_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

const testPolicy = `{"policyId":"default","maxUsdPerTransaction":1,"allowedNetworks":["base"]}`

// intentFor has, for each decision, an intent that testPolicy decides that way.
var intentFor = map[string]string{
	"allow":        `{"resourceUrl":"https://api.example/","method":"GET","network":"base","amountUsd":0.5}`,
	"deny":         `{"resourceUrl":"https://api.example/","method":"GET","network":"base","amountUsd":5}`,
	"needs_review": `{"resourceUrl":"https://api.example/","method":"GET","amountUsd":0.5}`,
}

func decisionRequest(t testing.TB, key, decision string) assurance.DecisionRequest {
	t.Helper()
	r, err := assurance.ParseDecision([]byte(`{"protocol":"x402","idempotencyKey":"` + key + `","subject":{"runId":"run-1","agentId":"agent-7"},"intent":` + intentFor[decision] + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type signedDecision struct {
	record assurance.DecisionRecord
	hash   string
}

func decided(t testing.TB, a *commands.App, p organizations.Principal, key, want string) signedDecision {
	t.Helper()
	recorded, err := a.Decide(t.Context(), p, decisionRequest(t, key, want))
	if err != nil {
		t.Fatal(err)
	}
	record, err := assurance.ReadDecision(recorded.Envelope.Record)
	if err != nil || record.Decision != want {
		t.Fatalf("decision %s, want %s: %v %v", record.Decision, want, record.Findings, err)
	}
	return signedDecision{record, recorded.Envelope.Integrity.RecordHash}
}

// outcomeOf returns a request for a receipt: the outcome of a decision, observed at a time.
func outcomeOf(t testing.TB, d signedDecision, outcome string, observed time.Time) assurance.ReceiptRequest {
	t.Helper()
	r, err := assurance.ParseReceipt(fmt.Appendf(nil, `{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":%q,"observedAt":%q}`,
		d.record.DecisionID, d.hash, d.record.BindingHash, outcome, canon.Stamp(observed)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func bind(t testing.TB, a *commands.App, p organizations.Principal, r assurance.ReceiptRequest) assurance.ReceiptRecord {
	t.Helper()
	recorded, err := a.BindReceipt(t.Context(), p, r)
	if err != nil {
		t.Fatal(err)
	}
	var record assurance.ReceiptRecord
	if err := canon.Decode(recorded.Envelope.Record, &record); err != nil {
		t.Fatal(err)
	}
	return record
}

func withPolicy(t testing.TB, a *commands.App, operator organizations.Principal) {
	t.Helper()
	if _, err := a.DraftAndActivate(t.Context(), operator, []byte(testPolicy), "test"); err != nil {
		t.Fatal(err)
	}
}

var approved = assurance.ApprovalInput{Verdict: "approved", Reason: "known supplier"}

func TestApprovalResolvesOneDecision(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	ctx := t.Context()
	orgID, operator := newOrganization(t, a, "business")
	withPolicy(t, a, operator)
	developer, admin := memberOf(t, a, orgID, "dev@example.com", "developer"), memberOf(t, a, orgID, "adm@example.com", "admin")
	d := decided(t, a, developer, "k1", "needs_review")
	if !d.record.Approval.Required || d.record.Approval.HumanApprovalIncluded || d.record.ValidUntil != nil {
		t.Errorf("approval %+v until %v", d.record.Approval, d.record.ValidUntil)
	}
	_, err := a.Approve(ctx, developer, d.record.DecisionID, approved)
	wantRefusal(t, err, "forbidden", "missing role owner or admin")
	first, err := a.Approve(ctx, admin, d.record.DecisionID, approved)
	if err != nil {
		t.Fatal(err)
	}
	record, err := assurance.ReadApproval(first.Envelope.Record)
	if err != nil || !record.HumanApprovalIncluded || record.SelfApproved || record.ApprovedBy != admin.Member ||
		record.BindingHash != d.record.BindingHash || record.DecisionRecordHash != d.hash {
		t.Errorf("%+v %v", record, err)
	}
	again, err := a.Approve(ctx, admin, d.record.DecisionID, approved)
	if err != nil || !again.Replayed || again.Envelope.Integrity != first.Envelope.Integrity {
		t.Errorf("a repeated approval: %+v %v", again, err)
	}
	_, err = a.Approve(ctx, admin, d.record.DecisionID, assurance.ApprovalInput{Verdict: "rejected", Reason: "no"})
	wantRefusal(t, err, "idempotency_key_reused", "decision was already resolved")
	after := a.Clock().Add(time.Minute)
	c.Add(2 * time.Minute)
	developer, admin = session(t, a, orgID, developer.Member), session(t, a, orgID, admin.Member)
	receipt := bind(t, a, developer, outcomeOf(t, d, "fulfilled", after))
	if receipt.Conformance != "conforming" || receipt.ApprovalID == nil || *receipt.ApprovalID != record.ApprovalID {
		t.Errorf("%+v", receipt)
	}

	// An approval does not permit an action after it has expired.
	d = decided(t, a, developer, "k2", "needs_review")
	if _, err := a.Approve(ctx, admin, d.record.DecisionID, approved); err != nil {
		t.Fatal(err)
	}
	c.Add(16 * time.Minute)
	if receipt := bind(t, a, session(t, a, orgID, developer.Member), outcomeOf(t, d, "fulfilled", a.Clock())); receipt.Conformance != "violation" || receipt.Findings[0].RuleID != "receipt.after_expiry" {
		t.Errorf("%+v", receipt)
	}

	// Check which decisions cannot be resolved, and which members may not resolve a decision.
	admin = session(t, a, orgID, admin.Member)
	token := newToken(t, a, admin)
	asToken, err := a.AuthenticateOrganization(ctx, token.Token)
	if err != nil {
		t.Fatal(err)
	}
	own := decided(t, a, asToken, "k3", "needs_review")
	_, err = a.Approve(ctx, admin, own.record.DecisionID, approved)
	wantRefusal(t, err, "forbidden", "another admin must resolve your own request")
	_, err = a.Approve(ctx, asToken, own.record.DecisionID, approved)
	wantRefusal(t, err, "forbidden", "a signed-in session is required")
	_, err = a.Approve(ctx, admin, decided(t, a, asToken, "k4", "deny").record.DecisionID, approved)
	wantRefusal(t, err, "conflict", "decision does not need a review")
	bind(t, a, asToken, outcomeOf(t, own, "rejected", a.Clock()))
	_, err = a.Approve(ctx, admin, own.record.DecisionID, approved)
	wantRefusal(t, err, "conflict", "a receipt is already recorded for this decision")
	_, err = a.Approve(ctx, admin, "asd_unknown", approved)
	wantRefusal(t, err, "not_found", "not found")
	otherID, _ := newOrganization(t, a, "team")
	_, err = a.Approve(ctx, memberOf(t, a, otherID, "eve@example.com", "admin"), d.record.DecisionID, approved)
	wantRefusal(t, err, "not_found", "not found")
	clean(t, a)
}

func TestATeamsOnlyAdminMayApproveAlone(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	orgID, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	members, err := a.Members(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	owner := session(t, a, orgID, members[0].MemberID)
	d := decided(t, a, owner, "k", "needs_review")
	recorded, err := a.Approve(t.Context(), owner, d.record.DecisionID, approved)
	if err != nil {
		t.Fatal(err)
	}
	if record, err := assurance.ReadApproval(recorded.Envelope.Record); err != nil || !record.SelfApproved {
		t.Errorf("%+v %v", record, err)
	}
	clean(t, a)
}

// If many admins approve a decision at the same time, one approval is recorded.
func TestApprovalsAtOnce(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	one, two := openApp(t, db, c), openApp(t, db, c)
	orgID, operator := newOrganization(t, one, "business")
	withPolicy(t, one, operator)
	d := decided(t, one, memberOf(t, one, orgID, "dev@example.com", "developer"), "k", "needs_review")
	var admins []organizations.Principal
	for i := range 6 {
		admins = append(admins, memberOf(t, one, orgID, fmt.Sprintf("admin%d@example.com", i), "admin"))
	}
	errs := make([]error, len(admins))
	var done sync.WaitGroup
	for i, admin := range admins {
		done.Go(func() {
			_, errs[i] = []*commands.App{one, two}[i%2].Approve(context.Background(), admin, d.record.DecisionID, approved)
		})
	}
	done.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		wantRefusal(t, err, "idempotency_key_reused", "decision was already resolved")
	}
	if won != 1 {
		t.Errorf("%d approvals", won)
	}
	clean(t, one)
}

// Evaluating a recorded intent again under the same policy gives the recorded findings and
// binding, byte for byte, also with an assertion.
func TestADecisionIsEvaluatedAgainToTheSameBytes(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	ctx := t.Context()
	orgID, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	p, err := a.AuthenticateOrganization(ctx, newToken(t, a, operator).Token)
	if err != nil {
		t.Fatal(err)
	}
	r, err := assurance.ParseDecision([]byte(`{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r","purpose":"p"},"intent":` + intentFor["allow"] +
		`,"policy":{"policyId":"default","version":1,"maxUsdPerTransaction":0.25000000000000000001,"requireExactScheme":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := a.Decide(ctx, p, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.DraftAndActivate(ctx, operator, []byte(`{"policyId":"default","allowedHosts":[]}`), "freeze"); err != nil {
		t.Fatal(err)
	}
	d, err := assurance.ReadDecision(recorded.Envelope.Record)
	if err != nil || d.Decision != "deny" || fmt.Sprint(d.Policy.Asserted.StricterFields) != "[maxUsdPerTransaction requireExactScheme]" {
		t.Fatalf("%+v %v", d, err)
	}
	then, err := a.PolicyVersion(ctx, orgID, int(d.Policy.Version))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := assurance.ReadPolicy(then.Canonical)
	if err != nil || stored.Hash != d.Policy.PolicyHash {
		t.Fatalf("policy %s, want %s: %v", stored.Hash, d.Policy.PolicyHash, err)
	}
	history, err := a.Ledger.Read(ctx, orgID, "decision/"+d.DecisionID)
	if err != nil {
		t.Fatal(err)
	}
	var event events.DecisionRecorded
	if err := a.Vault.Open(ctx, history.Events[0], &event); err != nil || string(event.Record) != string(recorded.Envelope.Record) {
		t.Fatalf("opened %s: %v", event.Record, err)
	}
	var asserted assurance.Rules
	if err := canon.Decode(event.Asserted, &asserted); err != nil {
		t.Fatal(err)
	}
	e, ok := assurance.Evaluate(d.EngineVersion, d.Protocol, stored.Rules, &asserted, d.Normalized)
	want, _ := canon.Marshal(d.Findings)
	got, _ := canon.Marshal(e.Findings)
	if !ok || e.Decision != d.Decision || string(got) != string(want) {
		t.Errorf("again %s %s\nrecorded %s %s", e.Decision, got, d.Decision, want)
	}
	subject, _ := canon.Marshal(d.Subject)
	binding, err := assurance.Binding{OrgID: orgID, DecisionID: d.DecisionID, Decision: e.Decision, AssuranceActionHash: d.AssuranceActionHash,
		SubjectHash: canon.Hash(subject), PolicyHash: stored.Hash, PolicyID: stored.PolicyID, Version: stored.Version}.Hash()
	if err != nil || binding != d.BindingHash {
		t.Errorf("binding %s, want %s: %v", binding, d.BindingHash, err)
	}
	clean(t, a)
}

// Personal data in a decision is never stored unencrypted. After its data key is destroyed, the
// chain still verifies, a receipt for the decision is accepted, and the agent can request new
// decisions.
func TestDecisionOfAnErasedAgent(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	ctx := t.Context()
	orgID, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	p, err := a.AuthenticateOrganization(ctx, newToken(t, a, operator).Token)
	if err != nil {
		t.Fatal(err)
	}
	d := decided(t, a, p, "k1", "allow")
	history, err := a.Ledger.Read(ctx, orgID, "decision/"+d.record.DecisionID)
	if err != nil {
		t.Fatal(err)
	}
	var payload struct {
		Record struct {
			Subject map[string]any `json:"subject"`
		} `json:"record"`
		Sealed struct {
			KeyID string `json:"keyId"`
		} `json:"sealed"`
	}
	if err := json.Unmarshal(history.Events[0].Payload, &payload); err != nil || payload.Record.Subject["agentId"] == "agent-7" || payload.Record.Subject["runId"] != "run-1" {
		t.Errorf("stored %s: %v", history.Events[0].Payload, err)
	}
	owner, err := pgx.Connect(ctx, db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	erase(t, a, orgID, payload.Sealed.KeyID)
	c.Add(61 * time.Second) // longer than a decrypted data key stays in memory
	keys := func() (n int) {
		if err := owner.QueryRow(ctx, `select count(*) from subject_keys where tenant = $1`, orgID).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := keys()
	_, err = a.Decide(ctx, p, decisionRequest(t, "k1", "allow"))
	wantRefusal(t, err, "erased", "the record under this idempotencyKey was erased")
	if after := keys(); after != before {
		t.Errorf("a replay made %d new keys for an erased agent", after-before)
	}
	decided(t, a, p, "k2", "allow")
	_, err = a.Decide(ctx, p, decisionRequest(t, "k1", "allow"))
	wantRefusal(t, err, "erased", "the record under this idempotencyKey was erased")
	if after := keys(); after != before+1 {
		t.Errorf("%d new keys, want one for the new decision", after-before)
	}
	if receipt := bind(t, a, p, outcomeOf(t, d, "rejected", a.Clock())); receipt.Conformance != "conforming" {
		t.Errorf("%+v", receipt)
	}
	clean(t, a)
}

// A retired key signs no new records. Records that it has signed are still returned.
func TestARetiredKeySignsNothing(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	a := openApp(t, db, c)
	ctx := t.Context()
	_, operator := newOrganization(t, a, "team")
	withPolicy(t, a, operator)
	p, err := a.AuthenticateOrganization(ctx, newToken(t, a, operator).Token)
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.Decide(ctx, p, decisionRequest(t, "k1", "allow"))
	if err != nil {
		t.Fatal(err)
	}
	home := a.Ledger.Home(operator.OrgID)
	keys, err := a.Ledger.Read(ctx, home.Service(), ledger.SigningKeyStream)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := canon.Marshal(events.SigningKeyRetired{KeyID: a.Signer.KeyID(), Reason: "rotated"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Ledger.Append(ctx, ledger.Append{Tenant: keys.Tenant, Events: []ledger.Pending{{Stream: keys.Stream, Expect: keys.At(),
		ID: a.NewID("evt_"), Type: events.TypeSigningKeyRetired, SchemaVersion: 1, Actor: "operator", Payload: payload}}}); err != nil {
		t.Fatal(err)
	}
	head, err := home.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Decide(ctx, p, decisionRequest(t, "k2", "allow"))
	wantRefusal(t, err, "signing_unavailable", "signing is unavailable")
	again, err := a.Decide(ctx, p, decisionRequest(t, "k1", "allow"))
	if err != nil || !again.Replayed || again.Envelope.Integrity != first.Envelope.Integrity {
		t.Errorf("a replay: %+v %v", again, err)
	}
	if now, _ := home.Head(ctx); now != head {
		t.Errorf("%d events were written", now-head)
	}
	clean(t, a)
}

// The token is checked again at the append: a node that has a revoked token in its cache refuses a
// new request and a repeated one.
func TestWhatIsRevokedElsewhereDecidesNothing(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	one, two := openApp(t, db, c), openApp(t, db, c)
	ctx := t.Context()
	_, operator := newOrganization(t, one, "team")
	withPolicy(t, one, operator)
	token := newToken(t, one, operator)
	p, err := two.AuthenticateOrganization(ctx, token.Token)
	if err != nil {
		t.Fatal(err)
	}
	decided(t, two, p, "k1", "allow")
	if err := one.RevokeToken(ctx, operator, token.TokenID, "lost"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k2", "k1"} { // a new request, and a repeated one
		_, err = two.Decide(ctx, p, decisionRequest(t, key, "allow"))
		wantRefusal(t, err, "unauthorized", organizations.ErrToken.Error())
	}
	clean(t, one)
}

// Before a refusal that depends on a cached state is returned, the state is read again. So a right
// that another process has restored or granted takes effect immediately.
func TestWhatIsRestoredElsewhereIsNotRefused(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	one, two := openApp(t, db, c), openApp(t, db, c)
	ctx := t.Context()
	orgID, operator := newOrganization(t, one, "team")
	withPolicy(t, one, operator)
	token := newToken(t, one, operator)
	admin, err := one.AddMember(ctx, operator, "carol@example.com", organizations.RoleAdmin)
	if err != nil {
		t.Fatal(err)
	}
	permitted := func() error {
		p, err := two.AuthenticateOrganization(ctx, token.Token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := two.Permit(ctx, p, organizations.RightDecide); err != nil {
			return err
		}
		_, err = two.Decide(ctx, p, decisionRequest(t, "k1", "allow"))
		return err
	}
	change := func(state string) {
		t.Helper()
		if _, err := one.UpdateOrganization(ctx, "operator", orgID, organizations.OrganizationChange{State: state, Reason: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	for state, message := range map[string]string{"suspended": "organization is suspended", "lapsed": "organization plan required"} {
		change(state)
		wantRefusal(t, permitted(), "forbidden", message)
		wantRefusal(t, permitted(), "forbidden", message) // the state is in the cache now
		change("active")
		if err := permitted(); err != nil {
			t.Errorf("%s, then restored elsewhere: %v", state, err)
		}
	}

	// Node one changes the roles of members and adds a member, while node two has members in its
	// cache. Node two refuses an auditor an approval, and permits it to the same member as an
	// owner.
	session := func() (organizations.Principal, error) {
		return two.SessionPrincipal(ctx, orgID, admin.MemberID, c.Now())
	}
	if _, err := one.AddMember(ctx, operatorOf(t, one, orgID), "carol@example.com", organizations.RoleAuditor); err != nil {
		t.Fatal(err)
	}
	p, err := session()
	if err == nil {
		p, err = two.Confirm(ctx, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = two.Permit(ctx, p, organizations.RightApprove)
	wantRefusal(t, err, "forbidden", "missing role owner or admin")
	if _, err := one.AddMember(ctx, operatorOf(t, one, orgID), "carol@example.com", organizations.RoleOwner); err != nil {
		t.Fatal(err)
	}
	if p, err = session(); err == nil {
		_, err = two.Permit(ctx, p, organizations.RightApprove)
	}
	if err != nil {
		t.Errorf("an auditor who was made an owner elsewhere: %v", err)
	}
	bob, err := one.AddMember(ctx, operatorOf(t, one, orgID), "bob@example.com", organizations.RoleAdmin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.SessionPrincipal(ctx, orgID, bob.MemberID, c.Now()); err != nil {
		t.Errorf("who became a member elsewhere: %v", err)
	}
	clean(t, one)
}

// Database connections are cut under load, and callers repeat their requests with the same key. In
// the end each key has one decision, and every answer that was given contains that decision.
func TestFaultBackendsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	c := newClock()
	nodes := []*commands.App{openApp(t, db, c), openApp(t, db, c)}
	ctx := t.Context()
	orgID, operator := newOrganization(t, nodes[0], "team")
	withPolicy(t, nodes[0], operator)
	p := following(t, nodes[0])
	token := newToken(t, nodes[0], operator)
	const callers, keys = 8, 60
	var mu sync.Mutex
	journal := map[string]map[string]bool{} // hashes of the records that were returned, by key
	t.Run("each request is answered in the end", func(t *testing.T) {
		working, stop := sync.WaitGroup{}, make(chan struct{})
		var done atomic.Int64
		for w := range callers {
			working.Go(func() {
				a := nodes[w%2]
				for i := range keys {
					key := fmt.Sprintf("key-%d", (w/2*keys+i)%(callers*keys/4)) // several callers use each key
					for tries := 0; ; tries++ {
						p, err := a.AuthenticateOrganization(ctx, token.Token)
						var recorded decisions.Recorded
						if err == nil {
							recorded, err = a.Decide(ctx, p, decisionRequest(t, key, "allow"))
						}
						if err == nil {
							mu.Lock()
							if journal[key] == nil {
								journal[key] = map[string]bool{}
							}
							journal[key][recorded.Envelope.Integrity.RecordHash] = true
							mu.Unlock()
							done.Add(1)
							break
						}
						var refused *policy.Error
						if !errors.As(err, &refused) || refused.Code != ground.CodeUnavailable || tries > 100 {
							t.Errorf("%s: %v", key, err)
							break
						}
					}
				}
			})
		}
		var killed int64
		var killing sync.WaitGroup
		killing.Go(func() { killed = db.Terminate(t, 0.3, done.Load, stop) })
		working.Wait()
		close(stop)
		killing.Wait()
		t.Logf("%d backends killed", killed)
	})
	last := openApp(t, db, c)
	stored := map[string]bool{}
	for from := int64(1); ; {
		batch, err := last.Ledger.Tenant(ctx, orgID, from, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch {
			if e.Type == events.TypeDecisionRecorded {
				var d struct {
					Integrity seal.Integrity `json:"integrity"`
				}
				if err := json.Unmarshal(e.Payload, &d); err != nil {
					t.Fatal(err)
				}
				stored[d.Integrity.RecordHash] = true
			}
			from = e.Sequence + 1
		}
		if len(batch) == 0 {
			break
		}
	}
	t.Run("each key has one decision", func(t *testing.T) {
		for key, hashes := range journal {
			for hash := range hashes {
				if len(hashes) != 1 || !stored[hash] {
					t.Errorf("%s: %d answers, stored %v", key, len(hashes), stored[hash])
				}
			}
		}
		if len(stored) != len(journal) {
			t.Errorf("%d decisions stored for %d keys", len(stored), len(journal))
		}
	})
	t.Run("the ledger and its read models are sound", func(t *testing.T) {
		sound(t, last, p)
	})
}

// erase destroys a data key with the command of the operator.
func erase(t *testing.T, a *commands.App, tenant, keyID string) {
	t.Helper()
	got, err := a.EraseSubject(t.Context(), evidence.Erasure{Tenant: tenant, KeyID: keyID, Reason: "asked for", RequestedBy: "cus_1", ApprovedBy: "cus_2"})
	if err != nil || got != keyID {
		t.Fatal(got, err)
	}
}
