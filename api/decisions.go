package api

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// decisionFilter chooses decisions, in the query of an address. What is empty
// chooses all.
type decisionFilter struct {
	Decision, Conformance, Protocol, Rule, Run, Agent, Text string
	From, To                                                string // dates or times
	target                                                  string // of the same kind of action: see targetOf

	from, to time.Time // To is not in the period
}

// decisionQuery names the members, for the document and the form.
var decisionQuery = []parameter{
	{"decision", "What the policy said.", object{"type": "string", "enum": []any{"allow", "deny", "needs_review"}}},
	{"conformance", "Of the receipt; none: there is no receipt.", object{"type": "string", "enum": []any{"conforming", "violation", "inconclusive", "none"}}},
	{"protocol", "Of the action.", object{"type": "string", "enum": []any{"x402", "mcp"}}},
	{"rule", "A rule that found something.", object{"type": "string", "maxLength": 200}},
	{"run", "The subject's runId, exactly.", object{"type": "string", "maxLength": 200}},
	{"agent", "The subject's agentId, exactly.", object{"type": "string", "maxLength": 200}},
	{"text", "Stands in the action, the run, the agent, the purpose or the id, in any case.", object{"type": "string", "maxLength": 200}},
	{"from", "Date, or RFC 3339 time, from which on.", object{"type": "string"}},
	{"to", "Date up to the end of which, or RFC 3339 time before which.", object{"type": "string"}},
	{"limit", "Default 25, clamped to 1 to 100.", object{"type": "integer", "minimum": 1, "maximum": 100, "default": 25}},
	{"cursor", "nextCursor of the page before.", object{"type": "string"}},
}

