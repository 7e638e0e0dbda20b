package ledger

import (
	"crypto/sha256"

	"github.com/countersign/countersign/ledger/internal/preimage"
)

// seriesKey stands for a series in memory: half of a hash of tenant, agent (empty for the
// series of the tenant) and name. Keys without pointers cost the garbage collector nothing.
// If two names had one key, the unique indexes would refuse the wrong number.
type seriesKey [16]byte

// seriesHead is the newest number of a series, 0 for none, and the hash of its event.
type seriesHead struct {
	n    int64
	hash Hash
}

func keyOfSeries(tenant, agent, series string) seriesKey {
	var buffer [256]byte // enough for most names without an allocation
	sum := sha256.Sum256(preimage.S(preimage.S(preimage.S(buffer[:0], tenant), agent), series))
	return seriesKey(sum[:16])
}

// newAgentKey is the key under which the sequencer notes that it has appended the first event
// of an agent. A series of that agent which is not cached has no number yet, unless another
// node has given one since: then the unique index refuses the number 1, and the lock path
// looks the series up. Without this note each agent that lives for one run would send a batch
// to the lock path for each of its series.
func newAgentKey(tenant, agent string) seriesKey { return keyOfSeries(tenant, agent, "") }

// newest returns the head of a series, and whether it is known.
func (p *planner) newest(key seriesKey) (seriesHead, bool) {
	if head, ok := p.plan.head.series[key]; ok {
		return head, true
	}
	head, ok := p.before.series[key]
	return head, ok || p.before.complete
}

// newestOfAgent is newest for the series of an agent, which may be new.
func (p *planner) newestOfAgent(d *Pending, ready *readyPayload) (seriesHead, bool) {
	head, known := p.newest(ready.inAgent)
	if !known {
		_, born := p.newest(ready.born)
		known = born || d.NewAgent
	}
	return head, known
}

// seriesKnown says whether the head of each series of an append is known.
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

// link gives an event its numbers in the series of its tenant and agent, and its hash.
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

// link is the hash that the next event of the series names, nil before the first.
func (h seriesHead) link() []byte {
	if h.n == 0 {
		return nil
	}
	return h.hash[:]
}

// follow adds an event that another node has appended to heads.
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

// HalfNumber returns the column of the first number that is incomplete: that lacks the name of
// its series or agent or the hash of the number before it, or has a hash although there is no
// number before it. It is empty if the event has each number completely or not at all.
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
