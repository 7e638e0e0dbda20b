package actionrisk

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

var dataLevels = map[string]act.Level{"low": act.Low, "medium": act.Medium, "high": act.High, "critical": act.Critical}

// TestDataCases checks cases about databases, money and tools that were labelled by hand.
func TestDataCases(t *testing.T) {
	data, err := os.ReadFile("testdata/data_cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(string(data), "\n") {
		want, command, ok := strings.Cut(line, " | ")
		lowest, highest, ranged := strings.Cut(want, "..")
		if !ok || !ranged || strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.Contains(command, `\!`) && !strings.HasPrefix(command, "{") {
			command = strings.ReplaceAll(strings.ReplaceAll(command, `\n`, "\n"), `\t`, "\t")
		}
		a := Assess(act.Action{Command: command})
		if a.Risk < dataLevels[lowest] || a.Risk > dataLevels[highest] {
			t.Errorf("line %d: %v %v (%s), want %s: %s", n+1, a.Risk, a.RuleIDs(), a.Coverage.Route, want, line[len(want)+3:])
		}
	}
}
