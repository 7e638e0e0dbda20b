package api

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/site"
)

// TestEveryTextSaysTheSameOfMedium checks that every text that instructs an agent gives the same
// advice for a verdict of medium: no person is needed, but the agent must not go on unchanged.
func TestEveryTextSaysTheSameOfMedium(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"README.md": string(readme), "the instructions over MCP": n.dial(eras[0]).InitializeResult().Instructions}
	for _, path := range []string{"/llms.txt", "/llms-prompts.txt", "/docs/concepts.md", "/faq/safety.md", "/.well-known/agent-skills/preflight-actions/SKILL.md"} {
		texts[path] = string(n.get(path).body)
	}
	for name, text := range texts {
		want := 1
		if name == "/llms-prompts.txt" {
			want = 2 // once for HTTP, once for MCP
		}
		if got := strings.Count(text, site.AtMedium); got != want {
			t.Errorf("%s says %d times of medium: %s", name, got, site.AtMedium)
		}
	}
}
