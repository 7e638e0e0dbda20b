package commands_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

const loose = `{"policyId":"default","maxUsdPerTransaction":100,"allowedHosts":["api.example.com","api.other.example"]}`

func draft(t *testing.T, a *commands.App, p organizations.Principal, text string) decisions.Draft {
	t.Helper()
	d, err := a.DraftPolicy(t.Context(), p, []byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The author of a draft cannot activate it, unless the author is the only admin of an organization
// on the plan team. The event then records the exception.
func TestSeparationOfDuties(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	ctx := t.Context()
	const another = "another admin must activate your own draft"

	orgID, _ := newOrganization(t, a, "business")
	bob := memberOf(t, a, orgID, "bob@example.com", "admin")
	own := draft(t, a, bob, loose)
	_, err := a.ActivatePolicy(ctx, bob, own.DraftID, "mine")
	wantRefusal(t, err, "forbidden", another)
	_, err = a.DraftAndActivate(ctx, bob, []byte(loose), "mine")
	wantRefusal(t, err, "forbidden", another)
	carl := memberOf(t, a, orgID, "carl@example.com", "admin")
	v, err := a.ActivatePolicy(ctx, carl, own.DraftID, "reviewed")
	if err != nil || v.SelfActivated || v.Author != bob.Member || v.Activator != carl.Member || v.Reason != "reviewed" {
		t.Errorf("%+v, %v", v, err)
	}
	dev := memberOf(t, a, orgID, "dev@example.com", "developer")
	written := draft(t, a, dev, loose)
	_, err = a.ActivatePolicy(ctx, dev, written.DraftID, "mine")
	wantRefusal(t, err, "forbidden", "missing role owner or admin")

	// If a token creates a draft, its authors are the token's owner and the member who issued the
	// token.
	issued, err := a.IssueToken(ctx, session(t, a, orgID, bob.Member), organizations.TokenOrder{Scopes: []string{"policy:draft"}, Member: dev.Member})
	if err != nil {
		t.Fatal(err)
	}
	byToken, err := a.AuthenticateOrganization(ctx, issued.Token)
	if err != nil {
		t.Fatal(err)
	}
	written = draft(t, a, byToken, loose)
	_, err = a.ActivatePolicy(ctx, session(t, a, orgID, bob.Member), written.DraftID, "not mine, is it")
	wantRefusal(t, err, "forbidden", another)
	if v, err := a.ActivatePolicy(ctx, session(t, a, orgID, carl.Member), written.DraftID, "reviewed"); err != nil || v.SelfActivated || v.Author != dev.Member {
		t.Errorf("%+v, %v", v, err)
	}

	// On the plan business, the only admin cannot activate an own draft: a second admin must do
	// it.
	lonely, _ := newOrganization(t, a, "business")
	owner := memberOf(t, a, lonely, "ada@example.com", "owner")
	_, err = a.ActivatePolicy(ctx, owner, draft(t, a, owner, loose).DraftID, "alone")
	wantRefusal(t, err, "forbidden", another)

	team, _ := newOrganization(t, a, "team")
	owner = memberOf(t, a, team, "ada@example.com", "owner")
	v, err = a.ActivatePolicy(ctx, owner, draft(t, a, owner, loose).DraftID, "alone")
	if err != nil || !v.SelfActivated {
		t.Errorf("a Team's only admin: %+v, %v", v, err)
	}
	memberOf(t, a, team, "bob@example.com", "admin")
	_, err = a.ActivatePolicy(ctx, session(t, a, team, owner.Member), draft(t, a, session(t, a, team, owner.Member), loose).DraftID, "alone")
	wantRefusal(t, err, "forbidden", another)
	clean(t, a)
}

func TestDraftsAreRefusedAsTheLintSays(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	orgID, operator := newOrganization(t, a, "team")
	for _, bad := range []string{
		``, `[]`, `null`, `{}`, `{"policyId":""}`, `{"policyId":"default","version":2}`, `{"policyId":"default","extra":1}`,
		`{"policyId":"default","policyId":"default"}`, `{"PolicyId":"default"}`, `{"policyId":"default","requireHttps":"yes"}`,
		`{"policyId":"default","allowedHosts":["https://api.example.com"]}`, `{"policyId":"default","allowedHosts":["a:70000"]}`,
		`{"policyId":"default","allowedHosts":["a.*.com"]}`,
		`{"policyId":"default","allowedPayTo":["0x833589fCD6eDb6E08f4c7C32D4f71b54bdA0291f"]}`,
		`{"policyId":"default","maxUsdPerTransaction":-1}`, `{"policyId":"default","maxUsdPerTransaction":0.1000000000000000055511}`,
		`{"policyId":"default","allowedHosts":["api.example.com"],"blockedHosts":["example.com"]}`,
		`{"policyId":"default","allowedHosts":null}`, `{"policyId":"default","maxUsdPerTransaction":null}`,
	} {
		if _, err := a.DraftPolicy(t.Context(), operator, []byte(bad), ""); err == nil {
			t.Errorf("%s was frozen", bad)
		}
	}
	if v, err := a.Ledger.Version(t.Context(), orgID, "policy"); err != nil || v != 0 {
		t.Errorf("refused drafts left %d events, %v", v, err)
	}
	draft(t, a, operator, loose)
	_, err := a.DraftPolicy(t.Context(), operator, []byte(`{"policyId":"another","requireHttps":true}`), "")
	wantRefusal(t, err, "inconsistent_input", "policyId must be the one of this organization's policy")
	d := draft(t, a, operator, `{"policyId":"default","allowedNetworks":["base"]}`)
	if len(d.Lint) == 0 || string(d.Canonical) != `{"allowedNetworks":["base"],"policyId":"default"}` || d.Hash != canon.Hash(d.Canonical) {
		t.Errorf("%+v", d)
	}
}

func TestFreezeStopsEverything(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	ctx := t.Context()
	orgID, operator := newOrganization(t, a, "business")
	if _, err := a.FreezePolicy(ctx, operator, "before there was one"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.DraftAndActivate(ctx, operator, []byte(loose), "open"); err != nil {
		t.Fatal(err)
	}
	wantDecision(t, a, orgID, "k1", "https://api.example.com/a", assurance.Allow)
	v, err := a.FreezePolicy(ctx, operator, "leak")
	if err != nil || v.Version != 3 {
		t.Fatalf("%+v, %v", v, err)
	}
	if diff := cmp.Diff([]string{"allowedHosts", "allowedMcpServers"}, v.Changed); diff != "" {
		t.Error(diff)
	}
	wantDecision(t, a, orgID, "k2", "https://api.example.com/a", assurance.Deny)
	clean(t, a)
}

// decide requests a decision about paying 1 USD to a URL.
func decide(t *testing.T, a *commands.App, p organizations.Principal, key, url string) assurance.DecisionRecord {
	t.Helper()
	r, err := assurance.ParseDecision(fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":"run-1"},
		"intent":{"resourceUrl":%q,"method":"GET","amountUsd":1}}`, key, url))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := a.Decide(t.Context(), p, r)
	for errors.As(err, new(*ground.Unavailable)) { // a caller repeats a refused request with the same key
		recorded, err = a.Decide(t.Context(), p, r)
	}
	if err != nil {
		t.Error(err)
		return assurance.DecisionRecord{}
	}
	record, err := assurance.ReadDecision(recorded.Envelope.Record)
	if err != nil {
		t.Error(err)
	}
	return record
}

func decider(t *testing.T, a *commands.App, orgID string) organizations.Principal {
	t.Helper()
	p, err := a.AuthenticateOrganization(t.Context(), newToken(t, a, operatorOf(t, a, orgID)).Token)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantDecision(t *testing.T, a *commands.App, orgID, key, url, want string) {
	t.Helper()
	if got := decide(t, a, decider(t, a, orgID), key, url); got.Decision != want {
		t.Errorf("%s: %s %v, want %s", url, got.Decision, got.Findings, want)
	}
}

// Policies are activated and decisions made at the same time: versions have no gaps, and each
// decision names the last activation before its own position in the chain.
func TestActivationsRace(t *testing.T) {
	t.Parallel()
	db, c := ledgertest.New(t), newClock()
	apps := []*commands.App{openApp(t, db, c), openApp(t, db, c)}
	orgID, operator := newOrganization(t, apps[0], "business")
	if _, err := apps[0].DraftAndActivate(t.Context(), operator, []byte(loose), "start"); err != nil {
		t.Fatal(err)
	}
	who := []organizations.Principal{decider(t, apps[0], orgID), decider(t, apps[1], orgID)}
	var all sync.WaitGroup
	const activations, asked = 6, 40
	for n := range activations {
		all.Go(func() {
			text := fmt.Sprintf(`{"policyId":"default","maxUsdPerTransaction":%d,"allowedHosts":["api.example.com"]}`, n+1)
			_, err := apps[n%2].DraftAndActivate(t.Context(), operator, []byte(text), "race")
			for errors.As(err, new(*ground.Unavailable)) { // after five tries the command gives up, and a caller repeats the request
				_, err = apps[n%2].DraftAndActivate(t.Context(), operator, []byte(text), "race")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for n := range asked {
		all.Go(func() { decide(t, apps[n%2], who[n%2], fmt.Sprint("k", n), "https://api.example.com/a") })
	}
	all.Wait()
	_, versions, err := apps[0].Policies(t.Context(), operator)
	if err != nil || len(versions) != activations+1 {
		t.Fatalf("%d activations, %v", len(versions), err)
	}
	stored, err := apps[0].Ledger.Tenant(t.Context(), orgID, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen, active := 0, decisions.ActivePolicy{}
	for _, e := range stored {
		for _, v := range versions {
			if v.ActivatedSequence == e.Sequence {
				active = v.ActivePolicy
			}
		}
		if e.Type != "decision.recorded" {
			continue
		}
		seen++
		x, err := apps[1].ExplainDecision(t.Context(), operator, e.Stream[len("decision/"):])
		if err != nil || x.PolicyHash != active.Hash || int(x.PolicyVersion) != active.Version || !x.Reproduced {
			t.Errorf("decision at %d names version %d, in force is %d; reproduced %v, %v", e.Sequence, x.PolicyVersion, active.Version, x.Reproduced, err)
		}
	}
	if seen != asked {
		t.Errorf("%d asked, want %d", seen, asked)
	}
	clean(t, apps[0])
}

func TestPreviewListsEachFlip(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openApp(t, ledgertest.New(t), c)
	ctx := t.Context()
	orgID, operator := newOrganization(t, a, "business")
	if _, err := a.DraftAndActivate(ctx, operator, []byte(loose), "start"); err != nil {
		t.Fatal(err)
	}
	decide(t, a, decider(t, a, orgID), "old", "https://api.other.example/old")
	c.Add(30*24*time.Hour + time.Second)
	asker := decider(t, a, orgID)
	decide(t, a, asker, "k1", "https://api.example.com/a")
	flips := decide(t, a, asker, "k2", "https://api.other.example/a")
	decide(t, a, asker, "k3", "https://evil.example/a")
	tighter := draft(t, a, operator, `{"policyId":"default","maxUsdPerTransaction":100,"allowedHosts":["api.example.com"]}`)
	preview, err := a.PreviewDraft(ctx, operator, tighter.DraftID)
	if err != nil {
		t.Fatal(err)
	}
	want := decisions.Preview{Since: preview.Since, Active: 1, Decisions: 3, Flips: []decisions.Flip{{DecisionID: flips.DecisionID, IssuedAt: flips.IssuedAt,
		Protocol: "x402", Before: "allow", After: "deny", RuleIDs: []string{"x402.host.not_allowed"}}}}
	if diff := cmp.Diff(want, preview); diff != "" {
		t.Error(diff)
	}
	same, err := a.PreviewPolicy(ctx, operator, []byte(loose))
	if err != nil || len(same.Flips) != 0 || same.Decisions != 3 {
		t.Errorf("the policy in force changes nothing: %+v, %v", same, err)
	}
	// A draft that equals the active policy has an empty list of changes, not the list of an
	// earlier activation.
	if _, err := a.ActivatePolicy(ctx, operatorOf(t, a, orgID), tighter.DraftID, "tighter"); err != nil {
		t.Fatal(err)
	}
	same, err = a.PreviewDraft(ctx, operatorOf(t, a, orgID), tighter.DraftID)
	if err != nil || len(same.Flips) != 0 || same.Decisions != 3 || same.Active != 2 {
		t.Errorf("an unchanged draft is blamed for old changes: %+v, %v", same, err)
	}
	back, err := a.PreviewPolicy(ctx, operator, []byte(loose))
	if err != nil || len(back.Flips) != 1 || back.Flips[0].Before != "deny" || back.Flips[0].After != "allow" || back.Flips[0].RuleIDs[0] != "x402.host.not_allowed" {
		t.Errorf("loosened again: %+v, %v", back, err)
	}
	leave := takeHeavyPlaces(t, a)
	if _, err := a.PreviewDraft(ctx, operator, tighter.DraftID); !refusedAs(err, ground.CodeUnavailable) {
		t.Errorf("a preview computes although all places are taken: %v", err)
	}
	leave()
	if active, err := a.ActivePolicy(ctx, orgID); err != nil || active.Version != 2 {
		t.Errorf("a preview activated version %d, %v", active.Version, err)
	}
}

func TestExplainNamesEveryRule(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	ctx := t.Context()
	orgID, operator := newOrganization(t, a, "business")
	if _, err := a.DraftAndActivate(ctx, operator, []byte(loose), "start"); err != nil {
		t.Fatal(err)
	}
	record := decide(t, a, decider(t, a, orgID), "k", "http://evil.example/a")
	x, err := a.ExplainDecision(ctx, operator, record.DecisionID)
	if err != nil || !x.Reproduced {
		t.Fatalf("%+v, %v", x, err)
	}
	results := map[string]string{}
	for _, r := range x.Rules {
		results[r.RuleID] = r.Result
	}
	for _, id := range record.RulesEvaluated {
		if results[id] == "" {
			t.Errorf("%s is not explained", id)
		}
	}
	if results["x402.host.not_allowed"] != "deny" || results["x402.https.required"] != "passed" {
		t.Errorf("%v", results)
	}
	// An assertion that is stricter than the policy is stored. ExplainDecision and PreviewPolicy
	// evaluate it again.
	r, err := assurance.ParseDecision([]byte(`{"protocol":"x402","idempotencyKey":"strict","subject":{"runId":"run-1"},
		"policy":{"policyId":"default","version":1,"maxUsdPerTransaction":0.5},
		"intent":{"resourceUrl":"https://api.example.com/a","method":"GET","amountUsd":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := a.Decide(ctx, decider(t, a, orgID), r)
	if err != nil {
		t.Fatal(err)
	}
	if record, err = assurance.ReadDecision(recorded.Envelope.Record); err != nil || record.Decision != assurance.Deny {
		t.Fatalf("%s, %v", record.Decision, err)
	}
	if x, err = a.ExplainDecision(ctx, operator, record.DecisionID); err != nil || !x.Reproduced || x.Asserted == nil {
		t.Errorf("%+v, %v", x, err)
	}
	if preview, err := a.PreviewPolicy(ctx, operator, []byte(loose)); err != nil || len(preview.Flips) != 0 {
		t.Errorf("the policy in force, with the assertion: %+v, %v", preview, err)
	}
	for _, unknown := range []string{"asd_01JD3Z8W5T0000000000000000", "policy", ""} {
		_, err := a.ExplainDecision(ctx, operator, unknown)
		wantRefusal(t, err, "not_found", "not found")
	}
}

// A policy file may name the version that the next activation gives, and no other version.
func TestAPolicyMayCarryItsNextVersion(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	_, operator := newOrganization(t, a, "team")
	for version := 1; version <= 2; version++ {
		text := func(version int) []byte {
			return fmt.Appendf(nil, `{"version":%d,"policyId":"p","maxUsdPerTransaction":%d}`, version, version)
		}
		for _, other := range []int{version - 1, version + 1} {
			if other == 0 {
				continue
			}
			_, err := a.DraftPolicy(t.Context(), operatorOf(t, a, operator.OrgID), text(other), "")
			wantRefusal(t, err, "inconsistent_input", fmt.Sprintf("version must be left out, or be the next version: %d", version))
		}
		d, err := a.DraftPolicy(t.Context(), operatorOf(t, a, operator.OrgID), text(version), "")
		if err != nil || strings.Contains(string(d.Canonical), "version") {
			t.Fatalf("%s, %v", d.Canonical, err)
		}
		v, err := a.DraftAndActivate(t.Context(), operatorOf(t, a, operator.OrgID), text(version), "test")
		if err != nil || v.Version != version {
			t.Fatalf("version %d, %v", v.Version, err)
		}
	}
	clean(t, a)
}
