package bundle

import (
	"bytes"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// Statement is the manifest's member statement: what an agent did in a period, counted from the
// events of the selection. A verifier counts again.
type Statement struct {
	Decisions  Counts  `json:"decisions"`
	Approvals  Counts  `json:"approvals"`
	Receipts   Counts  `json:"receipts"`
	Authorized Amounts `json:"authorized"` // decisions with the verdict allow, or with needs_review and an approval
	Settled    Amounts `json:"settled"`    // receipts that report a settlement, with the amounts of their decisions
}

// Counts maps each outcome to its number of events, which may be 0.
type Counts map[string]int64

// Amounts summarizes purchases: their number, and the largest amount and the sum of those with a
// known amount in US dollars, as exact decimals. An amount is unknown if the decision has units of
// an unknown asset or no amount, or if the decision is before the period.
type Amounts struct {
	Count      int64  `json:"count"`
	UnknownUSD int64  `json:"unknownUsd"`
	LargestUSD string `json:"largestUsd"`
	TotalUSD   string `json:"totalUsd"`
}

// Tally computes a Statement. Events must be added in the order of their positions.
type Tally struct {
	counts              map[string]Counts // by event type
	amounts             map[[16]byte]*big.Rat
	authorized, settled sum
}

type sum struct {
	count, unknown int64
	largest, total big.Rat
}

// NewTally returns a Tally without events.
func NewTally() *Tally {
	t := &Tally{counts: map[string]Counts{}, amounts: map[[16]byte]*big.Rat{}}
	for _, eventType := range []string{events.TypeDecisionRecorded, events.TypeApprovalRecorded, events.TypeReceiptRecorded} {
		t.counts[eventType] = Counts{}
		for _, name := range events.SeriesNames(eventType) {
			_, outcome, _ := strings.Cut(name, "/")
			t.counts[eventType][outcome] = 0
		}
	}
	return t
}

// Add counts an event with its payload. It ignores events of other types.
func (t *Tally) Add(eventType, series string, payload []byte) {
	counts := t.counts[eventType]
	if counts == nil {
		return
	}
	_, outcome, _ := strings.Cut(series, "/")
	counts[outcome]++
	members, _ := canon.Members(payload)          // cannot fail: record has checked it
	record, _ := canon.Members(members["record"]) // cannot fail either
	key := shortSum(textOf(record["decisionId"]))
	switch {
	case eventType == events.TypeDecisionRecorded:
		amount := amountOf(record["normalized"])
		t.amounts[key] = amount
		if outcome == "allow" {
			t.authorized.add(amount)
		}
	case eventType == events.TypeApprovalRecorded && outcome == "approved":
		if amount, here := t.amounts[key]; here {
			t.authorized.add(amount)
		}
	case eventType == events.TypeReceiptRecorded && textOf(record["outcome"]) == "fulfilled" && textOf(record["settlementId"]) != "":
		t.settled.add(t.amounts[key])
	}
}

// decimalForm is the format of amounts in records. Longer amounts count as unknown.
var decimalForm = regexp.MustCompile(`^[0-9]{1,90}(\.[0-9]{1,90})?$`)

// amountOf returns the amount of a normalized intent in US dollars, or nil if it is unknown.
func amountOf(normalized jsontext.Value) *big.Rat {
	members, _ := canon.Members(normalized) // empty if the intent is missing or not an object
	for _, name := range []string{"amountUnitsInUsd", "amountUsd"} {
		if text := textOf(members[name]); decimalForm.MatchString(text) {
			amount, _ := new(big.Rat).SetString(text)
			return amount
		}
	}
	return nil
}

func (s *sum) add(amount *big.Rat) {
	s.count++
	if amount == nil {
		s.unknown++
		return
	}
	s.total.Add(&s.total, amount)
	if amount.Cmp(&s.largest) > 0 {
		s.largest.Set(amount)
	}
}

func (s *sum) amounts() Amounts {
	return Amounts{Count: s.count, UnknownUSD: s.unknown, LargestUSD: decimal(&s.largest), TotalUSD: decimal(&s.total)}
}

// decimal formats a sum of decimals exactly, without trailing zeros.
func decimal(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

// Statement returns the result for the events added so far.
func (t *Tally) Statement() Statement {
	return Statement{Decisions: t.counts[events.TypeDecisionRecorded], Approvals: t.counts[events.TypeApprovalRecorded], Receipts: t.counts[events.TypeReceiptRecorded],
		Authorized: t.authorized.amounts(), Settled: t.settled.amounts()}
}

// Says returns the statement as one line of text.
func (s Statement) Says() string {
	amounts := func(a Amounts) string {
		text := fmt.Sprintf("%d, largest %s USD, total %s USD", a.Count, a.LargestUSD, a.TotalUSD)
		if a.UnknownUSD > 0 {
			text += fmt.Sprintf(" (%d without an amount in USD)", a.UnknownUSD)
		}
		return text
	}
	return fmt.Sprintf("%d allow, %d deny, %d needs_review; %d approved, %d rejected; receipts %d conforming, %d inconclusive, %d violation; authorized %s; settled, as reported, %s",
		s.Decisions["allow"], s.Decisions["deny"], s.Decisions["needs_review"], s.Approvals["approved"], s.Approvals["rejected"],
		s.Receipts["conforming"], s.Receipts["inconclusive"], s.Receipts["violation"], amounts(s.Authorized), amounts(s.Settled))
}

// stateable reports whether the filters allow a statement: they must select every decision,
// approval and receipt of one agent.
func (f Filters) stateable() bool {
	return f.Agent != "" && f.Receipts && f.Decision == "" && !f.narrows()
}

// stated compares the statement of the manifest with the count of the events.
func (v *verifier) stated() error {
	if v.statement == nil {
		return nil
	}
	again := v.tally.Statement()
	text, err := canon.Marshal(again)
	if err != nil || !bytes.Equal(text, v.statement) {
		return falsef("statement: the events say %s", text)
	}
	v.result.Proven = append(v.result.Proven, "statement, counted again from these events: "+again.Says())
	return nil
}
