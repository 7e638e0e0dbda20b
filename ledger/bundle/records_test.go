package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// withoutSignature removes the signature of a record, as an attacker without a record key would.
func withoutSignature(e *ledger.Event) {
	members := must(canon.Members(e.Payload))
	delete(members, "integrity")
	e.Payload = canon.Object(members)
	e.KeyID, e.PayloadHash = "", sha256.Sum256(e.Payload)
}

// withMember changes a member of the payload of a line.
func withMember(l *ledger.Line, name string, change func(jsontext.Value) jsontext.Value) {
	members := must(canon.Members([]byte(*l.Payload)))
	members[name] = change(members[name])
	text := string(canon.Object(members))
	l.Payload = &text
}

// The attacker can write the ledger, the files and the manifest, and has the keys of checkpoints
// and manifests. Each decision, approval and receipt must still have its own signature, and a
// number in the series of its agent.
func TestLiesInRecords(t *testing.T) { bothSay(t, liesInRecords()) }

func liesInRecords() map[string]altered {
	of := func(i int, change func(*ledger.Line)) map[string][]byte {
		return withLines(func(lines []ledger.Line) []ledger.Line { change(&lines[i]); return lines })
	}
	unsigned := func(l *ledger.Line) {
		e, _ := l.Event()
		withoutSignature(&e)
		*l = ledger.NewLine(e)
	}
	replace := func(old, new string) func(jsontext.Value) jsontext.Value {
		return func(value jsontext.Value) jsontext.Value {
			return jsontext.Value(strings.Replace(string(value), old, new, 1))
		}
	}
	return map[string]altered{
		"a decision without a signature": {files: of(1, unsigned), reason: "events.jsonl line 2: record"},
		"a receipt without a signature":  {files: of(2, unsigned), reason: "events.jsonl line 3: record"},
		"a receipt of another agent":     {files: of(2, func(l *ledger.Line) { l.Agent = "j" }), reason: "events.jsonl line 3: agent"},
		"a receipt of no agent":          {files: of(2, func(l *ledger.Line) { l.Agent, l.AgentN = "", 0 }), reason: "events.jsonl line 3: agent"},
		"an erasure of an agent": {files: of(3, func(l *ledger.Line) {
			l.Type, l.Series, l.SeriesN, l.Agent, l.AgentN = "subject.erased", "erasure", 1, "k", 1
		}), reason: "events.jsonl line 4: agent"},
		"an agent without a data key": {files: of(1, func(l *ledger.Line) {
			withMember(l, "sealed", replace(`"keyId":"k"`, `"keyId":""`))
			l.Agent, l.AgentN = "", 0
		}), reason: "events.jsonl line 2: agent"},
		"a decision in the stream of another": {files: of(1, func(l *ledger.Line) { l.Stream = "decision/asd_2" }), reason: "events.jsonl line 2: stream"},
		"an event of another partition":       {files: of(3, func(l *ledger.Line) { l.P = 1 }), reason: "events.jsonl line 4: p"},
		"a key of an event without a record":  {files: of(0, func(l *ledger.Line) { l.KeyID = "k" }), reason: "events.jsonl line 1: key_id"},
		"a record that is not signed": {files: of(3, func(l *ledger.Line) {
			withMember(l, "record", func(jsontext.Value) jsontext.Value { return jsontext.Value(`{}`) })
		}), reason: "events.jsonl line 4: record"},
		"a hash of another kind": {files: of(2, func(l *ledger.Line) { withMember(l, "integrity", replace(`"sha256"`, `"sha512"`)) }), reason: "events.jsonl line 3: integrity"},
		"another hash of a record": {files: of(2, func(l *ledger.Line) {
			withMember(l, "integrity", func(value jsontext.Value) jsontext.Value {
				return regexp.MustCompile(`"recordHash":"[0-9a-f]{4}`).ReplaceAll(value, []byte(`"recordHash":"abcd`))
			})
		}), reason: "events.jsonl line 3: signature"},
		"the signature of another record": {files: of(2, func(l *ledger.Line) {
			withMember(l, "integrity", func(value jsontext.Value) jsontext.Value {
				other := must(signer().Sign("application/vnd.svc.assurance-receipt.v1+json", map[string]any{"x": 1})).Integrity.Signature
				return regexp.MustCompile(`"signature":"[^"]*"`).ReplaceAllLiteral(value, []byte(`"signature":"`+other+`"`))
			})
		}), reason: "events.jsonl line 3: signature"},
		"an eighth member of integrity": {files: of(2, func(l *ledger.Line) { withMember(l, "integrity", replace(`{`, `{"auditedBy":"x",`)) }), reason: "events.jsonl line 3: integrity"},
		"a false own signature of a record without commitments": {files: of(1, func(l *ledger.Line) {
			record := jsontext.Value(`{"bindingHash":"b","decision":"deny","decisionId":"asd_1","orgId":"org_1","subject":{"agentId":"x"}}`)
			withMember(l, "record", func(jsontext.Value) jsontext.Value { return record })
			withMember(l, "sealed", func(jsontext.Value) jsontext.Value {
				return must(canon.Marshal(map[string]any{"keyId": "k", "signature": must(signer().SignCanonical(seal.TypeCommitted, record)).Integrity.Signature}))
			})
		}), reason: "events.jsonl line 2: signature"},
		"a receipt without a signature in a dispute":   {files: disputed{history: func(l []ledger.Event) { withoutSignature(&l[4]) }}.draw(), reason: "events.jsonl line 3: record"},
		"an approval of another agent in a dispute":    {files: disputed{history: func(l []ledger.Event) { l[3].Agent = "sub_j" }}.draw(), reason: "events.jsonl line 2: agent"},
		"another first sequence of a dispute":          {files: disputed{say: func(m *bundle.Manifest) { m.FirstSequence = 1 }}.draw(), reason: "events.jsonl line 1: tseq"},
		"a receipt without a signature in a selection": {files: told{numbers: func(l []ledger.Event) { withoutSignature(&l[5]) }}.draw(), reason: "events.jsonl line 4: record"},
		"a receipt of another agent in a selection":    {files: told{numbers: func(l []ledger.Event) { l[5].Agent = "sub_j" }}.draw(), reason: "events.jsonl line 4: agent"},
		"another first sequence of a selection":        {files: told{say: func(m *bundle.Manifest) { m.FirstSequence = 2 }}.draw(), reason: "events.jsonl line 1: tseq"},
		"a receipt whose decision is not shown, called prior": {files: told{lines: withoutLine(2), say: func(m *bundle.Manifest) {
			_, _, decision := payloadOf(4, theHistory()[4], nil)
			m.PriorDecisions["asd_4"] = decision.Integrity.RecordHash
		}}.draw(), reason: "events.jsonl line 3: decision"},
	}
}

