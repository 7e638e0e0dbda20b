package audit

import (
	"encoding/binary"
	"fmt"

	"github.com/countersign/countersign/ledger"
)

// sharedNames bounds the memory of names that repeat.
const sharedNames = 65_536

// rawEvent reads a row in PostgreSQL's binary form, which takes a quarter less time than
// pgx's Scan. An unpacked payload is valid until the next row only. Names that repeat share
// their memory. wrong names a column that should be a hash and has another length.
func rawEvent(raw [][]byte, e *ledger.Event, names map[string]string) (wrong string, err error) {
	if len(raw) != 25 {
		return "", fmt.Errorf("%d columns", len(raw))
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
		if len(raw[16+i]) != len(h) {
			wrong = [...]string{"payload_hash", "prev", "hash"}[i]
		}
	}
	e.Series, e.SeriesN, e.SeriesPrev = name(raw[19]), number(raw[20]), raw[21]
	e.Agent, e.AgentN, e.AgentPrev = name(raw[22]), number(raw[23]), raw[24]
	return wrong, nil
}
