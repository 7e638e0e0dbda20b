package views

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/policy/canon"
)

// tables writes the files for spreadsheets: decisions.csv, receipts.csv and population.csv.
type tables struct {
	decisions, receipts *csv.Writer
	population          io.Writer
	days                map[day]*span
}

// day is the key of a row in population.csv, which counts events by day and result.
type day struct{ day, protocol, decision, outcome, conformance string }

// span is the number of events of a row, with the sequence numbers of the first and the last.
type span struct{ count, first, last int64 }

func newTables(create func(name string) io.Writer) *tables {
	t := &tables{csv.NewWriter(create("decisions.csv")), csv.NewWriter(create("receipts.csv")), create("population.csv"), map[day]*span{}}
	// Write errors are returned later by the writer's method Error.
	_ = t.decisions.Write([]string{"sequence", "recordedAt", "decisionId", "protocol", "decision", "policyId", "policyVersion", "runId", "agentId", "ruleIds", "requestedBy"})
	_ = t.receipts.Write([]string{"sequence", "recordedAt", "receiptId", "decisionId", "protocol", "decision", "outcome", "conformance", "ruleIds", "submittedBy"})
	return t
}

// cells quotes texts that a spreadsheet would interpret as a formula.
func cells(texts ...string) []string {
	for i, text := range texts {
		if strings.IndexAny(text, "=+-@\t\r") == 0 {
			texts[i] = "'" + text
		}
	}
	return texts
}

// Add implements view.
func (t *tables) Add(e forms.Event) error {
	at, r, sequence := canon.Stamp(e.Occurred()), e.Record, strconv.FormatInt(e.Sequence, 10)
	rules := strings.Join(r.Rules(), " ")
	switch e.Type {
	case events.TypeDecisionRecorded:
		t.count(e.Sequence, day{at[:10], r.Protocol, r.Decision, "", ""})
		return t.decisions.Write(cells(sequence, at, r.DecisionID, r.Protocol, r.Decision, r.Policy.PolicyID, strconv.Itoa(r.Policy.Version), r.Subject.RunID, r.Agent(), rules, e.Actor))
	case events.TypeReceiptRecorded:
		t.count(e.Sequence, day{at[:10], r.Protocol, r.Decision, r.Outcome, r.Conformance})
		return t.receipts.Write(cells(sequence, at, r.ReceiptID, r.DecisionID, r.Protocol, r.Decision, r.Outcome, r.Conformance, rules, e.Actor))
	}
	return nil
}

func (t *tables) count(sequence int64, d day) {
	s := t.days[d]
	if s == nil {
		s = &span{first: sequence}
		t.days[d] = s
	}
	s.count, s.last = s.count+1, sequence
}

// Close implements view. It writes the counts of days, which need all events.
func (t *tables) Close(bundle.Manifest) error {
	table := csv.NewWriter(t.population)
	err := table.Write([]string{"day", "protocol", "decision", "outcome", "conformance", "count", "firstSequence", "lastSequence"})
	for _, d := range slices.SortedFunc(maps.Keys(t.days), func(a, b day) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		s := t.days[d]
		err = errors.Join(err, table.Write(cells(d.day, d.protocol, d.decision, d.outcome, d.conformance,
			strconv.FormatInt(s.count, 10), strconv.FormatInt(s.first, 10), strconv.FormatInt(s.last, 10))))
	}
	for _, w := range []*csv.Writer{t.decisions, t.receipts, table} {
		w.Flush()
		err = errors.Join(err, w.Error())
	}
	return err
}
