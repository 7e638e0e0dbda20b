package pack

import (
	"bytes"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/projections"
)

// Framework is an audit framework, with the requirements for which a pack contains evidence.
type Framework struct {
	ID, Name     string
	Requirements []Requirement
}

// Requirement is one requirement of a framework in our words, with the files that are evidence for
// it and what they do not prove.
type Requirement struct{ ID, Asks, Files, NotProven string }

// Frameworks has the frameworks of the page /docs/compliance, which lists all their requirements.
var Frameworks = []Framework{
	{"soc2", "SOC 2 (Trust Services Criteria)", []Requirement{
		{"CC6.1 to CC6.3", "access is granted by role and removed when it is not needed", "pack/access.jsonl", "access to other systems"},
		{"CC7.2, CC7.3", "anomalies are monitored, and events evaluated", "events.jsonl, pack/oversight.json, pack/statements/", "detection of what no rule covers"},
		{"CC7.4", "incidents are responded to", "pack/access.jsonl, pack/policies.json", "your incident process"},
		{"CC8.1", "changes are authorized, approved and documented", "pack/policies.json, policies/", "changes outside of the policy"}}},
	{"iso42001", "ISO/IEC 42001", []Requirement{
		{"A.6.2.6", "the system is monitored in operation", "events.jsonl, pack/statements/", "that a person reads the events"},
		{"A.6.2.8", "events are logged", "events.jsonl, pack/verification.json", "that the system submits every event"},
		{"A.9.2", "processes for responsible use are defined", "pack/policies.json", "that the policy is adequate"},
		{"A.9.4", "the system is used as intended", "pack/statements/, pack/oversight.json", "use outside of the submitted actions"}}},
	{"eu-ai-act", "EU AI Act", []Requirement{
		{"12", "events are recorded automatically", "events.jsonl, pack/verification.json", "that the system submits every relevant event"},
		{"14", "people oversee the system, and can refuse and stop it", "pack/oversight.json, approval.recorded in events.jsonl", "that the reviewer had competence"},
		{"19", "logs are kept", "events.jsonl, pack/verification.json", "how long you keep this file"},
		{"26", "deployers monitor the use", "pack/access.jsonl, pack/policies.json", "that people acted on what was reported"}}},
	{"nist-ai-rmf", "NIST AI Risk Management Framework", []Requirement{
		{"GOVERN 1.4", "risk management follows transparent policies", "pack/policies.json", "the adequacy of the policy"},
		{"MAP 3.5", "human oversight is defined and documented", "pack/oversight.json", "the quality of the oversight"},
		{"MEASURE 2.4", "behaviour is monitored in production", "pack/statements/", "behaviour that is not submitted"},
		{"MANAGE 4.1", "incidents are tracked", "events.jsonl, pack/access.jsonl", "communication to those affected"}}},
	{"sec17a4", "SEC Rule 17a-4(f), audit-trail alternative", []Requirement{
		{"(f)(2)(i)(A)", "a complete time-stamped audit trail", "events.jsonl, pack/access.jsonl", "the time itself, which is the server's clock"},
		{"(f)(2)(ii)", "the system verifies that records are complete and accurate", "pack/verification.json", "records of other systems"},
		{"(f)(2)(iv)", "records can be provided in usable form", "events.jsonl, views/", "your agreements with a third party"}}},
}

// cover has the data of the cover page, which describes the content of a pack.
type cover struct {
	Manifest     bundle.Manifest
	RequestedBy  string
	Framework    Framework
	From, To     time.Time
	At           time.Time
	Organization string // name of the organization; empty for the service
	NoPersonal   bool
	Totals       bundle.Statement
	Oversight    projections.Oversight
	Policies     int // number of policy versions activated in the period
	Access       int // number of entries in the access history
	Statements   []coverStatement
	More         bool             // true if there were more agents than statements
	Audit        *audit.Report    // verification of the whole ledger for this pack; nil if there was none
	Check        ledger.SelfCheck // last self-check of the node, if Audit is nil
}