// Openings and redactions determine what a reader sees of a payload, so a bundle with a false one
// is not valid.
func TestLiesInOpenings(t *testing.T) {
	bothSay(t, liesInOpenings())
	closed, opened := told{}, told{open: func(o []bundle.Opening) []bundle.Opening { return o }}
	named := "that sub_k is the data key of the agent that the filters name (the claim's name is not opened)"
	if r := verified(t, closed.draw(), nil); !slices.Contains(r.Gaps, named) || !slices.Contains(r.Gaps, "the personal members of 3 events (erased, or not shown)") {
		t.Errorf("without openings: %q", r.Gaps)
	}
	if r := verified(t, opened.draw(), nil); slices.Contains(r.Gaps, named) || strings.Contains(strings.Join(r.Gaps, "\n"), "personal members") {
		t.Errorf("with openings: %q", r.Gaps)
	}
}

func liesInOpenings() map[string]altered {
	with := func(name, text string) map[string][]byte {
		files := draw()
		files[name] = []byte(text)
		return signedAnew(files, func(*bundle.Manifest) {})
	}
	opening := string(draw()["openings.jsonl"])
	other := func(old, new string) map[string][]byte {
		return with("openings.jsonl", strings.Replace(opening, old, new, 1))
	}
	// A commitment whose opening is itself a commitment, of which the attacker knows the opening.
	inner := bundle.Opening{EventID: "evt_3", Pointer: "/memberId", Salt: strings.Repeat("01", 32), Value: `"x"`}
	outer := inner
	outer.Value = must(inner.Commitment())
	nested := withLines(func(lines []ledger.Line) []ledger.Line {
		withMember(&lines[3], "memberId", func(jsontext.Value) jsontext.Value { return jsontext.Value(must(outer.Commitment())) })
		return lines
	})
	nested["openings.jsonl"] = must(bundle.Lines([]bundle.Opening{outer, inner}))
	nested = signedAnew(nested, func(*bundle.Manifest) {})
	honest := func(o []bundle.Opening) []bundle.Opening { return o }
	swapped := func(at int) func([]bundle.Opening) []bundle.Opening { // drops the first openings: at is their number
		return func(o []bundle.Opening) []bundle.Opening { return o[at:] }
	}
	mallory := func(m *bundle.Manifest) { m.Filters.Agent = "mallory" }
	// A record with two commitments, of which one is opened or both are.
	two := func(both bool) map[string][]byte {
		name, run := nameOf("evt_1", "/record/subject/agentId", "agent-ü"), nameOf("evt_1", "/record/subject/runId", "r")
		files := withLines(func(lines []ledger.Line) []ledger.Line {
			withMember(&lines[1], "record", func(record jsontext.Value) jsontext.Value {
				record = canon.Put(record, []byte(`"agent-ü"`), "subject", "agentId")
				return canon.Put(record, []byte(`{"agentId":"agent-ü","runId":"r"}`), "subject")
			})
			members := must(canon.Members([]byte(*lines[1].Payload)))
			whole := must(signer().SignCanonical("application/vnd.svc.decision.v1+json", members["record"]))
			stored := canon.Put(members["record"], []byte(must(name.Commitment())), "subject", "agentId")
			stored = canon.Put(stored, []byte(must(run.Commitment())), "subject", "runId")
			members["record"], members["integrity"] = stored, must(canon.Marshal(whole.Integrity))
			members["sealed"] = must(canon.Marshal(map[string]any{"keyId": "k", "signature": must(signer().SignCanonical(seal.TypeCommitted, stored)).Integrity.Signature}))
			text := string(canon.Object(members))
			lines[1].Payload = &text
			return lines[:2]
		})
		opened := []bundle.Opening{name, run}
		if !both {
			opened = opened[:1]
		}
		files["openings.jsonl"] = must(bundle.Lines(opened))
		return signedAnew(files, func(*bundle.Manifest) {})
	}
	const redacted = `{"erased":false,"eventId":"evt_1"}` + "\n"
	return map[string]altered{
		"one of two commitments":                {files: two(false)},
		"both of two commitments":               {files: two(true)},
		"another pointer":                       {files: other("agentId", "runId"), reason: "openings.jsonl line 1: commitment"},
		"a pointer that is none":                {files: other("/record/subject/agentId", "the agent"), reason: "openings.jsonl line 1: commitment"},
		"a pointer without its slash":           {files: other("/record", "xrecord"), reason: "openings.jsonl line 1: commitment"},
		"a pointer in another spelling":         {files: other("agentId", `\\u0061gentId`), reason: "openings.jsonl line 1: commitment"},
		"a value that is no JSON":               {files: other(`"\"agent-ü\""`, `"agent-ü"`), reason: "openings.jsonl line 1: form"},
		"a value with another member":           {files: other(`\"agent-ü\"`, `\"agent-ü\",\"evil\":1`), reason: "openings.jsonl line 1: form"},
		"the same twice":                        {files: with("openings.jsonl", opening+opening), reason: "openings.jsonl line 2: commitment"},
		"an opening of an opening":              {files: nested, reason: "openings.jsonl line 2: commitment"},
		"a redaction":                           {files: with("redactions.jsonl", redacted)},
		"a redaction of no event":               {files: with("redactions.jsonl", strings.Replace(redacted, "evt_1", "evt_9", 1)), reason: "redactions.jsonl line 1: event"},
		"a redaction twice":                     {files: with("redactions.jsonl", redacted+redacted), reason: "redactions.jsonl line 2: event"},
		"a redaction of another form":           {files: with("redactions.jsonl", `{"eventId":"evt_1"}`+"\n"), reason: "redactions.jsonl line 1: form"},
		"an agent":                              {files: told{open: honest}.draw()},
		"another agent in the manifest":         {files: told{open: honest, say: mallory}.draw(), reason: "openings.jsonl line 1: agent"},
		"another agent, and the decisions only": {files: told{open: func(o []bundle.Opening) []bundle.Opening { return o[:1] }, say: mallory}.draw(), reason: "openings.jsonl line 1: agent"},
		"another agent, and the claim only":     {files: told{open: swapped(2), say: mallory}.draw(), reason: "openings.jsonl line 1: agent"},
		"the agent's name in the claim":         {files: told{plain: true}.draw(), reason: "events.jsonl line 6: claim"},
	}
}

