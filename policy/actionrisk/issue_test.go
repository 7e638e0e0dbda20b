package actionrisk

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// TestClasses: the classes of what was stopped wrongly (quiet), of what was not stopped
// (holes), of what was not even noted (medium), and of what is nothing to note (low),
// each with its siblings.
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
			line, open := strings.CutPrefix(line, "? ") // known to be judged otherwise
			got := Assess(act.Action{Command: strings.ReplaceAll(line, `\n`, "\n")})
			if right := got.Risk >= file.from && got.Risk <= file.to; right == open {
				t.Errorf("%s, %s: %s is %v by %v (open %v)", file.name, class, line, got.Risk, got.RuleIDs(), open)
			}
		}
	}
}
