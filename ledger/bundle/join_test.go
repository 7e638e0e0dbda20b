package bundle_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
)

// joinedOf verifies two bundles, which must be valid, and joins them.
func joinedOf(t *testing.T, a, b map[string][]byte) (bundle.Joint, error) {
	t.Helper()
	var opened []*bundle.Bundle
	var results []bundle.Result
	for _, files := range []map[string][]byte{a, b} {
		folder := t.TempDir()
		write(t, folder, files)
		x := must(bundle.Open(t.Context(), folder, nil))
		defer x.Close()
		r, err := bundle.Verify(t.Context(), x, bundle.Trust{Keys: trusted()}, nil)
		if err != nil || !r.Valid {
			t.Fatalf("%+v, %v", r, err)
		}
		opened, results = append(opened, x), append(results, r)
	}
	return bundle.Join(t.Context(), opened[0], opened[1], results[0], results[1])
}

// between selects the denied decisions of agent k in a period.
func between(from, to string) bundle.Filters {
	return bundle.Filters{Agent: "a-k", Decision: "deny", From: onTheDay(from), To: onTheDay(to)}
}

// Join reports that a second export continues the first, leaves out numbers between them, or
// contradicts it.
func TestTwoExportsOfASeries(t *testing.T) {
	const series = "decision/deny of agent sub_k: "
	another := func(at int) func([]ledger.Event) {
		return func(list []ledger.Event) {
			list[at].Actor = "cus_9" // replace an event, and recompute all later hashes
		}
	}
	shorter := theHistory()[:6] // the history without the fourth denied decision of agent k
	for name, c := range map[string]struct {
		a, b                    told
		joined, gap, contradict string
	}{
		"the next period":                  {told{filters: between("", "15:00:03")}, told{filters: between("15:00:03", "")}, series + "1 to 2, then 3 to 4", "", ""},
		"the same numbers":                 {told{filters: between("", "")}, told{filters: between("", "")}, series + "1 to 4, then 1 to 4", "", ""},
		"an overlap":                       {told{filters: between("", "15:00:05")}, told{filters: between("15:00:01", "")}, series + "1 to 3, then 2 to 4", "", ""},
		"none, then some":                  {told{filters: between("15:00:03", "15:00:04")}, told{filters: between("15:00:04", "")}, series + "none after 2, then 3 to 4", "", ""},
		"some, then none":                  {told{filters: between("", "")}, told{filters: between("15:00:20", "")}, series + "1 to 4, then none after 4", "", ""},
		"none, and none":                   {told{filters: bundle.Filters{Decision: "needs_review"}}, told{filters: bundle.Filters{Decision: "needs_review"}}, "decision/needs_review: no number in either", "", ""},
		"asked for again":                  {told{filters: between("", ""), through: 5}, told{filters: between("", "")}, series + "1 to 3, then 1 to 4", "", ""},
		"a number between":                 {told{filters: between("", "15:00:01")}, told{filters: between("15:00:03", "")}, "", series + "2 is in neither", ""},
		"numbers between":                  {told{filters: between("", "15:00:01")}, told{filters: between("15:00:05", "")}, "", series + "2 to 3 are in neither", ""},
		"in the wrong order":               {told{filters: between("15:00:03", "")}, told{filters: between("", "15:00:03")}, "", series + "the second export begins at 1, before the first one: name the earlier export first", ""},
		"another event with a number":      {told{filters: between("", "15:00:03")}, told{filters: between("15:00:03", ""), numbers: another(2)}, "", "", series + "2 is not the same event in both"},
		"another one in an overlap":        {told{filters: between("", "")}, told{filters: between("15:00:01", ""), numbers: another(4)}, "", "", series + "3 is not the same event in both"},
		"across a gap":                     {told{filters: between("", "15:00:01")}, told{filters: between("15:00:03", ""), numbers: another(2)}, "", "", series + "2 is not the same event in both"},
		"another newest":                   {told{filters: between("", "")}, told{filters: between("15:00:20", ""), numbers: another(6)}, "", "", series + "4 is not the same event in both"},
		"the last event dropped later":     {told{filters: between("", "")}, told{filters: between("", ""), history: append(shorter[:6:6], drawnEvent{"member", "", "", 0, ""}, drawnEvent{"member", "", "", 0, ""})}, "", "", series + "3 is the newest up to position 8 in one export, and 4 up to position 8 in the other"},
		"the newest hidden":                {told{filters: between("", ""), claim: nil, history: append(shorter[:6:6], drawnEvent{"member", "", "", 0, ""}, drawnEvent{"member", "", "", 0, ""})}, told{filters: between("", "")}, "", "", series + "3 is the newest up to position 8 in one export, and 4 up to position 8 in the other"},
		"other series":                     {told{filters: bundle.Filters{Decision: "allow"}}, told{filters: bundle.Filters{Decision: "deny"}}, "", "no series is in both exports", ""},
		"a series of the tenant and agent": {told{filters: bundle.Filters{Decision: "deny"}}, told{filters: between("", "")}, "", "no series is in both exports", ""},
	} {
		j, err := joinedOf(t, c.a.draw(), c.b.draw())
		if got := strings.Join(j.Joined, "|"); err != nil || got != c.joined {
			t.Errorf("%s: joined %q, %v; want %q", name, got, err, c.joined)
		}
		if got := strings.Join(j.Apart, "|"); got != c.gap {
			t.Errorf("%s: not joined %q; want %q", name, got, c.gap)
		}
		j.False = slices.DeleteFunc(j.False, func(no string) bool { return no == twoRoots }) // ignore this one: each export in this test has its own tree and claim
		if got := strings.Join(j.False, "|"); got != c.contradict {
			t.Errorf("%s: false %q; want %q", name, got, c.contradict)
		}
	}
}

