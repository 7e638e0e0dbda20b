package evidence

import (
	"encoding/csv"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// exportedRecord is what views and filters read of a signed record.
type exportedRecord struct {
	DecisionID         string  `json:"decisionId"`
	ReceiptID          string  `json:"receiptId"`
	Protocol           string  `json:"protocol"`
	Decision           string  `json:"decision"`
	Outcome            string  `json:"outcome"`
	Conformance        string  `json:"conformance"`
	DecisionRecordHash string  `json:"decisionRecordHash"`
	SettlementID       *string `json:"settlementId"`
	Subject            struct {
		RunID   string `json:"runId"`
		AgentID any    `json:"agentId"` // a commitment, unless it is put back
		Purpose any    `json:"purpose"`
	} `json:"subject"`
	Policy struct {
		PolicyID   string `json:"policyId"`
		Version    int    `json:"version"`
		PolicyHash string `json:"policyHash"`
	} `json:"policy"`
	RulesetHash string `json:"rulesetHash"`
	Findings    []struct {
		RuleID string `json:"ruleId"`
		Effect string `json:"effect"`
	} `json:"findings"`
}

func readExported(payload []byte) (exportedRecord, error) {
	var p struct {
		Record jsontext.Value `json:"record"`
	}
	var r exportedRecord
	if err := json.Unmarshal(payload, &p); err != nil || len(p.Record) == 0 {
		return r, err
	}
	// Records of other types have members of these names and other kinds.
	_ = json.Unmarshal(p.Record, &r)
	return r, nil
}

// exportViews are the derived files: tables, streams for other tools, and a report.
type exportViews struct {
	origin                                string
	files                                 []*bundle.File
	decisions, receipts                   *csv.Writer
	populationFile, cloud, ocsf, document *bundle.File
	population                            map[population]*span
	types                                 map[string]int64
	totals                                map[string]int64
}

// population counts what happened on a day.
type population struct{ day, protocol, decision, outcome, conformance string }

type span struct{ count, first, last int64 }

func newExportViews(folder *bundle.Folder, origin string) (*exportViews, error) {
	v := &exportViews{origin: origin, population: map[population]*span{}, types: map[string]int64{}, totals: map[string]int64{}}
	var failed error
	create := func(name string) *bundle.File {
		file, err := folder.Create("views/" + name)
		failed = errors.Join(failed, err)
		v.files = append(v.files, file)
		return file
	}
	decisions, receipts := create("decisions.csv"), create("receipts.csv")
	v.populationFile, v.cloud, v.ocsf, v.document = create("population.csv"), create("cloudevents.jsonl"), create("ocsf.jsonl"), create("report.html")
	if failed != nil {
		return nil, failed
	}
	v.decisions, v.receipts = csv.NewWriter(decisions), csv.NewWriter(receipts)
	return v, errors.Join(
		v.decisions.Write([]string{"sequence", "recordedAt", "decisionId", "protocol", "decision", "policyId", "policyVersion", "runId", "agentId", "ruleIds", "requestedBy"}),
		v.receipts.Write([]string{"sequence", "recordedAt", "receiptId", "decisionId", "protocol", "decision", "outcome", "conformance", "ruleIds", "submittedBy"}))
}

// cell keeps a spreadsheet from taking a text for a formula.
func cell(text string) string {
	if strings.IndexAny(text, "=+-@\t\r") == 0 {
		return "'" + text
	}
	return text
}

func cells(texts ...string) []string {
	for i := range texts {
		texts[i] = cell(texts[i])
	}
	return texts
}

func (v *exportViews) add(e ledger.Event, r exportedRecord) error {
	at := canon.Stamp(e.Occurred())
	v.types[e.Type]++
	var rules []string
	for _, f := range r.Findings {
		if f.Effect != "info" {
			rules = append(rules, f.RuleID)
		}
	}
	agent, _ := r.Subject.AgentID.(string)
	var err error
	sequence := strconv.FormatInt(e.Sequence, 10)
	switch e.Type {
	case events.TypeDecisionRecorded:
		v.count(e, population{at[:10], r.Protocol, r.Decision, "", ""})
		err = v.decisions.Write(cells(sequence, at, r.DecisionID, r.Protocol, r.Decision, r.Policy.PolicyID, strconv.Itoa(r.Policy.Version),
			r.Subject.RunID, agent, strings.Join(rules, " "), e.Actor))
	case events.TypeReceiptRecorded:
		v.count(e, population{at[:10], r.Protocol, r.Decision, r.Outcome, r.Conformance})
		err = v.receipts.Write(cells(sequence, at, r.ReceiptID, r.DecisionID, r.Protocol, r.Decision, r.Outcome, r.Conformance, strings.Join(rules, " "), e.Actor))
	}
	return errors.Join(err, writeLine(v.cloud, map[string]any{"specversion": "1.0", "id": e.ID, "source": v.origin + "/" + e.Tenant, "type": "svc." + e.Type,
		"time": at, "subject": e.Stream, "datacontenttype": "application/json", "data": jsontext.Value(e.Payload)}),
		writeLine(v.ocsf, ocsf(e, r)))
}

// ocsf is an event as API Activity (class 6003) of the Open Cybersecurity Schema
// Framework.
func ocsf(e ledger.Event, r exportedRecord) map[string]any {
	status := 1 // success
	if r.Decision == "deny" || r.Conformance == "violation" {
		status = 2
	}
	return map[string]any{"category_uid": 6, "class_uid": 6003, "activity_id": 99, "type_uid": 600399, "severity_id": 1, "status_id": status,
		"time": e.OccurredUS / 1000, "actor": map[string]any{"user": map[string]any{"uid": e.Actor}}, "api": map[string]any{"operation": e.Type},
		"metadata": map[string]any{"version": "1.3.0", "uid": e.ID, "product": map[string]any{"name": "countersign", "vendor_name": "countersign"}},
		"unmapped": map[string]any{"decisionId": r.DecisionID, "decision": r.Decision, "outcome": r.Outcome, "conformance": r.Conformance, "eventHash": e.Hash.String()}}
}

func (v *exportViews) count(e ledger.Event, p population) {
	s := v.population[p]
	if s == nil {
		s = &span{first: e.Sequence}
		v.population[p] = s
	}
	s.count, s.last = s.count+1, e.Sequence
	if p.outcome == "" {
		v.totals[p.decision]++
	} else {
		v.totals[p.conformance]++
	}
}

// close ends the tables and writes those that need all events.
func (v *exportViews) close(m bundle.Manifest) error {
	v.decisions.Flush()
	v.receipts.Flush()
	table := csv.NewWriter(v.populationFile)
	err := errors.Join(v.decisions.Error(), v.receipts.Error(),
		table.Write([]string{"day", "protocol", "decision", "outcome", "conformance", "count", "firstSequence", "lastSequence"}))
	keys := slices.SortedFunc(maps.Keys(v.population), func(a, b population) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, p := range keys {
		s := v.population[p]
		err = errors.Join(err, table.Write(cells(p.day, p.protocol, p.decision, p.outcome, p.conformance,
			strconv.FormatInt(s.count, 10), strconv.FormatInt(s.first, 10), strconv.FormatInt(s.last, 10))))
	}
	table.Flush()
	err = errors.Join(err, table.Error(), report.Execute(v.document, map[string]any{"M": m, "Types": v.types, "Totals": v.totals, "Last": m.FirstSequence + m.Count - 1, "Day": dayOf(m)}))
	for _, file := range v.files {
		err = errors.Join(err, file.Close())
	}
	return err
}

func dayOf(m bundle.Manifest) string {
	if m.Filters.From == "" && m.Filters.To == "" {
		return "from the first event on"
	}
	return strings.TrimSpace("from " + orElse(m.Filters.From, "the first event") + " to " + orElse(m.Filters.To, "the last event"))
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC().Format("2006-01-02 15:04 MST")
	}
	return text
}

// report is for an auditor to read and print. It is derived: the numbers can be
// counted again from events.jsonl.
var report = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Export {{.M.ExportID}}</title>
<style>body{font:11pt/1.5 serif;max-width:46em;margin:2em auto;padding:0 1em;color:#111}h1{font-size:1.6em}h2{font-size:1.15em;margin-top:1.6em;border-bottom:1px solid #999}
table{border-collapse:collapse;width:100%}td,th{text-align:left;border-bottom:1px solid #ddd;padding:.2em .6em .2em 0;vertical-align:top}code{font-size:.9em;overflow-wrap:anywhere}@media print{body{margin:0}}</style>
<h1>Signed history of {{.M.Tenant}}</h1>
<p>{{.Day}}. Export <code>{{.M.ExportID}}</code> of ledger <code>{{.M.Origin}}</code>, sequences {{.M.FirstSequence}} to {{.Last}}.</p>
<h2>Population</h2>
<p>{{.M.Count}} events, numbered without a gap. {{if .M.Withheld}}The filters withheld the content of {{.M.Withheld}} of them; their place in the chain is here.{{else}}Nothing was left out.{{end}}
Draw samples from <code>views/population.csv</code>, which has the count of each day, and look them up by sequence in <code>events.jsonl</code>.</p>
<table><tr><th>kind of event</th><th>number</th></tr>{{range $k, $n := .Types}}<tr><td>{{$k}}</td><td>{{$n}}</td></tr>{{end}}</table>
<table><tr><th>decisions and conformance of receipts</th><th>number</th></tr>{{range $k, $n := .Totals}}<tr><td>{{$k}}</td><td>{{$n}}</td></tr>{{end}}</table>
<h2>Controls and their evidence</h2>
<table><tr><th>control</th><th>evidence</th><th>how to check it yourself</th></tr>
<tr><td>Agents ask before acting (SOC 2 CC7.2)</td><td>decision.recorded, one for each request, signed</td><td><code>python3 verify.py --keys jwks.json .</code></td></tr>
<tr><td>Rules are changed by authorised people (CC8.1, ISO 27001 A.8.32)</td><td>policy.drafted and policy.activated with author, activator and reason</td><td>search <code>events.jsonl</code> for these types</td></tr>
<tr><td>What was done matches what was decided</td><td>receipt.recorded, bound to its decision; conformance says how</td><td><code>views/receipts.csv</code>; rows with <code>violation</code></td></tr>
<tr><td>Records are kept and protected (EU AI Act art. 12, 19; PCI DSS 10.5)</td><td>hash chain, Merkle tree, signed checkpoint {{if .M.CheckpointSize}}of {{.M.CheckpointSize}} events{{else}}(none covers these events){{end}}</td><td>keep <code>checkpoint.txt</code> and give it as <code>--pin</code> next time</td></tr>
<tr><td>Access to evidence is recorded</td><td>export.created holds this bundle's manifest</td><td>the next export shows it</td></tr></table>
<p>These records support such controls; whether a control is met is yours to judge.</p>
<h2>Not proven</h2>
<ul><li>that every action the agents took was submitted to the service</li><li>that evidence supplied by a caller is true</li>
<li>the time of any event beyond the order of events: times are the server's clock</li><li>that history was not replaced before you first saw a checkpoint</li></ul>
<p>This report is derived from the events and is no evidence itself.</p></html>
`))
