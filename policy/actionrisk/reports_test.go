package actionrisk

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// reported calls the function "do" with every row of testdata/reports.txt.
func reported(t testing.TB, do func(label, command string)) {
	for line := range strings.Lines(readFile(t, "testdata/reports.txt")) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		label, command, ok := strings.Cut(line, " | ")
		if !ok {
			t.Fatalf("reports.txt: %q", line)
		}
		do(label, strings.ReplaceAll(command, `\n`, "\n"))
	}
}

// TestReports checks that each reported case has the verdict of its label.
func TestReports(t *testing.T) {
	reported(t, func(label, command string) {
		bounds, known := map[string][2]act.Level{"stop": {High, Critical}, "ask": {Medium, Critical}, "calm": {Low, Medium}, "low": {Low, Low}}[label]
		if !known {
			t.Fatalf("reports.txt has no label %q", label)
		}
		if got := Assess(Action{Command: command}); got.Risk < bounds[0] || got.Risk > bounds[1] {
			t.Errorf("%s: %q is %s by %v", label, command, got.Risk, got.RuleIDs())
		}
	})
}
