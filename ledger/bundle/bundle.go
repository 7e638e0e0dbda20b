// Package bundle is an export of one tenant's history: everything an auditor needs
// to check it without the service, and without a program of ours.
//
// VERIFY.md, which is part of every bundle, is the format on one page; verify.py is
// a verifier of standard-library Python. Verify is the same in Go: both make the
// same checks in the same order and name the same first reason.
package bundle

import (
	_ "embed"
	"encoding/hex"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// PayloadType of the manifest's envelope.
const PayloadType = "application/vnd.svc.export.v1+json"

// Schema of the manifest's record.
const Schema = "svc-export-v1"

// VerifierPy is verify.py and Format is VERIFY.md, as they lie in every bundle.
var (
	//go:embed verify.py
	VerifierPy []byte
	//go:embed VERIFY.md
	Format []byte
)

// Manifest is the record in manifest.json.
type Manifest struct {
	Schema          string            `json:"schema"`
	ExportID        string            `json:"exportId"` // exp_…
	Origin          string            `json:"origin"`
	Partition       int               `json:"partition"`
	Tenant          string            `json:"tenant"`
	FirstSequence   int64             `json:"firstSequence"`
	Count           int64             `json:"count"`
	PrevBeforeFirst string            `json:"prevBeforeFirst"`
	LastHash        string            `json:"lastHash"`
	CheckpointSize  int64             `json:"checkpointSize"`     // 0: no checkpoint covers the last event
	PriorDecisions  map[string]string `json:"priorDecisions"`     // recordHash by decisionId, of receipts whose decision is not in range
	RuleSets        map[string]string `json:"ruleSets,omitempty"` // version by SHA-256, of each rule set that a gate verdict in range names; rules/ has the tables of those the exporting program has
	Filters         Filters           `json:"filters"`
	Withheld        int64             `json:"withheld"` // events whose payload the filters left out
	Files           map[string]string `json:"files"`    // SHA-256 by name, of all but manifest.json
	IssuedAt        string            `json:"issuedAt"`
	Generator       string            `json:"generator"`
}

// Filters say which decisions a bundle shows whole. Of all others, and of what
// belongs to them, it holds every column but the payload, so the chain is whole.
type Filters struct {
	From       string `json:"from,omitempty"` // RFC 3339
	To         string `json:"to,omitempty"`
	Protocol   string `json:"protocol,omitempty"`
	Decision   string `json:"decision,omitempty"`
	Agent      string `json:"agent,omitempty"`
	Run        string `json:"run,omitempty"`
	NoPersonal bool   `json:"noPersonal,omitzero"`
}

// Line is an event in events.jsonl: every column; hashes in hex; the payload's text
// as one string, which is exact in any language, or null where it was withheld.
type Line struct {
	P             int16   `json:"p"`
	Position      int64   `json:"pos"`
	Tenant        string  `json:"tenant"`
	Sequence      int64   `json:"tseq"`
	Stream        string  `json:"stream"`
	Version       int64   `json:"version"`
	ID            string  `json:"event_id"`
	Type          string  `json:"type"`
	SchemaVersion int     `json:"schema_version"`
	More          int     `json:"more"`
	OccurredUS    int64   `json:"occurred_us"`
	Actor         string  `json:"actor"`
	KeyID         string  `json:"key_id"`
	IdemKey       *string `json:"idem_key"`
	ContentHash   *string `json:"content_hash"`
	Payload       *string `json:"payload"`
	PayloadHash   string  `json:"payload_hash"`
	Prev          string  `json:"prev"`
	Hash          string  `json:"hash"`
}

// NewLine is an event's line.
func NewLine(e ledger.Event) Line {
	text := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := hex.EncodeToString(b)
		return &s
	}
	payload := string(e.Payload)
	return Line{e.Partition, e.Position, e.Tenant, e.Sequence, e.Stream, e.Version, e.ID, e.Type, e.SchemaVersion, e.More, e.OccurredUS,
		e.Actor, e.KeyID, text(e.IdemKey), text(e.ContentHash), &payload, e.PayloadHash.String(), e.Prev.String(), e.Hash.String()}
}

// event is the line as the ledger stores it; false where a hash is none.
func (l Line) event() (e ledger.Event, ok bool) {
	ok = true
	octets := func(text *string) []byte {
		if text == nil {
			return nil
		}
		b, err := hex.DecodeString(*text)
		ok = ok && err == nil && len(b) == 32 && hex.EncodeToString(b) == *text
		return b
	}
	hash := func(text string) (h ledger.Hash) {
		copy(h[:], octets(&text))
		return h
	}
	e = ledger.Event{Partition: l.P, Position: l.Position, Tenant: l.Tenant, Sequence: l.Sequence, Stream: l.Stream, Version: l.Version,
		ID: l.ID, Type: l.Type, SchemaVersion: l.SchemaVersion, More: l.More, OccurredUS: l.OccurredUS, Actor: l.Actor, KeyID: l.KeyID,
		IdemKey: octets(l.IdemKey), ContentHash: octets(l.ContentHash), PayloadHash: hash(l.PayloadHash), Prev: hash(l.Prev), Hash: hash(l.Hash)}
	if l.Payload != nil {
		e.Payload = []byte(*l.Payload)
	}
	return e, ok
}

// Proof is a line of proofs/inclusion.jsonl, or of proofs/consistency.jsonl, where
// From takes the place of the position.
type Proof struct {
	Position int64    `json:"pos,omitzero"`
	From     int64    `json:"from,omitzero"`
	Hashes   []string `json:"hashes"`
}

// NewProof writes hashes in hex.
func NewProof(p Proof, hashes []tree.Hash) Proof {
	p.Hashes = []string{}
	for _, h := range hashes {
		p.Hashes = append(p.Hashes, hex.EncodeToString(h[:]))
	}
	return p
}

// Opening is a line of openings.jsonl: what stands behind a commitment. Value is
// canonical JSON as text.
type Opening struct {
	EventID string `json:"eventId"`
	Pointer string `json:"pointer"`
	Salt    string `json:"salt"`
	Value   string `json:"value"`
}

// Lines writes values as canonical JSON, one a line.
func Lines[T any](values []T) ([]byte, error) {
	var text []byte
	for _, v := range values {
		line, err := canon.Marshal(v)
		if err != nil {
			return nil, err
		}
		text = append(append(text, line...), '\n')
	}
	return text, nil
}
