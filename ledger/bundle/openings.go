package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

const openingsFile, eventsFile = "openings.jsonl", "events.jsonl"

func (v *verifier) openings() error {
	if !v.bundle.names[openingsFile] {
		return v.redactions()
	}
	r, err := v.reopening()
	if err != nil {
		return err
	}
	defer r.close()
	if err := v.lines(openingsFile, func(n int, at int64, text []byte) error {
		o, mark, ok := parseOpening(text)
		switch {
		case !ok:
			return falsef("%s line %d: form", openingsFile, n)
		case !v.byID[o.EventID].shown:
			return falsef("%s line %d: event", openingsFile, n)
		}
		before, err := r.payload(o.EventID)
		switch {
		case err != nil:
			return err
		case !strings.Contains(before, mark):
			return falsef("%s line %d: commitment", openingsFile, n)
		}
		r.opened[o.EventID], r.whole = append(r.opened[o.EventID], at), strings.Replace(before, mark, o.Value, 1)
		return nil
	}); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.opened)) {
		whole, err := r.payload(id)
		if err != nil {
			return err
		}
		if what := v.reopened(r.line, whole); what != "" {
			return falsef("%s %s: %s", openingsFile, id, what)
		}
	}
	return v.redactions()
}

// reopening puts openings back into payloads. It holds where they stand in the files,
// and the one payload it has looked at last: the openings of an event follow each
// other.
type reopening struct {
	verifier *verifier
	openings *os.File
	events   *os.File           // nil: there is no event
	opened   map[string][]int64 // by event, where its openings so far begin

	line  Line   // looked at last
	whole string // its payload with its openings so far
}

func (v *verifier) reopening() (r *reopening, err error) {
	r = &reopening{verifier: v, opened: map[string][]int64{}}
	if r.openings, err = v.bundle.root.Open(openingsFile); err == nil && v.bundle.names[eventsFile] {
		if r.events, err = v.bundle.root.Open(eventsFile); err != nil {
			r.close()
		}
	}
	return r, err
}

func (r *reopening) close() {
	_ = r.openings.Close()
	if r.events != nil {
		_ = r.events.Close()
	}
}

// payload is that of an event, which is shown, with its openings so far put back.
func (r *reopening) payload(id string) (string, error) {
	if r.line.ID == id && r.line.Payload != nil {
		return r.whole, nil
	}
	b := r.verifier.bundle
	text, err := b.lineAt(r.events, r.verifier.byID[id].at)
	if err != nil {
		return "", err
	}
	r.line, _, _ = parseLine(text) // it was read before
	r.whole = *r.line.Payload
	for _, at := range r.opened[id] {
		text, err := b.lineAt(r.openings, at)
		if err != nil {
			return "", err
		}
		o, mark, _ := parseOpening(text) // likewise
		r.whole = strings.Replace(r.whole, mark, o.Value, 1)
	}
	return r.whole, nil
}

// parseOpening reads a line of openings.jsonl, and says what stands in the payload in
// its place.
func parseOpening(text []byte) (o Opening, mark string, ok bool) {
	members, err := canon.Members(text)
	if !isCanonical(text) || err != nil || len(members) != 4 || json.Unmarshal(text, &o) != nil || !isHex(o.Salt) {
		return o, "", false
	}
	if again, err := canon.Marshal(o); err != nil || !bytes.Equal(again, text) {
		return o, "", false
	}
	salt, _ := hex.DecodeString(o.Salt) // isHex
	sum := sha256.Sum256(slices.Concat([]byte("svc-commitment-v1\n"), salt, []byte(o.Value)))
	return o, `{"$committed":"` + hex.EncodeToString(sum[:]) + `"}`, true
}

func (v *verifier) redactions() error {
	redacted := 0
	err := v.lines("redactions.jsonl", func(int, int64, []byte) error { redacted++; return nil })
	if redacted > 0 {
		v.gap("the personal members of %d events (erased, or not shown)", redacted)
	}
	return err
}

// reopened checks a record with every personal member put back.
func (v *verifier) reopened(l Line, payload string) string {
	members, err := canon.Members([]byte(payload))
	if err != nil {
		return "payload"
	}
	record := members["record"]
	if record == nil || members["integrity"] == nil || bytes.Contains(record, []byte(`{"$committed":`)) {
		return ""
	}
	i := integrityOf(members["integrity"])
	if canon.Hash(record) != i.RecordHash {
		return "recordHash"
	}
	if key := v.recordKey(l.KeyID, l.Position); key == nil || !seal.Signed(key, i.PayloadType, record, i.Signature) {
		return "signature"
	}
	return ""
}
