package review

import (
	"bytes"
	"context"
	"encoding/csv"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// decisionList is the data of the page that lists decisions.
type decisionList struct {
	query.DecisionPage
	Filter    query.Filter
	Filtered  bool
	MayExport bool
	Chips     []web.Chip
	Chosen    []chosen
	Query     string // filter, as the query of a URL
	OrgID     string
	Rules     []string // rules to filter by
	Next      string   // address of the next page
	First     string   // address of the first page; empty on the first
	Sum       *decisionSum
}

// Bundles reports whether a signed bundle can be made with this filter. Some filters have no
// counterpart in a bundle.
func (l decisionList) Bundles() bool {
	_, ok := l.Filter.Bundle()
	return ok
}

// Export returns the address of a file with the filtered decisions; form is csv or jsonl. The
// address names the organization, because another tab may choose another one in the meantime. The
// template must not assemble the address, because it would escape the parts.
func (l decisionList) Export(form string) string {
	return web.InOrganization("/decisions."+form+"?"+l.Query, l.OrgID)
}

// chosen is one active condition of a filter: its label, its value, and the address of the list
// without the condition.
type chosen struct{ Name, Value, Href string }

// chosenBy lists the conditions of a filter that no quick-filter link on the page shows, so that
// the page can show them separately.
func chosenBy(f query.Filter, page string) (list []chosen) {
	for _, member := range []struct{ name, label string }{
		{"text", "Text"}, {"agent", "Agent"}, {"run", "Run"}, {"rule", "Rule"}, {"target", "Payee or tool"}, {"protocol", "Protocol"}, {"from", "From"}, {"to", "To"},
	} {
		q := f.Query()
		if value := q.Get(member.name); value != "" {
			q.Del(member.name)
			list = append(list, chosen{member.label, value, web.Address(page, q)})
		}
	}
	return list
}

// decisionSum counts the filtered decisions and adds up their amounts.
type decisionSum struct {
	Decisions, Allowed, Denied, Reviewed int
	AllowedUSD, FulfilledUSD             string
	Partly                               bool // more decisions match the filter than the sums include
}

func (r *Room) showDecisions(v *web.Visit) (web.View, error) {
	ctx, p, asked := v.Request.Context(), v.Principal, v.Request.URL.Query()
	f, err := query.ReadFilter(asked)
	if err != nil {
		return web.View{}, err
	}
	list := decisionList{Filter: f, Filtered: len(f.Query()) > 0, MayExport: p.May(organizations.RightExport) == nil, Query: f.Query().Encode(), Chips: chips(f), Chosen: chosenBy(f, "/decisions"), OrgID: p.OrgID}
	if list.DecisionPage, err = r.queries().Search(ctx, p, f, 25, asked.Get("cursor")); err != nil {
		return web.View{}, err
	}
	if list.NextCursor != nil {
		q := f.Query()
		q.Set("cursor", *list.NextCursor)
		list.Next = "/decisions?" + q.Encode()
	}
	if asked.Get("cursor") != "" {
		list.First = web.Address("/decisions", f.Query())
	}
	if f.Agent != "" || f.Run != "" || f.From != "" {
		if list.Sum, err = r.sumDecisions(ctx, p, f); err != nil {
			return web.View{}, err
		}
	}
	list.Rules = assuranceRules()
	return web.View{Template: "decisions.html", Data: list}, nil
}

// assuranceRules returns the ids of all rules that check decisions.
func assuranceRules() (ids []string) {
	catalogue, _ := assurance.Catalogue()
	for _, rule := range catalogue {
		ids = append(ids, rule.ID)
	}
	return ids
}

func chips(f query.Filter) []web.Chip {
	list := []web.Chip{{Name: "All", Href: "/decisions", Current: len(f.Query()) == 0}}
	for _, c := range []struct{ name, member, value string }{
		{"Violations", "conformance", "violation"}, {"Denied", "decision", "deny"}, {"Needs review", "decision", "needs_review"},
		{"Allowed", "decision", "allow"}, {"Without receipt", "conformance", "none"},
	} {
		q := f.Query()
		current := q.Get(c.member) == c.value
		q.Set(c.member, c.value)
		if current {
			q.Del(c.member)
		}
		list = append(list, web.Chip{Name: c.name, Href: web.Address("/decisions", q), Current: current})
	}
	return list
}

// sumDecisions adds up the decisions that match a filter: all of them if the read model has the sum,
// otherwise at most query.MostSearched of them.
func (r *Room) sumDecisions(ctx context.Context, p organizations.Principal, f query.Filter) (*decisionSum, error) {
	total, known, err := r.queries().Total(ctx, p, f)
	if err != nil {
		return nil, err
	}
	if known {
		return &decisionSum{Decisions: int(total.Decisions()), Allowed: int(total.Allowed), Denied: int(total.Denied), Reviewed: int(total.Reviewed),
			AllowedUSD: twoDigits(total.AllowedUSD), FulfilledUSD: twoDigits(total.SpentUSD)}, nil
	}
	page, err := r.queries().Search(ctx, p, f, query.MostSearched, "")
	if err != nil {
		return nil, err
	}
	sum := &decisionSum{Decisions: len(page.Items), Partly: page.NextCursor != nil}
	allowed, fulfilled := new(big.Rat), new(big.Rat)
	for _, d := range page.Items {
		usd, known := new(big.Rat).SetString(d.AmountUSD)
		if !known {
			usd = new(big.Rat)
		}
		switch d.Decision {
		case assurance.Allow:
			sum.Allowed++
			allowed.Add(allowed, usd)
		case assurance.Deny:
			sum.Denied++
		default:
			sum.Reviewed++
		}
		if d.Outcome != nil && *d.Outcome == "fulfilled" {
			fulfilled.Add(fulfilled, usd)
		}
	}
	sum.AllowedUSD, sum.FulfilledUSD = allowed.FloatString(2), fulfilled.FloatString(2)
	return sum, nil
}

// twoDigits rounds a decimal to two digits after the point.
func twoDigits(decimal string) string {
	exact, ok := new(big.Rat).SetString(decimal)
	if !ok {
		return decimal
	}
	return exact.FloatString(2)
}

// showDecision shows a decision with its timeline, and the values that its checks compared.
func (r *Room) showDecision(v *web.Visit) (web.View, error) {
	d, err := r.decisionView(v.Request.Context(), v.Principal, v.Vars["id"])
	if err != nil {
		return web.View{}, err
	}
	d.Integrity = []words.Member{{Name: "Record hash", Value: d.Decided.Integrity.RecordHash}, {Name: "Binding hash", Value: d.Record.BindingHash},
		{Name: "Action hash", Value: d.Record.AssuranceActionHash}, {Name: "Signed with key", Value: d.Decided.Integrity.KeyID}}
	if d.Approved != nil {
		d.Integrity = append(d.Integrity, words.Member{Name: "Record hash of the approval", Value: d.Approved.Integrity.RecordHash})
	}
	if d.Bound != nil {
		d.Integrity = append(d.Integrity, words.Member{Name: "Record hash of the receipt", Value: d.Bound.Integrity.RecordHash})
	}
	return web.View{Template: "decision.html", Data: d}, nil
}

// downloadDecision sends the signed records of a decision, one envelope per line. The verify page
// and the command line can verify this file.
func (r *Room) downloadDecision(v *web.Visit) (web.View, error) {
	c, err := r.Commands.ShowDecision(v.Request.Context(), v.Principal, v.Vars["id"])
	if err != nil {
		return web.View{}, err
	}
	var text bytes.Buffer
	for _, e := range []*seal.Envelope{&c.Decided, c.Approved, c.Bound} {
		if e == nil {
			continue
		}
		line, err := e.Canonical()
		if err != nil {
			return web.View{}, err
		}
		text.Write(append(line, '\n'))
	}
	return web.View{File: &web.File{Name: c.DecisionID + ".jsonl", Media: "application/jsonl", Content: text.Bytes()}}, nil
}

// bundleDecisions exports the filtered decisions as a signed bundle with proofs and a verifier,
// and redirects to the bundle. The export is recorded as an event.
func (r *Room) bundleDecisions(v *web.Visit) (web.View, error) {
	f, err := query.ReadFilter(v.Form)
	if err != nil {
		return web.View{}, err
	}
	chosen, ok := f.Bundle()
	if !ok {
		return web.View{}, policy.Refuse("mutually_exclusive", "", "a signed bundle supports only the filters decision, protocol, agent, run and period: remove the other filters, or export as CSV or JSON lines")
	}
	place, err := r.Export(v.Request.Context(), v.Principal, evidence.Export{Filters: chosen})
	return web.View{Location: place, Done: "The signed bundle is ready."}, err
}

// exportDecisions sends the filtered decisions as a file in CSV or JSON lines.
func (r *Room) exportDecisions(v *web.Visit) (web.View, error) {
	ctx, p := v.Request.Context(), v.Principal
	f, err := query.ReadFilter(v.Request.URL.Query())
	if err != nil {
		return web.View{}, err
	}
	var items []query.ListedDecision
	for cursor := ""; ; {
		page, err := r.queries().Search(ctx, p, f, query.MostSearched, cursor)
		if err != nil {
			return web.View{}, err
		}
		items = append(items, page.Items...)
		if len(items) > exportedDecisions {
			return web.View{}, policy.Refuse("too_large", "", "the filter matches more than "+strconv.Itoa(exportedDecisions)+" decisions: choose a shorter period")
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if strings.HasSuffix(v.Request.URL.Path, ".csv") {
		text, err := decisionsCSV(items)
		return web.View{File: &web.File{Name: "decisions.csv", Media: "text/csv; charset=utf-8", Content: text}}, err
	}
	var text bytes.Buffer
	for _, d := range items {
		line, err := canon.Marshal(d)
		if err != nil {
			return web.View{}, err
		}
		text.Write(append(jsontext.Value(line), '\n'))
	}
	return web.View{File: &web.File{Name: "decisions.jsonl", Media: "application/jsonl", Content: text.Bytes()}}, nil
}

func decisionsCSV(items []query.ListedDecision) ([]byte, error) {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	rows := [][]string{{"sequence", "decisionId", "recordedAt", "protocol", "agentId", "runId", "purpose", "action", "amountUsd", "decision", "because",
		"ruleIds", "policyVersion", "verdict", "outcome", "conformance", "receiptId", "alerts"}}
	for _, d := range items {
		rows = append(rows, []string{strconv.FormatInt(d.Sequence, 10), d.DecisionID, d.RecordedAt, d.Protocol, d.AgentID, d.RunID, d.Purpose, d.Action,
			d.AmountUSD, d.Decision, d.Because, strings.Join(d.RuleIDs, " "), strconv.FormatInt(d.PolicyVersion, 10), deref(d.Verdict), deref(d.Outcome),
			deref(d.Conformance), deref(d.ReceiptID), strings.Join(d.Alerts, " ")})
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = plainCell(cell)
		}
		if err := w.Write(row); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return text.Bytes(), w.Error()
}

// plainCell escapes a cell so that a spreadsheet does not run an agent's text as a formula.
func plainCell(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
