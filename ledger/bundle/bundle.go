// Package bundle writes and verifies exports of one tenant's history. An export, or bundle,
// has everything that an auditor needs to check the history without the service, and without
// a program of ours.
//
// VERIFY.md, which is part of every bundle, describes the format on one page; verify.py is
// a verifier in standard-library Python. Verify is the same in Go: both make the
// same checks in the same order and name the same first reason.
package bundle

import (
	_ "embed"
	"encoding/hex"
	"regexp"
	"time"

	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// PayloadType of the manifest's envelope.
const PayloadType = "application/vnd.svc.export.v1+json"

// Schema of the manifest's record.
const Schema = "svc-export-v1"

// VerifierPy is verify.py and Format is VERIFY.md. Every bundle has a copy of both.
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
	Selection       *Selection        `json:"selection,omitempty"` // with the schema svc-selection-v1
	Statement       *Statement        `json:"statement,omitempty"` // of a selection, what its events add up to
	Dispute         *Dispute          `json:"dispute,omitempty"`   // with the schema svc-dispute-v1
	Withheld        int64             `json:"withheld"`            // events whose payload the filters left out
	Files           map[string]string `json:"files"`               // SHA-256 by name, of all but manifest.json
	IssuedAt        string            `json:"issuedAt"`
	Generator       string            `json:"generator"`
}

// Filters say which events of its range a bundle shows with their payloads: those of the
// period, except decisions that are not selected. For every other event it has all columns
// but the payload, so the chain is complete. The event before the period and the append after
// it are in the range. Without To the range goes to the end of the history.
type Filters struct {
	From       string `json:"from,omitempty"` // RFC 3339 in UTC, to the microsecond at most
	To         string `json:"to,omitempty"`   // likewise; the first moment after the period
	Protocol   string `json:"protocol,omitempty"`
	Decision   string `json:"decision,omitempty"`
	Agent      string `json:"agent,omitempty"`
	Run        string `json:"run,omitempty"`
	Receipts   bool   `json:"receipts,omitzero"` // also the approvals and receipts, by their numbers
	NoPersonal bool   `json:"noPersonal,omitzero"`
}

var periodForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`)

// Period returns From and To as microseconds since 1970, 0 if the member is empty. ok is false
// if one of them has another form.
func (f Filters) Period() (from, to int64, ok bool) {
	for _, bound := range []struct {
		text string
		into *int64
	}{{f.From, &from}, {f.To, &to}} {
		if bound.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, bound.text)
		if err != nil || !periodForm.MatchString(bound.text) || at.UnixMicro() <= 0 {
			return 0, 0, false
		}
		*bound.into = at.UnixMicro()
	}
	return from, to, true
}

// Proof is a line of proofs/inclusion.jsonl, or of proofs/consistency.jsonl, where
// From takes the place of the position.
type Proof struct {
	Position int64    `json:"pos,omitzero"`
	From     int64    `json:"from,omitzero"`
	Hashes   []string `json:"hashes"`
}

// NewProof returns p with the hashes in hex.
func NewProof(p Proof, hashes []tree.Hash) Proof {
	p.Hashes = []string{}
	for _, h := range hashes {
		p.Hashes = append(p.Hashes, hex.EncodeToString(h[:]))
	}
	return p
}

// Opening is a line of openings.jsonl: the salt and the value of a commitment. Value is
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
