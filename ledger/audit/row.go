package audit

import (
	"encoding/binary"
	"fmt"

	"github.com/countersign/countersign/ledger"
)

// sharedNames is the largest number of shared names in memory.
const sharedNames = 65_536

// rawEvent reads a row in PostgreSQL's binary form, which takes a quarter less time than pgx's
// Scan. Byte columns are valid only until the next row. Repeated names share their memory.
func rawEvent(raw [][]byte, e *ledger.Event, names map[string]string) error {
	if len(raw) != 25 {
		return fmt.Errorf("%d columns", len(raw))
	}
	name := func(b []byte) string {
		if shared, ok := names[string(b)]; ok {
			return shared
		}
		if len(names) > sharedNames {
			clear(names)
		}
		text := string(b)
		names[text] = text
		return text
	}
	number := func(b []byte) int64 {
		switch len(b) {
		case 8:
			return int64(binary.BigEndian.Uint64(b))
		case 4:
			return int64(int32(binary.BigEndian.Uint32(b)))
		case 2:
			return int64(int16(binary.BigEndian.Uint16(b)))
		}
		return 0
	}
	e.Partition, e.Position = int16(number(raw[0])), number(raw[1])
	e.Tenant, e.Sequence = name(raw[2]), number(raw[3])
	e.Stream, e.Version = string(raw[4]), number(raw[5])
	e.ID, e.Type = string(raw[6]), name(raw[7])
	e.SchemaVersion, e.More, e.OccurredUS = int(number(raw[8])), int(number(raw[9])), number(raw[10])
	e.Actor, e.KeyID = name(raw[11]), name(raw[12])
	e.IdemKey, e.ContentHash, e.Payload = raw[13], raw[14], raw[15]
	for i, h := range []*ledger.Hash{&e.PayloadHash, &e.Prev, &e.Hash} {
		copy(h[:], raw[16+i])
	}
	e.Series, e.SeriesN, e.SeriesPrev = name(raw[19]), number(raw[20]), raw[21]
	e.Agent, e.AgentN, e.AgentPrev = name(raw[22]), number(raw[23]), raw[24]
	return nil
}

// hashColumns lists the columns of a raw row that contain hashes, with their index in the row.
var hashColumns = []struct {
	at   int
	name string
}{{13, "idem_key"}, {14, "content_hash"}, {16, "payload_hash"}, {17, "prev"}, {18, "hash"}, {21, "series_prev"}, {24, "agent_prev"}}

// wrongForm returns a fault if a column has a value that no append writes, even if the row's hash
// is right. The table has no CHECK constraints; the first migration says why.
func wrongForm(raw [][]byte, e *ledger.Event) *Fault {
	wrong := func(column, format string, args ...any) *Fault {
		f := eventFault(e.Position, column, format, args...)
		return &f
	}
	for _, column := range hashColumns {
		if hash := raw[column.at]; hash != nil && len(hash) != len(ledger.Hash{}) {
			return wrong(column.name, "must have 32 bytes")
		}
	}
	switch {
	case e.Version < 1:
		return wrong("version", "must be at least 1")
	case e.SchemaVersion < 0:
		return wrong("schema_version", "must be at least 0")
	case e.More < 0 || e.More >= ledger.MaxEvents:
		return wrong("more", "must be 0 to %d", ledger.MaxEvents-1)
	case e.OccurredUS < 1:
		return wrong("occurred_us", "must be a time after 1970")
	case (e.IdemKey == nil) != (e.ContentHash == nil):
		return wrong("content_hash", "must be set if, and only if, idem_key is set")
	case e.Payload != nil && (len(e.Payload) < 2 || len(e.Payload) > ledger.MaxPayload):
		return wrong("payload", "must have 2 to %d bytes", ledger.MaxPayload)
	}
	// The hash of an event does not distinguish null from an empty value, so check that here.
	for i, series := range []string{"series", "agent"} {
		name, n, prev := raw[19+3*i], raw[20+3*i], raw[21+3*i]
		switch {
		case name != nil && len(name) == 0:
			return wrong(series, "must be a name or null")
		case (name == nil) != (n == nil):
			return wrong(series+"_n", "must be set if, and only if, the name is set")
		case name == nil && prev != nil:
			return wrong(series+"_prev", "must be null if there is no number")
		}
	}
	return nil
}
