package ledger

import (
	"crypto/sha256"

	"github.com/countersign/countersign/ledger/internal/preimage"
)

// seriesKey identifies a series in memory. It is half of a hash of tenant, agent (empty for the
// tenant's series) and name. The garbage collector need not scan keys without pointers. If two
// series had the same key, the unique indexes would refuse the wrong number.
type seriesKey [16]byte

// seriesHead is the highest number of a series, or 0, and the hash of the event with that number.
type seriesHead struct {
	n    int64
	hash Hash
}

func keyOfSeries(tenant, agent, series string) seriesKey {
	var buffer [256]byte // long enough for most names, to avoid an allocation
	sum := sha256.Sum256(preimage.S(preimage.S(preimage.S(buffer[:0], tenant), agent), series))
	return seriesKey(sum[:16])
}

// newAgentKey is the cache key which records that the sequencer has appended the first event of an
// agent. Then a series of that agent that is not cached has no number yet. If another node has
// given it a number since, the unique index refuses the number 1, and the lock path reads the
// series. Without this record, each agent that exists for only one run would send a batch to the
// lock path for each of its series.
func newAgentKey(tenant, agent string) seriesKey { return keyOfSeries(tenant, agent, "") }

// newest returns the head of a series and whether it is known.
func (p *planner) newest(key seriesKey) (seriesHead, bool) {
	if head, ok := p.plan.head.series[key]; ok {
		return head, true
	}
	head, ok := p.before.series[key]
	return head, ok || p.before.complete
}

// newestOfAgent does the same as newest for a series of an agent, which may be new.
func (p *planner) newestOfAgent(d *Pending, ready *readyPayload) (seriesHead, bool) {
	head, known := p.newest(ready.inAgent)
	if !known {
		_, born := p.newest(ready.born)
		known = born || d.NewAgent
	}
	return head, known
}

// seriesKnown reports whether the head of every series of an append is known.
func (p *planner) seriesKnown(a *Append) bool {
	for i := range a.ready {
		ready := &a.ready[i]
		if ready.series == "" {
			continue
		}
		if _, known := p.newest(ready.inKind); !known {
			return false
		}
		if d := &a.Events[i]; d.Agent != "" {
			if _, known := p.newestOfAgent(d, ready); !known {
				return false
			}
		}
	}
	return true
}

// link sets the event's numbers in the series of its tenant and agent, and its hash.
func (p *planner) link(e *Event, d *Pending, ready *readyPayload) {
	if ready.series != "" {
		head, _ := p.newest(ready.inKind)
		e.Series, e.SeriesN, e.SeriesPrev = ready.series, head.n+1, head.link()
	}
	if d.Agent != "" {
		head, _ := p.newestOfAgent(d, ready)
		e.Agent, e.AgentN, e.AgentPrev = d.Agent, head.n+1, head.link()
	}
	e.Hash = e.Sum()
	if e.Series != "" {
		p.plan.head.series[ready.inKind] = seriesHead{e.SeriesN, e.Hash}
	}
	if e.Agent != "" {
		p.plan.head.series[ready.inAgent] = seriesHead{e.AgentN, e.Hash}
		if d.NewAgent {
			p.plan.head.series[ready.born] = seriesHead{}
		}
	}
}

// link returns the hash that the next event of the series must name, or nil before the first
// event.
func (h seriesHead) link() []byte {
	if h.n == 0 {
		return nil
	}
	return h.hash[:]
}

// follow updates the heads with an event that another node has appended.
func (h *heads) follow(e *Event) {
	h.position, h.hash = e.Position, e.Hash
	h.tenants[e.Tenant] = tenantHead{e.Sequence, e.Hash, e.OccurredUS}
	h.streams[streamName{e.Tenant, e.Stream}] = e.Version
	if e.Series != "" {
		h.series[keyOfSeries(e.Tenant, "", e.Series)] = seriesHead{e.SeriesN, e.Hash}
	}
	if e.Agent != "" {
		h.series[keyOfSeries(e.Tenant, e.Agent, e.Series)] = seriesHead{e.AgentN, e.Hash}
	}
}

// HalfNumber returns "series_n" or "agent_n", the first of these two numbers that is incomplete,
// or an empty string. A number is incomplete if the name of its series or agent or the hash of the
// previous event is missing, or if it is the first but has such a hash.
func (e *Event) HalfNumber() string {
	whole := func(name string, n int64, prev []byte) bool {
		if name == "" {
			return n == 0 && prev == nil
		}
		return n == 1 && prev == nil || n > 1 && len(prev) == len(Hash{})
	}
	switch {
	case !whole(e.Series, e.SeriesN, e.SeriesPrev):
		return "series_n"
	case !whole(e.Agent, e.AgentN, e.AgentPrev), e.Agent != "" && e.Series == "":
		return "agent_n"
	}
	return ""
}
