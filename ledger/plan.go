package ledger

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/preimage"
)

// heads contains the last positions, versions and numbers that makePlan needs. The sequencer owns
// its cached heads. Heads that were read under the lock are valid for one batch.
type heads struct {
	position int64
	hash     Hash // hash of the event at position
	epoch    int64
	tenants  map[string]tenantHead
	streams  map[streamName]int64 // last version of each stream
	series   map[seriesKey]seriesHead
	keys     keyTable
	complete bool // read under the lock: a key that is missing in these maps is missing in the table
}

// newHeads returns heads with empty maps.
func newHeads(position int64, hash Hash, epoch int64, keys keyTable) *heads {
	return &heads{position: position, hash: hash, epoch: epoch, keys: keys,
		tenants: map[string]tenantHead{}, streams: map[streamName]int64{}, series: map[seriesKey]seriesHead{}}
}

type tenantHead struct {
	sequence   int64
	hash       Hash
	occurredUS int64
}

type streamName struct{ tenant, stream string }

type keyName struct {
	tenant string
	key    Hash
}

type keyHit struct {
	content  Hash
	position int64
}

// keyTable finds the append that has used an idempotency key.
type keyTable interface{ find(keyName) (keyHit, bool) }

type keyMap map[keyName]keyHit

func (m keyMap) find(k keyName) (keyHit, bool) { hit, ok := m[k]; return hit, ok }

// outcome is the answer to one append. It is valid once the rows of the plan are committed.
type outcome struct {
	events   []Event
	replayed bool
	position int64 // position of the first event, if replayed
	err      error
}

// plan contains the rows and the answers of a batch.
type plan struct {
	events        []Event
	stored        [][]byte // payload of each event in the form that its row stores
	outcomes      []outcome
	preconditions []Precondition      // the table must not have a later version of these streams
	head          heads               // position and hash after the rows, and the tenants and streams that change
	counted       map[streamName]bool // streams written with Any, which are likely to be written again
	entries       []entry             // rows for the directory
}

// entry is a directory entry with the position of its event.
type entry struct {
	events.Entry
	position int64
}

// errUnknownHead means that the cache lacks a head that this batch needs.
var errUnknownHead = errors.New("a head is not cached")

// planner builds one plan. Each append sees the effects of the appends before it.
type planner struct {
	number        int16
	origin        string
	nowUS         int64
	before        *heads
	plan          plan
	keys          keyMap // keys of this batch
	preconditions map[Precondition]bool
}

// makePlan computes rows and answers from the heads and the appends, in order of arrival. It has
// no side effects.
func makePlan(number int16, origin string, nowUS int64, before *heads, appends []*Append) (plan, error) {
	p := planner{
		number: number, origin: origin, nowUS: nowUS, before: before,
		keys: keyMap{}, preconditions: map[Precondition]bool{},
		plan: plan{counted: map[streamName]bool{}, head: *newHeads(before.position, before.hash, before.epoch, nil)},
	}
	for _, a := range appends {
		out, err := p.add(a)
		if err != nil {
			return plan{}, err
		}
		p.plan.outcomes = append(p.plan.outcomes, out)
	}
	p.plan.head.keys = p.keys
	return p.plan, nil
}

// add plans one append. The only error is errUnknownHead; a refusal is an outcome.
func (p *planner) add(a *Append) (outcome, error) {
	name := keyName{a.Tenant, a.IdemKey}
	hit, found := p.keys.find(name)
	if !found {
		hit, found = p.before.keys.find(name)
	}
	switch {
	case found && hit.content != a.ContentHash:
		return outcome{err: ErrKeyReused}, nil
	case found:
		return outcome{replayed: true, position: hit.position}, nil
	}
	tenant, known := p.tenant(a.Tenant)
	if !known {
		return outcome{}, errUnknownHead
	}
	for _, g := range a.Preconditions {
		if p.stale(streamName{g.Tenant, g.Stream}, g.Version) {
			return outcome{}, errUnknownHead
		}
		if moved := p.preconditionMoved(g); moved {
			return outcome{err: fmt.Errorf("%w: %s", ErrMoved, g.Stream)}, nil
		}
	}
	if behind := p.nowUS < tenant.occurredUS; behind && !a.Issued.IsZero() && a.Issued.UnixMilli() < tenant.occurredUS/1000 {
		return outcome{err: fmt.Errorf("%w: the last event of %s is later than the record", ErrMoved, a.Tenant)}, nil
	}
	versions, refusal, err := p.versions(a)
	if err != nil || refusal != nil {
		return outcome{err: refusal}, err
	}
	if !p.seriesKnown(a) {
		return outcome{}, errUnknownHead
	}
	return p.rows(a, tenant, versions), nil
}

