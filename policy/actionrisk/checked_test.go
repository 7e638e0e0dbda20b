package actionrisk

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/policy/actionrisk/facts"
)

// TestNamesThatAge checks that the tables know each program in checked.txt, the list of programs
// whose options may change. It logs the rows that were not checked for 180 days.
func TestNamesThatAge(t *testing.T) {
	for line := range strings.Lines(readFile(t, "testdata/checked.txt")) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		row := strings.Split(line, " | ")
		if len(row) != 3 || row[1] == "" {
			t.Fatalf("checked.txt: %q", line)
		}
		day, err := time.Parse(time.DateOnly, row[0])
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(day) > 180*24*time.Hour {
			t.Logf("look at these again: %s (%s)", row[2], row[0])
		}
		for name := range strings.FieldsSeq(row[2]) {
			if p := facts.Tables().Program(name); !p.Judged && p.Options == nil && len(p.Clients) == 0 {
				t.Errorf("no table knows %s", name)
			}
		}
	}
}
