package forms

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
)

// DSSEEnvelope is a signed record as a Dead Simple Signing Envelope (DSSE 1.0, JSON form). It
// contains the existing signature of the record; nothing is signed again.
type DSSEEnvelope struct {
	PayloadType string          `json:"payloadType"`
	Payload     string          `json:"payload"` // base64 of the canonical record
	Signatures  []DSSESignature `json:"signatures"`
}

// DSSESignature is a signature of an envelope.
type DSSESignature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"` // base64 of the signature
}

// DSSE returns the record of an event as an envelope. ok is false if the event has no signed
// record. If personal members of the record were not restored, the envelope contains the stored
// record with commitments, and the signature over that record (seal.TypeCommitted).
func DSSE(e Event) (envelope DSSEEnvelope, ok bool) {
	record := e.member("record")
	var i seal.Integrity
	if record == nil || json.Unmarshal(e.member("integrity"), &i) != nil || i.Signature == "" {
		return envelope, false
	}
	kind, signature := i.PayloadType, i.Signature
	if strings.Contains(string(record), events.Committed) {
		var sealed struct {
			Signature string `json:"signature"`
		}
		if json.Unmarshal(e.member("sealed"), &sealed) != nil || sealed.Signature == "" {
			return envelope, false
		}
		// The signature covers the record with all of its commitments.
		stored := Event{Opened: e.Payload}
		record, kind, signature = stored.member("record"), seal.TypeCommitted, sealed.Signature
	}
	return DSSEEnvelope{kind, base64.StdEncoding.EncodeToString(record), []DSSESignature{{i.KeyID, signature}}}, true
}
