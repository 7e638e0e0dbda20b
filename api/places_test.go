package api

import (
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/ground"
)

// TestHeavyRequestsAreRefusedEarlyByEveryDoor checks that while all slots for heavy computations
// are taken, a heavy call is refused early with a time to retry, and is not charged. Small calls
// continue. This is the same for all ways to call.
func TestHeavyRequestsAreRefusedEarlyByEveryDoor(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{machineClock: true})
	key := n.issueKey()
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		done, err := n.app.Compute(t.Context(), ground.HeavyBody)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
	}
	text := strings.Repeat("a ", ground.HeavyBody/2)
	used := n.used(key)
	for path, body := range map[string]string{
		"/api/agent-services/mcp-risk/score": `{"manifest":{"command":"npx","description":"` + text + `"}}`,
		"/api/verify":                        `{"record":{"note":"` + text + `"}}`,
		"/mcp":                               `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_products","arguments":{"note":"` + text + `"}}}`,
	} {
		a := n.post(path, key, body, "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25")
		n.wants(a, http.StatusServiceUnavailable)
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s does not say when to come back: %v", path, a.header)
		}
	}
	if now := n.used(key); now != used {
		t.Errorf("%d calls were charged", now-used)
	}
	n.wants(n.post("/api/agent-services/action-safety/quick", key, `{"command":"ls"}`), http.StatusOK)
}

// TestAPageThatIsLimitedOrBusySaysSo checks that a page that shows a form again with an error has
// the status of the error and a time to retry, like the operation.
func TestAPageThatIsLimitedOrBusySaysSo(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{rateLimit: true, dev: true})
	key := n.issueKey()
	form := func(path, field, value string) answer {
		return n.send("POST", path, url.Values{field: {value}, "key": {key}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	}
	large := `{"record":{"note":"` + strings.Repeat("a ", ground.HeavyBody/2) + `"}}`
	refused := func(name string, a answer, status int, shows string) {
		t.Helper()
		if a.status != status || a.header.Get("Retry-After") == "" || !strings.Contains(string(a.body), shows) {
			t.Errorf("%s: %d, Retry-After %q, want %d and a page with %q", name, a.status, a.header.Get("Retry-After"), status, shows)
		}
	}
	if a := form("/verify", "record", "{}"); a.status != 400 || a.header.Get("Retry-After") != "" {
		t.Errorf("no record: %d, Retry-After %q", a.status, a.header.Get("Retry-After"))
	}
	var places []func()
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		done, err := n.app.Compute(t.Context(), ground.HeavyBody)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, done)
	}
	refused("a busy check", form("/verify", "record", large), 503, "a a a")
	for _, done := range places {
		done()
	}
	caller, err := n.app.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for n.server.path.Callers.Rates.Allow(op.ToVerify, "127.0.0.1") || n.server.path.Callers.Rates.Allow(op.ToTry, "127.0.0.1") || n.server.path.Callers.Rates.Allow(op.ToCall, caller.KeyID) {
	}
	refused("a limited check", form("/verify", "record", `{"what":"was pasted"}`), 429, "was pasted")
	refused("a limited verdict", form("/", "command", "rm -rf /srv"), 429, "rm -rf /srv")
	refused("a limited service", form("/tools/action_safety_quick_gate/try", "body", `{"command":"rm -rf /srv"}`), 429, "rm -rf /srv")
}
