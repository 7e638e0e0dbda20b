package views

import (
	"bytes"
	"html/template"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/policy/canon"
)

// disputeStage is one step of a purchase, with the members of events to show in it.
type disputeStage struct {
	Title string
	of    []disputeSource
	Parts []disputePart // filled from the events
}

// disputeSource lists members of one type of event. A row has a label and the path of the member,
// with dots between the names.
type disputeSource struct {
	eventType string
	rows      [][2]string
}

// disputePart is an event shown in a stage.
type disputePart struct {
	Type, ID, Stream, At, Hash string
	Version, Position          int64
	Rows                       [][2]string
}

// disputeStages lists the steps of a purchase in order. For a decision they show what the
// organization's agent requested and reported; for a payment, what this service offered, received
// and answered.
func disputeStages() []disputeStage {
	claimed, decided, received := events.TypePaymentClaimed, events.TypeDecisionRecorded, events.TypeReceiptRecorded
	return []disputeStage{
		{Title: "Offer", of: []disputeSource{
			{decided, [][2]string{{"protocol", "record.protocol"}, {"intent as it was sent", "record.intent"}, {"hash of the action", "record.assuranceActionHash"}}},
			{claimed, [][2]string{{"operation", "operation"}, {"price in cents", "priceCents"}, {"amount in the smallest unit", "amount"}, {"asset", "asset"}, {"network", "network"}, {"pay to", "payTo"}, {"hash of the request", "requestHash"}}}}},
		{Title: "Decision", of: []disputeSource{
			{decided, [][2]string{{"decision", "record.decision"}, {"decision id", "record.decisionId"}, {"issued", "record.issuedAt"}, {"valid until", "record.validUntil"}, {"agent", "record.subject.agentId"}, {"run", "record.subject.runId"}, {"purpose", "record.subject.purpose"},
				{"policy", "record.policy.policyId"}, {"policy version", "record.policy.version"}, {"policy hash", "record.policy.policyHash"}, {"findings", "record.findings"}, {"binding hash", "record.bindingHash"}, {"record hash", "integrity.recordHash"}}}}},
		{Title: "Approval", of: []disputeSource{
			{events.TypeApprovalRecorded, [][2]string{{"verdict", "record.verdict"}, {"approval id", "record.approvalId"}, {"reviewer", "record.approvedBy"}, {"reason", "record.reason"}, {"issued", "record.issuedAt"}, {"valid until", "record.validUntil"}, {"record hash", "integrity.recordHash"}}}}},
		{Title: "Authorization", of: []disputeSource{
			{claimed, [][2]string{{"payment id", "paymentId"}, {"payer", "payer"}, {"nonce", "nonce"}, {"signature", "signature"}, {"valid after", "validAfter"}, {"valid before", "validBefore"}, {"payment identifier", "identifier"}, {"payload as it was sent", "payload"}, {"mode", "mode"}}}}},
		{Title: "Settlement", of: []disputeSource{
			{events.TypePaymentUnknown, [][2]string{{"not known yet", "reason"}, {"transaction", "transaction"}}},
			{events.TypePaymentSettled, [][2]string{{"transaction", "transaction"}, {"payer", "payer"}, {"mode", "mode"}, {"evidence", "evidence"}}},
			{events.TypePaymentRefused, [][2]string{{"refused", "reason"}, {"mode", "mode"}, {"evidence", "evidence"}}},
			{received, [][2]string{{"settlement id, as the agent reported it", "record.settlementId"}}}}},
		{Title: "Answer", of: []disputeSource{
			{events.TypeCallCompleted, [][2]string{{"service", "service"}, {"version", "version"}, {"hash of the input", "inputHash"}, {"hash of the answer", "outputHash"}}},
			{events.TypePurchaseFulfilled, [][2]string{{"product", "product"}, {"purchase id", "purchaseId"}}},
			{events.TypeDownloadConsumed, [][2]string{{"product", "product"}, {"SHA-256 of the file", "fileHash"}}},
			{received, [][2]string{{"status, as the agent reported it", "record.responseStatus"}, {"hash of the body", "record.responseBodyHash"}}}}},
		{Title: "Receipt", of: []disputeSource{
			{events.TypeCallCompleted, [][2]string{{"receipt id", "record.receiptId"}, {"record hash", "integrity.recordHash"}}},
			{received, [][2]string{{"conformance", "record.conformance"}, {"outcome", "record.outcome"}, {"receipt id", "record.receiptId"}, {"observed", "record.observedAt"}, {"received", "record.receivedAt"}, {"findings", "record.findings"}, {"hashes of evidence", "record.evidenceHashes"}, {"record hash", "integrity.recordHash"}}}}},
		{Title: "Refund", of: []disputeSource{
			{events.TypeRefundRequested, [][2]string{{"requested: amount", "amount"}, {"asset", "asset"}, {"network", "network"}, {"to", "to"}, {"cause", "cause"}, {"hash on record", "recordedOutputHash"}, {"hash computed again", "recomputedOutputHash"}}},
			{events.TypeRefundApproved, [][2]string{{"approved: payment id", "paymentId"}, {"reason", "reason"}}},
			{events.TypeRefundSent, [][2]string{{"sent: transaction", "transaction"}}}}},
	}
}

