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

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy/canon"
)

const openingsFile, eventsFile = "openings.jsonl", "events.jsonl"

// openings replaces the commitments in payloads by their openings and verifies the records again.
// Openings are in the order of the events, so each file is read once.
func (v *verifier) openings(ctx context.Context) error {
	nextEvent, stop := iter.Pull2(read(ctx, v.bundle, eventsFile, func(text []byte) (ledger.Line, bool) {
		l, _, ok := parseLine(text)
		return l, ok
	}))
	defer stop()
	var l ledger.Line
	var whole string // payload of l with the openings inserted so far
	if err := v.lines(ctx, openingsFile, func(n int, text []byte) error {
		o, mark, ok := parseOpening(text)
		if !ok {
			return falsef("%s line %d: form", openingsFile, n)
		}
		if l.ID != o.EventID || l.Payload == nil {
			if err := v.reopened(l, whole); err != nil {
				return err
			}
			for found := true; ; {
				var err error
				if l, err, found = nextEvent(); err != nil {
					return err
				}
				if !found || l.ID == o.EventID {
					break
				}
			}
			if l.Payload == nil {
				return falsef("%s line %d: event", openingsFile, n)
			}
			whole = *l.Payload
		}
		if !strings.Contains(whole, mark) {
			return falsef("%s line %d: commitment", openingsFile, n)
		}
		whole = strings.Replace(whole, mark, o.Value, 1)
		return nil
	}); err != nil {
		return err
	}
	if err := v.reopened(l, whole); err != nil {
		return err
	}
	return v.redactions(ctx)
}

// parseOpening parses a line of openings.jsonl. mark is the commitment that replaces the value in
// the payload.
func parseOpening(text []byte) (o Opening, mark string, ok bool) {
	members, err := canon.Members(text)
	if !isCanonical(text) || err != nil || len(members) != 4 || !decodes(text, &o) || !isHex(o.Salt) {
		return o, "", false
	}
	mark, _ = o.Commitment() // cannot fail after isHex
	return o, mark, true
}

// Commitment returns the JSON text that the payload contains instead of the opening's value.
func (o Opening) Commitment() (string, error) {
	salt, err := hex.DecodeString(o.Salt)
	if err != nil {
		return "", errors.New("the salt of an opening must be hex digits")
	}
	sum := sha256.Sum256(slices.Concat([]byte("svc-commitment-v1\n"), salt, []byte(o.Value)))
	return `{"$committed":"` + hex.EncodeToString(sum[:]) + `"}`, nil
}

func (v *verifier) redactions(ctx context.Context) error {
	redacted := 0
	err := v.lines(ctx, "redactions.jsonl", func(int, []byte) error { redacted++; return nil })
	if redacted > 0 {
		v.gap("the personal members of %d events (erased, or not shown)", redacted)
	}
	return err
}

// reopened verifies the record of an event with all its personal members restored.
func (v *verifier) reopened(l ledger.Line, payload string) error {
	if l.Payload == nil {
		return nil
	}
	bad := func(what string) error { return falsef("%s %s: %s", openingsFile, l.ID, what) }
	members, err := canon.Members([]byte(payload))
	if err != nil || !isPayload(payload) {
		return bad("payload")
	}
	record := members["record"]
	if record == nil || members["integrity"] == nil || bytes.Contains(record, []byte(`{"$committed":`)) {
		return nil
	}
	i := integrityOf(members["integrity"])
	if canon.Hash(record) != i.RecordHash {
		return bad("recordHash")
	}
	if key := v.recordKey(l.KeyID, l.Position); key == nil || !v.signatures.Signed(key, i.PayloadType, record, i.Signature) {
		return bad("signature")
	}
	return nil
}
