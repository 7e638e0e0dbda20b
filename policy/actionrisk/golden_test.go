package actionrisk

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/go-json-experiment/json"
)

// The golden file has the engine's verdict on every case of every corpus. With it the engine's
// code can be reorganized: the file stays the same, byte for byte, or a person reads the
// difference. "go test ./policy/actionrisk -run TestGolden -update" rewrites the file and prints
// the difference by rule. If a verdict of a released rule set changed, the test fails until
// RulesetVersion changes.
//
// The first line of the file is the version and the hash of the tables. Each further line is one
// case: the hash of the action, the risk's first letter with the score, the hash of the whole
// assessment (spans, decoded texts, context, coverage), and the rules.

var update = flag.Bool("update", false, "rewrite the golden file and print the difference by rule")

const goldenFile = "testdata/assessments.golden"

// answer is one assessment as it is stored in the golden file.
type answer struct {
	verdict string // risk and score
	whole   string // hash of the whole assessment
	rules   string
}

func answerOf(a act.Action) answer {
	got := Assess(a)
	var b bytes.Buffer
	for i := range got.Findings {
		f := &got.Findings[i]
		fmt.Fprintf(&b, "%s %v %v %v %d %q %q %q %v\n", f.Rule.ID, f.Base, f.Level, f.Span, f.Segment, f.Via, f.Decoded, f.Target, f.Context)
	}
	fmt.Fprintf(&b, "%v %v", got.Coverage, got.RequiresApproval)
	verdict, ids, _ := strings.Cut(verdictLine(got), " ")
	return answer{verdict, shortHash(b.Bytes()), ids}
}

// verdictLine returns the risk's first letter with the score, and the rules.
func verdictLine(got Assessment) string {
	return fmt.Sprintf("%c%d %s", got.Risk.String()[0], got.Score, strings.Join(got.RuleIDs(), ","))
}

func (a answer) line(key string) string { return key + " " + a.verdict + " " + a.whole + " " + a.rules }

func shortHash(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:6])
}

func keyOf(a act.Action) string {
	key := Hash(a)
	if a.FailClosedOnUnmatched {
		key = shortHash([]byte(key + " closed"))
	}
	return key[:12]
}

