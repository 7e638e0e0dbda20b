package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

const openingsFile, eventsFile, redactionsFile = "openings.jsonl", "events.jsonl", "redactions.jsonl"

var committed = []byte(events.Committed)

// isCommitment reports whether a value in a payload is a commitment.
func isCommitment(value []byte) bool {
	hash, begins := bytes.CutPrefix(value, []byte(events.Committed+`"`))
	hash, ends := bytes.CutSuffix(hash, []byte(`"}`))
	return begins && ends && isHex(string(hash))
}

// reopening is an event with the openings of its commitments.
type reopening struct {
	ledger.Line
	found  []span // where the commitments are in the payload
	record int    // number of elements of found that are in the record
}

// span is a commitment in a payload, and the value that replaces it.
type span struct {
	start, end int
	value      string
}

// put adds an opening. It returns false if the commitment is not at its pointer in the payload, or
// was opened before.
func (r *reopening) put(o Opening) bool {
	mark, _ := o.Commitment() // cannot fail after parseOpening
	path, ok := pathOf(o.Pointer)
	start, end, found := canon.Find([]byte(*r.Payload), path...)
	if !ok || !found || (*r.Payload)[start:end] != mark || slices.ContainsFunc(r.found, func(s span) bool { return s.start == start }) {
		return false
	}
	r.found = append(r.found, span{start, end, o.Value})
	if path[0] == "record" {
		r.record++
	}
	return true
}

// pathOf splits a JSON pointer (RFC 6901) into the names of members. Names that JSON must escape are
// not allowed, because canon.Find compares names as they are written.
func pathOf(pointer string) (path []string, ok bool) {
	names, ok := strings.CutPrefix(pointer, "/")
	for name := range strings.SplitSeq(names, "/") {
		name = strings.ReplaceAll(name, "~1", "/")
		path = append(path, strings.ReplaceAll(name, "~0", "~"))
	}
	return path, ok && !strings.Contains(pointer, `\`)
}

// opened returns the payload with the known values in place of their commitments.
func (r *reopening) opened() string {
	slices.SortFunc(r.found, func(a, b span) int { return a.start - b.start })
	var text strings.Builder
	at := 0
	for _, s := range r.found {
		text.WriteString((*r.Payload)[at:s.start])
		text.WriteString(s.value)
		at = s.end
	}
	text.WriteString((*r.Payload)[at:])
	return text.String()
}

// openings replaces the commitments in payloads by their openings and verifies the records again.
// Openings are in the order of the events, so each file is read at most once.
func (v *verifier) openings(ctx context.Context) error {
	nextEvent, stop := v.lineByLine(ctx)
	defer stop()
	var r reopening
	closed := v.personal     // number of events with a commitment that no opening has opened
	finish := func() error { // called after the last opening of an event
		if len(r.found) > 0 && strings.Count(*r.Payload, string(committed)) == len(r.found) {
			closed--
		}
		return v.reopened(&r)
	}
	if err := v.lines(ctx, openingsFile, func(n int, text []byte) error {
		bad := func(what string) error { return falsef("%s line %d: %s", openingsFile, n, what) }
		o, ok := parseOpening(text)
		if !ok {
			return bad("form")
		}
		for r.ID != o.EventID || r.Payload == nil {
			if err := finish(); err != nil {
				return err
			}
			line, err, more := nextEvent()
			switch {
			case err != nil:
				return err
			case !more:
				return bad("event")
			}
			r = reopening{Line: line}
		}
		switch {
		case !r.put(o):
			return bad("commitment")
		case !v.isAgent(&r.Line, o):
			return bad("agent")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := finish(); err != nil {
		return err
	}
	if closed > 0 {
		v.gap("the personal members of %d events (erased, or not shown)", closed)
	}
	if v.selection != nil && v.selection.Agent != "" && !v.nameOpen {
		v.gap("that %s is the data key of the agent that the filters name (the claim's name is not opened)", v.selection.Agent)
	}
	return v.redactions(ctx)
}

// lineByLine returns a function for the next event of the bundle, and one that ends the reading.
func (v *verifier) lineByLine(ctx context.Context) (next func() (ledger.Line, error, bool), stop func()) {
	return iter.Pull2(read(ctx, v.bundle, eventsFile, func(text []byte) (ledger.Line, bool) {
		l, _, ok := parseLine(text)
		return l, ok
	}))
}

// isAgent reports whether the agent's name in an opening is allowed. If the bundle was selected
// for one agent, the names in the claim and in that agent's decisions must be the name in the
// filters of the manifest.
func (v *verifier) isAgent(l *ledger.Line, o Opening) bool {
	if v.selection == nil || v.selection.Agent == "" {
		return true
	}
	claim := l.Position == v.selection.Claim && o.Pointer == "/record/filters/agent"
	decision := l.Type == events.TypeDecisionRecorded && l.Agent == v.selection.Agent && o.Pointer == "/record/subject/agentId"
	v.nameOpen = v.nameOpen || claim
	return !claim && !decision || textOf(jsontext.Value(o.Value)) == v.m.Filters.Agent
}

// parseOpening parses a line of openings.jsonl.
func parseOpening(text []byte) (o Opening, ok bool) {
	members, err := canon.Members(text)
	return o, isCanonical(text) && err == nil && len(members) == 4 && decodes(text, &o) && isHex(o.Salt) && isStrict(o.Value)
}

// Commitment returns the JSON text that the payload contains instead of the opening's value.
func (o Opening) Commitment() (string, error) {
	salt, err := hex.DecodeString(o.Salt)
	if err != nil {
		return "", errors.New("the salt of an opening must be hex digits")
	}
	sum := sha256.Sum256(slices.Concat([]byte("svc-commitment-v1\n"), salt, []byte(o.Value)))
	return events.Committed + `"` + hex.EncodeToString(sum[:]) + `"}`, nil
}

// redactions checks that redactions.jsonl names events of the bundle, in their order.
func (v *verifier) redactions(ctx context.Context) error {
	nextEvent, stop := v.lineByLine(ctx)
	defer stop()
	return v.lines(ctx, redactionsFile, func(n int, text []byte) error {
		var redaction struct {
			Erased  bool   `json:"erased"`
			EventID string `json:"eventId"`
		}
		if !isCanonical(text) || !decodes(text, &redaction) {
			return falsef("%s line %d: form", redactionsFile, n)
		}
		for {
			switch l, err, more := nextEvent(); {
			case err != nil:
				return err
			case !more:
				return falsef("%s line %d: event", redactionsFile, n)
			case l.ID == redaction.EventID && l.Payload != nil:
				return nil
			}
		}
	})
}

// reopened verifies the record of an event with all its personal members restored.
func (v *verifier) reopened(r *reopening) error {
	if len(r.found) == 0 {
		return nil
	}
	bad := func(what string) error { return falsef("%s %s: %s", openingsFile, r.ID, what) }
	stored, _ := canon.Members([]byte(*r.Payload)) // cannot fail: record has checked it
	payload := r.opened()
	members, err := canon.Members([]byte(payload))
	if err != nil || !isPayload(payload) {
		return bad("payload")
	}
	record := members["record"]
	if record == nil || members["integrity"] == nil || bytes.Count(stored["record"], committed) > r.record {
		return nil
	}
	i := integrityOf(members["integrity"])
	if canon.Hash(record) != i.RecordHash {
		return bad("recordHash")
	}
	if key := v.recordKey(r.KeyID, r.Position); key == nil || !v.signatures.Signed(key, i.PayloadType, record, i.Signature) {
		return bad("signature")
	}
	return nil
}