// Members of a manifest must have the form that VERIFY.md describes, even if no other check would
// fail.
func TestFormsOfAManifest(t *testing.T) { bothSay(t, formsOfAManifest()) }

func formsOfAManifest() map[string]altered {
	with := func(change func(record map[string]any)) map[string][]byte {
		files := draw()
		var envelope struct{ Record map[string]any }
		if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
			panic(err)
		}
		change(envelope.Record)
		signRecord(files, envelope.Record)
		return files
	}
	filter := func(name string, value any) map[string][]byte {
		return with(func(r map[string]any) { r["filters"] = map[string]any{name: value} })
	}
	nul := draw()
	nul["manifest.json"] = bytes.Replace(nul["manifest.json"], []byte(`"generator":""`), []byte(`"generator":"\u0000"`), 1)
	record := "manifest.json: record"
	return map[string]altered{
		"a larger checkpoint size":          {files: with(func(r map[string]any) { r["checkpointSize"] = 8 }), reason: "checkpoint.txt: size"},
		"a smaller checkpoint size":         {files: with(func(r map[string]any) { r["checkpointSize"] = 6 }), reason: "checkpoint.txt: size"},
		"a first sequence of 0":             {files: with(func(r map[string]any) { r["firstSequence"] = 0 }), reason: record},
		"a prior decision without its hash": {files: with(func(r map[string]any) { r["priorDecisions"] = map[string]any{"asd_9": "x"} }), reason: record},
		"an empty run":                      {files: filter("run", ""), reason: record},
		"an empty bound":                    {files: filter("from", ""), reason: record},
		"the filter receipts":               {files: filter("receipts", true)},
		"U+0000":                            {files: nul, reason: "manifest.json: form"},
	}
}

