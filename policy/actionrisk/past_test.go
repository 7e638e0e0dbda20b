package actionrisk

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/canon"
)

// From its release on, a rule set is kept: its tables in rules/past, its verdicts in
// testdata/past. A dated section of CHANGELOG.md ("## [1.0.0] - 2026-12-01") is a release and
// names its rule set ("Rule set 2026.11.26"). The tables are kept while they are still those of
// this tree, so that the change which replaces them cannot lose them.

// The names of the files of a rule set are its version and these extensions.
const tablesEnd, answersEnd = ".json.gz", ".answers"

// archive has the folders in which released rule sets are kept.
type archive struct{ tables, answers string }

var released = archive{"rules/past", "testdata/past"}

func (a archive) shelf() rules.Shelf {
	return func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(a.tables, file)) }
}

// versions returns the rule sets that are kept, oldest first.
func (a archive) versions() []string {
	files, _ := filepath.Glob(filepath.Join(a.tables, "*"+tablesEnd)) // the only possible error is an invalid pattern
	for i := range files {
		files[i] = strings.TrimSuffix(filepath.Base(files[i]), tablesEnd)
	}
	return files
}

// keep writes a rule set and its verdicts to the archive.
func (a archive) keep(version string, tables map[string]json.RawMessage, judge *Edition, cases []act.Action) error {
	text, err := json.Marshal(tables)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(text)
	if err = errors.Join(err, z.Close(), os.MkdirAll(a.answers, 0o755)); err != nil {
		return err
	}
	var kept []byte
	for _, c := range cases {
		key, answer := keptAnswer(c, judge.Assess(c))
		kept = append(append(kept, key...), answer...)
	}
	return errors.Join(os.WriteFile(filepath.Join(a.tables, version+tablesEnd), packed.Bytes(), 0o644),
		os.WriteFile(filepath.Join(a.answers, version+answersEnd), kept, 0o644))
}

// keptAnswer returns the record of one verdict: the first four bytes of the action's key, and the
// first four of the hash of its risk, score and rules.
func keptAnswer(a act.Action, got Assessment) (key, answer string) {
	raw, _ := hex.DecodeString(keyOf(a)[:8])
	sum, _ := hex.DecodeString(shortHash([]byte(verdictLine(got)))[:8])
	return string(raw), string(sum)
}

// check returns an error if a verdict differs from the kept one.
func (a archive) check(version string, cases []act.Action) error {
	edition, err := at(a.shelf(), version)
	if err != nil {
		return err
	}
	kept, err := os.ReadFile(filepath.Join(a.answers, version+answersEnd))
	if err != nil {
		return err
	}
	was := map[string]string{}
	for ; len(kept) >= 8; kept = kept[8:] {
		was[string(kept[:4])] = string(kept[4:8])
	}
	compared, moved := 0, []string{}
	for _, c := range cases {
		key, answer := keptAnswer(c, edition.Assess(c))
		if was[key] == "" {
			continue // the corpus did not have this case at the release
		}
		if compared++; was[key] != answer {
			moved = append(moved, fmt.Sprintf("now %s: %.200q", verdictLine(edition.Assess(c)), c.Command))
		}
	}
	if len(moved) > 0 || compared == 0 {
		return fmt.Errorf("rule set %s: %d of %d answers changed; if that is intended, remove it from rules/past\n%s", version,
			len(moved), compared, strings.Join(moved[:min(len(moved), goldenShown)], "\n"))
	}
	return nil
}

// releasedSection matches the start of a dated section in CHANGELOG.md.
var releasedSection = regexp.MustCompile(`^\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d\n`)

var namedRuleSet = regexp.MustCompile(`Rule set (\d{4}\.\d\d\.\d\d)\b`)

// releasedRuleSets returns the rule set of each dated version in a changelog.
func releasedRuleSets(changelog string) (map[string]string, error) {
	out := map[string]string{}
	for section := range strings.SplitSeq(changelog, "\n## ") {
		version := releasedSection.FindStringSubmatch(section)
		if version == nil {
			continue
		}
		named := namedRuleSet.FindStringSubmatch(section)
		if named == nil {
			return nil, fmt.Errorf("CHANGELOG.md: the section of %s does not say which rule set it has (\"Rule set %s\")", version[1], facts.RulesetVersion)
		}
		out[version[1]] = named[1]
	}
	return out, nil
}

// missing returns an error if a released rule set is not kept, or if its tables have changed.
func (a archive) missing(changelog string) error {
	all, err := releasedRuleSets(changelog)
	if err != nil {
		return err
	}
	for version, set := range all {
		tables, err := a.shelf().Tables(set)
		if err != nil {
			return fmt.Errorf("version %s: %w: run this test with -update while RulesetVersion is %s; later, copy the file from the source tree of version %s", version, err, set, version)
		}
		text, err := canonicalTables(set, tables)
		if err != nil {
			return err
		}
		if set == facts.RulesetVersion && canon.Hash(text) != facts.RulesetHash {
			return fmt.Errorf("rule set %s was released with %s and has changed: set RulesetVersion to a later day", set, version)
		}
	}
	return nil
}

// update keeps the present rule set if a dated version of the changelog has it.
func (a archive) update(changelog string, cases []act.Action) error {
	all, err := releasedRuleSets(changelog)
	if err != nil {
		return err
	}
	for _, set := range all {
		if _, err := a.shelf().Tables(set); err != nil && set == facts.RulesetVersion {
			return a.keep(set, presentTables(), current(), cases)
		}
	}
	return nil
}

