package actionrisk

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// TestClasses checks cases that are similar to earlier wrong verdicts: actions that were stopped
// wrongly (quiet), not stopped (holes), not reported (medium), or reported without reason (low).
func TestClasses(t *testing.T) {
	for _, file := range [...]struct {
		name     string
		from, to act.Level
	}{{"quiet", act.Low, act.Medium}, {"holes", act.High, act.Critical}, {"medium", act.Medium, act.Critical}, {"low", act.Low, act.Low}} {
		class := ""
		for line := range strings.Lines(readFile(t, "testdata/"+file.name+".txt")) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			if rest, ok := strings.CutPrefix(line, "# "); ok {
				class = rest
				continue
			}
			line, open := strings.CutPrefix(line, "? ") // the verdict is known to be wrong
			got := Assess(act.Action{Command: strings.ReplaceAll(line, `\n`, "\n")})
			if right := got.Risk >= file.from && got.Risk <= file.to; right == open {
				t.Errorf("%s, %s: %s is %v by %v (open %v)", file.name, class, line, got.Risk, got.RuleIDs(), open)
			}
		}
	}
}
