package ledger

import "crypto/sha256"

// walk checks events in memory as the audit checks rows: by the same rules of
// chains and appends, without a database.
type walk struct {
	number  int16 // of the partition
	origin  string
	faults  []Fault
	last    Event
	tenants map[string]tenantHead
	streams map[streamName]int64
	idem    map[keyName]int64
}

// newWalk starts at the genesis of an origin.
func newWalk(origin string) *walk {
	return &walk{origin: origin, tenants: map[string]tenantHead{}, streams: map[streamName]int64{}, idem: map[keyName]int64{}}
}

func (w *walk) fault(e Event, column, format string, args ...any) {
	w.faults = append(w.faults, eventFault(e.Position, column, format, args...))
}

// next checks the next event by position.
func (w *walk) next(e Event) {
	if e.Partition != w.number {
		w.fault(e, "p", "want %d", w.number)
	}
	if want := w.last.Position + 1; e.Position != want {
		w.fault(e, "pos", "want %d: positions are dense", want)
	}
	stream := streamName{e.Tenant, e.Stream}
	if want := w.streams[stream] + 1; e.Version != want {
		w.fault(e, "version", "want %d in stream %s", want, e.Stream)
	}
	w.streams[stream] = e.Version
	before, known := w.tenants[e.Tenant]
	if !known {
		before.hash = Genesis(w.origin, e.Tenant)
	}
	w.faults = append(w.faults, chainFaults(chainLink{e.Position, e.Sequence, e.OccurredUS, e.Prev}, before, e.Tenant)...)
	w.tenants[e.Tenant] = tenantHead{e.Sequence, e.Hash, e.OccurredUS}
	if want := Hash(sha256.Sum256(e.Payload)); e.PayloadHash != want {
		w.fault(e, "payload_hash", "the payload hashes to %s", want)
	}
	if want := e.Sum(); e.Hash != want {
		w.fault(e, "hash", "the columns hash to %s", want)
	}
	if f := groupFault(edge(w.last), edge(e)); f != nil {
		w.faults = append(w.faults, *f)
	}
	if e.IdemKey != nil {
		name := keyName{e.Tenant, Hash(e.IdemKey)}
		if at, used := w.idem[name]; used {
			w.fault(e, "idem_key", "position %d has the same key", at)
		}
		w.idem[name] = e.Position
	}
	w.last = e
}

// end says what is wrong at the end: an append that was cut off.
func (w *walk) end() []Fault {
	if w.last.More > 0 {
		w.fault(w.last, "more", "the ledger ends within an append of which %d events are missing", w.last.More)
	}
	return w.faults
}

func edge(e Event) edgeEvent {
	return edgeEvent{e.Position, e.Tenant, e.More, e.IdemKey != nil, e.Hash}
}
