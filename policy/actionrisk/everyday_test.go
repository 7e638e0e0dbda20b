package actionrisk

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// TestEveryday checks that ordinary commands are never stopped. "\n" in the file is a line feed.
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

// TestSiblings checks that an effect that must be stopped is stopped in every tool that can cause
// it.
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
