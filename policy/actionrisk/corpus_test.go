package actionrisk

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/judge"
	"github.com/go-json-experiment/json"
)

// corpusCase is a line of an external corpus of labelled commands.
type corpusCase struct {
	ID       string `json:"id"`
	Source   string `json:"source"`
	Category string `json:"category"`
	Command  string `json:"command"`
	Expect   struct {
		Min string `json:"minRisk"`
		Max string `json:"maxRisk"`
	} `json:"expect"`
	Peer string `json:"peerExpected"`
}

// refusal is one group of testdata/refused.txt: a reason why our verdict differs from the label of
// a corpus on purpose.
type refusal struct {
	stopped bool
	rules   []string
	why     string
}

func readRefusals(t testing.TB) []refusal {
	text, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []refusal
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, " | ", 3)
		if len(parts) != 3 || parts[0] != "stopped" && parts[0] != "allowed" {
			t.Fatalf("refused.txt: %q", line)
		}
		out = append(out, refusal{parts[0] == "stopped", strings.Fields(parts[1]), parts[2]})
	}
	return out
}

// refused returns the index of the group that explains why our verdict differs from a label, or
// -1. It uses only the verdict.
func refused(groups []refusal, got judge.Assessment) int {
	at, stopped := -1, got.Risk >= act.High
	for i := range got.Findings {
		f := &got.Findings[i]
		if stopped && f.Level < act.High {
			continue
		}
		group := slices.IndexFunc(groups, func(r refusal) bool {
			return r.stopped == stopped && (slices.Contains(r.rules, f.Rule.ID) || slices.Contains(r.rules, "lowered") && f.Base > f.Level && f.Base >= act.High)
		})
		if group < 0 {
			return -1
		}
		if at < 0 {
			at = group
		}
	}
	return at
}

// TestRefusals checks that each group names existing rules of the right level: high or critical
// for "stopped", lower for "allowed".
func TestRefusals(t *testing.T) {
	for _, g := range readRefusals(t) {
		for _, id := range g.rules {
			r := facts.Tables().Rule(id)
			if id == "lowered" {
				continue
			}
			if r == nil || g.stopped != (r.Level >= act.High) || g.why == "" {
				t.Errorf("%s is not a rule of the right level, or its group has no reason", id)
			}
		}
	}
}

// sourceCwd is the working directory that all cases of a source assume.
var sourceCwd = map[string]string{"nah": "/workspace/project"}

// readJudged reads testdata/judged.txt: single cases of an external corpus, by id, whose label is
// wrong in our opinion. For each case a person who wrote none of the rules decided this.
func readJudged(t testing.TB) map[string]bool {
	text, err := os.ReadFile("testdata/judged.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, " | ", 3)
		if len(parts) != 3 || parts[1] != "stopped" && parts[1] != "allowed" {
			t.Fatalf("judged.txt: %q", line)
		}
		out[parts[0]+" "+parts[1]] = true
	}
	return out
}

// TestCorpus measures the external corpus that GATE_CORPUS names. It prints the share of stopped
// cases among those labelled block and those labelled allow, by source and by half: cases with ids
// that end with 0-9, and those with a-f, which developers must not read. The lines "net" exclude
// the cases of refused.txt, the lines "judged" also those of judged.txt. GATE_CORPUS_OUT names a
// file for the wrong verdicts of the first half, GATE_CORPUS_JUDGE one for the other disagreements
// of both halves, for a person who writes no rules.
func TestCorpus(t *testing.T) {
	name := os.Getenv("GATE_CORPUS")
	if name == "" {
		t.Skip("GATE_CORPUS names no corpus")
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var misses strings.Builder
	type tally struct{ block, stopped, allow, halted int }
	sums, byRule := map[string]*tally{}, map[string]int{} // byRule counts the stopped allow cases by their most severe rule
	add := func(key string, block, high bool) {
		if sums[key] == nil {
			sums[key] = &tally{}
		}
		s := sums[key]
		switch {
		case block && high:
			s.block++
			s.stopped++
		case block:
			s.block++
		case high:
			s.allow++
			s.halted++
		default:
			s.allow++
		}
	}
	groups, judged := readRefusals(t), readJudged(t)
	var disputed strings.Builder
	counts := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c corpusCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		got := Assess(act.Action{Command: strings.TrimSpace(c.Command), Cwd: sourceCwd[c.Source]})
		block, high := c.Peer == "block", got.Risk >= act.High
		half := "0-9"
		if c.ID[len(c.ID)-1] > '9' {
			half = "a-f"
		}
		add(c.Source+" "+half, block, high)
		add("all "+half, block, high)
		if g := refused(groups, got); block == high || g < 0 {
			add("net "+c.Source+" "+half, block, high)
			add("net all "+half, block, high)
			if block == high || !judged[c.ID+" "+map[bool]string{true: "stopped", false: "allowed"}[high]] {
				add("judged "+c.Source, block, high)
				add("judged "+c.Source+" "+half, block, high)
			}
			if block != high {
				fmt.Fprintf(&disputed, "%s\t%s\t%v\t%s\t%q\n", c.ID, c.Peer, got.Risk, strings.Join(got.RuleIDs(), ","), c.Command)
			}
		} else {
			counts[fmt.Sprintf("%s %2d %s", half, g, groups[g].why)]++
		}
		if os.Getenv("GATE_CORPUS_CATEGORIES") != "" {
			add("  "+c.Category+" "+half, block, high)
		}
		if !block && high {
			byRule[half+" "+got.RuleIDs()[0]]++
		}
		if half == "0-9" && block != high {
			fmt.Fprintf(&misses, "%s\t%s\t%v\t%s\t%q\t%d\n", c.Peer, c.Category, got.Risk, strings.Join(got.RuleIDs(), ","), c.Command, refused(groups, got))
		}
	}
	keys := make([]string, 0, len(sums))
	for k := range sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, cmp.Compare[string])
	for _, k := range keys {
		s := sums[k]
		t.Logf("%-40s block stopped %5.1f%% of %4d   allow stopped %5.1f%% of %4d", k,
			100*float64(s.stopped)/max(1, float64(s.block)), s.block, 100*float64(s.halted)/max(1, float64(s.allow)), s.allow)
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("refused %4d  %s", counts[k], k)
	}
	if os.Getenv("GATE_CORPUS_CATEGORIES") != "" {
		t.Logf("allow stopped, by half and worst rule: %v", byRule)
	}
	for name, text := range map[string]string{"GATE_CORPUS_OUT": misses.String(), "GATE_CORPUS_JUDGE": disputed.String()} {
		if out := os.Getenv(name); out != "" {
			if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
