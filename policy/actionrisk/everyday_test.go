package actionrisk

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// TestEveryday: ordinary commands of a working day are never stopped ("\n" is a line
// feed).
func TestEveryday(t *testing.T) {
	text, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if a := Assess(act.Action{Command: strings.ReplaceAll(strings.TrimSpace(line), `\n`, "\n")}); a.Risk >= act.High {
			t.Errorf("%q is %v by %v", line, a.Risk, a.RuleIDs())
		}
	}
}

// TestSiblings: what must be stopped in whatever tool does it.
func TestSiblings(t *testing.T) {
	text, err := os.ReadFile("testdata/siblings.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if a := Assess(act.Action{Command: strings.ReplaceAll(line, `\n`, "\n")}); a.Risk < act.High {
			t.Errorf("%q is %v by %v", line, a.Risk, a.RuleIDs())
		}
	}
}
