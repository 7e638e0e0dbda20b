package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// answers returns the signed records of a history as the service sent them. 0.json is the answer
// of event 0, and so on.
func answers(history []drawnEvent) fstest.MapFS {
	files := fstest.MapFS{}
	var hashes []string
	o := told{history: history, filters: bundle.Filters{Decision: "deny"}}
	o.each(func(e ledger.Event) {
		i := len(hashes)
		_, _, answer := payloadOf(i, history[i], hashes)
		hashes = append(hashes, answer.Integrity.RecordHash)
		if answer.Record != nil {
			answer.Ledger = &seal.LedgerPosition{Position: e.Position, Tenant: "org_1", Sequence: e.Sequence, EventHash: e.Hash.String()}
			files[fmt.Sprint(i, ".json")] = &fstest.MapFile{Data: must(answer.Canonical())}
		}
	})
	return files
}

// some returns the answers with these indices.
func some(files fstest.MapFS, indices ...int) fstest.MapFS {
	kept := fstest.MapFS{}
	for _, i := range indices {
		kept[fmt.Sprint(i, ".json")] = files[fmt.Sprint(i, ".json")]
	}
	return kept
}

// withoutPlace removes the member ledger from the answers.
func withoutPlace(files fstest.MapFS) fstest.MapFS {
	for _, file := range files {
		members := must(canon.Members(file.Data))
		delete(members, "ledger")
		file.Data = canon.Object(members)
	}
	return files
}

// anotherRecord signs a second record with the same decision id.
func anotherRecord(files fstest.MapFS, name string, path ...string) fstest.MapFS {
	members := must(canon.Members(files[name].Data))
	record := canon.Put(members["record"], []byte(`"another"`), path...)
	envelope := must(signer().SignCanonical("application/vnd.svc.decision.v1+json", record))
	files[name].Data = must(envelope.Canonical())
	return files
}

// keptIn verifies a bundle together with signed answers that a customer has kept.
func keptIn(t *testing.T, files map[string][]byte, kept fstest.MapFS) (bundle.Result, error) {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, files)
	b := must(bundle.Open(t.Context(), folder, nil))
	defer b.Close()
	return bundle.Verify(t.Context(), b, bundle.Trust{Keys: trusted(), With: kept, Pin: files["checkpoint.txt"]}, nil)
}

