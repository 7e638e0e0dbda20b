package api

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign/countersign/commands"
)

// While all places of heavy computations are taken, whatever is heavy is refused
// early with when to come back, is not charged, and small calls go on: by every door.
func TestHeavyRequestsAreRefusedEarlyByEveryDoor(t *testing.T) {
	n := startNode(t, setup{machineClock: true})
	key := n.issueKey()
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		done, err := n.app.Compute(t.Context(), commands.HeavyBody)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
	}
	text := strings.Repeat("a ", commands.HeavyBody/2)
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
