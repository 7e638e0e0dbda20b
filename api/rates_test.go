package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/op"
)

func TestRecomputingIsLimitedForANetwork(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{rateLimit: true})
	body := `{"paymentId":"pay_00000000000000000000000000000000","operation":"action_safety_quick_gate","request":{"command":"ls"}}`
	for range op.RefundsPerMinute {
		n.refused(n.post("/api/refunds", "", body), 404, "not_found", "")
	}
	a := n.post("/api/refunds", "", body)
	n.refused(a, 429, op.CodeRateLimited, "")
	if a.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
}

// TestStrangersDoNotLimitWhoIsKnown checks that callers without a valid credential use only the
// limit of their network. A caller with a valid credential at the same address is not affected,
// and the health check is never limited.
func TestStrangersDoNotLimitWhoIsKnown(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{rateLimit: true, dev: true})
	key := n.issueKey()
	const quick = "/api/agent-services/action-safety/quick"
	n.wants(n.post(quick, "", `{"command":"ls"}`), 402)
	n.refused(n.post(quick, "svc_bad", `{"command":"ls"}`), 401, "unauthorized", "")
	for n.server.path.Callers.Rates.Allow(op.ToCallUnknown, "127.0.0.1") {
	}
	for name, a := range map[string]answer{
		"nobody":           n.post(quick, "", `{"command":"ls"}`),
		"a bad credential": n.post(quick, "svc_bad", `{"command":"ls"}`),
		"an MCP message":   n.post("/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`),
		"a form":           n.send("POST", "/verify", "record=x", "Content-Type", "application/x-www-form-urlencoded"),
	} {
		if a.status != 429 || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d, Retry-After %q: %s", name, a.status, a.header.Get("Retry-After"), a.body)
		}
	}
	n.wants(n.post(quick, key, `{"command":"ls"}`), 200)
	n.wants(n.get("/api/health"), 200)
}

// TestPagesAreLimitedForANetwork checks that all pages, including the search and unknown paths,
// are limited per network, and that the limit ends after a minute.
func TestPagesAreLimitedForANetwork(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{rateLimit: true, dev: true})
	paths := []string{"/search?q=git", "/docs", "/docs.md", "/page.css", "/nothing-here", "/api/ledger/checkpoint", "/api/ledger/0/checkpoint", "/sign-in", "/api/auth/authorize", "/api/downloads/x"}
	for n.server.path.Callers.Rates.Allow(op.ToRead, "127.0.0.1") {
	}
	for n.server.path.Callers.Rates.Allow(op.ToCallUnknown, "127.0.0.1") {
	}
	for _, path := range paths {
		a := n.get(path)
		if a.status != 429 || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d, Retry-After %q: %.200s", path, a.status, a.header.Get("Retry-After"), a.body)
		}
	}
	if a := n.send("GET", "/search?q=git", "", "Accept", "text/html"); a.status != 429 || !strings.Contains(string(a.body), "try again in a minute") || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("in a browser: %v", a)
	}
	n.wants(n.get("/readyz"), 200)
	n.clock.Add(time.Minute)
	if a := n.get("/search?q=git"); a.status != 200 {
		t.Errorf("a minute later: %d", a.status)
	}
}

// TestACredentialHasItsOwnLimit checks that paid calls are limited, too: per credential, and by
// the size of the body.
func TestACredentialHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{rateLimit: true, dev: true})
	key, other := n.issueKey(), n.issueKey()
	const quick = "/api/agent-services/action-safety/quick"
	caller, err := n.app.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	used := n.used(key)
	for n.server.path.Callers.Rates.Allow(op.ToCall, caller.KeyID) {
	}
	a := n.post("/api/agent-services/mcp-risk/score", key, `{"manifest":{"command":"npx","description":"`+strings.Repeat("a ", 400_000)+`"}}`)
	n.refused(a, 429, op.CodeRateLimited, "")
	if a.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	n.wants(n.post(quick, other, `{"command":"ls"}`), 200)
	n.clock.Add(time.Minute)
	n.wants(n.post(quick, key, `{"command":"ls"}`), 200)
	if now := n.used(key); now != used+1 {
		t.Errorf("%d calls were charged, not the one that was answered", now-used)
	}
}

// TestEveryOperationPublishesThatItIsLimited checks that a caller who exceeds the limit gets a
// status that the operation's document lists, from every operation except the health check.
func TestEveryOperationPublishesThatItIsLimited(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{rateLimit: true, dev: true})
	published := map[string][]string{}
	for _, o := range n.openAPIDocument().operations() {
		responses, _ := o.operation["responses"].(map[string]any)
		published[fmt.Sprint(o.operation["operationId"])] = sortedKeys(responses)
	}
	for n.server.path.Callers.Rates.Allow(op.ToCallUnknown, "127.0.0.1") {
	}
	for _, endpoint := range n.server.table {
		path := strings.NewReplacer("{", "", "}", "").Replace(endpoint.Path)
		a := n.send(endpoint.Method, path, "")
		if endpoint.ID == health.ID {
			n.wants(a, 200)
			continue
		}
		if known := published[endpoint.ID]; known != nil && !slices.Contains(known, fmt.Sprint(a.status)) {
			t.Errorf("%s answered %d, and publishes %v", endpoint.ID, a.status, known)
		}
		if a.status != 429 && (a.status != 503 || endpoint.Knows429()) || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d, Retry-After %q", endpoint.ID, a.status, a.header.Get("Retry-After"))
		}
	}
}
