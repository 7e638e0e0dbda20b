package bundle_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// told is a history from which a selection is made, with falsifications by an attacker who has
// every key.
type told struct {
	history []drawnEvent
	filters bundle.Filters
	numbers func(list []ledger.Event)               // changes the events before they are appended
	claim   func(*bundle.Claim)                     // changes the claim
	lines   func(lines []ledger.Line) []ledger.Line // changes the lines of the bundle
	say     func(*bundle.Manifest)                  // changes the manifest
	proofs  func(proofs []bundle.Proof) []bundle.Proof
	state   func(*bundle.Statement)                 // changes the statement; nil means no statement
	open    func([]bundle.Opening) []bundle.Opening // openings of the agent's names; nil means none
	plain   bool                                    // the claim contains the agent's name instead of a commitment
	signs   string                                  // payload type of the claim; empty means the right one
	through int                                     // number of events when the export was requested; 0 means all
}

// drawnEvent describes an event of a history: its kind, outcome and agent. An event of the kind
// "member" has no number. of is the index of the decision of an approval or receipt.
type drawnEvent struct {
	kind, outcome, agent string
	of                   int
	amount               string // amount of a decision in US dollars
}

// theHistory has four denied decisions of agent k, at the seconds 0, 2, 4 and 6.
func theHistory() []drawnEvent {
	return []drawnEvent{{"decision", "deny", "k", 0, ""}, {"decision", "allow", "k", 0, ""}, {"decision", "deny", "k", 0, ""}, {"decision", "deny", "j", 0, ""},
		{"decision", "deny", "k", 0, ""}, {"receipt", "violation", "k", 4, ""}, {"decision", "deny", "k", 0, ""}, {"member", "", "", 0, ""}}
}

// payloadOf signs the record of a drawn event. answer is the envelope that the caller got, with
// the agent's name; a decision's payload has a commitment instead.
func payloadOf(i int, d drawnEvent, hashes []string) (kind string, payload []byte, answer seal.Envelope) {
	at := time.UnixMicro(firstTime + 1_000_000*int64(i)).UTC().Format("2006-01-02T15:04:05.000Z")
	record := map[string]any{"bindingHash": "b", "decisionId": fmt.Sprint("asd_", i), "orgId": "org_1"}
	members := map[string]any{}
	payloadType := "application/vnd.svc.decision.v1+json"
	switch d.kind {
	case "member":
		return "member.added", []byte(`{"memberId":"cus_1"}`), answer
	case "decision":
		record["decision"], record["issuedAt"], record["protocol"] = d.outcome, at, "mcp"
		if d.amount != "" {
			record["normalized"] = map[string]any{"amountUsd": d.amount}
		}
		if d.agent != "" {
			record["subject"] = map[string]any{"agentId": "a-" + d.agent, "runId": "r"}
		}
	case "approval":
		payloadType = "application/vnd.svc.approval.v1+json"
		record["decisionId"], record["decisionRecordHash"], record["verdict"], record["issuedAt"] = fmt.Sprint("asd_", d.of), hashes[d.of], d.outcome, at
	case "receipt":
		payloadType = "application/vnd.svc.assurance-receipt.v1+json"
		record["decisionId"], record["decisionRecordHash"], record["conformance"] = fmt.Sprint("asd_", d.of), hashes[d.of], d.outcome
		record["receiptId"], record["receivedAt"], record["outcome"], record["settlementId"] = fmt.Sprint("rcp_", i), at, "fulfilled", "0xfeed"
	}
	answer = must(signer().Sign(payloadType, record))
	members["record"], members["integrity"] = answer.Record, answer.Integrity
	if d.kind == "decision" && d.agent != "" {
		stored := canon.Put(answer.Record, []byte(must(nameOf("", "", "a-"+d.agent).Commitment())), "subject", "agentId")
		members["record"] = jsontext.Value(stored)
		members["sealed"] = map[string]any{"keyId": "sub_" + d.agent, "signature": must(signer().SignCanonical(seal.TypeCommitted, stored)).Integrity.Signature}
	}
	return d.kind + ".recorded", must(canon.Marshal(members)), answer
}

