package ledger

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/events"
)

// table replaces PostgreSQL in the planner's simulation. It has the constraints of the real table,
// and it can hide whether a commit succeeded.
type table struct {
	origin string
	events []Event
}

func (tb *table) heads() *heads {
	keys := keyMap{}
	h := newHeads(0, Genesis(tb.origin, ""), 1, keys)
	h.complete = true
	for _, e := range tb.events {
		h.follow(&e)
		if e.IdemKey != nil {
			keys[keyName{e.Tenant, Hash(e.IdemKey)}] = keyHit{Hash(e.ContentHash), e.Position}
		}
	}
	return h
}

// planned prepares the appends and calls makePlan.
func planned(number int16, origin string, nowUS int64, before *heads, appends []*Append) (plan, error) {
	for _, a := range appends {
		if err := a.makeReady(); err != nil {
			return plan{}, err
		}
	}
	return makePlan(number, origin, nowUS, before, appends)
}

// swap simulates the statement of the fast path.
func (tb *table) swap(before *heads, p *plan) bool {
	now := tb.heads()
	if now.position != before.position || now.hash != before.hash {
		return false
	}
	for _, g := range p.preconditions {
		if now.streams[streamName{g.Tenant, g.Stream}] != g.Version {
			return false
		}
	}
	for _, e := range p.events {
		if e.Version <= now.streams[streamName{e.Tenant, e.Stream}] {
			return false
		}
		if e.Series != "" && e.SeriesN <= now.series[keyOfSeries(e.Tenant, "", e.Series)].n ||
			e.Agent != "" && e.AgentN <= now.series[keyOfSeries(e.Tenant, e.Agent, e.Series)].n {
			return false
		}
		if e.IdemKey != nil {
			if _, used := now.keys.find(keyName{e.Tenant, Hash(e.IdemKey)}); used {
				return false
			}
		}
	}
	tb.events = append(tb.events, p.events...)
	return true
}

// node is a sequencer without a database connection.
type node struct {
	number int16
	cache  *heads
}

// fate is the simulated result of a commit on the fast path.
type fate int

const (
	goesWell  fate = iota
	cutBefore      // the connection broke before the commit
	cutAfter       // the connection broke after the commit; the node cannot distinguish this from cutBefore
)

func (n *node) append(tb *table, now int64, becomes fate, appends []*Append) (plan, bool) {
	if n.cache != nil {
		p, err := planned(n.number, originOf(n.number), now, n.cache, appends)
		if err == nil {
			switch {
			case len(p.events) == 0:
				return p, true
			case becomes == cutBefore:
				n.cache = nil
			case becomes == cutAfter:
				tb.swap(n.cache, &p)
				n.cache = nil
			case tb.swap(n.cache, &p):
				n.cache.advance(&p.head, p.counted)
				maps.Copy(n.cache.keys.(keyMap), p.head.keys.(keyMap))
				p.settle()
				return p, true
			}
		}
	}
	h := tb.heads() // heads under the lock
	if n.cache != nil && n.cache.position != h.position {
		n.catchUp(tb, h)
	}
	p, err := planned(n.number, originOf(n.number), now, h, appends)
	if err != nil {
		return p, false
	}
	tb.events = append(tb.events, p.events...)
	if n.cache == nil {
		n.cache = newHeads(0, Hash{}, 1, keyMap{})
	}
	n.cache.advance(n.looked(h, appends), p.counted)
	n.cache.advance(&p.head, p.counted)
	p.settle()
	return p, true
}

// catchUp follows the events that the other node has appended, as the sequencer does. One time in
// three it drops the cache, as after too many events.
func (n *node) catchUp(tb *table, locked *heads) {
	s := sequencer{heads: n.cache}
	since := tb.events[n.cache.position:]
	if locked.position%3 == 0 {
		since = nil
	}
	s.catchUp(since, locked)
	n.cache = s.heads
}

// looked returns only the heads that a batch reads under the lock.
func (n *node) looked(h *heads, appends []*Append) *heads {
	few := newHeads(h.position, h.hash, h.epoch, nil)
	for _, a := range appends {
		if t, ok := h.tenants[a.Tenant]; ok {
			few.tenants[a.Tenant] = t
		}
		for i, d := range a.Events {
			name := streamName{a.Tenant, d.Stream}
			few.streams[name] = h.streams[name]
			for _, key := range []seriesKey{a.ready[i].inKind, a.ready[i].inAgent} {
				if head, ok := h.series[key]; ok {
					few.series[key] = head
				}
			}
		}
	}
	return few
}