// The lines of a pin about series are also compared with a whole history.
func TestAPinOfSeriesAndAWholeHistory(t *testing.T) { bothSay(t, pinnedHistories()) }

func pinnedHistories() map[string]altered {
	hash := linesOf(draw())[1].Hash
	pin := func(name string, n int64, hash string) []byte {
		return checkpoint.Pin{Note: draw()["checkpoint.txt"], Tenants: map[string]checkpoint.Seen{name: {Sequence: n, Hash: hash}}}.Text()
	}
	tenant, agent := checkpoint.SeriesName("org_1", "decision/deny", ""), checkpoint.SeriesName("org_1", "decision/deny", "k")
	other := strings.Repeat("ab", 32)
	cases := map[string]altered{
		"the same":                       {pin: pin(agent, 1, hash)},
		"another event":                  {pin: pin(tenant, 1, other), reason: "pin: FORK: decision/deny: 1 is not the event you have seen"},
		"another event of the agent":     {pin: pin(agent, 1, other), reason: "pin: FORK: decision/deny of agent k: 1 is not the event you have seen"},
		"more was seen":                  {pin: pin(agent, 2, other), reason: "pin: ROLLBACK: decision/deny of agent k: 1 is the newest, and you have seen 2"},
		"more was seen of a series":      {pin: pin(checkpoint.SeriesName("org_1", "decision/allow", ""), 2, other), reason: "pin: ROLLBACK: decision/allow: 0 is the newest, and you have seen 2"},
		"more was seen of another one":   {pin: pin(checkpoint.SeriesName("org_2", "decision/allow", ""), 2, other)},
		"more was seen after a period":   {files: cut(0, 5, "15:00:01", "15:00:03"), pin: pin(agent, 2, other)},
		"none is in the last part of it": {files: cut(3, 5, "15:00:04", ""), pin: pin(agent, 2, other)},
	}
	for name, c := range maps.Clone(cases) {
		if c.files == nil {
			c.files = draw()
			cases[name] = c
		}
	}
	return cases
}