// readDecisionFilter refuses nothing but a period that is none: a filter that is
// misread would hide decisions.
func readDecisionFilter(q url.Values) (f decisionFilter, err error) {
	f = decisionFilter{Decision: q.Get("decision"), Conformance: q.Get("conformance"), Protocol: q.Get("protocol"), Rule: strings.TrimSpace(q.Get("rule")),
		Run: strings.TrimSpace(q.Get("run")), Agent: strings.TrimSpace(q.Get("agent")), Text: strings.TrimSpace(q.Get("text")), From: q.Get("from"), To: q.Get("to")}
	for name, member := range map[string]string{"decision": f.Decision, "conformance": f.Conformance, "protocol": f.Protocol} {
		if i := slices.IndexFunc(decisionQuery, func(p parameter) bool { return p.name == name }); member != "" && !slices.Contains(decisionQuery[i].schema["enum"].([]any), any(member)) {
			return f, policy.Refuse("invalid_enum", "/"+name, name+" is not one of the values of this filter")
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

// query is the filter as it stands in an address.
func (f decisionFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"decision": f.Decision, "conformance": f.Conformance, "protocol": f.Protocol, "rule": f.Rule,
		"run": f.Run, "agent": f.Agent, "text": f.Text, "from": f.From, "to": f.To} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// matches compares what is in the record.
func (f decisionFilter) matches(d listedDecision) bool {
	switch {
	case f.Protocol != "" && d.Protocol != f.Protocol,
		f.Rule != "" && !slices.Contains(d.RuleIDs, f.Rule),
		f.Run != "" && d.RunID != f.Run,
		f.Agent != "" && d.AgentID != f.Agent,
		f.target != "" && d.target != f.target:
		return false
	}
	text := strings.ToLower(f.Text)
	return text == "" || slices.ContainsFunc([]string{d.Action, d.RunID, d.AgentID, d.Purpose, d.DecisionID, d.resource}, func(s string) bool {
		return strings.Contains(strings.ToLower(s), text)
	})
}

// listedDecision is one decision of a list.
type listedDecision struct {
	DecisionID    string   `json:"decisionId"`
	Sequence      int64    `json:"sequence"`
	RecordedAt    string   `json:"recordedAt" jsonschema:"format=date-time"`
	Protocol      string   `json:"protocol" jsonschema:"enum=x402,enum=mcp"`
	RunID         string   `json:"runId"`
	AgentID       string   `json:"agentId" jsonschema_description:"Empty if none was given, or it was erased."`
	Purpose       string   `json:"purpose" jsonschema_description:"Empty if none was given, or it was erased."`
	Action        string   `json:"action" jsonschema_description:"In words."`
	AmountUSD     string   `json:"amountUsd" jsonschema_description:"Exact decimal; empty where it is not known."`
	Decision      string   `json:"decision" jsonschema:"enum=allow,enum=deny,enum=needs_review"`
	Because       string   `json:"because" jsonschema_description:"What decided, in words; empty for an allow."`
	RuleIDs       []string `json:"ruleIds" jsonschema_description:"Rules that found something."`
	PolicyVersion int64    `json:"policyVersion"`
	Verdict       *string  `json:"verdict" jsonschema:"nullable" jsonschema_description:"Of a person: approved or rejected."`
	ReceiptID     *string  `json:"receiptId" jsonschema:"nullable"`
	Outcome       *string  `json:"outcome" jsonschema:"nullable"`
	Conformance   *string  `json:"conformance" jsonschema:"nullable"`
	Alerts        []string `json:"alerts"`

	target, resource string
}

// Who is the agent as a sentence begins.
func (d listedDecision) Who() string { return web.Who(assurance.Subject{AgentID: d.AgentID}) }

// Violates says whether what happened contradicts the decision.
func (d listedDecision) Violates() bool { return d.Conformance != nil && *d.Conformance == "violation" }

func listDecision(row projections.DecisionRow, r assurance.DecisionRecord) listedDecision {
	d := listedDecision{DecisionID: row.DecisionID, Sequence: row.Sequence, RecordedAt: r.IssuedAt, Protocol: r.Protocol, RunID: r.Subject.RunID,
		AgentID: r.Subject.AgentID, Purpose: r.Subject.Purpose, Action: web.Deed(r.Protocol, r.Normalized), Decision: r.Decision,
		Because: web.Because(r.Findings), RuleIDs: []string{}, PolicyVersion: r.Policy.Version, Verdict: row.Verdict, ReceiptID: row.ReceiptID,
		Outcome: row.Outcome, Conformance: row.Conformance, Alerts: append([]string{}, row.Alerts...), target: targetOf(r), resource: r.Normalized.ResourceURL}
	for _, f := range r.Findings {
		d.RuleIDs = append(d.RuleIDs, f.RuleID)
	}
	switch n := r.Normalized; {
	case n.AmountUnitsInUSD != "":
		d.AmountUSD = n.AmountUnitsInUSD
	case !n.AmountUSDInvalid:
		d.AmountUSD = n.AmountUSD
	}
	return d
}

// targetOf is what actions of one kind have in common: the host that is paid, or
// the tool that is called.
func targetOf(r assurance.DecisionRecord) string {
	if r.Protocol == assurance.MCP {
		return "mcp " + r.Normalized.ServerID + "/" + r.Normalized.ToolName
	}
	u, err := url.Parse(r.Normalized.ResourceURL)
	if err != nil {
		return "x402"
	}
	return "x402 " + u.Host
}

// decisionPage is one page of a list.
type decisionPage struct {
	Items      []listedDecision `json:"items"`
	Limit      int              `json:"limit"`
	NextCursor *string          `json:"nextCursor" jsonschema:"nullable" jsonschema_description:"There may be more; a page before the last may hold fewer than limit."`
	Warnings   []string         `json:"warnings,omitempty" jsonschema_description:"What of the query was not understood, and so filtered nothing."`
}

// searchDecisions lists the decisions a filter chooses, the newest first. Names of
// agents are sealed, so records are opened and compared: of one page no more than
// searchedDecisions.
func (s *Server) searchDecisions(ctx context.Context, p commands.Principal, f decisionFilter, limit int, cursor string) (decisionPage, error) {
	page := decisionPage{Items: []listedDecision{}, Limit: limit}
	below, ok := projections.SequenceOf(cursor)
	if !ok {
		page.Warnings = []string{projections.WrongCursor}
		return page, nil
	}
	in := projections.DecisionFilter{Decision: f.Decision, Conformance: f.Conformance, Below: below}
	var err error
	if p.OwnOnly() {
		if in.Actors, err = s.app.OwnActors(ctx, p); err != nil {
			return page, err
		}
	}
	if !f.to.IsZero() {
		end, err := s.app.SequenceAt(ctx, p, f.to)
		if err != nil {
			return page, err
		}
		in.Below = min(in.Below, end)
	}
	for looked := 0; looked < searchedDecisions; looked += searchBatch {
		rows, err := s.projections.Decisions(ctx, p.OrgID, in, searchBatch)
		if err != nil {
			return page, ofHistory(err)
		}
		done, err := s.addDecisions(ctx, p, f, rows, &page)
		if err != nil || done || len(rows) < searchBatch {
			return page, err
		}
		in.Below = rows[len(rows)-1].Sequence
	}
	next := projections.Cursor(in.Below)
	page.NextCursor = &next
	return page, nil
}

// addDecisions adds the rows that match; done: the page is full, or the period is
// over.
func (s *Server) addDecisions(ctx context.Context, p commands.Principal, f decisionFilter, rows []projections.DecisionRow, page *decisionPage) (done bool, err error) {
	sequences := make([]int64, len(rows))
	for i, row := range rows {
		sequences[i] = row.Sequence
	}
	records, err := s.app.DecisionRecords(ctx, p, sequences)
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

var listDecisions = &operation{
	id: "assurance_list_decisions", method: http.MethodGet, path: "/api/assurance/decisions",
	summary: "The organization's decisions that a filter chooses, the newest first, with what people and receipts said of them.",
	access:  credential.WithRight(commands.RightRead), query: decisionQuery, output: reflect.TypeFor[decisionPage](), errors: []int{400, 401, 403, 503},
	run: func(s *Server, c *call) (reply, error) {
		names := make([]string, len(decisionQuery))
		for i, q := range decisionQuery {
			names[i] = q.name
		}
		query, warnings := understood(c.request.URL.RawQuery, names...)
		f, err := readDecisionFilter(query)
		if err != nil {
			return reply{}, err
		}
		page, err := s.searchDecisions(c.request.Context(), c.Principal, f, historyLimit(query.Get("limit")), query.Get("cursor"))
		if err != nil {
			return reply{}, err
		}
		page.Warnings = append(page.Warnings, warnings...)
		body, err := canon.Marshal(page)
		return reply{body: body, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
	},
}