// model contains two nodes on one table, and the results that were acknowledged so far.
type model struct {
	tb       *table
	nodes    [2]node
	results  map[keyName]string
	contents map[keyName]Hash
	walked   *walk
	checked  int
}

func originOf(partition int16) string { return fmt.Sprintf("o/%d", partition) }

func newModel(partition int16) *model {
	m := &model{tb: &table{origin: originOf(partition)}, results: map[keyName]string{}, contents: map[keyName]Hash{}, walked: newWalk(originOf(partition))}
	m.walked.number, m.nodes[0].number, m.nodes[1].number = partition, partition, partition
	return m
}

// append lets one node append. It checks the chain, and that each key has one content and one
// result.
func (m *model) append(which int, now int64, becomes fate, appends []*Append) error {
	p, ok := m.nodes[which].append(m.tb, now, becomes, appends)
	if !ok {
		return errors.New("a complete plan failed")
	}
	for i, out := range p.outcomes {
		name := keyName{appends[i].Tenant, appends[i].IdemKey}
		if out.err != nil {
			content, used := m.contents[name]
			if errors.Is(out.err, ErrKeyReused) && used && content == appends[i].ContentHash {
				return errors.New("equal content refused")
			}
			continue
		}
		position := out.position
		if len(out.events) > 0 {
			position = out.events[0].Position
		}
		result := fmt.Sprint(position)
		if before, known := m.results[name]; known && before != result {
			return fmt.Errorf("one key has two results, %s and %s", before, result)
		}
		m.results[name], m.contents[name] = result, appends[i].ContentHash
	}
	for _, e := range m.tb.events[m.checked:] {
		m.walked.next(e)
	}
	if m.checked = len(m.tb.events); len(m.walked.faults) > 0 {
		return fmt.Errorf("%v", m.walked.faults[0])
	}
	return nil
}

// TestPlannerSimulation runs random appends of two nodes against a table that loses commits. It
// prints the seed; the variable SEED repeats a run.
func TestPlannerSimulation(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	for _, n := range []int{1, 3, 16} {
		t.Run(fmt.Sprint("partitions ", n), func(t *testing.T) { simulate(t, rand.New(rand.NewPCG(seed, uint64(n))), n) })
	}
}

// simulate runs two nodes on a ledger of n partitions. Partitions are independent, so each is a
// separate model with its own tenants.
func simulate(t *testing.T, r *rand.Rand, n int) {
	models, tenants := make([]*model, n), make([][]string, n)
	for i := 0; slices.ContainsFunc(tenants, func(list []string) bool { return len(list) < 3 }); i++ {
		tenant := fmt.Sprint("t", i)
		home := Home(tenant, n)
		tenants[home] = append(tenants[home], tenant)
	}
	for p := range models {
		models[p] = newModel(int16(p))
	}
	for step, operations := 0, 0; operations < 100_000/3; step++ {
		p := r.IntN(n)
		m := models[p]
		var appends []*Append
		for range 1 + r.IntN(8) {
			appends = append(appends, randomAppend(r, m.tb, tenants[p]))
		}
		operations += len(appends)
		becomes := goesWell
		switch r.IntN(10) {
		case 0:
			becomes = cutBefore
		case 1:
			becomes = cutAfter
		}
		if err := m.append(r.IntN(2), int64(1_000_000+r.IntN(1000)), becomes, appends); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if len(m.tb.events) > 150 { // start over, so that the model's heads stay small
			models[p] = newModel(int16(p))
		}
	}
}

// TestEveryShortRunOfThePlanner tries every sequence of three steps of two nodes that know the
// table. A step chooses the node, the batch, and what happens to the commit. A node plans from its
// cached heads, so the sequences include a plan that is older than the other node's commit.
func TestEveryShortRunOfThePlanner(t *testing.T) {
	t.Parallel()
	one := func(key, content byte, stream string, e Expect, preconditions ...Precondition) *Append {
		return &Append{Tenant: "t", IdemKey: Hash{key}, ContentHash: Hash{content}, Preconditions: preconditions,
			Events: []Pending{{Stream: stream, Expect: e, ID: fmt.Sprint("evt_", key, content), Type: "x", Payload: []byte(`{}`)}}}
	}
	batches := [][]*Append{
		{one(1, 0, "a", New())},                                                 // a key and its content
		{one(1, 1, "a", Any(9))},                                                // the same key with other content
		{one(2, 0, "a", Any(2))},                                                // a stream with a limit
		{one(3, 0, "b", New(), Precondition{"t", "a", 0})},                      // valid until a node has written the other stream
		{one(2, 0, "a", Any(2)), one(1, 0, "a", New()), one(2, 0, "a", Any(2))}, // a batch that repeats an append
		{numbered(one(4, 0, "c", New()), "deny", "sub_1", true), numbered(one(5, 0, "d", New()), "allow", "sub_1", false)}, // both nodes may assume that the agent is new
	}
	const steps = 3
	choices, runs := 2*len(batches)*3, 0
	total := choices * choices * choices
	for run := range total {
		m := newModel(0)
		for which := range m.nodes { // let both nodes read the table
			if err := m.append(which, 1, goesWell, []*Append{one(byte(100+which), 0, fmt.Sprint("own", which), New())}); err != nil {
				t.Fatal(err)
			}
		}
		for step, rest := 0, run; step < steps; step++ {
			choice := rest % choices
			rest /= choices
			if err := m.append(choice%2, int64(2+step), fate(choice/2%3), batches[choice/6]); err != nil {
				t.Fatalf("run %d, step %d (node %d, fate %d, batch %d): %v", run, step, choice%2, choice/2%3, choice/6, err)
			}
		}
		runs++
	}
	t.Logf("%d runs", runs)
}