func (p *planner) tenant(name string) (tenantHead, bool) {
	if t, ok := p.plan.head.tenants[name]; ok {
		return t, true
	}
	if t, ok := p.before.tenants[name]; ok {
		return t, true
	}
	return tenantHead{hash: Genesis(p.origin, name)}, p.before.complete
}

// version returns the last version of a stream and whether it is known.
func (p *planner) version(s streamName) (int64, bool) {
	if v, ok := p.plan.head.streams[s]; ok {
		return v, true
	}
	v, ok := p.before.streams[s]
	return v, ok || p.before.complete
}

// stale reports whether the caller has read a later version than the cache has. Then another node
// has written the stream.
func (p *planner) stale(s streamName, read int64) bool {
	last, known := p.version(s)
	return known && read > last && !p.before.complete
}

// preconditionMoved reports whether a precondition fails according to the known versions. If the
// version is unknown or only cached, it adds the precondition to the plan, so that the statement
// of the fast path checks it.
func (p *planner) preconditionMoved(g Precondition) bool {
	if v, known := p.version(streamName{g.Tenant, g.Stream}); known {
		if v != g.Version {
			return true
		}
		if p.before.complete {
			return false
		}
		if _, ours := p.plan.head.streams[streamName{g.Tenant, g.Stream}]; ours {
			return false // the new version comes from an append of this batch
		}
	}
	if !p.preconditions[g] {
		p.preconditions[g] = true
		p.plan.preconditions = append(p.plan.preconditions, g)
	}
	return false
}

// versions finds the version of each event. If two events are for one stream, the second gets the
// version after the first.
func (p *planner) versions(a *Append) (versions []int64, refusal, err error) {
	own := map[streamName]int64{}
	for _, d := range a.Events {
		s := streamName{a.Tenant, d.Stream}
		last, known := own[s]
		if !known {
			last, known = p.version(s)
		}
		if d.Expect.kind == expectAny {
			p.plan.counted[s] = true
		}
		switch {
		case d.Expect.kind == expectAny && !known:
			return nil, nil, errUnknownHead
		case d.Expect.kind == expectAny && last >= d.Expect.value:
			return nil, fmt.Errorf("%w: %s", ErrLimit, d.Stream), nil
		case d.Expect.kind == expectAt && p.stale(s, d.Expect.value):
			return nil, nil, errUnknownHead
		case d.Expect.kind == expectAt && !known:
			last = d.Expect.value // if the caller's version is wrong, the unique constraint refuses the row
		case d.Expect.kind == expectAt && last != d.Expect.value:
			return nil, fmt.Errorf("%w: %s", ErrMoved, d.Stream), nil
		}
		own[s] = last + 1
		versions = append(versions, last+1)
	}
	return versions, nil, nil
}