// draw returns the files of the bundle.
func (o told) draw() map[string][]byte {
	if o.history == nil {
		o.history = theHistory()
	}
	if o.filters == (bundle.Filters{}) {
		o.filters = bundle.Filters{Agent: "a-k", Decision: "deny", From: onTheDay("15:00:01"), To: onTheDay("15:00:05")}
	}
	var list []ledger.Event
	var hashes []string
	for i, d := range o.history {
		kind, payload, answer := payloadOf(i, d, hashes)
		hashes = append(hashes, answer.Integrity.RecordHash)
		e := ledger.Event{Position: int64(i) + 1, Tenant: "org_1", Sequence: int64(i) + 1, Stream: fmt.Sprint("decision/asd_", i), Version: 1, ID: fmt.Sprint("evt_", i), Type: kind,
			SchemaVersion: 1, OccurredUS: firstTime + 1_000_000*int64(i), Actor: "cus_1", Payload: payload, PayloadHash: sha256.Sum256(payload), IdemKey: make([]byte, 32), ContentHash: make([]byte, 32)}
		if d.kind == "receipt" || d.kind == "approval" {
			e.Stream, e.Version = fmt.Sprint("decision/asd_", d.of), 2
		}
		if d.kind != "member" {
			e.KeyID, e.Series = signer().KeyID(), d.kind+"/"+d.outcome
		}
		if d.agent != "" {
			e.Agent = "sub_" + d.agent
		}
		list = append(list, e)
	}
	number(list)
	if o.numbers != nil {
		o.numbers(list)
	}
	rehashAll(list)
	if o.through == 0 {
		o.through = len(list)
	}
	m := bundle.Manifest{Schema: bundle.SelectionSchema, ExportID: "exp_1", Origin: origin, Tenant: "org_1", PriorDecisions: map[string]string{}, Filters: o.filters,
		Selection: &bundle.Selection{Through: int64(o.through)}}
	if o.filters.Agent != "" {
		m.Selection.Agent = "sub_k"
	}
	from, to, _ := o.filters.Period()
	var lines []ledger.Line
	for _, series := range o.filters.Series() {
		r := bundle.Range{Series: series, First: 1}
		for _, e := range list[:o.through] {
			n := e.SeriesN
			if m.Selection.Agent != "" {
				n = e.AgentN
			}
			if e.Series != series || m.Selection.Agent != "" && e.Agent != m.Selection.Agent {
				continue
			}
			r.Newest, r.NewestHash = n, e.Hash.String()
			line := ledger.NewLine(e)
			switch {
			case e.OccurredUS < from:
				r.First, r.Last = n+1, n
				lines = slices.DeleteFunc(lines, func(l ledger.Line) bool { return l.Series == series })
				line.Payload = nil
			case to > 0 && e.OccurredUS >= to:
				if n != r.Last+1 {
					continue
				}
				line.Payload = nil
			default:
				r.Last = n
			}
			lines = append(lines, line)
		}
		m.Selection.Series = append(m.Selection.Series, r)
	}
	for _, e := range list[:o.through] {
		if e.Type == "receipt.recorded" && slices.ContainsFunc(lines, func(l ledger.Line) bool { return l.Stream == e.Stream && l.Payload != nil }) && !o.filters.Receipts {
			lines = append(lines, ledger.NewLine(e))
		}
	}
	claim := bundle.Claim{Schema: bundle.ClaimSchema, ExportID: "exp_1", Tenant: "org_1", Filters: o.filters, Agent: m.Selection.Agent, Through: m.Selection.Through, IssuedAt: "2026-11-20T15:00:30.000Z"}
	for _, r := range m.Selection.Series {
		claim.Series = append(claim.Series, bundle.Newest{Series: r.Series, Newest: r.Newest, Hash: r.NewestHash})
	}
	if o.claim != nil {
		o.claim(&claim)
	}
	last := list[len(list)-1]
	list = append(list, claimEvent(last, claim, cmp.Or(o.signs, bundle.ClaimType), o.plain))
	rehashAll(list)
	m.Selection.Claim = int64(len(list))
	lines = append(lines, ledger.NewLine(list[len(list)-1]))
	slices.SortFunc(lines, func(a, b ledger.Line) int { return int(a.Position - b.Position) })
	if o.lines != nil {
		lines = o.lines(lines)
	}
	var builder tree.Builder
	var leaves []tree.Hash
	for _, e := range list {
		leaves = append(leaves, tree.Leaf(e.Hash))
		builder.Add(tree.Leaf(e.Hash), func(tree.Tile) {})
	}
	var proofs []bundle.Proof
	for _, l := range lines {
		if l.Payload == nil {
			m.Withheld++
		}
		proofs = append(proofs, bundle.NewProof(bundle.Proof{Position: l.Position}, inclusion(leaves, int(l.Position)-1)))
	}
	if o.proofs != nil {
		proofs = o.proofs(proofs)
	}
	m.FirstSequence, m.Count, m.LastHash, m.CheckpointSize = lines[0].Sequence, int64(len(lines)), lines[len(lines)-1].Hash, builder.Size()
	if o.state != nil {
		tally := bundle.NewTally()
		for _, l := range lines {
			if l.Payload != nil {
				tally.Add(l.Type, l.Series, []byte(*l.Payload))
			}
		}
		said := tally.Statement()
		m.Statement = &said
		o.state(m.Statement)
	}
	if o.say != nil {
		o.say(&m)
	}
	files := map[string][]byte{"VERIFY.md": standIn, "events.jsonl": must(bundle.Lines(lines)), "proofs/inclusion.jsonl": must(bundle.Lines(proofs)),
		"checkpoint.txt": note(builder.Size(), builder.Root())}
	if o.open != nil {
		var openings []bundle.Opening
		for _, l := range lines {
			if l.Payload != nil && l.Type == "decision.recorded" {
				openings = append(openings, nameOf(l.ID, "/record/subject/agentId", "a-"+strings.TrimPrefix(l.Agent, "sub_")))
			}
		}
		openings = append(openings, nameOf("evt_claim", "/record/filters/agent", o.filters.Agent))
		files["openings.jsonl"] = must(bundle.Lines(o.open(openings)))
	}
	sign(files, m)
	return files
}

