// Package query answers the queries that pages and the API share, so that both give the same
// results: which decisions match a filter, which of them wait for a review, and which messages
// were sent to a webhook. It reads projections, and decrypts the records that they refer to.
package query

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// Filter selects decisions. Each member is a parameter in the query of a URL. An empty member does
// not restrict the selection.
type Filter struct {
	Decision, Conformance, Protocol, Rule, Run, Agent, Text string
	Target                                                  string // host to be paid, or server and tool; see assurance.Target
	From, To                                                string // dates or times, as written in the query

	from, to time.Time // the period includes from and excludes to
}

// FilterValues returns the allowed values of the filter members that have a fixed list, by the
// member's name in the query.
func FilterValues() map[string][]string {
	return map[string][]string{
		"decision":    {"allow", "deny", "needs_review"},
		"conformance": {"conforming", "violation", "inconclusive", "none"},
		"protocol":    {"x402", "mcp"},
	}
}

// ReadFilter parses a filter from the query of a URL. It refuses invalid values and periods,
// because a misread filter would hide decisions.
func ReadFilter(q url.Values) (f Filter, err error) {
	f = Filter{Decision: q.Get("decision"), Conformance: q.Get("conformance"), Protocol: q.Get("protocol"), Rule: strings.TrimSpace(q.Get("rule")),
		Run: strings.TrimSpace(q.Get("run")), Agent: strings.TrimSpace(q.Get("agent")), Text: strings.TrimSpace(q.Get("text")),
		Target: strings.TrimSpace(q.Get("target")), From: q.Get("from"), To: q.Get("to")}
	for _, name := range []string{"rule", "run", "agent", "text", "target"} {
		if !IsText(q.Get(name)) {
			return f, policy.Refuse("invalid_format", "/"+name, name+" must be UTF-8 without NUL")
		}
	}
	for name, values := range FilterValues() {
		if member := q.Get(name); member != "" && !slices.Contains(values, member) {
			return f, policy.Refuse("invalid_enum", "/"+name, name+" must be one of the documented values")
		}
	}
	if f.from, err = period("from", f.From, 0); err == nil {
		f.to, err = period("to", f.To, 24*time.Hour)
	}
	return f, err
}

func period(name, text string, day time.Duration) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t.Add(day), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, policy.Refuse("invalid_format", "/"+name, name+" must be a date such as 2026-03-31, or an RFC 3339 time")
	}
	return t, nil
}

// Query returns the filter as the query of a URL.
func (f Filter) Query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"decision": f.Decision, "conformance": f.Conformance, "protocol": f.Protocol, "rule": f.Rule,
		"run": f.Run, "agent": f.Agent, "text": f.Text, "target": f.Target, "from": f.From, "to": f.To} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// Violations returns the filter for decisions that their receipt contradicts.
func Violations() Filter { return Filter{Conformance: "violation"} }

// Similar returns the filter for decisions that are about the same host or tool as a record, and
// were made after a time.
func Similar(r assurance.DecisionRecord, from time.Time) Filter {
	return Filter{Target: assurance.Target(r.Protocol, r.Normalized), from: from, Protocol: r.Protocol}
}

// Bundle returns the filters for a signed bundle with exactly these decisions. ok is false if the
// filter has a condition that a bundle cannot have, such as the conformance of the receipt.
func (f Filter) Bundle() (chosen bundle.Filters, ok bool) {
	chosen = bundle.Filters{Protocol: f.Protocol, Decision: f.Decision, Agent: f.Agent, Run: f.Run}
	if !f.from.IsZero() {
		chosen.From = f.from.UTC().Format(time.RFC3339)
	}
	if !f.to.IsZero() {
		chosen.To = f.to.UTC().Format(time.RFC3339)
	}
	return chosen, f.Conformance == "" && f.Rule == "" && f.Text == "" && f.Target == ""
}