// rows adds the events of an append to the plan and advances the heads.
func (p *planner) rows(a *Append, tenant tenantHead, versions []int64) outcome {
	head := &p.plan.head
	start := len(p.plan.events)
	occurred := max(p.nowUS, tenant.occurredUS, a.Issued.UnixMicro(), a.NotBefore.UnixMicro())
	p.keys[keyName{a.Tenant, a.IdemKey}] = keyHit{a.ContentHash, head.position + 1}
	for i, d := range a.Events {
		e := Event{
			Partition: p.number, Position: head.position + 1,
			Tenant: a.Tenant, Sequence: tenant.sequence + 1,
			Stream: d.Stream, Version: versions[i],
			ID: d.ID, Type: d.Type, SchemaVersion: d.SchemaVersion,
			More: len(a.Events) - 1 - i, OccurredUS: occurred,
			Actor: d.Actor, KeyID: d.KeyID,
			Payload: d.Payload, PayloadHash: a.ready[i].hash, Prev: tenant.hash,
		}
		if i == 0 {
			// These are copies: readers keep events, and a slice of the append would keep the
			// whole append in memory.
			e.IdemKey, e.ContentHash = bytes.Clone(a.IdemKey[:]), bytes.Clone(a.ContentHash[:])
		}
		p.link(&e, &a.Events[i], &a.ready[i])
		tenant = tenantHead{e.Sequence, e.Hash, e.OccurredUS}
		head.position, head.hash = e.Position, e.Hash
		head.streams[streamName{a.Tenant, d.Stream}] = e.Version
		p.plan.events = append(p.plan.events, e)
		p.plan.stored = append(p.plan.stored, a.ready[i].stored)
		for _, of := range a.ready[i].entries {
			p.plan.entries = append(p.plan.entries, entry{of, e.Position})
		}
	}
	head.tenants[a.Tenant] = tenant
	return outcome{events: p.plan.events[start:len(p.plan.events):len(p.plan.events)]}
}

// erases reports whether the transaction must also destroy a data key. That needs a second
// statement, which only the lock path can run.
func (p *plan) erases() bool {
	return slices.ContainsFunc(p.events, func(e Event) bool { return e.Type == events.TypeSubjectErased })
}

// numbered reports whether any event has a number in a series.
func (p *plan) numbered() bool {
	return slices.ContainsFunc(p.events, func(e Event) bool { return e.Series != "" })
}

// settle completes the answers to replays whose first append is in the same batch. It is called
// after the commit.
func (p *plan) settle() {
	for i, out := range p.outcomes {
		if first := p.head.position - int64(len(p.events)); out.replayed && out.position > first {
			e := p.events[out.position-first-1:]
			p.outcomes[i].events = e[:e[0].More+1]
		}
	}
}

// advance moves the heads to the end of a committed plan. Of the streams it caches only those that
// are written with Any: nearly all others are written once, and their appends name the version.
func (h *heads) advance(after *heads, counted map[streamName]bool) {
	h.position, h.hash = after.position, after.hash
	maps.Copy(h.tenants, after.tenants)
	for s, version := range after.streams {
		if _, kept := h.streams[s]; kept || counted[s] {
			h.streams[s] = version
		}
	}
	maps.Copy(h.series, after.series)
	halve(h.streams)
	halve(h.tenants)
	halve(h.series)
}

// halve drops an arbitrary half of a full cache. If it dropped all entries, the sequencer would
// have to read all heads again at once.
func halve[K comparable, V any](cache map[K]V) {
	if len(cache) <= cachedHeads {
		return
	}
	for k := range cache {
		if len(cache) <= cachedHeads/2 {
			return
		}
		delete(cache, k)
	}
}

// recent caches the idempotency keys of the last appends and drops the oldest first. It stores
// hashes, because tens of thousands of strings would burden the garbage collector.
type recent struct {
	hits map[Hash]keyHit
	ring []Hash // grows to recentKeys
	next int    // index of the oldest key once the ring is full
}

func newRecent() *recent { return &recent{hits: map[Hash]keyHit{}} }

func (k keyName) hash() Hash {
	var buffer [128]byte // long enough for most keys, to avoid an allocation
	return sha256.Sum256(append(preimage.S(buffer[:0], k.tenant), k.key[:]...))
}

func (r *recent) find(k keyName) (keyHit, bool) {
	hit, ok := r.hits[k.hash()]
	return hit, ok
}

func (r *recent) add(k keyName, hit keyHit) {
	name := k.hash()
	if _, known := r.hits[name]; known {
		r.hits[name] = hit
		return
	}
	r.hits[name] = hit
	if len(r.ring) < recentKeys {
		r.ring = append(r.ring, name)
		return
	}
	delete(r.hits, r.ring[r.next])
	r.ring[r.next], r.next = name, (r.next+1)%recentKeys
}
