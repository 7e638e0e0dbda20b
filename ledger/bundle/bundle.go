// Package bundle writes and verifies exports of one tenant's history. An export, or bundle,
// contains all that an auditor needs to verify the history without the service and without our
// programs.
//
// VERIFY.md, which is part of every bundle, describes the format on one page. verify.py is a
// verifier in standard-library Python. Verify is the same verifier in Go: the two verifiers make
// the same checks in the same order and return the same first reason.
package bundle

import (
	_ "embed"
	"encoding/hex"
	"regexp"
	"time"

	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// PayloadType is the payload type of the manifest's envelope.
const PayloadType = "application/vnd.svc.export.v1+json"

// Schema is the schema of a manifest without a Selection or a Dispute. Its bundle contains
// consecutive events of a history, or all of them.
const Schema = "svc-export-v1"

// StampedFile is the file with a time-stamped note: the note of the bundle, or an earlier one of
// the same tree. StampFile is the file with the answer of the time-stamp authority (RFC 3161)
// about that note. Verify checks only the hashes of these files.
const (
	StampedFile = "timestamp/note.txt"
	StampFile   = "timestamp/answer.tsr"
)

// ConsistencyFile is the file with the proofs that the tree of the bundle extends earlier trees.
const ConsistencyFile = "proofs/consistency.jsonl"

// VerifierPy and Format are the files verify.py and VERIFY.md. Every bundle contains both.
var (
	//go:embed verify.py
	VerifierPy []byte
	//go:embed VERIFY.md
	Format []byte
)

// Manifest is the record in manifest.json.
type Manifest struct {
	Schema          string            `json:"schema"`
	ExportID        string            `json:"exportId"` // id of the export, exp_…
	Origin          string            `json:"origin"`
	Partition       int               `json:"partition"`
	Tenant          string            `json:"tenant"`
	FirstSequence   int64             `json:"firstSequence"`
	Count           int64             `json:"count"`
	PrevBeforeFirst string            `json:"prevBeforeFirst"`
	LastHash        string            `json:"lastHash"`
	CheckpointSize  int64             `json:"checkpointSize"`     // number of events that the checkpoint covers; 0 if none covers the last event
	PriorDecisions  map[string]string `json:"priorDecisions"`     // recordHash by decisionId, for receipts whose decision is not in the bundle
	RuleSets        map[string]string `json:"ruleSets,omitempty"` // version of each rule set to which a quick gate's verdict in the bundle refers, by SHA-256 of the rule set; the folder rules/ contains those that the exporting program has
	Filters         Filters           `json:"filters"`
	Selection       *Selection        `json:"selection,omitempty"` // only with the schema svc-selection-v1
	Statement       *Statement        `json:"statement,omitempty"` // sums over the events of a selection
	Dispute         *Dispute          `json:"dispute,omitempty"`   // only with the schema svc-dispute-v1
	Withheld        int64             `json:"withheld"`            // number of events whose payload the filters exclude
	Files           map[string]string `json:"files"`               // SHA-256 of each file except manifest.json, by name
	IssuedAt        string            `json:"issuedAt"`
	Generator       string            `json:"generator"`
}

// Filters select the events that a bundle shows with their payloads: the events of the period,
// except decisions that do not match. The bundle also contains the excluded events, the event
// before the period and the append after it, but without their payloads, so the chain is complete.
// Without To, the period extends to the end of the history.
type Filters struct {
	From       string `json:"from,omitempty"` // RFC 3339 in UTC, with at most microseconds
	To         string `json:"to,omitempty"`   // first moment after the period, in the same form
	Protocol   string `json:"protocol,omitempty"`
	Decision   string `json:"decision,omitempty"`
	Agent      string `json:"agent,omitempty"`
	Run        string `json:"run,omitempty"`
	Receipts   bool   `json:"receipts,omitzero"` // include the series of approvals and receipts
	NoPersonal bool   `json:"noPersonal,omitzero"`
}

var periodForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`)

// Period returns From and To as microseconds since 1970, or 0 for an empty member. ok is false if
// one of them is malformed.
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

// Reversed reports whether a period ends at or before its beginning. The result is false if one of
// the two times (RFC 3339) is empty or has another form.
func Reversed(from, to string) bool {
	first, errFrom := time.Parse(time.RFC3339, from)
	next, errTo := time.Parse(time.RFC3339, to)
	return errFrom == nil && errTo == nil && !next.After(first)
}

// Proof is a line of proofs/inclusion.jsonl, or of ConsistencyFile, which has From instead of
// Position.
type Proof struct {
	Position int64    `json:"pos,omitzero"`
	From     int64    `json:"from,omitzero"`
	Hashes   []string `json:"hashes"`
}

// NewProof returns p with these hashes in hex.
func NewProof(p Proof, hashes []tree.Hash) Proof {
	p.Hashes = []string{}
	for _, h := range hashes {
		p.Hashes = append(p.Hashes, hex.EncodeToString(h[:]))
	}
	return p
}

// Opening is a line of openings.jsonl: the salt and the value of a commitment. Value is canonical
// JSON as text.
type Opening struct {
	EventID string `json:"eventId"`
	Pointer string `json:"pointer"`
	Salt    string `json:"salt"`
	Value   string `json:"value"`
}

// Lines encodes values as canonical JSON, one per line.
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
