package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	decisionsPath = "/api/assurance/decisions"
	receiptsPath  = "/api/assurance/receipts"
)

// TestFaultKillNineDecisions kills the service and its PostgreSQL without warning
// while agents decide and bind receipts, two of them under the same keys. Every
// acknowledged record is there exactly once afterwards, octet for octet.
func TestFaultKillNineDecisions(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := dataDir(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	decisions, receipts := &journal{bodies: map[string]string{}}, &journal{bodies: map[string]string{}}
	var token string
	for round := range 4 {
		s := serveIn(t, dir)
		if round == 0 {
			token = organizationToken(t, dir)
		}
		var clients sync.WaitGroup
		for c := range 6 {
			clients.Go(func() { decideUntilItDies(t, s.base, token, fmt.Sprintf("%d-%d", round, c/2), decisions, receipts) })
		}
		time.Sleep(time.Duration(200+r.IntN(300)) * time.Millisecond) // a load to kill, not a wait for something
		kill(t, s, dir, round)
		clients.Wait()
	}
	s := serveIn(t, dir)
	for key, body := range decisions.bodies {
		if status, again, err := postAs(s.base+decisionsPath, token, purchase(key)); err != nil || status != http.StatusOK || again != body {
			t.Errorf("%s: %d %v\n got %s\nwant %s", key, status, err, again, body)
		}
	}
	for request, body := range receipts.bodies {
		if status, again, err := postAs(s.base+receiptsPath, token, request); err != nil || status != http.StatusOK || again != body {
			t.Errorf("receipt: %d %v\n got %s\nwant %s", status, err, again, body)
		}
	}
	t.Logf("%d decisions and %d receipts acknowledged", len(decisions.bodies), len(receipts.bodies))
	if len(decisions.bodies) == 0 || len(receipts.bodies) == 0 {
		t.Error("nothing was acknowledged: the test tested nothing")
	}
	sound(t, dir)
}

// sound is what must hold after every fault: the ledger verifies, every read model is
// what the events say, and every decision comes out again.
func sound(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"verify"}, {"replay", "diff"}, {"replay", "decisions"}} {
		if out, err := program(append(args, "--data", dir)...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// organizationToken makes an organization with a policy on the command line.
func organizationToken(t *testing.T, dir string) string {
	t.Helper()
	policyFile := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policyFile, []byte(`{"policyId":"default","maxUsdPerTransaction":1,"allowedHosts":["api.example"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var made struct {
		OrgID string `json:"orgId"`
		Token string `json:"token"`
	}
	for _, args := range [][]string{
		{"org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com"},
		{"policy", "activate", "--org", "ORG", "--file", policyFile, "--reason", "test"},
		{"org", "token", "issue", "--org", "ORG"},
	} {
		for i := range args {
			if args[i] == "ORG" {
				args[i] = made.OrgID
			}
		}
		out, err := program(append(args, "--data", dir, "--json")...).Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		if err := json.Unmarshal(out, &made); err != nil {
			t.Fatalf("%v: %s", args, out)
		}
	}
	return made.Token
}

func purchase(key string) string {
	return fmt.Sprintf(`{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":"run","agentId":"agent"},"intent":{"resourceUrl":"https://api.example/","method":"GET","amountUsd":0.5}}`, key)
}

func postAs(url, token, body string) (status int, answer string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// decideUntilItDies makes purchases, each with its receipt, until the service is
// gone. A 503 is asked again under the same key.
func decideUntilItDies(t *testing.T, base, token, name string, decisions, receipts *journal) {
	ask := func(path, body string) (string, bool) {
		for {
			status, answer, err := postAs(base+path, token, body)
			switch {
			case err != nil:
				return "", false
			case status == http.StatusServiceUnavailable:
				continue
			case status != http.StatusOK && status != http.StatusCreated:
				t.Errorf("%s: %d %s", path, status, answer)
				return "", false
			}
			return answer, true
		}
	}
	for n := 0; ; n++ {
		key := fmt.Sprintf("%s-%d", name, n)
		answer, alive := ask(decisionsPath, purchase(key))
		if !alive {
			return
		}
		if err := decisions.acknowledge(key, answer); err != nil {
			t.Error(err)
		}
		var d struct {
			Record    struct{ DecisionID, BindingHash string }
			Integrity struct{ RecordHash string }
		}
		if err := json.Unmarshal([]byte(answer), &d, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Error(err)
			return
		}
		evidence := fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled"}`,
			d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash)
		if answer, alive = ask(receiptsPath, evidence); !alive {
			return
		}
		if err := receipts.acknowledge(evidence, answer); err != nil {
			t.Error(err)
		}
	}
}