// sent contains the members whose text an agent or a member of the organization wrote.
var sent = map[string]bool{"record.intent": true, "record.subject.agentId": true, "record.subject.runId": true, "record.subject.purpose": true, "record.findings": true,
	"record.reason": true, "record.settlementId": true, "payload": true, "identifier": true}

// disputing writes the page about a purchase. For each event it shows the members that a reader
// needs to follow the purchase.
type disputing struct {
	to     io.Writer
	stages []disputeStage
}

// Add adds an event to each stage in which it is shown.
func (d *disputing) Add(e forms.Event) error {
	for i := range d.stages {
		for _, source := range d.stages[i].of {
			if source.eventType != e.Type {
				continue
			}
			part := disputePart{Type: e.Type, ID: e.ID, Stream: e.Stream, Version: e.Version, Position: e.Position, At: e.Occurred().UTC().Format(exactTime), Hash: e.Hash.String()}
			for _, row := range source.rows {
				value := memberText(e.Opened, row[1])
				if value != "" && sent[row[1]] {
					value = said(value)
				}
				if value != "" {
					part.Rows = append(part.Rows, [2]string{row[0], value})
				}
			}
			if len(part.Rows) > 0 {
				d.stages[i].Parts = append(d.stages[i].Parts, part)
			}
		}
	}
	return nil
}

// Close implements view.
func (d *disputing) Close(m bundle.Manifest) error {
	return disputeTemplate.Execute(d.to, struct {
		Manifest bundle.Manifest
		Stages   []disputeStage
	}{m, d.stages})
}

const exactTime = "2006-01-02T15:04:05.000000Z"

// memberText returns a member of a canonical text for display: a string without its quotes, and an
// empty text for null. If the bundle does not show a personal member, the text has a commitment,
// and memberText says so.
func memberText(text []byte, path string) string {
	names := strings.Split(path, ".")
	start, end, found := canon.Find(text, names...)
	if !found {
		return ""
	}
	value := jsontext.Value(text[start:end])
	switch {
	case value.Kind() == 'n' || string(value) == "[]":
		return ""
	case bytes.HasPrefix(value, []byte(events.Committed)):
		return "(personal, not shown)"
	case value.Kind() != '"':
		return string(value)
	}
	var said string
	_ = json.Unmarshal(value, &said) // cannot fail: it is a string
	if seconds, err := strconv.ParseInt(said, 10, 64); err == nil && strings.HasPrefix(names[len(names)-1], "valid") {
		return said + " (" + time.Unix(seconds, 0).UTC().Format(time.RFC3339) + ")"
	}
	return said
}

var disputeTemplate = template.Must(template.New("dispute").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Dispute pack {{.Manifest.ExportID}}</title>
<style>body{font:11pt/1.5 serif;max-width:52em;margin:2em auto;padding:0 1em;color:#111}h1{font-size:1.6em}h2{font-size:1.2em;margin-top:1.6em;border-bottom:1px solid #999}
table{border-collapse:collapse;width:100%;margin-bottom:1em}td,th{text-align:left;border-bottom:1px solid #ddd;padding:.2em .6em .2em 0;vertical-align:top;font-weight:normal}th{width:14em}code{font-size:.9em;overflow-wrap:anywhere}@media print{body{margin:0}}</style>
<main><h1>One purchase or tool call, as the ledger has it</h1>
<p>Pack <code>{{.Manifest.ExportID}}</code> of ledger <code>{{.Manifest.Origin}}</code>, tenant <code>{{.Manifest.Tenant}}</code>, up to position {{.Manifest.Dispute.Through}}. All times are UTC.</p>
<p>It has every event of {{range $i, $s := .Manifest.Dispute.Streams}}{{if $i}}, {{end}}<code>{{$s.Stream}}</code> ({{$s.Events}}){{end}}.</p>
` + unverified + `
{{range .Stages}}<h2>{{.Title}}</h2>
{{range .Parts}}<table>{{range .Rows}}<tr><th>{{index . 0}}</th><td><code>{{index . 1}}</code></td></tr>
{{end}}<tr><th>recorded</th><td>{{.At}}</td></tr>
<tr><th>event</th><td>{{.Type}} <code>{{.ID}}</code>, event {{.Version}} of <code>{{.Stream}}</code>, position {{.Position}}</td></tr>
<tr><th>event hash</th><td><code>{{.Hash}}</code></td></tr></table>
{{else}}<p>Nothing is recorded.</p>
{{end}}{{end}}<h2>How to check it</h2>
<p><code>countersign verify FOLDER --keys jwks.json</code> or, without a program of ours, <code>python3 verify.py --keys jwks.json FOLDER</code>. Take jwks.json from <code>/.well-known/jwks.json</code> of the service.</p>
<p>This proves that the service signed these records, that these events are in its ledger in this order, and that none between them is left out. It does not prove that what a caller reported is true, that a transaction is on a chain (look it up there), or when an event happened: only the order of events is proven.</p>
<p>Personal members that were erased, or that this pack leaves out, are not shown; the ids of their events are in <code>redactions.jsonl</code>.</p>
<p>This page is derived from the events in <code>events.jsonl</code>, which are the evidence.</p></main></html>
`))