func randomAppend(r *rand.Rand, tb *table, tenants []string) *Append {
	a := &Append{
		Tenant:  tenants[r.IntN(3)],
		IdemKey: IdemKey("op", fmt.Sprint(r.IntN(60))), ContentHash: Hash{byte(r.IntN(2))},
	}
	known := tb.heads()
	for range 1 + r.IntN(3) {
		stream := fmt.Sprint("s", r.IntN(4))
		expect := Any(int64(1 + r.IntN(60)))
		if r.IntN(2) == 0 {
			expect = Expect{expectAt, known.streams[streamName{a.Tenant, stream}]}
		}
		a.Events = append(a.Events, Pending{Stream: stream, Expect: expect, ID: fmt.Sprint(r.Uint64()), Type: "x", Payload: []byte(`{}`)})
	}
	if r.IntN(2) == 0 { // numbered, without an agent or with one of five; some agents are falsely declared new
		agent := ""
		if n := r.IntN(6); n > 0 {
			agent = fmt.Sprint("sub_", n)
		}
		numbered(a, []string{"allow", "deny", "needs_review"}[r.IntN(3)], agent, agent != "" && r.IntN(4) == 0)
	}
	if r.IntN(3) == 0 {
		g := streamName{tenants[r.IntN(3)], fmt.Sprint("s", r.IntN(4))}
		a.Preconditions = []Precondition{{g.tenant, g.stream, known.streams[g]}}
	}
	return a
}

// numbered turns the events of an append into decisions with one outcome and agent.
func numbered(a *Append, outcome, agent string, isNew bool) *Append {
	payload := fmt.Sprintf(`{"record":{"decision":%q,"subject":{"agentId":"x"}},"sealed":{"keyId":%q}}`, outcome, agent)
	if agent == "" {
		payload = fmt.Sprintf(`{"record":{"decision":%q,"subject":{}}}`, outcome)
	}
	for i := range a.Events {
		d := &a.Events[i]
		d.Type, d.Payload, d.Agent, d.NewAgent = events.TypeDecisionRecorded, []byte(payload), agent, isNew
	}
	return a
}

func TestPlanRefusesOnlyTheOffender(t *testing.T) {
	t.Parallel()
	before := (&table{origin: "o/0"}).heads()
	pending := func(stream string, e Expect) []Pending {
		return []Pending{{Stream: stream, Expect: e, ID: stream, Type: "x", Payload: []byte(`{}`)}}
	}
	moved := History{Events: make([]Event, 3)}
	appends := []*Append{
		{Tenant: "t", IdemKey: Hash{1}, Events: pending("a", New())},
		{Tenant: "t", IdemKey: Hash{2}, Events: pending("a", New())},
		{Tenant: "t", IdemKey: Hash{1}, Events: pending("a", New())},
		{Tenant: "t", IdemKey: Hash{1}, ContentHash: Hash{9}, Events: pending("a", New())},
		{Tenant: "t", IdemKey: Hash{3}, Events: pending("b", moved.At())},
		{Tenant: "t", IdemKey: Hash{4}, Events: pending("a", Any(1))},
		{Tenant: "t", IdemKey: Hash{5}, Events: pending("a", Any(2))},
		{Tenant: "t", IdemKey: Hash{6}, Events: pending("c", New()), Preconditions: []Precondition{{"t", "a", 1}}},
		{Tenant: "t", IdemKey: Hash{7}, Events: pending("c", New()), Preconditions: []Precondition{{"t", "a", 2}}},
	}
	p, err := planned(0, "o/0", 1, before, appends)
	if err != nil {
		t.Fatal(err)
	}
	p.settle()
	want := []error{nil, ErrMoved, nil, ErrKeyReused, ErrMoved, ErrLimit, nil, ErrMoved, nil}
	for i, out := range p.outcomes {
		if !errors.Is(out.err, want[i]) {
			t.Errorf("append %d: got %v, want %v", i+1, out.err, want[i])
		}
	}
	if len(p.events) != 3 {
		t.Errorf("%d rows, want 3", len(p.events))
	}
	if again := p.outcomes[2]; !again.replayed || len(again.events) != 1 || again.events[0].Position != 1 {
		t.Errorf("an equal append of the same batch got %+v, want the first one's event", again)
	}
}

