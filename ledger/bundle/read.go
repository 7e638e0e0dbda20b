package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/tree"
)

// Shows is an event whose payload the bundle shows, with its openings and its inclusion proof.
type Shows struct {
	ledger.Event
	Openings []Opening
	Proof    []tree.Hash // proof that the checkpoint's tree contains the event
	Proven   bool        // the bundle contains this proof; a proof may have no hashes
}

// Opened returns the value at a pointer as JSON text, or nil if the bundle has no opening for it.
func (s Shows) Opened(pointer string) []byte {
	for _, o := range s.Openings {
		if o.Pointer == pointer {
			return []byte(o.Value)
		}
	}
	return nil
}

// Manifest parses the manifest. It does not check the signature; Verify does.
func (b *Bundle) Manifest() (m Manifest, err error) {
	text, err := b.Text("manifest.json")
	if err != nil {
		return m, err
	}
	var envelope struct {
		Record Manifest `json:"record"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return m, errors.New("manifest.json is missing or malformed: verify the export")
	}
	return envelope.Record, nil
}

// Events yields the events whose payloads the bundle shows, in order. It checks only the format: a
// caller must first verify the bundle.
func (b *Bundle) Events(ctx context.Context) iter.Seq2[Shows, error] {
	return func(yield func(Shows, error) bool) {
		opening, stopOpenings := iter.Pull2(read(ctx, b, openingsFile, func(text []byte) (Opening, bool) {
			return parseOpening(text)
		}))
		defer stopOpenings()
		proof, stopProofs := iter.Pull2(read(ctx, b, inclusionFile, func(text []byte) (proven, bool) {
			position, hashes, ok := proofLine(text, "pos")
			return proven{position, hashes}, ok
		}))
		defer stopProofs()
		o, err, more := opening()
		p, errProof, moreProofs := proof()
		for e, errEvent := range read(ctx, b, eventsFile, func(text []byte) (ledger.Event, bool) {
			_, e, ok := parseLine(text)
			return e, ok
		}) {
			found := Shows{Event: e}
			for ; more && err == nil && o.EventID == e.ID; o, err, more = opening() {
				found.Openings = append(found.Openings, o)
			}
			for ; moreProofs && errProof == nil && p.position <= e.Position; p, errProof, moreProofs = proof() {
				if p.position == e.Position {
					found.Proof, found.Proven = p.hashes, true
				}
			}
			failed := errors.Join(errEvent, err, errProof)
			if failed == nil && e.Payload == nil {
				continue
			}
			if !yield(found, failed) || failed != nil {
				return
			}
		}
	}
}

type proven struct {
	position int64
	hashes   []tree.Hash
}

// read yields the parsed lines of a file, or an error at the first malformed line.
func read[T any](ctx context.Context, b *Bundle, name string, parse func([]byte) (T, bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ended, err := b.lines(ctx, name, func(n int, text []byte) error {
			value, ok := parse(text)
			if !ok {
				return fmt.Errorf("%s line %d is malformed: verify the export", name, n)
			}
			if !yield(value, nil) {
				return io.EOF
			}
			return nil
		})
		if err == nil && !ended {
			err = fmt.Errorf("%s ends within a line: verify the export", name)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			var none T
			yield(none, err)
		}
	}
}