// TestReleasedRuleSetsAreKept checks that the source tree has the rule set of every released
// version.
func TestReleasedRuleSetsAreKept(t *testing.T) {
	changelog := readFile(t, "../../CHANGELOG.md")
	if *update {
		if err := released.update(changelog, corpusActions(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := released.missing(changelog); err != nil {
		t.Error(err)
	}
}

// TestReleasedRuleSetsAnswerAsTheyDid checks that each released rule set gives every case of the
// corpora the verdict that it had at its release.
func TestReleasedRuleSetsAnswerAsTheyDid(t *testing.T) {
	var cases []act.Action
	sample := sampleOf(t, 6)
	for _, version := range released.versions() {
		if cases == nil {
			cases = slices.DeleteFunc(corpusActions(t), func(act.Action) bool { return !sample() })
		}
		if err := released.check(version, cases); err != nil {
			t.Error(err)
		}
	}
}

// artificial returns the tables of a rule set that never existed, in which git.stash.clear is
// medium.
func artificial(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	tables := presentTables()
	const now, then = "\"id\": \"git.stash.clear\",\n\t\"level\": 2", "\"id\": \"git.stash.clear\",\n\t\"level\": 1"
	text := strings.Replace(string(tables["git"]), now, then, 1)
	if !strings.Contains(text, then) {
		t.Fatal("git.json has no rule git.stash.clear of level 2")
	}
	tables["git"] = json.RawMessage(text)
	return tables
}

// TestAnArtificialRuleSetThatWasLeftBehind checks that an old rule set uses its own tables, that
// its text has its own hash, and that a changed verdict is found.
func TestAnArtificialRuleSetThatWasLeftBehind(t *testing.T) {
	const version = "2026.01.01"
	kept := archive{t.TempDir(), t.TempDir()}
	tables, clears, lists := artificial(t), Action{Command: "git stash clear"}, Action{Command: "git stash list"}
	present := current()
	if err := kept.keep(version, tables, present, []act.Action{lists}); err != nil {
		t.Fatal(err)
	}
	edition, err := at(kept.shelf(), version)
	if err != nil {
		t.Fatal(err)
	}
	if then, now := edition.Assess(clears).Risk, present.Assess(clears).Risk; then != Medium || now != High {
		t.Errorf("it says %v, the present one %v", then, now)
	}
	text, err := rulesetText(kept.shelf(), version)
	if err != nil || canon.Hash(text) == facts.RulesetHash {
		t.Errorf("its text has the hash of the present one, or none: %v", err)
	}
	if got := kept.versions(); !slices.Equal(got, []string{version}) {
		t.Errorf("the shelf has %v", got)
	}
	if err := kept.check(version, []act.Action{lists}); err != nil {
		t.Error(err)
	}
	if err := kept.keep(version, tables, present, []act.Action{clears}); err != nil {
		t.Fatal(err)
	}
	if err := kept.check(version, []act.Action{clears}); err == nil {
		t.Error("a changed verdict is not found")
	}
}

// TestAReleaseKeepsItsRuleSet checks that nothing is kept before a release. When a section of the
// changelog gets its date, its rule set is missing until -update writes it. After that its tables
// cannot change under the same version, and an error names a rule set that is lost.
func TestAReleaseKeepsItsRuleSet(t *testing.T) {
	kept := archive{t.TempDir(), t.TempDir()}
	cases := []act.Action{{Command: "ls"}}
	section := func(date, set string) string {
		return "# Changelog\n\n## [1.0.0] - " + date + "\n\nRule set " + set + ".\n"
	}
	for _, unreleased := range []string{section("Unreleased", facts.RulesetVersion), "# Changelog\n\n## [Unreleased]\n"} {
		if err := errors.Join(kept.update(unreleased, cases), kept.missing(unreleased)); err != nil || len(kept.versions()) > 0 {
			t.Errorf("before a release: %v, %v", kept.versions(), err)
		}
	}
	dated := section("2026-12-01", facts.RulesetVersion)
	if err := kept.missing(dated); err == nil {
		t.Error("a missing rule set of a released version is not reported")
	}
	if err := errors.Join(kept.update(dated, cases), kept.missing(dated), kept.check(facts.RulesetVersion, cases)); err != nil {
		t.Error(err)
	}
	if err := kept.keep(facts.RulesetVersion, artificial(t), current(), cases); err != nil {
		t.Fatal(err)
	}
	if err := kept.missing(dated); err == nil {
		t.Error("changed tables of a released version are not reported")
	}
	if err := kept.missing(dated + "\n## [0.9.0] - 2026-06-01\n\nRule set 2026.05.30.\n"); err == nil {
		t.Error("a lost rule set is not reported")
	}
	if _, err := releasedRuleSets("# Changelog\n\n## [1.0.0] - 2026-12-01\n"); err == nil {
		t.Error("a released version without a rule set is accepted")
	}
}

// TestUnknownRuleset checks that a ruleset version that the source tree does not contain is
// refused.
func TestUnknownRuleset(t *testing.T) {
	for _, version := range []string{"", "2026.11.1", "../../rules", "2026.11.18.json"} {
		_, err := At(version)
		if _, noText := RulesetText(version); err == nil || noText == nil {
			t.Errorf("rule set %q is not refused", version)
		}
	}
	if d, err := At(facts.RulesetVersion); err != nil || d.Assess(Action{Command: "rm -rf /"}).Risk != Critical {
		t.Errorf("the present one: %v", err)
	}
}