// nameOf returns the opening of an agent's name. The salt is always the same.
func nameOf(eventID, pointer, agent string) bundle.Opening {
	return bundle.Opening{EventID: eventID, Pointer: pointer, Salt: strings.Repeat("07", 32), Value: string(must(canon.Marshal(agent)))}
}

func claimEvent(last ledger.Event, claim bundle.Claim, payloadType string, plain bool) ledger.Event {
	envelope := must(signer().Sign(payloadType, claim))
	record := envelope.Record
	members := map[string]any{"integrity": envelope.Integrity, "record": record, "verifyUrl": "u"}
	if claim.Filters.Agent != "" && !plain {
		record = canon.Put(record, []byte(must(nameOf("", "", claim.Filters.Agent).Commitment())), "filters", "agent")
		committed := must(signer().SignCanonical(seal.TypeCommitted, record))
		members["record"], members["sealed"] = jsontext.Value(record), map[string]any{"keyId": claim.Agent, "signature": committed.Integrity.Signature}
	}
	payload := must(canon.Marshal(members))
	return ledger.Event{Position: last.Position + 1, Tenant: "org_1", Sequence: last.Sequence + 1, Stream: "export/exp_1", Version: 1, ID: "evt_claim", Type: "export.requested", SchemaVersion: 1,
		OccurredUS: last.OccurredUS + 1_000_000, Actor: "operator", KeyID: signer().KeyID(), Payload: payload, PayloadHash: sha256.Sum256(payload), IdemKey: make([]byte, 32), ContentHash: make([]byte, 32),
		Series: "export", SeriesN: 1}
}

// number sets the numbers of events in their series.
func number(list []ledger.Event) {
	last := map[string]int64{}
	for i := range list {
		e := &list[i]
		if e.Series == "" {
			continue
		}
		last[e.Series]++
		if e.SeriesN = last[e.Series]; e.Agent != "" {
			last[e.Series+e.Agent]++
			e.AgentN = last[e.Series+e.Agent]
		}
	}
}

