package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/countersign/countersign/ledger/events"
)

// spanResult is what a range of events says by itself, and what its neighbours must
// agree with. Its memory does not grow with the payloads.
type spanResult struct {
	err      error
	from, to int64 // positions from+1 to to
	faults   []Fault
	hashes   []Hash
	records  int64
	unopened int64
	unread   int64
	void     voided
	archived []archivedSpan // of the range, while it is checked
	tenants  map[string]*tenantSpan
	first    edgeEvent
	last     edgeEvent
	keys     []Event
	erased   []erasure
	declared []int64 // epochs
}

// edgeEvent is what the next range must know of an event.
type edgeEvent struct {
	position int64
	tenant   string
	more     int
	keyed    bool
	hash     Hash
}

// tenantSpan is a tenant's chain within a range.
type tenantSpan struct {
	first  chainLink
	last   tenantHead
	needs  needed // the policy that must have been active before the range
	policy string // the one active at its end, if it was activated within
}

// chainLink is what an event says about the one before it.
type chainLink struct {
	position, sequence, occurredUS int64
	prev                           Hash
}

type needed struct {
	policy   string
	position int64
}

// erasure is a subject.erased that the walk has met.
type erasure struct {
	tenant, keyID string
	occurredUS    int64
	position      int64
}

// span checks the events of a range, in one statement.
func (r *audit) span(ctx context.Context, from, to int64) spanResult {
	s := spanResult{from: from, to: to, tenants: map[string]*tenantSpan{}, hashes: make([]Hash, 0, to-from)}
	if s.err = s.readArchive(ctx, r); s.err != nil { // before the statement, whose time is short
		return s
	}
	rows, err := r.pool.Query(ctx, `select p, `+EventColumns+` from events where p = $1 and pos > $2 and pos <= $3 order by pos`, r.p, from, to)
	if err != nil {
		s.err = err
		return s
	}
	defer rows.Close()
	next, preimage := from+1, make([]byte, 0, 1024)
	names := map[string]string{}
	for rows.Next() {
		var e Event
		wrong, err := rawEvent(rows.RawValues(), &e, names)
		if err != nil {
			s.err = err
			return s
		}
		if wrong != "" {
			s.fault(eventFault(e.Position, wrong, "want 32 octets"))
		}
		e.Payload = Payload(e.Payload)
		if e.Position != next {
			s.fault(eventFault(next, "pos", "it is missing: positions are dense"))
			next = e.Position
		}
		next++
		preimage = s.event(ctx, r, &e, preimage[:0])
	}
	s.archived = nil
	if s.err = errors.Join(s.err, rows.Err()); s.err == nil && next != to+1 {
		s.fault(eventFault(next, "pos", "it is missing: the head is at %d", to))
	}
	return s
}

func (s *spanResult) fault(f Fault) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, f)
	}
}

// event checks one event against those before it in the range.
func (s *spanResult) event(ctx context.Context, r *audit, e *Event, preimage []byte) []byte {
	s.hashes = append(s.hashes, e.Hash)
	read := e.Payload != nil || s.unarchive(ctx, r, e)
	if read && e.PayloadHash != sha256.Sum256(e.Payload) {
		s.fault(eventFault(e.Position, "payload_hash", "the payload hashes to %x", sha256.Sum256(e.Payload)))
	}
	preimage = e.Preimage(preimage)
	if e.Hash != sha256.Sum256(preimage) {
		s.fault(eventFault(e.Position, "hash", "the columns hash to %x", sha256.Sum256(preimage)))
	}
	edge := edgeEvent{e.Position, e.Tenant, e.More, e.IdemKey != nil, e.Hash}
	if s.first.position == 0 {
		s.first = edge
	} else if f := groupFault(s.last, edge); f != nil {
		s.fault(*f)
	}
	s.last = edge
	link := chainLink{e.Position, e.Sequence, e.OccurredUS, e.Prev}
	t := s.tenants[e.Tenant]
	if t == nil {
		t = &tenantSpan{first: link}
		s.tenants[e.Tenant] = t
	} else {
		for _, f := range chainFaults(link, t.last, e.Tenant) {
			s.fault(f)
		}
	}
	t.last = tenantHead{e.Sequence, e.Hash, e.OccurredUS}
	r.set.addEvent(e)
	if !read {
		s.unread++
		if e.Type == events.TypeDecisionRecorded {
			r.set.add(kindUnread, 0, e.Position, e.Tenant, e.Stream)
		}
		return preimage
	}
	if !r.ChainOnly || e.Tenant == ServiceIn(r.p) && (e.Stream == SigningKeyStream || e.Stream == CheckpointStream) || e.Type == events.TypeSubjectErased {
		s.record(ctx, r, e, t)
	}
	return preimage
}

// chainFaults is what an event says against the one before it of its tenant.
func chainFaults(e chainLink, before tenantHead, tenant string) []Fault {
	var faults []Fault
	if want := before.sequence + 1; e.sequence != want {
		faults = append(faults, eventFault(e.position, "tseq", "want %d of tenant %s", want, tenant))
	}
	if e.prev != before.hash {
		faults = append(faults, eventFault(e.position, "prev", "want %s, the hash of the tenant's previous event", before.hash))
	}
	if e.occurredUS < before.occurredUS {
		faults = append(faults, eventFault(e.position, "occurred_us", "want at least %d: times do not fall within a tenant", before.occurredUS))
	}
	return faults
}

// groupFault is what an event says against the one before it: the rest of an append
// follows its first event, which alone has a key.
func groupFault(before, e edgeEvent) *Fault {
	var f Fault
	switch first := before.more == 0; {
	case first && !e.keyed:
		f = eventFault(e.position, "idem_key", "want a key and a content hash on the first event of an append")
	case !first && e.keyed:
		f = eventFault(e.position, "idem_key", "want none within an append")
	case !first && (e.more != before.more-1 || e.tenant != before.tenant):
		f = eventFault(e.position, "more", "want %d of the append that began before", before.more-1)
	default:
		return nil
	}
	return &f
}

// rawEvent reads a row as it came, in PostgreSQL's binary form: pgx's Scan costs a
// third more. A short payload lives until the next row; names that repeat are shared.
// wrong is a column whose length is not that of a hash.
func rawEvent(raw [][]byte, e *Event, names map[string]string) (wrong string, err error) {
	if len(raw) != 19 {
		return "", fmt.Errorf("%d columns", len(raw))
	}
	name := func(b []byte) string {
		if shared, ok := names[string(b)]; ok {
			return shared
		}
		if len(names) > cachedHeads {
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
	for i, h := range []*Hash{&e.PayloadHash, &e.Prev, &e.Hash} {
		copy(h[:], raw[16+i])
		if len(raw[16+i]) != len(h) {
			wrong = [...]string{"payload_hash", "prev", "hash"}[i]
		}
	}
	return wrong, nil
}
