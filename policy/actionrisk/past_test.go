package actionrisk

import (
	"encoding/hex"
	"os"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// keptAnswer is what is kept of one verdict of an earlier rule set: the first four
// bytes of the action's key and of the hash over verdict and rules.
func keptAnswer(a act.Action, got Assessment) (key, answer string) {
	raw, _ := hex.DecodeString(keyOf(a)[:8])
	sum, _ := hex.DecodeString(shortHash([]byte(verdictLine(got)))[:8])
	return string(raw), string(sum)
}

// TestPastRulesets: an earlier rule set answers every case of the corpora as it did when
// it was released. "-update" keeps the answers of the present one, under its version;
// its tables are kept by rules/past beside the others when the next one is made.
func TestPastRulesets(t *testing.T) {
	all := corpusActions(t)
	if *update {
		var kept []byte
		for _, a := range all {
			key, answer := keptAnswer(a, Assess(a))
			kept = append(append(kept, key...), answer...)
		}
		if err := os.WriteFile("testdata/past/"+facts.RulesetVersion+".answers", kept, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range rules.PastVersions() {
		edition, err := At(version)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		kept, was := readFile(t, "testdata/past/"+version+".answers"), map[string]string{}
		for ; len(kept) >= 8; kept = kept[8:] {
			was[kept[:4]] = kept[4:8]
		}
		compared, moved, asked, sample := 0, 0, 0, sampleOf(t, 6)
		for _, a := range all {
			if !sample() {
				continue
			}
			asked++
			key, answer := keptAnswer(a, edition.Assess(a))
			if was[key] == "" {
				continue
			}
			if compared++; was[key] != answer {
				if moved++; moved <= goldenShown {
					t.Logf("%s now %s: %.200q", version, verdictLine(edition.Assess(a)), a.Command)
				}
			}
		}
		if moved > 0 || compared*len(all) < len(was)*asked*9/10 {
			t.Errorf("%s: %d of %d answers are not what they were; if that must be, take it out of rules/past", version, moved, compared)
		}
	}
}

// TestUnknownRuleset: a version that is not in the tree is refused.
func TestUnknownRuleset(t *testing.T) {
	for _, version := range []string{"", "2026.11.1", "../../rules", "2026.11.18.json"} {
		if _, err := At(version); err == nil {
			t.Errorf("%q is answered for", version)
		}
	}
	if d, err := At(facts.RulesetVersion); err != nil || d.Assess(Action{Command: "rm -rf /"}).Risk != Critical {
		t.Errorf("the present one: %v", err)
	}
}
