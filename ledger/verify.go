package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/ledger/seal"
)

// Fault is something that is not as it must be. It names table, row and column.
type Fault struct {
	Table    string `json:"table"`
	Row      string `json:"row"`      // by its key, for example "pos 5"
	Position int64  `json:"position"` // of the event; 0 where no single one is meant
	Column   string `json:"column"`
	Detail   string `json:"detail"` // what was expected
}

// Error makes a fault readable.
func (f Fault) Error() string {
	return fmt.Sprintf("%s, %s, %s: %s", f.Table, f.Row, f.Column, f.Detail)
}

// eventFault is a fault of an event's row.
func eventFault(position int64, column, format string, args ...any) Fault {
	return Fault{"events", fmt.Sprintf("pos %d", position), position, column, fmt.Sprintf(format, args...)}
}

// Report is what a verification found.
type Report struct {
	Origin  string  `json:"origin"` // of several partitions: without them
	Events  int64   `json:"events"`
	Tenants int     `json:"tenants"`
	Records int64   `json:"records"` // signatures checked
	Head    int64   `json:"head"`    // of several partitions: the sum
	Hash    string  `json:"hash"`    // of the last event; of several partitions: empty
	Faults  []Fault `json:"faults"`

	Checkpoints int64    `json:"checkpoints"` // whose root and signature were checked
	Trusted     []string `json:"trusted"`     // what only the database says
	Gaps        []string `json:"gaps"`        // what could not be checked
	More        bool     `json:"more"`        // there are more faults than are listed

	Partitions []PartitionReport `json:"partitions,omitempty"` // where there is more than one
}

// PartitionReport is where one of several partitions was verified up to.
type PartitionReport struct {
	Origin string `json:"origin"`
	Events int64  `json:"events"`
	Head   int64  `json:"head"`
	Hash   string `json:"hash"` // of the last event
}

// maxFaults are reported; one flipped octet can break every event behind it.
const maxFaults = 100

// Locate answers where a signed record stands: the event of this place, if its
// hash and the record inside are those of the envelope.
func (l *Ledger) Locate(ctx context.Context, envelope seal.Envelope) seal.Check {
	fail := func(detail string) seal.Check { return seal.Check{Name: "ledger", Result: seal.Fail, Detail: detail} }
	if envelope.Ledger == nil {
		return seal.Check{Name: "ledger", Result: seal.Unknown, Detail: "the envelope does not say where the record stands"}
	}
	p := l.Partition(envelope.Ledger.Partition)
	if p == nil {
		return fail("the ledger has no such partition")
	}
	found, err := p.After(ctx, envelope.Ledger.Position-1, 1)
	switch {
	case errors.Is(err, ErrTampered):
		return fail("the stored event does not have its hash")
	case err != nil:
		return seal.Check{Name: "ledger", Result: seal.Unknown, Detail: "the ledger could not be read"}
	case len(found) == 0 || found[0].Position != envelope.Ledger.Position:
		return fail("no event stands at this position")
	}
	e := found[0]
	place := e.Place()
	stored, signed, err := e.Signed()
	if place != *envelope.Ledger || err != nil || !signed || stored.Integrity.RecordHash != envelope.Integrity.RecordHash {
		return fail("the event at this position is another one")
	}
	return seal.Check{Name: "ledger", Result: seal.Pass, Detail: "the event with this hash holds the record"}
}
