package actionrisk

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/txtar"
)

type labelled struct {
	domain   string
	min, max act.Level
	action   act.Action
}

func namedLevel(t testing.TB, name string) act.Level {
	for l := act.Low; l <= act.Critical; l++ {
		if l.String() == name {
			return l
		}
	}
	t.Fatalf("no level %q", name)
	return act.Low
}

// readLabelled reads testdata/labelled.txtar.
func readLabelled(t testing.TB) []labelled {
	text, err := os.ReadFile("testdata/labelled.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []labelled
	for _, f := range txtar.Parse(text).Files {
		domain, bounds, _ := strings.Cut(f.Name, "/")
		from, to, _ := strings.Cut(bounds, "..")
		for line := range strings.Lines(string(f.Data)) {
			if line = strings.TrimSpace(line); line != "" {
				a := parseExample(t, line)
				a.Command = strings.ReplaceAll(a.Command, `\nEOF2`, "\nEOF2")
				if strings.Contains(line, "EOF2") || strings.Contains(line, "# harmless") {
					a.Command = strings.ReplaceAll(a.Command, `\n`, "\n")
				}
				out = append(out, labelled{domain, namedLevel(t, from), namedLevel(t, to), a})
			}
		}
	}
	return out
}

func TestLabelled(t *testing.T) {
	for _, c := range readLabelled(t) {
		got := Assess(c.action)
		if got.Risk < c.min || got.Risk > c.max {
			t.Errorf("%s: %q is %v %v, want %v..%v", c.domain, c.action.Command, got.Risk, got.RuleIDs(), c.min, c.max)
		}
	}
}

// TestLevels checks the levels of the actions in testdata/levels.jsonl. An author labelled them,
// with their context, before the engine was tried on them. "open" marks the cases whose verdict
// differs.
func TestLevels(t *testing.T) {
	text, err := os.ReadFile("testdata/levels.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c struct {
			Action act.Action `json:"action"`
			Min    string     `json:"min"`
			Max    string     `json:"max"`
			Why    string     `json:"why"`
			Open   bool       `json:"open"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got := Assess(c.Action)
		right := got.Risk >= namedLevel(t, c.Min) && got.Risk <= namedLevel(t, c.Max)
		if right == c.Open {
			t.Errorf("%q is %v %v, want %s..%s by %q (open %v)", c.Action.Command, got.Risk, got.RuleIDs(), c.Min, c.Max, c.Why, c.Open)
		}
	}
}
