package bundle_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/tree"
)

// disputed makes a dispute bundle about one purchase. Its functions falsify the ledger or the
// bundle.
type disputed struct {
	history func(list []ledger.Event)               // changes the ledger
	lines   func(lines []ledger.Line) []ledger.Line // changes the lines of the bundle
	say     func(*bundle.Manifest)                  // changes the manifest, which is then signed
	files   func(files map[string][]byte)           // changes the files without a new signature
}

// draw makes the bundle about decision asd_1: decision, approval and receipt, with a decision of
// another purchase between them.
func (d disputed) draw() map[string][]byte {
	var list []ledger.Event
	var hashes []string
	for i, e := range []drawnEvent{{"member", "", "", 0, ""}, {"decision", "needs_review", "k", 0, ""}, {"decision", "deny", "k", 0, ""}, {"approval", "approved", "k", 1, ""}, {"receipt", "conforming", "k", 1, ""}, {"member", "", "", 0, ""}} {
		kind, payload, answer := payloadOf(i, e, hashes)
		hashes = append(hashes, answer.Integrity.RecordHash)
		event := ledger.Event{Position: int64(i) + 1, Tenant: "org_1", Sequence: int64(i) + 1, Stream: "organization", Version: int64(i) + 1, ID: fmt.Sprint("evt_", i), Type: kind,
			SchemaVersion: 1, OccurredUS: firstTime + 1_000_000*int64(i), Actor: "cus_1", Payload: payload, IdemKey: make([]byte, 32), ContentHash: make([]byte, 32)}
		if e.kind != "member" {
			event.KeyID, event.Series, event.Agent, event.Stream, event.Version = signer().KeyID(), e.kind+"/"+e.outcome, "sub_k", fmt.Sprint("decision/asd_", max(i, 1)), 1
		}
		if e.of > 0 {
			event.Stream, event.Version = "decision/asd_1", int64(i)-1
		}
		list = append(list, event)
	}
	number(list)
	if d.history != nil {
		d.history(list)
	}
	for i := range list {
		list[i].PayloadHash = sha256.Sum256(list[i].Payload)
	}
	rehashAll(list)
	var lines []ledger.Line
	var builder tree.Builder
	var leaves []tree.Hash
	for _, e := range list {
		leaves = append(leaves, tree.Leaf(e.Hash))
		builder.Add(tree.Leaf(e.Hash), func(tree.Tile) {})
		if e.Stream == "decision/asd_1" {
			lines = append(lines, ledger.NewLine(e))
		}
	}
	if d.lines != nil {
		lines = d.lines(lines)
	}
	var proofs []bundle.Proof
	for _, l := range lines {
		proofs = append(proofs, bundle.NewProof(bundle.Proof{Position: l.Position}, inclusion(leaves, int(l.Position)-1)))
	}
	m := bundle.Manifest{Schema: bundle.DisputeSchema, ExportID: "exp_1", Origin: origin, Tenant: "org_1", PriorDecisions: map[string]string{},
		FirstSequence: lines[0].Sequence, Count: int64(len(lines)), LastHash: lines[len(lines)-1].Hash, CheckpointSize: builder.Size(),
		Dispute: &bundle.Dispute{Through: int64(len(list)), Streams: []bundle.Stream{{Stream: "decision/asd_1", Events: 3}}}}
	if d.say != nil {
		d.say(&m)
	}
	files := map[string][]byte{"VERIFY.md": standIn, "events.jsonl": must(bundle.Lines(lines)), "proofs/inclusion.jsonl": must(bundle.Lines(proofs)),
		"checkpoint.txt": note(builder.Size(), builder.Root()), "views/dispute.html": []byte("<p>paid</p>")}
	sign(files, m)
	if d.files != nil {
		d.files(files)
	}
	return files
}

// A falsified dispute pack is not valid, whether the attacker has the keys of the service
// (history, lines, say) or not (files).
func TestLiesInADispute(t *testing.T) {
	bothSay(t, liesInADispute())
	r := verified(t, disputed{}.draw(), nil)
	if want := []string{"whole: decision/asd_1: events 1 to 3"}; !slices.Equal(r.Proven, want) {
		t.Errorf("proven: %q", r.Proven)
	}
	if want := []string{"up to position 6: decision/asd_1 has no event after 3"}; !slices.Equal(r.Stated, want) {
		t.Errorf("stated: %q", r.Stated)
	}
}

