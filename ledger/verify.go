package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
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
	Origin  string  `json:"origin"`
	Events  int64   `json:"events"`
	Tenants int     `json:"tenants"`
	Records int64   `json:"records"` // signatures checked
	Head    int64   `json:"head"`
	Hash    string  `json:"hash"` // of the last event
	Faults  []Fault `json:"faults"`

	Checkpoints int64    `json:"checkpoints"` // whose root and signature were checked
	Trusted     []string `json:"trusted"`     // what only the database says
	Gaps        []string `json:"gaps"`        // what could not be checked
	More        bool     `json:"more"`        // there are more faults than are listed
}

// maxFaults are reported; one flipped octet can break every event behind it.
const maxFaults = 100

// Verifier checks a ledger from its first event on, one event at a time, with
// nothing but the events. Its zero value is not ready: NewVerifier.
type Verifier struct {
	report  Report
	keys    Keyring
	last    Event
	tenants map[string]tenantHead
	streams map[streamName]int64
	idem    map[keyName]int64
}

// NewVerifier starts at the genesis of an origin.
func NewVerifier(origin string) *Verifier {
	return &Verifier{
		report: Report{Origin: origin, Faults: []Fault{}}, keys: Keyring{},
		tenants: map[string]tenantHead{}, streams: map[streamName]int64{}, idem: map[keyName]int64{},
	}
}

// Verify checks a whole sequence of events and returns the report. The error is
// that of the sequence: what could not be read could not be checked.
func Verify(origin string, stored iter.Seq2[Event, error]) (Report, error) {
	v := NewVerifier(origin)
	for e, err := range stored {
		if err != nil {
			return v.report, err
		}
		v.Next(e)
	}
	return v.Done(), nil
}

func (v *Verifier) fault(e Event, column, format string, args ...any) {
	if len(v.report.Faults) < maxFaults {
		v.report.Faults = append(v.report.Faults, eventFault(e.Position, column, format, args...))
	}
}

// Next checks the next event by position: density of position, sequence and
// version; hashes and links; times that do not fall; whole groups; one use per
// key; the signature of the record inside.
func (v *Verifier) Next(e Event) {
	v.report.Events++
	v.place(e)
	v.chain(e)
	v.group(e)
	v.record(e)
	v.last = e
}

func (v *Verifier) place(e Event) {
	if e.Partition != partition {
		v.fault(e, "p", "want %d", partition)
	}
	if want := v.last.Position + 1; e.Position != want {
		v.fault(e, "pos", "want %d: positions are dense", want)
	}
	stream := streamName{e.Tenant, e.Stream}
	if want := v.streams[stream] + 1; e.Version != want {
		v.fault(e, "version", "want %d in stream %s", want, e.Stream)
	}
	v.streams[stream] = e.Version
}

func (v *Verifier) chain(e Event) {
	head, known := v.tenants[e.Tenant]
	if !known {
		head.hash = Genesis(v.report.Origin, e.Tenant)
	}
	if want := head.sequence + 1; e.Sequence != want {
		v.fault(e, "tseq", "want %d of tenant %s", want, e.Tenant)
	}
	if e.OccurredUS < head.occurredUS {
		v.fault(e, "occurred_us", "want at least %d: times do not fall within a tenant", head.occurredUS)
	}
	if e.Prev != head.hash {
		v.fault(e, "prev", "want %s, the hash of the tenant's previous event", head.hash)
	}
	if want := Hash(sha256.Sum256(e.Payload)); e.PayloadHash != want {
		v.fault(e, "payload_hash", "the payload hashes to %s", want)
	}
	if want := e.sum(); e.Hash != want {
		v.fault(e, "hash", "the columns hash to %s", want)
	}
	v.tenants[e.Tenant] = tenantHead{e.Sequence, e.Hash, e.OccurredUS}
}

func (v *Verifier) group(e Event) {
	first := v.last.More == 0
	switch {
	case first && (len(e.IdemKey) != 32 || len(e.ContentHash) != 32):
		v.fault(e, "idem_key", "want a key and a content hash on the first event of an append")
	case !first && (e.IdemKey != nil || e.ContentHash != nil):
		v.fault(e, "idem_key", "want none within an append")
	case !first && (e.More != v.last.More-1 || e.Tenant != v.last.Tenant):
		v.fault(e, "more", "want %d of the append that began before", v.last.More-1)
	}
	if len(e.IdemKey) == 32 {
		name := keyName{e.Tenant, Hash(e.IdemKey)}
		if at, used := v.idem[name]; used {
			v.fault(e, "idem_key", "position %d has the same key", at)
		}
		v.idem[name] = e.Position
	}
}

