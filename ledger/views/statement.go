package views

import (
	"html/template"
	"io"
	"time"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
)

// stating writes the page about a statement. All its figures are in the manifest, and verifiers
// recount them.
type stating struct {
	to   io.Writer
	made time.Time // time of export.requested, with which the service claims the newest numbers
	ends ends
}

// Add implements view.
func (s *stating) Add(e forms.Event) error {
	s.ends.add(e)
	if e.Type == events.TypeExportRequested {
		s.made = e.Occurred().UTC()
	}
	return nil
}

// Close implements view.
func (s *stating) Close(m bundle.Manifest) error {
	agent := said(m.Filters.Agent)
	if m.Filters.NoPersonal {
		agent = m.Selection.Agent
	}
	return statementTemplate.Execute(s.to, struct {
		Manifest  bundle.Manifest
		Ends      ends
		Agent     string
		Outcomes  []outcomes
		Purchases []purchases
		Period    string
		Made      string
		Running   bool // true if the period had not ended
	}{m, s.ends, agent, []outcomes{{"Decisions", m.Statement.Decisions}, {"Approvals", m.Statement.Approvals}, {"Receipts", m.Statement.Receipts}},
		[]purchases{{"authorized", m.Statement.Authorized}, {"settled, as the agent reported", m.Statement.Settled}}, period(m), s.made.Format(exactTime), running(m.Filters.To, s.made)})
}

// running reports whether the period that ends at the time to was still running at the time at.
func running(to string, at time.Time) bool {
	end, err := time.Parse(time.RFC3339, to)
	return err == nil && at.Before(end)
}

// outcomes and purchases are the rows of the page's tables.
type outcomes struct {
	Kind   string
	Counts bundle.Counts
}

type purchases struct {
	Kind string
	bundle.Amounts
}

var statementTemplate = template.Must(template.New("statement").Parse(endsTable + `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Statement {{.Manifest.ExportID}}</title>
` + pageStyle + `
<main><h1>What an agent did</h1>
<p>The agent is {{.Agent}}, {{.Period}}. Statement <code>{{.Manifest.ExportID}}</code> of ledger <code>{{.Manifest.Origin}}</code>, up to position {{.Manifest.Selection.Through}}, requested at {{.Made}}. All times are UTC, from the clock of the server.</p>
{{template "ends" .}}
{{if .Running}}<p>The period had not ended then, so this statement has only the first part of it. Make another one after the end of the period.</p>
{{end}}{{if not .Manifest.Filters.NoPersonal}}` + unverified + `{{end}}
<h2>Counts by outcome</h2>
<table><tr><th>kind</th><th>outcome</th><th>number</th></tr>{{range .Outcomes}}{{$kind := .Kind}}{{range $outcome, $n := .Counts}}<tr><td>{{$kind}}</td><td>{{$outcome}}</td><td>{{$n}}</td></tr>
{{end}}{{end}}</table>
<h2>Amounts in US dollars</h2>
<table><tr><th>actions</th><th>number</th><th>without an amount in USD</th><th>largest</th><th>total</th></tr>{{range .Purchases}}<tr><td>{{.Kind}}</td><td>{{.Count}}</td><td>{{.UnknownUSD}}</td><td>{{.LargestUSD}}</td><td>{{.TotalUSD}}</td></tr>
{{end}}</table>
<p>A tool call has no amount. “Authorized” counts decisions with the outcome allow, and decisions that needed a review and that a person approved in the same period. “Settled” counts receipts that report a settlement; the amount is that of the decision, and is unknown if the decision is from before the period.</p>
<h2>How it can be checked</h2>
<p>The events are in <code>events.jsonl</code>, and their numbers show that none is missing: <code>countersign verify FOLDER --keys jwks.json</code>, or <code>python3 verify.py --keys jwks.json FOLDER</code>, counts again. Take jwks.json from <code>/.well-known/jwks.json</code> of the service.</p>
<p>Not proven: that every action of the agent was submitted to the service, that a reported settlement is on a chain, and when an event happened (only the order of events is proven).</p></main></html>
`))