// rehashAll links and hashes events whose numbers are set. If the previous number does not exist,
// the link is all zeros.
func rehashAll(list []ledger.Event) {
	hashes := map[string]ledger.Hash{}
	prev := ledger.Hash(ledger.Genesis(origin, "org_1"))
	link := func(name string, n int64) []byte {
		if n < 2 {
			return nil
		}
		hash := hashes[fmt.Sprint(name, " ", n-1)]
		return hash[:]
	}
	for i := range list {
		e := &list[i]
		e.SeriesPrev, e.AgentPrev, e.Prev = link(e.Series, e.SeriesN), link(e.Series+"/"+e.Agent, e.AgentN), prev
		e.Hash = e.Sum()
		prev = e.Hash
		hashes[fmt.Sprint(e.Series, " ", e.SeriesN)], hashes[fmt.Sprint(e.Series+"/"+e.Agent, " ", e.AgentN)] = e.Hash, e.Hash
	}
}

func withoutLine(at int) func([]ledger.Line) []ledger.Line {
	return func(lines []ledger.Line) []ledger.Line { return slices.Delete(lines, at, at+1) }
}

// changedLine changes a line of the bundle of theHistory: lines 0, 1, 2 and 4 are the numbers 1 to
// 4, line 3 is the receipt, line 5 the claim.
func changedLine(at int, change func(*ledger.Line)) func([]ledger.Line) []ledger.Line {
	return func(lines []ledger.Line) []ledger.Line { change(&lines[at]); return lines }
}

// The attacker has every key. A selection cannot reveal some falsifications. A selection with one
// of these is valid here, but the audit of the database or an export of the whole history finds
// it.
func TestLiesInASelection(t *testing.T) { bothSay(t, liesInASelection()) }