// record checks the signed record in a payload and folds signing keys.
func (v *Verifier) record(e Event) {
	if canonical, err := canon.Canonical(e.Payload); err != nil || string(canonical) != string(e.Payload) {
		v.fault(e, "payload", "want canonical JSON")
		return
	}
	if e.Tenant == ServiceTenant && e.Stream == SigningKeyStream {
		if err := v.keys.apply(e); err != nil {
			v.fault(e, "payload", "%s", err)
		}
		v.report.Records++
		return
	}
	var payload struct {
		Record    jsontext.Value  `json:"record"`
		Integrity *seal.Integrity `json:"integrity"`
		Sealed    struct {
			Signature string `json:"signature"`
		} `json:"sealed"`
	}
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		v.fault(e, "payload", "want an object")
		return
	}
	if payload.Integrity == nil {
		if e.KeyID != "" {
			v.fault(e, "key_id", "want none: the payload carries no signed record")
		}
		return
	}
	if payload.Integrity.KeyID != e.KeyID {
		v.fault(e, "key_id", "want %s, the key of the record", payload.Integrity.KeyID)
	}
	if payload.Sealed.Signature != "" {
		// The record's own signature needs the openings; this one is over what is here.
		payload.Integrity.PayloadType, payload.Integrity.Signature = seal.TypeCommitted, payload.Sealed.Signature
		payload.Integrity.RecordHash = canon.Hash(payload.Record)
	}
	envelope := seal.Envelope{Record: payload.Record, Integrity: *payload.Integrity,
		Ledger: &seal.Place{Position: e.Position, Tenant: e.Tenant, Sequence: e.Sequence, EventHash: e.Hash.String()}}
	for _, c := range envelope.Examine(v.keys) {
		if c.Result != seal.Pass {
			v.fault(e, "payload", "record: %s: %s", c.Name, c.Detail)
		}
	}
	v.report.Records++
}

// Done ends the verification: an append that was cut off is a fault.
func (v *Verifier) Done() Report {
	if v.last.More > 0 {
		v.fault(v.last, "more", "the ledger ends within an append of which %d events are missing", v.last.More)
	}
	v.report.Tenants, v.report.Head, v.report.Hash = len(v.tenants), v.last.Position, v.last.Hash.String()
	if v.last.Position == 0 {
		v.report.Hash = Genesis(v.report.Origin, "").String()
	}
	return v.report
}

// Locate answers where a signed record stands: the event of this place, if its
// hash and the record inside are those of the envelope.
func (l *Ledger) Locate(ctx context.Context, envelope seal.Envelope) seal.Check {
	fail := func(detail string) seal.Check { return seal.Check{Name: "ledger", Result: seal.Fail, Detail: detail} }
	if envelope.Ledger == nil {
		return seal.Check{Name: "ledger", Result: seal.Unknown, Detail: "the envelope does not say where the record stands"}
	}
	found, err := l.After(ctx, envelope.Ledger.Position-1, 1)
	switch {
	case errors.Is(err, ErrTampered):
		return fail("the stored event does not have its hash")
	case err != nil:
		return seal.Check{Name: "ledger", Result: seal.Unknown, Detail: "the ledger could not be read"}
	case len(found) == 0 || found[0].Position != envelope.Ledger.Position:
		return fail("no event stands at this position")
	}
	e := found[0]
	place := seal.Place{Position: e.Position, Tenant: e.Tenant, Sequence: e.Sequence, EventHash: e.Hash.String()}
	var stored struct {
		Integrity seal.Integrity `json:"integrity"`
	}
	if place != *envelope.Ledger || json.Unmarshal(e.Payload, &stored) != nil || stored.Integrity.RecordHash != envelope.Integrity.RecordHash {
		return fail("the event at this position is another one")
	}
	return seal.Check{Name: "ledger", Result: seal.Pass, Detail: "the event with this hash holds the record"}
}
