package views

import (
	"html/template"
	"io"
	"time"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
)

// reporting writes the report. It counts events.
type reporting struct {
	to            io.Writer
	types, totals map[string]int64
	ends          ends
}

// ends keeps the first and the last event of an export, which a page names with their hashes.
type ends []endEvent

// endEvent is an event as a page names it.
type endEvent struct {
	Sequence     int64
	ID, At, Hash string
}

func (s *ends) add(e forms.Event) {
	*s = append((*s)[:min(len(*s), 1)], endEvent{e.Sequence, e.ID, e.Occurred().UTC().Format(exactTime), e.Hash.String()})
}

// Add implements view.
func (r *reporting) Add(e forms.Event) error {
	r.types[e.Type]++
	r.ends.add(e)
	switch e.Type {
	case events.TypeDecisionRecorded:
		r.totals[e.Record.Decision]++
	case events.TypeReceiptRecorded:
		r.totals[e.Record.Conformance]++
	}
	return nil
}

// Close implements view.
func (r *reporting) Close(m bundle.Manifest) error {
	return report.Execute(r.to, map[string]any{"Manifest": m, "Types": r.types, "Totals": r.totals, "Last": m.FirstSequence + m.Count - 1, "Day": period(m), "Ends": r.ends})
}

// period describes the period of an export's filters in words.
func period(m bundle.Manifest) string {
	if m.Filters.From == "" && m.Filters.To == "" {
		return "from the first event on"
	}
	return "from " + timeOr(m.Filters.From, "the first event") + " to " + timeOr(m.Filters.To, "the last event")
}

// timeOr formats the time of a filter. If the filter is not set, it returns the parameter
// otherwise.
func timeOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC().Format("2006-01-02 15:04:05.999999 MST")
	}
	return text
}

// pageStyle is the style sheet of the report and of the page about a statement.
const pageStyle = `<style>body{font:11pt/1.5 serif;max-width:46em;margin:2em auto;padding:0 1em;color:#111}h1{font-size:1.6em}h2{font-size:1.15em;margin-top:1.6em;border-bottom:1px solid #999}
table{border-collapse:collapse;width:100%}td,th{text-align:left;border-bottom:1px solid #ddd;padding:.2em .6em .2em 0;vertical-align:top}code{font-size:.9em;overflow-wrap:anywhere}@media print{body{margin:0}}</style>`

// endsTable is a part of the report and of the page about a statement. Its data are a struct with
// Manifest and Ends.
const endsTable = `{{define "ends"}}<table><tr><th>organization</th><td><code>{{.Manifest.Tenant}}</code></td></tr>
{{range $i, $e := .Ends}}<tr><th>{{if $i}}last{{else}}first{{end}} event here</th><td>sequence {{$e.Sequence}}, <code>{{$e.ID}}</code>, {{$e.At}}, hash <code>{{$e.Hash}}</code></td></tr>
{{end}}<tr><th>hash of the last event of the range</th><td><code>{{.Manifest.LastHash}}</code></td></tr></table>{{end}}`

// report is a page for auditors to read and print. It is derived: its numbers can be counted again
// from events.jsonl.
var report = template.Must(template.New("report").Parse(endsTable + `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Export {{.Manifest.ExportID}}</title>
` + pageStyle + `
<main><h1>Signed history of {{.Manifest.Tenant}}</h1>
<p>{{.Day}}. Export <code>{{.Manifest.ExportID}}</code> of ledger <code>{{.Manifest.Origin}}</code>, {{if .Manifest.Selection}}{{.Manifest.Count}} selected events, the first with sequence {{.Manifest.FirstSequence}}{{else}}sequences {{.Manifest.FirstSequence}} to {{.Last}}{{end}}.</p>
<p>All times are UTC, from the clock of the server.</p>
{{template "ends" .}}
<h2>Population</h2>
{{with .Manifest.Selection}}<p>The filters selected these numbers of each series. A verifier proves that none of them is missing.</p>
<table><tr><th>series</th><th>numbers</th><th>newest</th></tr>{{range .Series}}<tr><td>{{.Series}}</td><td>{{if lt .Last .First}}none{{else}}{{.First}} to {{.Last}}{{end}}</td><td>{{.Newest}}</td></tr>{{end}}</table>{{else}}<p>{{.Manifest.Count}} events, numbered without a gap. {{if .Manifest.Withheld}}The filters withheld the content of {{.Manifest.Withheld}} of them; their place in the chain is here.{{else}}Nothing was left out.{{end}}</p>{{end}}
<p>Draw samples from <code>views/population.csv</code>, which has the count of each day, and look them up by sequence in <code>events.jsonl</code>.</p>
<table><tr><th>kind of event</th><th>number</th></tr>{{range $k, $n := .Types}}<tr><td>{{$k}}</td><td>{{$n}}</td></tr>{{end}}</table>
<table><tr><th>decisions and conformance of receipts</th><th>number</th></tr>{{range $k, $n := .Totals}}<tr><td>{{$k}}</td><td>{{$n}}</td></tr>{{end}}</table>
<h2>Controls and their evidence</h2>
<table><tr><th>control</th><th>evidence</th><th>how to check it yourself</th></tr>
<tr><td>Agents ask before acting (SOC 2 CC7.2)</td><td>decision.recorded, one for each request, signed</td><td><code>python3 verify.py --keys jwks.json .</code></td></tr>
<tr><td>Rules are changed by authorised people (CC8.1, ISO 27001 A.8.32)</td><td>policy.drafted and policy.activated with author, activator and reason</td><td>search <code>events.jsonl</code> for these types</td></tr>
<tr><td>What was done matches what was decided</td><td>receipt.recorded, bound to its decision; conformance says how</td><td><code>views/receipts.csv</code>; rows with <code>violation</code></td></tr>
<tr><td>Records are kept and protected (EU AI Act art. 12, 19; PCI DSS 10.5)</td><td>hash chain, Merkle tree, signed checkpoint {{if .Manifest.CheckpointSize}}of {{.Manifest.CheckpointSize}} events{{else}}(none covers these events){{end}}</td><td>keep <code>checkpoint.txt</code> and give it as <code>--pin</code> next time</td></tr>
<tr><td>Access to evidence is recorded</td><td>export.created holds this bundle's manifest</td><td>the next export shows it</td></tr></table>
<p>These records support such controls. Whether a control is met is for you to judge.</p>
<h2>Not proven</h2>
<ul><li>that every action the agents took was submitted to the service</li><li>that evidence supplied by a caller is true</li>
<li>the time of any event: only the order of events is proven, because times are from the server's clock</li><li>that history was not replaced before you first saw a checkpoint</li></ul>
<p>This report is derived from the events and is no evidence itself.</p></main></html>
`))
