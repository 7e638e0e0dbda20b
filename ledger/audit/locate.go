package audit

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
)

// Locate checks that the ledger has the event that an envelope names, with the same hash, and that
// the event contains the envelope's record.
func Locate(ctx context.Context, l *ledger.Ledger, envelope seal.Envelope) seal.Check {
	fail := func(detail string) seal.Check { return seal.Check{Name: "ledger", Result: seal.Fail, Detail: detail} }
	if envelope.Ledger == nil {
		return seal.Check{Name: "ledger", Result: seal.Unknown, Detail: "the envelope does not name the record's position in the ledger"}
	}
	p := l.Partition(envelope.Ledger.Partition)
	if p == nil {
		return fail("the ledger has no such partition")
	}
	found, err := p.After(ctx, envelope.Ledger.Position-1, 1)
	switch {
	case errors.Is(err, ledger.ErrTampered):
		return fail("the stored event does not match its hash")
	case err != nil:
		return seal.Check{Name: "ledger", Result: seal.Unknown, Detail: "the ledger could not be read"}
	case len(found) == 0 || found[0].Position != envelope.Ledger.Position:
		return fail("there is no event at this position")
	}
	e := found[0]
	position := e.LedgerPosition()
	stored, signed, err := e.Signed()
	if position != *envelope.Ledger || err != nil || !signed || stored.Integrity.RecordHash != envelope.Integrity.RecordHash {
		return fail("the event at this position is a different one")
	}
	return seal.Check{Name: "ledger", Result: seal.Pass, Detail: "the event with this hash contains the record"}
}