const twoRoots = "history of org_1: the checkpoints of 9 events have two roots"

// Two checkpoints of the same size with different roots belong to two trees: the two readers were
// shown different ledgers.
func TestTwoTreesContradictEachOther(t *testing.T) {
	j, err := joinedOf(t, told{filters: between("", "15:00:03")}.draw(), told{filters: between("15:00:03", "")}.draw())
	if err != nil || !slices.Equal(j.False, []string{twoRoots}) {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err := joinedOf(t, told{}.draw(), told{}.draw()); err != nil || len(j.False) > 0 {
		t.Errorf("one tree: %+v, %v", j, err)
	}
}

// Whole histories are joined by the sequence numbers of the organization's events.
func TestTwoExportsOfAHistory(t *testing.T) {
	parts := func(from, to int) map[string][]byte {
		files, leaves := drawn()
		return cutOf(files, leaves, from, to, bundle.Filters{})
	}
	renamed := func(files map[string][]byte) map[string][]byte { // change the last event of the first part
		lines := linesOf(files)
		e, _ := lines[1].Event()
		e.Actor = "cus_9"
		e.Hash = e.Sum()
		lines[1] = ledger.NewLine(e)
		files["events.jsonl"] = must(bundle.Lines(lines))
		delete(files, "openings.jsonl")
		return signedAnew(files, func(m *bundle.Manifest) { m.LastHash, m.CheckpointSize = lines[1].Hash, 0 })
	}
	for name, c := range map[string]struct {
		a, b                    map[string][]byte
		joined, gap, contradict string
	}{
		"the next part":       {parts(0, 2), parts(2, 5), "history of org_1: 1 to 2, then 3 to 5", "", ""},
		"an overlap":          {parts(0, 3), parts(1, 5), "history of org_1: 1 to 3, then 2 to 5", "", ""},
		"events between":      {parts(0, 1), parts(3, 5), "", "history of org_1: 2 to 3 are in neither", ""},
		"after another event": {renamed(parts(0, 2)), parts(2, 5), "", "", "history of org_1: 3 does not follow 2"},
		"in an overlap":       {renamed(parts(0, 2)), parts(1, 5), "", "", "history of org_1: 2 is not the same event in both"},
		"one that ends early": {parts(0, 5), parts(0, 3), "", "history of org_1: the second export ends at 3, before the first one", ""},
	} {
		j, err := joinedOf(t, c.a, c.b)
		if strings.Join(j.Joined, "|") != c.joined || strings.Join(j.Apart, "|") != c.gap || strings.Join(j.False, "|") != c.contradict || err != nil {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
	}
}

// Join compares the numbers of a selection with those of a whole history, and reports
// contradictions.
func TestASelectionAndAHistory(t *testing.T) {
	deny := told{filters: bundle.Filters{Decision: "deny"}}.draw()
	if j, err := joinedOf(t, draw(), deny); err != nil || strings.Join(j.False, "|") != "decision/deny: 1 is not the same event in both" {
		t.Errorf("of another history: %+v, %v", j, err)
	}
	files, leaves := drawn()
	part := cutOf(files, leaves, 2, 5, bundle.Filters{}) // part of the history, without one decision
	for _, pair := range [][2]map[string][]byte{{part, deny}, {deny, part}} {
		if j, err := joinedOf(t, pair[0], pair[1]); err != nil || strings.Join(j.False, "|") != "decision/deny: 4 is not in the whole history" {
			t.Errorf("of a history without a number: %+v, %v", j, err)
		}
	}
}

// Exports of two ledgers or organizations cannot be joined.
func TestExportsOfTwoLedgersAreNotJoined(t *testing.T) {
	files, leaves := drawn()
	other := signedAnew(cutOf(files, leaves, 2, 5, bundle.Filters{}), func(m *bundle.Manifest) { m.Origin, m.CheckpointSize = "other.example/0", 0 })
	if j, err := joinedOf(t, draw(), other); err == nil || !strings.Contains(err.Error(), "one organization") {
		t.Errorf("%+v, %v", j, err)
	}
}
