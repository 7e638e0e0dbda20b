package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// The command check asks the service, which reports an emergency stop immediately. A token of
// another organization gets no information about the decision.
func TestCheckAsksTheService(t *testing.T) {
	t.Parallel()
	a := &audited{T: t, data: dataDir(t), work: t.TempDir()}
	a.base = serveIn(t, a.data).base
	organization := func(name string) (id, token string) {
		var made struct{ OrgID, Token string }
		a.read(a.countersign("org", "create", "--name", name, "--plan", "team", "--owner", strings.ToLower(name)+"@example.com", "--json"), &made)
		id = made.OrgID
		a.read(a.countersign("org", "token", "issue", "--org", id, "--json"), &made)
		return id, made.Token
	}
	org, token := organization("Acme")
	stranger, strangerToken := organization("Other")
	a.keep("policy.json", `{"policyId":"default","allowedHosts":["api.example"]}`)
	activate := func() {
		a.countersign("policy", "activate", "--org", org, "--file", filepath.Join(a.work, "policy.json"), "--reason", "test")
	}
	activate()
	a.keep("jwks.json", a.get("/.well-known/jwks.json", ""))
	for n := range 5 {
		a.keep(fmt.Sprintf("%d.json", n), a.post(decisionsPath, "Authorization: Bearer "+token,
			fmt.Sprintf(`{"protocol":"x402","idempotencyKey":"k%d","subject":{"runId":"r"},"intent":%s}`, n, pendingIntent)))
	}
	check := func(code int, n int, says string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args = append([]string{"check", "--keys", filepath.Join(a.work, "jwks.json"), "--state", filepath.Join(a.work, "used.json"),
			"--decision", filepath.Join(a.work, fmt.Sprintf("%d.json", n))}, args...)
		if got := run(append(args, "--", pendingIntent), &stdout, &stderr); got != code || !strings.Contains(stdout.String()+stderr.String(), says) {
			t.Errorf("%v: exit %d, want %d: %s%s", args, got, code, stdout.String(), stderr.String())
		}
	}
	ours := []string{"--org", org, "--url", a.base, "--token"}
	check(0, 0, "\nno stop, valid until ", append(ours, token)...)
	check(1, 0, "the decision was already used on this machine", append(ours, token)...)
	check(1, 1, "the organization has no decision with this id at the service", append(ours, strangerToken)...)
	check(2, 1, "the service answered 401", append(ours, "svco_wrong")...)
	check(1, 1, "the decision belongs to another organization", "--org", stranger, "--url", a.base, "--token", strangerToken)
	elsewhere := httptest.NewServer(http.RedirectHandler(a.base+decisionsPath, http.StatusTemporaryRedirect))
	t.Cleanup(elsewhere.Close)
	check(2, 1, "the service answered 307", "--org", org, "--url", elsewhere.URL, "--token", token)

	a.countersign("policy", "freeze", "--org", org, "--reason", "leak")
	check(1, 1, "the active policy denies this action", append(ours, token)...)
	check(0, 2, "\nSTOP NOT CHECKED, valid until ", "--org", org)
	activate()
	check(1, 3, "a policy that denies this action was activated after the action was permitted", append(ours, token)...)
}