// matches compares the conditions that only the decrypted record can answer.
func (f Filter) matches(d ListedDecision) bool {
	switch {
	case f.Protocol != "" && d.Protocol != f.Protocol,
		f.Rule != "" && !slices.Contains(d.RuleIDs, f.Rule),
		f.Run != "" && d.RunID != f.Run,
		f.Agent != "" && d.AgentID != f.Agent,
		f.Target != "" && d.target != f.Target:
		return false
	}
	text := strings.ToLower(f.Text)
	return text == "" || slices.ContainsFunc([]string{d.Action, d.RunID, d.AgentID, d.Purpose, d.DecisionID, d.resource}, func(s string) bool {
		return strings.Contains(strings.ToLower(s), text)
	})
}

// ListedDecision is one decision in a list.
type ListedDecision struct {
	DecisionID    string   `json:"decisionId"`
	Sequence      int64    `json:"sequence"`
	RecordedAt    string   `json:"recordedAt" jsonschema:"format=date-time"`
	Protocol      string   `json:"protocol" jsonschema:"enum=x402,enum=mcp"`
	RunID         string   `json:"runId"`
	AgentID       string   `json:"agentId" jsonschema_description:"Empty if it was not given or was erased."`
	Purpose       string   `json:"purpose" jsonschema_description:"Empty if it was not given or was erased."`
	Action        string   `json:"action" jsonschema_description:"The action in words. Text from the agent is in quotation marks and is not verified."`
	AmountUSD     string   `json:"amountUsd" jsonschema_description:"Exact decimal number; empty if the amount is not known."`
	Decision      string   `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review"`
	Because       string   `json:"because" jsonschema_description:"Reason of the decision in words; empty for an allow."`
	RuleIDs       []string `json:"ruleIds" jsonschema_description:"Ids of the rules with a finding."`
	PolicyVersion int64    `json:"policyVersion"`
	Verdict       *string  `json:"verdict" jsonschema:"nullable" jsonschema_description:"Verdict of the reviewer: approved or rejected; null before a review."`
	ReceiptID     *string  `json:"receiptId" jsonschema:"nullable"`
	Outcome       *string  `json:"outcome" jsonschema:"nullable"`
	Conformance   *string  `json:"conformance" jsonschema:"nullable"`
	Alerts        []string `json:"alerts"`

	deed             words.Phrase
	target, resource string
	DeniedNow        bool `json:"-"` // the active policy denies the action; set only for decisions that wait for a verdict
}

// Who returns the agent's name, for the beginning of a sentence.
func (d ListedDecision) Who() words.Phrase { return words.Who(assurance.Subject{AgentID: d.AgentID}) }

// Deed returns the text of Action, in pieces.
func (d ListedDecision) Deed() words.Phrase { return d.deed }

// State returns the state of the decision in one word: "violation" if its receipt contradicts it,
// else a person's verdict, else the decision.
func (d ListedDecision) State() string {
	switch {
	case d.Violates():
		return "violation"
	case d.Verdict != nil:
		return *d.Verdict
	}
	return d.Decision
}

// Violates reports whether the receipt contradicts the decision.
func (d ListedDecision) Violates() bool { return d.Conformance != nil && *d.Conformance == "violation" }

func listDecision(row projections.DecisionRow, r assurance.DecisionRecord) ListedDecision {
	d := ListedDecision{DecisionID: row.DecisionID, Sequence: row.Sequence, RecordedAt: r.IssuedAt, Protocol: r.Protocol, RunID: r.Subject.RunID,
		AgentID: r.Subject.AgentID, Purpose: r.Subject.Purpose, deed: words.Deed(r.Protocol, r.Normalized), Decision: r.Decision,
		Because: words.Because(r.Findings), RuleIDs: []string{}, PolicyVersion: r.Policy.Version, AmountUSD: assurance.USD(r.Normalized), Verdict: row.Verdict, ReceiptID: row.ReceiptID,
		Outcome: row.Outcome, Conformance: row.Conformance, Alerts: append([]string{}, row.Alerts...), target: assurance.Target(r.Protocol, r.Normalized), resource: r.Normalized.ResourceURL}
	d.Action = d.deed.String()
	for _, f := range r.Findings {
		d.RuleIDs = append(d.RuleIDs, f.RuleID)
	}
	return d
}

