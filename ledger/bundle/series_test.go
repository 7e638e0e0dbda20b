package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
)

// withLines returns the bundle of draw with changed lines. Hashes, manifest and proofs are
// recomputed, as an attacker with every key could do.
func withLines(change func(lines []ledger.Line) []ledger.Line) map[string][]byte {
	files := draw()
	lines := change(linesOf(files))
	files["events.jsonl"] = rehash(must(bundle.Lines(lines)))
	delete(files, "checkpoint.txt")
	delete(files, "proofs/inclusion.jsonl")
	delete(files, "proofs/consistency.jsonl")
	return signedAnew(files, func(m *bundle.Manifest) {
		all := linesOf(files)
		m.Count, m.LastHash, m.CheckpointSize = int64(len(all)), all[len(all)-1].Hash, 0
	})
}

// A bundle of a whole history is not valid if the numbers of a series do not match the events.
func TestNumbersOfAWholeHistory(t *testing.T) { bothSay(t, falseNumbers()) }

func falseNumbers() map[string]altered {
	of := func(i int, change func(*ledger.Line)) map[string][]byte {
		return withLines(func(lines []ledger.Line) []ledger.Line { change(&lines[i]); return lines })
	}
	hash := func(text string) *string {
		sum := sha256.Sum256([]byte(text))
		s := hex.EncodeToString(sum[:])
		return &s
	}
	return map[string]altered{
		"as it is":                           {files: of(0, func(*ledger.Line) {})},
		"in another series":                  {files: of(1, func(l *ledger.Line) { l.Series = "decision/allow" }), reason: `events.jsonl line 2: decision/allow: 1 is a decision "deny"`},
		"in a series of another kind":        {files: of(1, func(l *ledger.Line) { l.Series = "receipt/violation" }), reason: "events.jsonl line 2: series"},
		"in a series that is not":            {files: of(1, func(l *ledger.Line) { l.Series = "decision/maybe" }), reason: "events.jsonl line 2: series"},
		"in no series":                       {files: of(1, func(l *ledger.Line) { l.Series, l.SeriesN, l.Agent, l.AgentN = "", 0, "", 0 }), reason: "events.jsonl line 2: series"},
		"half a number":                      {files: of(1, func(l *ledger.Line) { l.SeriesN = 0 }), reason: "events.jsonl line 2: form"},
		"a number 1 that has a previous one": {files: of(1, func(l *ledger.Line) { l.SeriesPrev = hash("x") }), reason: "events.jsonl line 2: form"},
		"a number 2 without a previous one":  {files: of(1, func(l *ledger.Line) { l.AgentN = 2 }), reason: "events.jsonl line 2: form"},
		"a series where none is":             {files: of(0, func(l *ledger.Line) { l.Series, l.SeriesN = "decision/deny", 1 }), reason: "events.jsonl line 1: series"},
		"numbers that begin at 2":            {files: of(1, func(l *ledger.Line) { l.SeriesN, l.SeriesPrev = 2, hash("x") }), reason: "events.jsonl line 2: decision/deny: 1 is missing"},
		"of the agent that begin at 2":       {files: of(1, func(l *ledger.Line) { l.AgentN, l.AgentPrev = 2, hash("x") }), reason: "events.jsonl line 2: decision/deny of agent k: 1 is missing"},
		"of another agent":                   {files: of(1, func(l *ledger.Line) { l.Agent = "j" }), reason: "events.jsonl line 2: agent"},
		"of no agent":                        {files: of(1, func(l *ledger.Line) { l.Agent, l.AgentN = "", 0 }), reason: "events.jsonl line 2: agent"},
	}
}

// The line of an event without a number has no members about series.
func TestALineWithoutANumberHasNoMembersOfSeries(t *testing.T) {
	files := draw()
	first, second, _ := bytes.Cut(files["events.jsonl"], []byte("\n"))
	if text := string(first); strings.Contains(text, "series") || strings.Contains(text, "agent") {
		t.Errorf("the first line has numbers: %s", text)
	}
	if want := `"series":"decision/deny","series_n":1`; !bytes.Contains(second, []byte(want)) || bytes.Contains(second, []byte("series_prev")) {
		t.Errorf("no %s in %s", want, second)
	}
}
