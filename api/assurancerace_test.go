package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/policy/assurance"
)

// TestEqualRequestsAtOnce checks that of N equal concurrent requests one gets 201 and the others
// 200, all with the same body.
func TestEqualRequestsAtOnce(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	one, two := newSite(t, db), newSite(t, db)
	n := newTenant(t, one, "team", "ada@example.com")
	other := newTenant(t, one, "team", "bob@example.com")
	for round := range 5 {
		key := fmt.Sprint("storm", round)
		var mu sync.Mutex
		statuses, bodies := map[int]int{}, map[string]int{}
		post := func(base, body string) {
			a := n.sendTo(t, base, "/api/assurance/decisions", body)
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
			bodies[a.body]++
		}
		var done sync.WaitGroup
		for i := range 24 {
			base := []string{one.URL, two.URL}[i%2]
			body := decisionBody(key, weather)
			if i%3 == 0 { // the same JSON in another order and with white space
				body = strings.Replace(`{"intent":`+weather+`, "subject":{"purpose":"a forecast","agentId":"agent-7","runId":"run-1"}, "idempotencyKey":"KEY","protocol":"x402"}`, "KEY", key, 1)
			}
			done.Go(func() { post(base, body) })
		}
		done.Go(func() { other.decide(t, decisionBody(key, weather)).want(t, 201, "") })
		done.Wait()
		if statuses[201] != 1 || statuses[200] != 23 || len(bodies) != 1 {
			t.Errorf("round %d: %v, %d different bodies", round, statuses, len(bodies))
		}
	}
	clean(t, one)
}

// TestDifferentRequestsUnderOneKeyAtOnce checks that of concurrent requests with one key and
// different contents exactly one succeeds. The others are refused, and repeats of the first return
// the same bytes. The same is checked for receipts.
func TestDifferentRequestsUnderOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	one, two := newSite(t, db), newSite(t, db)
	n := newTenant(t, one, "team", "ada@example.com")
	race := func(path string, bodies []string) {
		t.Helper()
		answers := make([]answer, 2*len(bodies))
		var done sync.WaitGroup
		for i := range answers {
			done.Go(func() { answers[i] = n.sendTo(t, []string{one.URL, two.URL}[i%2], path, bodies[i/2]) })
		}
		done.Wait()
		winner := -1
		for i, a := range answers {
			if a.status == 201 {
				if winner >= 0 {
					t.Error("two winners")
				}
				winner = i
			}
		}
		if winner < 0 {
			t.Fatal("nobody won")
		}
		for i, a := range answers {
			switch {
			case i == winner:
			case i/2 == winner/2 && (a.status != 200 || a.body != answers[winner].body):
				t.Errorf("the winner's twin: %d %s", a.status, a.body)
			case i/2 != winner/2 && a.status != 409:
				t.Errorf("a loser: %d %s", a.status, a.body)
			}
		}
	}
	for round := range 5 {
		var bodies []string
		for i := range 8 {
			bodies = append(bodies, decisionBody(fmt.Sprint("key", round), strings.Replace(weather, "250000", fmt.Sprint(250000+i), 1)))
		}
		race("/api/assurance/decisions", bodies)
	}
	d := n.decide(t, decisionBody("receipt", weather)).decision(t)
	var bodies []string
	for i := range 8 {
		bodies = append(bodies, fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled","settlementId":"0x%d"}`,
			d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash, i))
	}
	race("/api/assurance/receipts", bodies)
	clean(t, one)
}