// DecisionPage is one page of a list of decisions.
type DecisionPage struct {
	Items      []ListedDecision `json:"items"`
	Limit      int              `json:"limit"`
	NextCursor *string          `json:"nextCursor" jsonschema:"nullable" jsonschema_description:"Cursor of the next page; null on the last page. A page may have fewer items than limit and still not be the last."`
	Warnings   []string         `json:"warnings,omitempty" jsonschema_description:"Parts of the query that were not understood and were ignored."`
}

// Decisions answers queries about the decisions of an organization.
type Decisions struct {
	Commands    *decisions.Decisions
	Projections *projections.Projections
}

// Search lists the decisions that match a filter, newest first. Names and purposes are encrypted, so
// for a text it decrypts the records to compare them: at most MostSearched for one page.
func (s Decisions) Search(ctx context.Context, p organizations.Principal, f Filter, limit int, cursor string) (DecisionPage, error) {
	page := DecisionPage{Items: []ListedDecision{}, Limit: limit}
	below, ok := projections.SequenceOf(cursor)
	if !ok {
		page.Warnings = []string{projections.WrongCursor}
		return page, nil
	}
	in := projections.DecisionFilter{Decision: f.Decision, Conformance: f.Conformance, Protocol: f.Protocol, Run: f.Run, Target: f.Target, Rule: f.Rule, Below: below}
	var err error
	if in.Actors, err = s.actors(ctx, p); err != nil {
		return page, err
	}
	if f.Agent != "" {
		if in.Agent, err = s.Commands.AgentKey(ctx, p, f.Agent); err != nil || in.Agent == "" { // no decision has a name without a key
			return page, err
		}
	}
	if !f.to.IsZero() {
		end, err := s.Commands.SequenceAt(ctx, p, f.to)
		if err != nil {
			return page, err
		}
		in.Below = min(in.Below, end)
	}
	batch := searchBatch
	if f.Text == "" { // the read model has every other condition
		batch = min(limit+1, searchBatch)
	}
	for looked := 0; looked < MostSearched; looked += batch {
		rows, err := s.Projections.Decisions(ctx, p.OrgID, in, batch)
		if err != nil {
			return page, Error(err)
		}
		done, err := s.addDecisions(ctx, p, f, rows, &page)
		if err != nil || done || len(rows) < batch {
			return page, err
		}
		in.Below = rows[len(rows)-1].Sequence
	}
	next := projections.Cursor(in.Below)
	page.NextCursor = &next
	return page, nil
}

// actors returns the actors whose decisions the principal may see. It returns nil if the principal
// may see all decisions.
func (s Decisions) actors(ctx context.Context, p organizations.Principal) ([]string, error) {
	if !p.OwnOnly() {
		return nil, nil
	}
	return s.Commands.OwnActors(ctx, p)
}

// sequencesOf returns the sequence numbers of rows, for which the commands return the records.
func sequencesOf(rows []projections.DecisionRow) []int64 {
	sequences := make([]int64, len(rows))
	for i, row := range rows {
		sequences[i] = row.Sequence
	}
	return sequences
}

// addDecisions adds the rows that match the filter to the page. It returns true if the page is
// full or the rows are older than the period.
func (s Decisions) addDecisions(ctx context.Context, p organizations.Principal, f Filter, rows []projections.DecisionRow, page *DecisionPage) (done bool, err error) {
	records, err := s.Commands.DecisionRecords(ctx, p, sequencesOf(rows))
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		d := listDecision(row, records[row.Sequence])
		if issued, err := time.Parse(time.RFC3339, d.RecordedAt); err == nil && issued.Before(f.from) {
			return true, nil
		}
		if !f.matches(d) {
			continue
		}
		if len(page.Items) == page.Limit {
			next := projections.Cursor(page.Items[page.Limit-1].Sequence)
			page.NextCursor = &next
			return true, nil
		}
		page.Items = append(page.Items, d)
	}
	return false, nil
}
