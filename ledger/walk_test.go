package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/countersign/countersign/ledger/events"
)

// walk checks events in memory by the rules of chains and appends, as an audit checks rows. It
// implements these rules a second time, without a database.
type walk struct {
	number  int16 // number of the partition
	origin  string
	faults  []string
	last    Event
	tenants map[string]Event // last event of each tenant
	streams map[streamName]int64
	series  map[[3]string]Event // last event by tenant, agent (empty for the tenant's own series) and name of the series
	idem    map[keyName]int64
}

// newWalk returns a walk that starts at the genesis of an origin.
func newWalk(origin string) *walk {
	return &walk{origin: origin, tenants: map[string]Event{}, streams: map[streamName]int64{}, series: map[[3]string]Event{}, idem: map[keyName]int64{}}
}

func (w *walk) fault(e Event, column, format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("pos %d, %s: ", e.Position, column)+fmt.Sprintf(format, args...))
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
	w.chain(e)
	w.numbers(e)
	if want := Hash(sha256.Sum256(e.Payload)); e.PayloadHash != want {
		w.fault(e, "payload_hash", "the payload hashes to %s", want)
	}
	if want := e.Sum(); e.Hash != want {
		w.fault(e, "hash", "the columns hash to %s", want)
	}
	w.group(e)
	if e.IdemKey != nil {
		name := keyName{e.Tenant, Hash(e.IdemKey)}
		if at, used := w.idem[name]; used {
			w.fault(e, "idem_key", "position %d has the same key", at)
		}
		w.idem[name] = e.Position
	}
	w.last = e
}

// chain compares an event with the previous event of its tenant.
func (w *walk) chain(e Event) {
	before, known := w.tenants[e.Tenant]
	if !known {
		before.Hash = Genesis(w.origin, e.Tenant)
	}
	if want := before.Sequence + 1; e.Sequence != want {
		w.fault(e, "tseq", "want %d", want)
	}
	if e.Prev != before.Hash {
		w.fault(e, "prev", "want %s", before.Hash)
	}
	if e.OccurredUS < before.OccurredUS {
		w.fault(e, "occurred_us", "want at least %d", before.OccurredUS)
	}
	w.tenants[e.Tenant] = e
}

// numbers compares an event with the previous event in each of its series.
func (w *walk) numbers(e Event) {
	series, err := events.SeriesOf(e.Type, e.Payload)
	agent, ofDecision := events.AgentOf(e.Type, e.Payload)
	if ofDecision {
		agent = e.Agent
	}
	if err != nil || e.Series != series || e.Agent != agent {
		w.fault(e, "series", "want %q of agent %q: %v", series, agent, err)
	}
	follow := func(column, agent string, n int64, prev []byte) {
		name := [3]string{e.Tenant, agent, e.Series}
		before, known := w.series[name]
		last := before.SeriesN
		if agent != "" {
			last = before.AgentN
		}
		if n != last+1 {
			w.fault(e, column+"_n", "want %d", last+1)
		}
		if known && !bytes.Equal(prev, before.Hash[:]) || !known && prev != nil {
			w.fault(e, column+"_prev", "want the hash of number %d", last)
		}
		w.series[name] = e
	}
	if e.Series != "" {
		follow("series", "", e.SeriesN, e.SeriesPrev)
	}
	if e.Agent != "" {
		follow("agent", e.Agent, e.AgentN, e.AgentPrev)
	}
}

// group compares an event with the previous event of the partition: the events of an append are
// adjacent, and only the first has a key.
func (w *walk) group(e Event) {
	first := w.last.More == 0
	switch {
	case first != (e.IdemKey != nil):
		w.fault(e, "idem_key", "want a key on the first event of an append and on no other")
	case !first && (e.More != w.last.More-1 || e.Tenant != w.last.Tenant):
		w.fault(e, "more", "want %d", w.last.More-1)
	}
}

// end returns a fault if the last append is incomplete.
func (w *walk) end() []string {
	if w.last.More > 0 {
		w.fault(w.last, "more", "the ledger ends within an append of which %d events are missing", w.last.More)
	}
	return w.faults
}