// frameworkOf returns the framework with this ID.
func frameworkOf(id string) (Framework, bool) {
	i := slices.IndexFunc(Frameworks, func(f Framework) bool { return f.ID == id })
	if i < 0 {
		return Framework{}, false
	}
	return Frameworks[i], true
}

// frameworkIDs lists the IDs of Frameworks for an error.
func frameworkIDs() string {
	var ids []string
	for _, f := range Frameworks {
		ids = append(ids, f.ID)
	}
	return strings.Join(ids, ", ")
}

// coverStatement refers to the statement about one agent.
type coverStatement struct{ Agent, File, Says string }

// Running reports whether the period had not ended when the pack was made.
func (c *cover) Running() bool { return c.At.Before(c.To) }

func (c *cover) html() ([]byte, error) {
	var page bytes.Buffer
	err := coverTemplate.Execute(&page, c)
	return page.Bytes(), err
}

// Style is the style sheet of the pages in packs and recalls.
const Style = `<style>body{font:11pt/1.5 serif;max-width:52em;margin:2em auto;padding:0 1em;color:#111}h1{font-size:1.6em}h2{font-size:1.15em;margin-top:1.6em;border-bottom:1px solid #999}
table{border-collapse:collapse;width:100%}td,th{text-align:left;border-bottom:1px solid #ddd;padding:.2em .6em .2em 0;vertical-align:top}code{font-size:.9em;overflow-wrap:anywhere}@media print{body{margin:0}}</style>`