// A record contains the time of its issue. If the node's clock is behind the tenant's last event,
// the append is refused unless the record's time is at or after that event. If the clock is not
// behind, a batch may be committed later than the times in its records.
func TestPlanRefusesARecordIssuedBeforeTheLastEvent(t *testing.T) {
	t.Parallel()
	const last = 1_795_186_800_500_900 // microseconds
	before := (&table{origin: "o/0"}).heads()
	before.tenants["t"] = tenantHead{sequence: 1, occurredUS: last}
	for _, tc := range []struct {
		now, issued int64 // microseconds after the last event
		want        error
	}{
		{-3600e6, -3600e6, ErrMoved}, // a node whose clock is an hour behind
		{-3600e6, -900, nil},         // the clock is behind too, but the record took its time from the last event, to the millisecond
		{-3600e6, -901, ErrMoved},
		{0, -1e6, nil}, // the append waited in the queue
		{1e6, -1e6, nil},
	} {
		p, err := planned(0, "o/0", last+tc.now, before, []*Append{{Tenant: "t", Issued: time.UnixMicro(last + tc.issued),
			Events: []Pending{{Stream: "s", Expect: New(), ID: "s", Type: "x", Payload: []byte(`{}`)}}}})
		if err != nil || !errors.Is(p.outcomes[0].err, tc.want) {
			t.Errorf("%+v: %v, %v", tc, p.outcomes[0].err, err)
		}
	}
}

// The clock may be set back between a signature and its append. The event never gets a time before
// the one in its payload, because then the ledger would never verify.
func TestPlanPutsNoEventBeforeWhatItStates(t *testing.T) {
	t.Parallel()
	const now = 1_795_186_800_500_900 // microseconds
	later := time.UnixMicro(now).Add(24 * time.Hour)
	for _, a := range []Append{{Issued: later}, {NotBefore: later}, {}, {Issued: later.Add(-48 * time.Hour)}} {
		a.Tenant, a.Events = "t", []Pending{{Stream: "s", Expect: New(), ID: "s", Type: "x", Payload: []byte(`{}`)}}
		p, err := planned(0, "o/0", now, (&table{}).heads(), []*Append{&a})
		if err != nil || len(p.events) != 1 {
			t.Fatalf("%+v, %v", p.outcomes, err)
		}
		if got, want := p.events[0].OccurredUS, max(now, a.Issued.UnixMicro(), a.NotBefore.UnixMicro()); got != want {
			t.Errorf("issued %s, not before %s: occurred %d, want %d", a.Issued, a.NotBefore, got, want)
		}
	}
}

// The cache keeps only streams that are written with Any. A full cache drops half of its entries.
func TestOnlyCountedStreamsAreKept(t *testing.T) {
	t.Parallel()
	before := newHeads(0, Genesis("o/0", ""), 1, keyMap{})
	before.complete = true
	once, counted := simple("decision/1", "evt_1", New()), simple("usage/1", "evt_2", Any(9))
	again := simple("usage/1", "evt_3", Expect{expectAt, 1}) // an append to the counted stream by a caller that has read it
	for i, a := range []*Append{&once, &counted, &again} {
		a.IdemKey = IdemKey("event", fmt.Sprint(i))
	}
	p, err := planned(0, "o/0", 1, before, []*Append{&once, &counted, &again})
	if err != nil || len(p.events) != 3 {
		t.Fatalf("%d events, %v", len(p.events), err)
	}
	before.advance(&p.head, p.counted)
	if _, kept := before.streams[streamName{"service", "decision/1"}]; kept || before.streams[streamName{"service", "usage/1"}] != 2 {
		t.Errorf("%v", before.streams)
	}
	for n := range cachedHeads {
		before.streams[streamName{"service", fmt.Sprint("usage/", n+2)}] = 1
	}
	before.advance(&p.head, nil)
	if got := len(before.streams); got != cachedHeads/2 {
		t.Errorf("%d streams of a full cache are left", got)
	}
}