// corpusActions returns the distinct actions of all corpora in a fixed order: the examples of the
// tables, the labelled files, the cases of testdata/hidden, mustStop in every carrier and mention,
// and allBombs.
func corpusActions(t testing.TB) []act.Action {
	all := seeds(t)
	add := func(command string) { all = append(all, act.Action{Command: command}) }
	for _, file := range []string{"testdata/everyday", "testdata/siblings", "testdata/data_cases", "lang/sql/testdata/effects"} {
		for line := range strings.Lines(readFile(t, file+".txt")) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "# ") {
				continue
			}
			if _, text, ok := strings.Cut(line, " | "); ok && (file == "testdata/data_cases" || file == "lang/sql/testdata/effects") {
				line = text
			}
			add(strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	for line := range strings.Lines(readFile(t, "testdata/levels.jsonl")) {
		var c struct {
			Action act.Action `json:"action"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c.Action)
	}
	for _, name := range hiddenFiles(t) {
		for _, c := range readHidden(t, name) {
			add(c.command)
		}
	}
	for _, seed := range mustStop {
		for _, carry := range []map[string]func(string) string{carriers, mentions} {
			for _, name := range slices.Sorted(maps.Keys(carry)) {
				add(carry[name](seed))
			}
		}
	}
	reported(t, func(_, command string) { add(command) })
	bombs := allBombs()
	for _, name := range slices.Sorted(maps.Keys(bombs)) {
		add(bombs[name])
	}
	return different(all)
}

func different(all []act.Action) []act.Action {
	seen, out := map[string]bool{}, all[:0]
	for _, a := range all {
		if key := keyOf(a); !seen[key] {
			seen[key] = true
			out = append(out, a)
		}
	}
	return out
}

func readFile(t testing.TB, name string) string {
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// golden is the content of a golden file.
type golden struct {
	head    string
	answers map[string]answer
}

func readGolden(file string) golden {
	out := golden{answers: map[string]answer{}}
	text, err := os.ReadFile(file)
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if parts := strings.SplitN(line, " ", 4); len(parts) == 4 {
			out.answers[parts[0]] = answer{parts[1], parts[2], parts[3]}
		} else {
			out.head = line
		}
	}
	return out
}

// TestGolden checks that the verdict on every case of every corpus equals the golden file byte for
// byte, and that a released version of the rule set has one verdict for each case.
func TestGolden(t *testing.T) {
	checkGolden(t, goldenFile, corpusActions(t))
}

// TestGoldenCorpus does the same with the external corpus that GATE_CORPUS names. Its golden file
// is next to it.
func TestGoldenCorpus(t *testing.T) {
	name := os.Getenv("GATE_CORPUS")
	if name == "" {
		t.Skip("GATE_CORPUS names no corpus")
	}
	var all []act.Action
	for line := range strings.Lines(readFile(t, name)) {
		var c corpusCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, act.Action{Command: strings.TrimSpace(c.Command), Cwd: sourceCwd[c.Source]})
	}
	checkGolden(t, name+".golden", different(all))
}

func checkGolden(t *testing.T, file string, all []act.Action) {
	version, tables := facts.Ruleset()
	head, old := version+" "+tables, readGolden(file)
	byRule, verdicts, wholes := map[string][]string{}, 0, 0
	text := bytes.NewBufferString(head + "\n")
	for _, a := range all {
		key := keyOf(a)
		now := answerOf(a)
		fmt.Fprintln(text, now.line(key))
		was, known := old.answers[key]
		switch {
		case !known || was == now:
		case was.verdict == now.verdict && was.rules == now.rules:
			wholes++
			byRule["same verdict, "+now.rules] = append(byRule["same verdict, "+now.rules], fmt.Sprintf("%.300q", a.Command))
		default:
			verdicts++
			moved := was.verdict[:1] + " to " + now.verdict[:1] + ", " + strings.Join(changes(was.rules, now.rules), " ")
			byRule[moved] = append(byRule[moved], fmt.Sprintf("%.300q", a.Command))
		}
	}
	unchanged := bytes.Equal(text.Bytes(), []byte(readOrEmpty(file)))
	oldVersion, _, _ := strings.Cut(old.head, " ")
	wasReleased := slices.Contains(released.versions(), oldVersion)
	if (verdicts > 0 || old.head != head) && wasReleased && oldVersion == version {
		t.Errorf("%d verdicts or the tables changed, but RulesetVersion %s is released: set it to a later day", verdicts, version)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !unchanged {
		t.Errorf("%s differs (-update rewrites it): %d verdicts and %d other assessments changed", file, verdicts, wholes)
	}
	for _, moved := range sortedByCount(byRule) {
		cases := byRule[moved]
		t.Logf("%4d  %s\n\t%s", len(cases), moved, strings.Join(cases[:min(len(cases), goldenShown)], "\n\t"))
	}
}

// digest returns a hash of the verdicts on all examples of all tables.
func digest(t testing.TB) string {
	h := sha256.New()
	for _, a := range seeds(t) {
		fmt.Fprintln(h, answerOf(a).line(""))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// goldenShown is the number of cases that are printed for each kind of difference.
const goldenShown = 4

func readOrEmpty(file string) string {
	text, _ := os.ReadFile(file)
	return string(text)
}

// changes returns the rules that were removed ("-") and added ("+").
func changes(was, now string) []string {
	before, after := strings.Split(was, ","), strings.Split(now, ",")
	var out []string
	for _, r := range before {
		if r != "" && !slices.Contains(after, r) {
			out = append(out, "-"+r)
		}
	}
	for _, r := range after {
		if r != "" && !slices.Contains(before, r) {
			out = append(out, "+"+r)
		}
	}
	return out
}

func sortedByCount(m map[string][]string) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(m[b]), len(m[a])), cmp.Compare(a, b))
	})
}