func liesInASelection() map[string]altered {
	const series = "decision/deny of agent sub_k: "
	payload := func(lines []ledger.Line) []ledger.Line {
		all := draws(told{filters: bundle.Filters{Agent: "a-k", Decision: "deny"}})
		lines[0].Payload = all[0].Payload
		return lines
	}
	deny := bundle.Filters{Agent: "a-k", Decision: "deny"}
	later := func(lines []ledger.Line) []ledger.Line { // adds the receipt, which is after the request
		return slices.Insert(lines, 3, draws(told{filters: deny})[3])
	}
	return map[string]altered{
		"an event after the request":             {files: told{through: 5, filters: deny, lines: later}.draw(), reason: "events.jsonl line 4: pos"},
		"as it is":                               {files: told{}.draw()},
		"of every outcome":                       {files: told{filters: bundle.Filters{Agent: "a-k"}}.draw()},
		"of the tenant":                          {files: told{filters: bundle.Filters{Decision: "deny"}}.draw()},
		"with receipts":                          {files: told{filters: bundle.Filters{Agent: "a-k", Receipts: true}}.draw()},
		"an empty period":                        {files: told{filters: bundle.Filters{Agent: "a-k", Decision: "deny", From: onTheDay("15:00:03"), To: onTheDay("15:00:04")}}.draw()},
		"an open end without numbers":            {files: told{filters: bundle.Filters{Agent: "a-k", Decision: "deny", From: onTheDay("15:00:20")}}.draw()},
		"asked for in the middle":                {files: told{through: 5, filters: bundle.Filters{Agent: "a-k", Decision: "deny"}}.draw()},
		"an event dropped":                       {files: told{lines: func(l []ledger.Line) []ledger.Line { return slices.Delete(l, 2, 4) }}.draw(), reason: series + "3 is missing"},
		"an event dropped, and its receipt left": {files: told{lines: withoutLine(2)}.draw(), reason: "events.jsonl line 3: decision"},
		"its beginning cut":                      {files: told{lines: withoutLine(1)}.draw(), reason: series + "2 is missing"},
		"without the one before":                 {files: told{lines: withoutLine(0)}.draw(), reason: series + "1 is missing"},
		"without the one after":                  {files: told{lines: withoutLine(4)}.draw(), reason: series + "4 is missing"},
		"without the claim":                      {files: told{lines: withoutLine(5)}.draw(), reason: "events.jsonl: claim"},
		"without a receipt":                      {files: told{lines: withoutLine(3)}.draw()},
		"an event edited":                        {files: told{lines: changedLine(1, func(l *ledger.Line) { l.Actor = "cus_2" })}.draw(), reason: "events.jsonl line 2: hash"},
		"two events swapped":                     {files: told{lines: func(l []ledger.Line) []ledger.Line { l[1], l[2] = l[2], l[1]; return l }}.draw(), reason: series + "2 is missing"},
		"the one before shown in the period":     {files: told{say: func(m *bundle.Manifest) { m.Filters.From = onTheDay("15:00:00") }}.draw(), reason: series + "1 is not earlier"},
		"the one after is in the period":         {files: told{say: func(m *bundle.Manifest) { m.Filters.To = onTheDay("15:00:07") }}.draw(), reason: series + "4 is not later"},
		"a period that begins later":             {files: told{say: func(m *bundle.Manifest) { m.Filters.From = onTheDay("15:00:03") }}.draw(), reason: series + "2 is not in the period"},
		"a period trimmed at its beginning":      {files: told{say: func(m *bundle.Manifest) { m.Selection.Series[0].First = 3 }}.draw(), reason: series + "1 does not follow 1"},
		"a period trimmed at its end":            {files: told{say: func(m *bundle.Manifest) { m.Selection.Series[0].Last = 2 }}.draw(), reason: series + "3 is not later"},
		"an open end trimmed":                    {files: told{filters: bundle.Filters{Agent: "a-k", Decision: "deny"}, lines: withoutLine(4), say: func(m *bundle.Manifest) { m.Selection.Series[0].Last = 3 }}.draw(), reason: series + "4 is missing"},
		"the newest hidden, and the claim honest": {files: told{filters: bundle.Filters{Agent: "a-k", Decision: "deny"}, lines: withoutLine(4),
			say: func(m *bundle.Manifest) { m.Selection.Series[0].Last, m.Selection.Series[0].Newest = 3, 3 }}.draw(), reason: series + "3 is not the newest that was claimed"},
		"the newest hidden by the claim, too": {files: told{through: 6, filters: bundle.Filters{Agent: "a-k", Decision: "deny"}}.draw()}, // any later export or kept answer contradicts it
		"another newest in the claim":         {files: told{claim: func(c *bundle.Claim) { c.Series[0].Newest = 9 }}.draw(), reason: "events.jsonl line 6: claim"},
		"another agent in the claim":          {files: told{claim: func(c *bundle.Claim) { c.Agent = "sub_j" }}.draw(), reason: "events.jsonl line 6: claim"},
		"other filters in the claim":          {files: told{claim: func(c *bundle.Claim) { c.Filters.From = "" }}.draw(), reason: "events.jsonl line 6: claim"},
		"a claim about no agent":              {files: told{claim: func(c *bundle.Claim) { c.Filters.Agent = "" }}.draw(), reason: "events.jsonl line 6: claim"},
		"a claim about an agent":              {files: told{filters: bundle.Filters{Decision: "deny"}, claim: func(c *bundle.Claim) { c.Filters.Agent = "a-k" }}.draw(), reason: "events.jsonl line 7: claim"},
		"a claim that is another record":      {files: told{signs: bundle.PayloadType}.draw(), reason: "events.jsonl line 6: claim"},
		"a selection with another member":     {files: selecting("until", 1), reason: "manifest.json: selection"},
		"a selection whose series are a text": {files: selecting("series", "decision/deny"), reason: "manifest.json: selection"},
		"a claim of another export":           {files: told{claim: func(c *bundle.Claim) { c.ExportID = "exp_2" }}.draw(), reason: "events.jsonl line 6: claim"},
		"numbered later again":                {files: told{lines: changedLine(2, func(l *ledger.Line) { l.AgentN = 4 })}.draw(), reason: "events.jsonl line 3: hash"},
		"two events with one number":          {files: told{numbers: func(list []ledger.Event) { list[4].AgentN = 2 }}.draw(), reason: series + "2 does not follow 2"},
		"a number left out":                   {files: told{numbers: func(list []ledger.Event) { list[4].AgentN, list[6].AgentN = 4, 5 }}.draw(), reason: series + "3 is missing"},
		"a link to another event":             {files: told{lines: func(l []ledger.Line) []ledger.Line { return relinked(l, 2) }}.draw(), reason: series + "4 is not the newest that was claimed"},
		"numbered in another series": {files: told{history: func() []drawnEvent {
			h := theHistory()
			h[4].outcome = "allow"
			return h
		}(), numbers: func(list []ledger.Event) { list[4].Series = "decision/deny"; number(list) }}.draw(), reason: series + `3 is a decision "allow"`},
		"numbered in no series": {files: told{numbers: func(list []ledger.Event) {
			list[4].Series, list[4].SeriesN, list[4].Agent, list[4].AgentN = "", 0, "", 0
			number(list)
		}, lines: func(l []ledger.Line) []ledger.Line {
			return slices.DeleteFunc(l, func(l ledger.Line) bool { return l.Type == "receipt.recorded" })
		}}.draw()}, // a whole export and countersign verify find it
		"one agent under two keys": {files: told{history: func() []drawnEvent {
			h := theHistory()
			h[4].agent, h[5].agent = "second", "second"
			return h
		}()}.draw()}, // countersign verify with DATA_KEK finds it
		"an event of another agent": {files: told{lines: func(l []ledger.Line) []ledger.Line {
			return append(l[:1:1], append([]ledger.Line{draws(told{filters: bundle.Filters{Decision: "deny"}})[2]}, l[1:]...)...)
		}}.draw(), reason: "events.jsonl line 2: selection"},
		"a false withheld":                {files: told{say: func(m *bundle.Manifest) { m.Withheld++ }}.draw(), reason: "manifest.json: withheld"},
		"a payload hidden":                {files: told{lines: changedLine(1, func(l *ledger.Line) { l.Payload = nil })}.draw(), reason: series + "2 has no payload"},
		"a payload outside of the period": {files: told{lines: payload}.draw(), reason: series + "1 has a payload, and is outside of the period"},
		"narrowed to a run":               {files: told{filters: bundle.Filters{Agent: "a-k", Decision: "deny", Run: "r"}, lines: changedLine(1, func(l *ledger.Line) { l.Payload = nil })}.draw()},
		"fewer series than the filters":   {files: told{filters: bundle.Filters{Agent: "a-k"}, say: func(m *bundle.Manifest) { m.Selection.Series = m.Selection.Series[1:] }}.draw(), reason: "manifest.json: selection"},
		"no series":                       {files: told{say: func(m *bundle.Manifest) { m.Selection = nil }}.draw(), reason: "manifest.json: selection"},
		"a selection of a whole history":  {files: told{say: func(m *bundle.Manifest) { m.Schema = bundle.Schema }}.draw(), reason: "manifest.json: selection"},
		"no agent":                        {files: told{say: func(m *bundle.Manifest) { m.Selection.Agent = "" }}.draw(), reason: "manifest.json: selection"},
		"a claim that is not covered":     {files: told{say: func(m *bundle.Manifest) { m.Selection.Claim = 20 }}.draw(), reason: "manifest.json: selection"},
		"an agent of two words":           {files: told{say: func(m *bundle.Manifest) { m.Selection.Agent = "sub_k x" }}.draw(), reason: "manifest.json: selection"},
		"without the proof of an event":   {files: told{proofs: func(p []bundle.Proof) []bundle.Proof { return p[1:] }}.draw(), reason: "proofs/inclusion.jsonl: missing"},
		"an event that was not asked for": {files: told{lines: func(l []ledger.Line) []ledger.Line { return append(l[:5:5], memberLine(), l[5]) }}.draw(), reason: "events.jsonl line 6: selection"},
	}
}