// Each kept answer that the filters cover is in the export with the same recordHash. An answer
// that they do not cover is reported as a gap; only a missing or different record makes the export
// invalid.
func TestKeptAnswersAreInTheExport(t *testing.T) {
	all := func() fstest.MapFS { return answers(theHistory()) }
	deny := bundle.Filters{Agent: "a-k", Decision: "deny"}
	const here = "kept: the %d kept records that the filters cover are in the export as they were signed"
	const outside = "anything about the %d kept records that the filters and the period do not cover: %s"
	forged := func() fstest.MapFS {
		kept := some(all(), 2)
		kept["2.json"].Data = bytes.Replace(kept["2.json"].Data, []byte(`"deny"`), []byte(`"allow"`), 1)
		return kept
	}
	foreign := func() fstest.MapFS {
		kept := some(all(), 2)
		kept["notes.txt"] = &fstest.MapFile{Data: []byte("call the bank")}
		kept["x/other.json"] = &fstest.MapFile{Data: must(must(signer().Sign("application/vnd.svc.decision.v1+json", map[string]any{"decisionId": "asd_1", "orgId": "org_2"})).Canonical())}
		return kept
	}
	list := func() fstest.MapFS { // put several answers into one file
		kept := all()
		return fstest.MapFS{"all.json": {Data: []byte(`{"decisions":[` + string(kept["2.json"].Data) + `,{"decision":` + string(kept["4.json"].Data) + `,"receipt":` + string(kept["5.json"].Data) + `}]}`)}}
	}
	for name, c := range map[string]struct {
		told        told
		kept        fstest.MapFS
		reason      string
		proven, gap string
	}{
		"all":                                {told{filters: deny}, all(), "", fmt.Sprintf(here, 5), fmt.Sprintf(outside, 2, "1.json, 3.json")},
		"without positions":                  {told{filters: deny}, withoutPlace(all()), "", fmt.Sprintf(here, 5), fmt.Sprintf(outside, 2, "1.json, 3.json")},
		"a period":                           {told{}, all(), "", fmt.Sprintf(here, 3), fmt.Sprintf(outside, 4, "0.json, 1.json, 3.json, 6.json")},
		"asked for in the middle":            {told{filters: deny, through: 4}, some(all(), 0, 4), "", fmt.Sprintf(here, 1), fmt.Sprintf(outside, 1, "4.json")},
		"of the tenant":                      {told{filters: bundle.Filters{Decision: "deny"}}, all(), "", fmt.Sprintf(here, 6), fmt.Sprintf(outside, 1, "1.json")},
		"another run":                        {told{filters: bundle.Filters{Agent: "a-k", Decision: "deny", Run: "s"}, lines: hidden}, some(all(), 0, 5), "", "", fmt.Sprintf(outside, 2, "0.json, 5.json")},
		"other files":                        {told{filters: deny}, foreign(), "", fmt.Sprintf(here, 1), "anything about the 2 kept files without a record of this organization: notes.txt, x/other.json"},
		"one that was changed":               {told{filters: deny}, forged(), "", "", "anything about the 1 kept files whose record no trusted key has signed: 2.json"},
		"several in a file":                  {told{filters: deny}, list(), "", fmt.Sprintf(here, 3), ""},
		"the last one dropped":               {told{filters: deny, history: dropped(6)}, some(all(), 6), "with: 6.json: decision asd_6 is missing", "", ""},
		"dropped, and the claim again":       {told{filters: deny, history: theHistory()[:6]}, some(all(), 6), "with: 6.json: position 7 has another event than its answer says", "", ""},
		"dropped, and no position":           {told{filters: deny, history: dropped(6), numbers: muchLater}, withoutPlace(some(all(), 6)), "with: 6.json: decision asd_6 is missing", "", ""},
		"just before the end":                {told{filters: deny, history: dropped(6)}, withoutPlace(some(all(), 6)), "", "", fmt.Sprintf(outside, 1, "6.json")},
		"several missing":                    {told{filters: deny, history: dropped(4, 5, 6)}, some(all(), 4, 5, 6), "with: 4.json: decision asd_4 is missing (and 1 more)", "", ""},
		"numbered for another agent":         {told{filters: deny, history: renamed(2, "j")}, some(all(), 2), "with: 2.json: decision asd_2 is missing", "", ""},
		"a receipt dropped":                  {told{filters: deny, lines: withoutLine(3)}, some(all(), 5), "with: 5.json: receipt rcp_5 is missing", "", ""},
		"a receipt dropped, by numbers":      {told{filters: bundle.Filters{Agent: "a-k", Receipts: true}, history: dropped(5)}, some(all(), 5), "with: 5.json: receipt rcp_5 is missing", "", ""},
		"a stored record with only its hash": {told{filters: deny, numbers: otherStored}, some(all(), 2), "with: 2.json: decision asd_2 has another recordHash", "", ""},
		"another record with its id":         {told{filters: deny}, anotherRecord(all(), "2.json", "bindingHash"), "with: 2.json: decision asd_2 has another recordHash", "", ""},
		"one of another name":                {told{filters: deny}, anotherRecord(all(), "2.json", "subject", "agentId"), "with: 2.json: decision asd_2 has another recordHash", "", ""},
	} {
		r, err := keptIn(t, c.told.draw(), c.kept)
		if err != nil || r.Reason != c.reason || r.Valid != (c.reason == "") || (r.Pin == nil) == r.Valid {
			t.Errorf("%s: %+v, %v; want %q", name, r, err, c.reason)
			continue
		}
		if said := strings.Join(r.Proven, "|") + "|"; c.reason == "" && (c.proven != "") != strings.Contains(said, "kept: ") || !strings.Contains(said, c.proven+"|") {
			t.Errorf("%s: proven %q; want %q", name, r.Proven, c.proven)
		}
		if said := strings.Join(r.Gaps, "|"); !strings.Contains(said, c.gap) || c.reason == "" && c.gap == "" && strings.Contains(said, "anything about") {
			t.Errorf("%s: not proven %q; want %q", name, r.Gaps, c.gap)
		}
	}
}

// hidden removes every payload except that of the claim, and drops the receipt.
func hidden(lines []ledger.Line) []ledger.Line {
	lines = append(lines[:3:3], lines[4:]...)
	for i := range lines[:len(lines)-1] {
		lines[i].Payload = nil
	}
	return lines
}

// dropped returns theHistory with the events at these indices replaced by others.
func dropped(indices ...int) []drawnEvent {
	history := theHistory()
	for _, i := range indices {
		history[i] = drawnEvent{"member", "", "", 0, ""}
	}
	return history
}

// renamed returns theHistory with another agent in one event.
func renamed(at int, agent string) []drawnEvent {
	history := theHistory()
	history[at].agent = agent
	return history
}

// muchLater moves the last event to some minutes after the others.
func muchLater(list []ledger.Event) { list[len(list)-1].OccurredUS += 180_000_000 }

// otherStored stores another record than the one in the answer, with the same integrity. That is
// possible because the signature over a record with commitments does not cover recordHash.
func otherStored(list []ledger.Event) {
	e := &list[2]
	members := must(canon.Members(e.Payload))
	stored := canon.Put(members["record"], []byte(`"x402"`), "protocol")
	members["record"] = stored
	members["sealed"] = must(canon.Marshal(map[string]any{"keyId": "sub_k", "signature": must(signer().SignCanonical(seal.TypeCommitted, stored)).Integrity.Signature}))
	e.Payload = canon.Object(members)
	e.PayloadHash = sha256.Sum256(e.Payload)
}

// An empty folder of answers gives an error, because nothing was compared.
func TestAnEmptyFolderOfKeptAnswers(t *testing.T) {
	if r, err := keptIn(t, told{}.draw(), fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "the folder has no files") || r.Valid {
		t.Errorf("%+v, %v", r, err)
	}
}