var coverTemplate = template.Must(template.New("cover").Funcs(template.FuncMap{
	"utc":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") },
	"share": projections.Share,
	"quote": words.Quote,
}).Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Evidence pack {{.Manifest.ExportID}}</title>
` + Style + `
<main><h1>Evidence for {{.Framework.Name}}</h1>
<table><tr><th>organization</th><td>{{with .Organization}}{{quote .}}, {{end}}<code>{{.Manifest.Tenant}}</code></td></tr>
<tr><th>period</th><td>from {{utc .From}} to before {{utc .To}} (UTC){{if .Running}}. The period had not ended when this pack was made, so the pack has only the first part of it. Make another one after the end of the period{{end}}</td></tr>
<tr><th>requested by</th><td>{{.RequestedBy}}</td></tr>
<tr><th>made at</th><td>{{utc .At}}</td></tr>
<tr><th>pack</th><td><code>{{.Manifest.ExportID}}</code> of ledger <code>{{.Manifest.Origin}}</code></td></tr>
<tr><th>filters</th><td>the period{{if .NoPersonal}}; personal members are left out{{else}}; nothing else{{end}}</td></tr>
<tr><th>events</th><td>{{.Manifest.Count}} lines, of which {{.Manifest.Withheld}} are before or after the period and have no payload</td></tr></table>
<h2>In the period</h2>
<table>{{range $k, $n := .Totals.Decisions}}<tr><th>decisions: {{$k}}</th><td>{{$n}}</td></tr>
{{end}}{{range $k, $n := .Totals.Approvals}}<tr><th>reviews: {{$k}}</th><td>{{$n}}</td></tr>
{{end}}{{range $k, $n := .Totals.Receipts}}<tr><th>receipts: {{$k}}</th><td>{{$n}}</td></tr>
{{end}}<tr><th>versions of the policy</th><td>{{.Policies}}</td></tr><tr><th>entries of the access history</th><td>{{.Access}}</td></tr></table>
<p><code>views/decisions.csv</code> and <code>views/receipts.csv</code> list each decision and receipt, so also each violation.</p>
<h2>Requirements and where their evidence is</h2>
<table><tr><th>requirement</th><th>asks that</th><th>evidence</th><th>not proven</th></tr>{{range .Framework.Requirements}}<tr><td>{{.ID}}</td><td>{{.Asks}}</td><td>{{.Files}}</td><td>{{.NotProven}}</td></tr>
{{end}}</table>
<p><code>pack/access.jsonl</code> has a line for each change: its time, its type, the member or operator who made it, the id of what it is about (its subject), and a sequence number. The event in <code>events.jsonl</code> with the same sequence number (<code>tseq</code>) has the details, such as the role of a new member.</p>
<p>These records support such requirements. Whether one is met is yours to judge; this is no legal advice.</p>
<h2>Oversight by people</h2>
<p>Of {{.Oversight.Asked}} decisions that needed a review {{.Oversight.Answered}} were answered, and {{.Oversight.Unanswered}} were not: {{.Oversight.Approved}} approved, {{.Oversight.Overruled}} rejected ({{printf "%.1f" (share .Oversight.Overruled .Oversight.Answered)}}%).
Time to a verdict: median {{printf "%.1f" .Oversight.MedianSeconds}} s, 95th percentile {{printf "%.1f" .Oversight.P95Seconds}} s; {{.Oversight.Instant}} in under five seconds. {{.Oversight.Expired}} approvals expired unused.
{{with .Oversight.NeverRefused}}Reviewers who never rejected: {{range $i, $id := .}}{{if $i}}, {{end}}<code>{{$id}}</code>{{end}}.{{end}}</p>
<h2>Statements about agents</h2>
{{if .Statements}}<p>` + words.Unverified + `</p>
{{end}}{{range .Statements}}<p>{{quote .Agent}}: {{.Says}}. <code>pack/{{.File}}</code></p>
{{else}}<p>{{if .NoPersonal}}None: names of agents are left out of this pack.{{else}}None: no agent is named in the decisions of this period.{{end}}</p>
{{end}}{{if .More}}<p>There were more agents than these. Get a statement about each of the others separately, on the page Evidence or with <code>countersign prove</code>.</p>{{end}}
<h2>How to check it</h2>
<p><code>countersign verify pack.tar.gz --keys jwks.json</code> or, without a program of ours, unpack the pack and run <code>python3 export/verify.py --keys jwks.json export</code>. Take jwks.json from <code>/.well-known/jwks.json</code> of the service at a time of your own. Each statement is a file of its own, which this does not check: check it in the same way.</p>
{{with .Audit}}<p>When this pack was made the whole ledger was verified: {{.Events}} events, {{.Records}} signed records, {{.Checkpoints}} checkpoints, {{len .Faults}} faults (<code>pack/verification.json</code>; its <code>gaps</code> lists what was not checked).</p>
{{else}}<p>{{if .Check.At.IsZero}}The ledger was not verified for this pack: the service has not verified it since its start.{{else if .Check.Failed}}The ledger was not verified for this pack. The last verification by the service began at {{utc .Check.At}} and found: {{.Check.First}} (<code>pack/verification.json</code>).{{else}}The ledger was not verified for this pack. The last verification by the service began at {{utc .Check.At}}: {{.Check.Events}} events, {{.Check.Faults}} faults (<code>pack/verification.json</code>). It did not include later events, or payloads in an archive.{{end}} If the operator creates the pack with <code>countersign evidence pack</code>, the whole ledger is verified for it.</p>
{{end}}<h2>Proven, and not</h2>
<ul><li>Proven by <code>verify</code>: that the events {{if .Running}}up to the last one in this pack{{else}}of the period{{end}} are all there, in order, as they were signed, and that the files of this pack are those that the service signed.</li>
<li>To be counted again from <code>events.jsonl</code>: the figures of oversight and the histories. No verifier counts them.</li>
<li>Not proven: that every action the agents took was submitted to the service; that evidence supplied by a caller is true; the time of any event beyond the order of events, since times are the server's clock; that history was not replaced before you first saw a checkpoint.</li></ul></main></html>
`))