// selecting returns a bundle whose member selection has another value of a member.
func selecting(member string, value any) map[string][]byte {
	files := told{}.draw()
	var envelope struct{ Record map[string]any }
	if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
		panic(err)
	}
	envelope.Record["selection"].(map[string]any)[member] = value
	signRecord(files, envelope.Record)
	return files
}

// draws returns the lines of a bundle.
func draws(o told) []ledger.Line { return linesOf(o.draw()) }

func memberLine() ledger.Line {
	var line ledger.Line
	told{lines: func(l []ledger.Line) []ledger.Line { return l }, numbers: nil, say: nil}.each(func(e ledger.Event) {
		if e.Type == "member.added" {
			line = ledger.NewLine(e)
		}
	})
	return line
}

// each calls f for each event of the history.
func (o told) each(f func(ledger.Event)) {
	o.numbers = nil
	var kept []ledger.Event
	o.numbers = func(list []ledger.Event) { kept = list }
	o.draw()
	for _, e := range kept {
		f(e)
	}
}

// relinked gives a line another link and the matching hash.
func relinked(lines []ledger.Line, at int) []ledger.Line {
	e, _ := lines[at].Event()
	sum := sha256.Sum256([]byte("x"))
	e.SeriesPrev = sum[:]
	e.Hash = e.Sum()
	lines[at] = ledger.NewLine(e)
	next, _ := lines[len(lines)-2].Event()
	next.AgentPrev = e.Hash[:]
	next.Hash = next.Sum()
	withheld := lines[len(lines)-2].Payload == nil
	lines[len(lines)-2] = ledger.NewLine(next)
	if withheld {
		lines[len(lines)-2].Payload = nil
	}
	return lines
}