func liesInADispute() map[string]altered {
	replaced := func(name, old, new string) func(map[string][]byte) {
		return func(files map[string][]byte) {
			changed := strings.Replace(string(files[name]), old, new, 1)
			if changed == string(files[name]) {
				panic(name + " does not have " + old)
			}
			files[name] = []byte(changed)
		}
	}
	return map[string]altered{
		"as it is":             {files: disputed{}.draw()},
		"the page altered":     {files: disputed{files: replaced("views/dispute.html", "paid", "free")}.draw(), reason: "views/dispute.html: hash"},
		"an event altered":     {files: disputed{files: replaced("events.jsonl", "cus_1", "cus_2")}.draw(), reason: "events.jsonl: hash"},
		"the manifest altered": {files: disputed{files: replaced("manifest.json", `"events":3`, `"events":2`)}.draw(), reason: "manifest.json: recordHash"},
		"a file taken out":     {files: disputed{files: func(f map[string][]byte) { delete(f, "views/dispute.html") }}.draw(), reason: "files: views/dispute.html is missing"},
		"a file put in":        {files: disputed{files: func(f map[string][]byte) { f["receipt.txt"] = nil }}.draw(), reason: "files: receipt.txt is not in the manifest"},
		"an actor altered":     {files: disputed{lines: changedLine(1, func(l *ledger.Line) { l.Actor = "cus_2" })}.draw(), reason: "events.jsonl line 2: hash"},
		"a payload altered":    {files: disputed{lines: changedLine(0, func(l *ledger.Line) { p := strings.Replace(*l.Payload, "mcp", "x402", 1); l.Payload = &p })}.draw(), reason: "events.jsonl line 1: payload_hash"},
		"a record altered in a ledger": {files: disputed{history: func(l []ledger.Event) {
			l[1].Payload = []byte(strings.Replace(string(l[1].Payload), `"mcp"`, `"x402"`, 1))
		}}.draw(), reason: "events.jsonl line 1: signature"},
		"a time altered":               {files: disputed{lines: changedLine(2, func(l *ledger.Line) { l.OccurredUS++ })}.draw(), reason: "events.jsonl line 3: hash"},
		"without the decision":         {files: disputed{lines: withoutLine(0)}.draw(), reason: "events.jsonl line 1: version"},
		"without the approval":         {files: disputed{lines: withoutLine(1)}.draw(), reason: "events.jsonl line 2: version"},
		"without the receipt":          {files: disputed{lines: withoutLine(2)}.draw(), reason: "decision/asd_1: event 3 is missing"},
		"fewer events stated":          {files: disputed{say: func(m *bundle.Manifest) { m.Dispute.Streams[0].Events = 2 }}.draw(), reason: "events.jsonl line 3: version"},
		"a payload left out":           {files: disputed{lines: changedLine(1, func(l *ledger.Line) { l.Payload = nil })}.draw(), reason: "events.jsonl line 2: payload"},
		"an event of another purchase": {files: disputed{say: func(m *bundle.Manifest) { m.Dispute.Streams[0].Stream = "decision/asd_2" }}.draw(), reason: "events.jsonl line 1: stream"},
		"two events swapped":           {files: disputed{lines: func(l []ledger.Line) []ledger.Line { l[0], l[1] = l[1], l[0]; return l }}.draw(), reason: "events.jsonl line 1: version"},
		"an event after the head":      {files: disputed{say: func(m *bundle.Manifest) { m.Dispute.Through = 4 }}.draw(), reason: "events.jsonl line 3: pos"},
		"a receipt of another decision": {files: disputed{history: func(l []ledger.Event) {
			_, payload, _ := payloadOf(4, drawnEvent{"receipt", "conforming", "k", 0, ""}, []string{strings.Repeat("ab", 32)})
			l[4].Payload = payload
		}}.draw(), reason: "events.jsonl line 3: decision"},
		"no checkpoint":           {files: disputed{say: func(m *bundle.Manifest) { m.CheckpointSize = 0 }}.draw(), reason: "manifest.json: dispute"},
		"no stream":               {files: disputed{say: func(m *bundle.Manifest) { m.Dispute.Streams = []bundle.Stream{} }}.draw(), reason: "manifest.json: dispute"},
		"a stream twice":          {files: disputed{say: func(m *bundle.Manifest) { m.Dispute.Streams = append(m.Dispute.Streams, m.Dispute.Streams[0]) }}.draw(), reason: "manifest.json: dispute"},
		"a stream without events": {files: disputed{say: func(m *bundle.Manifest) { m.Dispute.Streams[0].Events = 0 }}.draw(), reason: "manifest.json: dispute"},
		"a period":                {files: disputed{say: func(m *bundle.Manifest) { m.Filters.From = onTheDay("15:00:00") }}.draw(), reason: "manifest.json: dispute"},
		"the schema of a history": {files: disputed{say: func(m *bundle.Manifest) { m.Schema = bundle.Schema }}.draw(), reason: "manifest.json: dispute"},
		"without its list":        {files: disputed{say: func(m *bundle.Manifest) { m.Dispute = nil }}.draw(), reason: "manifest.json: dispute"},
		"more events counted":     {files: disputed{say: func(m *bundle.Manifest) { m.Count = 4 }}.draw(), reason: "events.jsonl: count"},
	}
}
