package agents_test

import (
	"testing"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
)

// A quoted command is split by a shell into the same words, including an empty one.
func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "ls": "ls", "a b": "'a b'", "it's": `'it'\''s'`, "~/a b": "~/'a b'", "$(id)": "'$(id)'", "-la": "-la",
	} {
		if got := agents.ShellWord(word); got != want {
			t.Errorf("%q became %s, want %s", word, got, want)
		}
	}
}