// The result lists what a selection proves, and what is only stated by the service.
func TestWhatASelectionProves(t *testing.T) {
	deny := bundle.Filters{Agent: "a-k", Decision: "deny"}
	period := func(from, to string) bundle.Filters {
		f := deny
		f.From, f.To = onTheDay(from), onTheDay(to)
		return f
	}
	for name, c := range map[string]struct {
		told           told
		proven, stated string
	}{
		"between two numbers": {told{}, "complete: decision/deny of agent sub_k: 2 to 3, 2026-11-20T15:00:01Z to 2026-11-20T15:00:05Z (1 is earlier, 4 is later)", ""},
		"none between two":    {told{filters: period("15:00:03", "15:00:04")}, "none: decision/deny of agent sub_k, 2026-11-20T15:00:03Z to 2026-11-20T15:00:04Z (2 is earlier, 3 is later)", ""},
		"to the end":          {told{filters: deny}, "without a gap: decision/deny of agent sub_k: 1 to 4", "at position 9: decision/deny of agent sub_k: 4 is the newest up to 8"},
		"nothing at the end":  {told{filters: period("15:00:20", "")}, "", "at position 9: decision/deny of agent sub_k: 4 is the newest up to 8"},
		"never":               {told{filters: bundle.Filters{Decision: "needs_review"}}, "", "at position 9: decision/needs_review: no number was ever given up to 8"},
	} {
		r := verified(t, c.told.draw(), nil)
		if !r.Valid || strings.Join(r.Proven, "|") != c.proven || strings.Join(r.Stated, "|") != c.stated {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A pin reveals if another reader was shown another event as the newest of a series, or if this
// reader was shown a higher number before.
func TestAPinKeepsTheNewestOfASeries(t *testing.T) {
	files := told{filters: bundle.Filters{Agent: "a-k", Decision: "deny"}}.draw()
	r := verified(t, files, files["checkpoint.txt"])
	if !r.Valid || !strings.Contains(string(r.Pin), "\norg_1 decision/deny sub_k 4 ") || !strings.Contains(string(r.Pin), "\norg_1 9 ") {
		t.Fatalf("the pin is %s: %+v", r.Pin, r)
	}
	if again := verified(t, files, r.Pin); !again.Valid {
		t.Errorf("with its own pin: %+v", again)
	}
	bothSay(t, pinnedSeries(r.Pin))
}

// pinnedSeries returns a selection with several pins, and the verdicts. seen is the pin after a
// verification of the selection.
func pinnedSeries(seen []byte) map[string]altered {
	whole := told{filters: bundle.Filters{Agent: "a-k", Decision: "deny"}}
	kept := must(checkpoint.ParsePin(seen))
	name := checkpoint.SeriesName("org_1", "decision/deny", "sub_k")
	pin := func(number int64, hash string) []byte {
		kept.Tenants = map[string]checkpoint.Seen{name: {Sequence: number, Hash: hash}}
		return kept.Text()
	}
	hash := strings.Repeat("ab", 32)
	return map[string]altered{
		"the same":                  {files: whole.draw(), pin: pin(4, kept.Tenants[name].Hash)},
		"another newest":            {files: whole.draw(), pin: pin(4, hash), reason: "pin: FORK: decision/deny of agent sub_k: 4 is not the event you have seen"},
		"another one in the middle": {files: whole.draw(), pin: pin(2, hash), reason: "pin: FORK: decision/deny of agent sub_k: 2 is not the event you have seen"},
		"more was seen":             {files: whole.draw(), pin: pin(7, hash), reason: "pin: ROLLBACK: decision/deny of agent sub_k: 4 is the newest, and you have seen 7"},
	}
}
