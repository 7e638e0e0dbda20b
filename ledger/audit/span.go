package audit

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/pace"
	"github.com/countersign/countersign/ledger/stored"
)

// spanResult is the result of checking a range of events, with the data that the neighbouring
// ranges must agree with. Its size does not depend on the payloads.
type spanResult struct {
	err      error
	from, to int64 // the range begins after position from and ends with position to
	faults   []Fault
	hashes   []ledger.Hash
	records  int64
	unopened int64
	unread   int64
	void     voided
	archived []archivedSpan // objects of the archive; set only while the range is checked
	tenants  map[string]*tenantSpan
	first    edgeEvent
	last     edgeEvent
	keys     []ledger.Event
	erased   []erasure
	declared []int64 // epochs of declared rollbacks
}

// edgeEvent contains the data of the first or last event of a range that the neighbouring range
// needs.
type edgeEvent struct {
	position int64
	tenant   string
	more     int
	keyed    bool
	hash     ledger.Hash
}

// tenantSpan is the part of a tenant's chain inside a range.
type tenantSpan struct {
	first  chainLink
	last   chainEnd
	needs  needed // policy that must have been active at the start of the range
	policy string // policy that is active at the end, if the range has activated one
}

// chainEnd describes the last event of a tenant's chain so far.
type chainEnd struct {
	sequence   int64
	hash       ledger.Hash
	occurredUS int64
}

// chainLink contains what an event states about the tenant's previous event, and its own position.
type chainLink struct {
	position, sequence, occurredUS int64
	prev                           ledger.Hash
}

type needed struct {
	policy   string
	position int64
}

// erasure is an event subject.erased that the walk has found.
type erasure struct {
	tenant, keyID string
	occurredUS    int64
	position      int64
}

// span reads the events of a range and checks them. It reads them with one statement, or with many
// short ones while others append.
func (r *run) span(ctx context.Context, pace *pace.Pace, from, to int64) spanResult {
	s := spanResult{from: from, to: to, tenants: map[string]*tenantSpan{}, hashes: make([]ledger.Hash, 0, to-from)}
	if s.err = s.readArchive(ctx, r); s.err != nil { // read before the statements, which have a short time limit
		return s
	}
	for at := from; at < to && s.err == nil; {
		if s.err = pace.Rest(ctx); s.err != nil {
			return s
		}
		end := at + pace.Part(to-at)
		s.err = s.part(ctx, r, at, end)
		at = end
	}
	s.archived = nil
	return s
}

// part reads the events after position from, up to position to, with one statement and checks them.
func (s *spanResult) part(ctx context.Context, r *run, from, to int64) error {
	rows, err := r.pool.Query(ctx, `select p, `+ledger.EventColumns+` from events where p = $1 and pos > $2 and pos <= $3 order by pos`, r.p, from, to)
	if err != nil {
		return err
	}
	defer rows.Close()
	next, preimage := from+1, make([]byte, 0, 1024)
	names := map[string]string{}
	for rows.Next() {
		var e ledger.Event
		if err := rawEvent(rows.RawValues(), &e, names); err != nil {
			return err
		}
		if f := wrongForm(rows.RawValues(), &e); f != nil {
			s.fault(*f)
		}
		e.Payload = stored.Payload(e.Payload)
		if e.Position != next {
			s.fault(eventFault(next, "pos", "the event is missing: positions must be dense"))
			next = e.Position
		}
		next++
		preimage = s.event(ctx, r, &e, preimage[:0])
	}
	if err := errors.Join(s.err, rows.Err()); err != nil {
		return err
	}
	if next != to+1 {
		s.fault(eventFault(next, "pos", "the event is missing: the events should continue to position %d", to))
	}
	return nil
}

func (s *spanResult) fault(f Fault) {
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, f)
	}
}

// event checks an event alone and against the previous events in the range.
func (s *spanResult) event(ctx context.Context, r *run, e *ledger.Event, preimage []byte) []byte {
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
	t.last = chainEnd{e.Sequence, e.Hash, e.OccurredUS}
	r.set.addEvent(e)
	s.numbers(r, e, read)
	if !read {
		s.unread++
		if e.Type == events.TypeDecisionRecorded {
			r.set.add(kindUnread, 0, e.Position, e.Tenant, e.Stream)
		}
		return preimage
	}
	if !r.ChainOnly || e.Tenant == ledger.ServiceIn(r.p) && (e.Stream == ledger.SigningKeyStream || e.Stream == keeper.Stream) || e.Type == events.TypeSubjectErased {
		s.record(ctx, r, e, t)
	}
	for _, entry := range events.EntriesOf(e.Type, e.Tenant, e.Stream, e.Actor, e.Payload) {
		r.set.add(kindEntered, e.Position, e.Position, entry.Name, entry.Value)
	}
	return preimage
}

// chainFaults compares an event with the previous event of its tenant.
func chainFaults(e chainLink, before chainEnd, tenant string) []Fault {
	var faults []Fault
	if want := before.sequence + 1; e.sequence != want {
		faults = append(faults, eventFault(e.position, "tseq", "must be %d in tenant %s", want, tenant))
	}
	if e.prev != before.hash {
		faults = append(faults, eventFault(e.position, "prev", "must be %s, the hash of the tenant's previous event", before.hash))
	}
	if e.occurredUS < before.occurredUS {
		faults = append(faults, eventFault(e.position, "occurred_us", "must be at least %d: times never decrease within a tenant", before.occurredUS))
	}
	return faults
}

// groupFault compares an event with the previous event of the partition: the events of an append
// are adjacent, and only the first has a key.
func groupFault(before, e edgeEvent) *Fault {
	var f Fault
	switch first := before.more == 0; {
	case first && !e.keyed:
		f = eventFault(e.position, "idem_key", "the first event of an append must have a key and a content hash")
	case !first && e.keyed:
		f = eventFault(e.position, "idem_key", "must be null: only the first event of an append has a key")
	case !first && (e.more != before.more-1 || e.tenant != before.tenant):
		f = eventFault(e.position, "more", "must be %d in an append that has not ended", before.more-1)
	default:
		return nil
	}
	return &f
}