// TestDecisionsFollowThePolicyAtTheirPosition activates policies under load. Every decision must
// use the last policy that was activated before it.
func TestDecisionsFollowThePolicyAtTheirPosition(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	one, two := newSite(t, db), newSite(t, db)
	n := newTenant(t, one, "team", "ada@example.com")
	var done sync.WaitGroup
	var mu sync.Mutex
	var all []decided
	for w := range 4 {
		done.Go(func() {
			for i := range 15 {
				a := n.sendTo(t, []string{one.URL, two.URL}[w%2], "/api/assurance/decisions", decisionBody(fmt.Sprint(w, "-", i), weather))
				if a.status == 503 {
					continue // five activations intervened, so the caller is told to retry
				}
				a.want(t, 201, "")
				d := a.decision(t)
				mu.Lock()
				all = append(all, d)
				mu.Unlock()
			}
		})
	}
	activated := map[int64]int64{} // maps versions to sequence numbers
	for i := range 8 {
		v, err := one.app.DraftAndActivate(t.Context(), n.operator, []byte(fmt.Sprintf(`{"policyId":"default","maxUsdPerTransaction":%d}`, i%2)), "flip")
		if err != nil {
			t.Error(err)
			continue
		}
		activated[int64(v.Version)] = v.ActivatedSequence
	}
	done.Wait()
	for _, d := range all {
		p := d.Record.Policy
		if next := activated[p.Version+1]; p.ActivatedSequence >= d.Ledger.Sequence || next != 0 && next < d.Ledger.Sequence {
			t.Errorf("sequence %d rests on version %d, activated at %d; the next at %d", d.Ledger.Sequence, p.Version, p.ActivatedSequence, next)
		}
		limit := (p.Version - 2) % 2 // the first version is the one that newTenant activated
		if want := map[bool]string{true: "allow", false: "deny"}[p.Version == 1 || limit == 1]; d.Record.Decision != want {
			t.Errorf("version %d decided %s", p.Version, d.Record.Decision)
		}
	}
	clean(t, one)
}

// TestReplaysSurviveEverything checks that the answer to a repeated request has the same bytes
// after the policy and the base URL have changed, without the signing key, and after a restart.
func TestReplaysSurviveEverything(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	s := newSite(t, db)
	n := newTenant(t, s, "team", "ada@example.com")
	first := n.decide(t, decisionBody("k", weather))
	n.activate(t, `{"policyId":"default","allowedHosts":[],"allowedMcpServers":[]}`)
	s.app.BaseURL = "https://elsewhere.example"
	s.app.Signer = nil
	again := n.decide(t, decisionBody("k", weather))
	if again.status != 200 || again.body != first.body {
		t.Errorf("%d\n%s\n%s", again.status, first.body, again.body)
	}
	restarted := newSite(t, db)
	if again := n.sendTo(t, restarted.URL, "/api/assurance/decisions", decisionBody("k", weather)); again.status != 200 || again.body != first.body {
		t.Errorf("after a restart: %d\n%s\n%s", again.status, first.body, again.body)
	}
	if a := n.sendTo(t, restarted.URL, "/api/assurance/decisions", decisionBody("k2", weather)); a.decision(t).Record.Decision != "deny" {
		t.Errorf("frozen, and still %s", a.body)
	}
	clean(t, restarted)
}

// TestTimesDoNotFallAcrossNodes checks that a node whose clock is behind does not date a record
// before the previous record.
func TestTimesDoNotFallAcrossNodes(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	ahead, behind := newSite(t, db), newSite(t, db)
	n := newTenant(t, ahead, "team", "ada@example.com")
	behind.clock.Add(-time.Hour)
	first := n.decide(t, decisionBody("k1", weather)).decision(t)
	// The second request is from an agent that the node already knows, so the node reads nothing
	// before it appends.
	for _, key := range []string{"k2", "k3"} {
		a := n.sendTo(t, behind.URL, "/api/assurance/decisions", decisionBody(key, weather))
		second := a.decision(t)
		if second.Record.IssuedAt < first.Record.IssuedAt || !strings.Contains(a.body, assurance.ClockAdjusted) || second.Record.Decision != "allow" {
			t.Errorf("%s: issued %s after %s: %s", key, second.Record.IssuedAt, first.Record.IssuedAt, a.body)
		}
	}
	clean(t, ahead)
}
