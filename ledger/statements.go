package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/countersign/countersign/ledger/events"
)

// EventColumns lists the columns of the table events after p, in the order of rows and parameters.
const EventColumns = plainColumns + `, series, series_n, series_prev, agent, agent_n, agent_prev`

// plainColumns lists the columns of an event without a series. A batch without numbered events
// writes only these.
const plainColumns = `pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
	actor, key_id, idem_key, content_hash, payload, payload_hash, prev, hash`

// columnTypes lists the types of EventColumns, in the same order.
var columnTypes = []string{"bigint", "text", "bigint", "text", "bigint", "text", "text", "int", "smallint", "bigint",
	"text", "text", "bytea", "bytea", "bytea", "bytea", "bytea", "bytea",
	"text", "bigint", "bytea", "text", "bigint", "bytea"}

// plainTypes lists the types of plainColumns.
var plainTypes = columnTypes[:18]

// arrays returns a row source with one array parameter per column. parameter is the number of the
// first one.
func arrays(parameter int, types []string) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = fmt.Sprintf("$%d::%s[]", parameter+i, t)
	}
	return "unnest(" + strings.Join(list, ", ") + ")"
}

// values returns a row source with one parameter per value. For few rows this is faster than
// arrays, whose fixed cost equals one or two rows.
func values(parameter, count int, types []string) string {
	list := make([]string, count)
	for i := range list {
		row := make([]string, len(types))
		for j, t := range types {
			row[j] = fmt.Sprintf("$%d::%s", parameter+i*len(types)+j, t)
		}
		list[i] = "(" + strings.Join(row, ", ") + ")"
	}
	return "(values " + strings.Join(list, ", ") + ")"
}

// The statements of a sequencer contain their partition {p} as a constant, so that they also work
// on tables that Citus distributes by p. The parameters of a swap are those of the head, then
// those of the preconditions, then the rows.
const (
	swapHead = `with head as (
	update ledger_head set pos = $1, last_hash = $2
	where p = {p} and pos = $3 and last_hash = $4 and epoch = $5`
	headParameters = 5

	// A precondition fails if its stream has a later version. The same statement compares the
	// head, so no other event can come between this check and the rows. The look-up is lateral
	// with an order and a limit, so that each precondition costs one index access, whichever size
	// of the table the planner estimates.
	swapPreconditions = ` and not exists (
		select from unnest($6::text[], $7::text[], $8::bigint[]) g (tenant, stream, version),
		lateral (select from events e where e.p = {p} and e.tenant = g.tenant and e.stream = g.stream and e.version > g.version
			order by e.version limit 1) moved)`
	preconditionParameters = 3

	swapInsert = ` returning p)
	insert into events (p, {columns}) select {p}, r.* from head, {rows} r`
)

const (
	lockHead = `select origin, epoch, pos, last_hash from ledger_head where p = {p} for update`
	lastRow  = `select pos, hash from events where p = {p} order by pos desc limit 1`
	findKeys = `select w.tenant, w.key, e.pos, e.content_hash from unnest($1::text[], $2::bytea[]) w (tenant, key),
		lateral (select pos, content_hash from events e where e.p = {p} and e.tenant = w.tenant and e.idem_key = w.key limit 1) e`
	findStreams = `select w.tenant, w.stream, e.version from unnest($1::text[], $2::text[]) w (tenant, stream),
		lateral (select version from events e where e.p = {p} and e.tenant = w.tenant and e.stream = w.stream
			order by version desc limit 1) e`
	findTenants = `select w.tenant, e.tseq, e.hash, e.occurred_us from unnest($1::text[]) w (tenant),
		lateral (select tseq, hash, occurred_us from events e where e.p = {p} and e.tenant = w.tenant
			order by tseq desc limit 1) e`
	findSeries = `select w.n, e.series_n, e.hash from unnest($1::bigint[], $2::text[], $3::text[]) w (n, tenant, series),
		lateral (select series_n, hash from events e where e.p = {p} and e.tenant = w.tenant and e.series = w.series
			order by series_n desc limit 1) e`
	findAgents = `select w.n, e.agent_n, e.hash from unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) w (n, tenant, agent, series),
		lateral (select agent_n, hash from events e where e.p = {p} and e.tenant = w.tenant and e.agent = w.agent and e.series = w.series
			order by agent_n desc limit 1) e`
	// missed reads the events that other nodes have appended since the cached head. It reads one
	// more than the limit, to detect that there are too many.
	missed = `select pos, tenant, tseq, stream, version, occurred_us, hash, series, series_n, agent, agent_n
		from events where p = {p} and pos > $1 order by pos limit $2`
	insertRows = `insert into events (p, {columns}) select {p}, r.* from {rows} r`
	position   = `select pos from ledger_head where p = {p}`
	enter      = `insert into directory (p, name, value, pos) values ({p}, $1, $2, $3) on conflict do nothing`
	moveHead   = `update ledger_head set pos = $1, last_hash = $2 where p = {p}`
)

// statements contains the SQL of one partition's sequencer.
type statements struct {
	plain, numbered                                                                       writes // for batches without and with numbered events
	lockHead, lastRow, findKeys, findStreams, findTenants, findSeries, findAgents, missed string
	enter, moveHead, position                                                             string
}

// writes contains the statements that write the rows of a plan.
type writes struct {
	swapPlain, swapConditional swaps
	insert                     string
}

// swaps contains the statements that commit a plan: few[n] for n rows, any for more rows.
type swaps struct {
	few [fewRows + 1]string
	any string
}

// templates returns the statements with the placeholder {p} for the partition.
var templates = sync.OnceValue(func() statements {
	return statements{
		plain: writesOf(plainColumns, plainTypes), numbered: writesOf(EventColumns, columnTypes),
		lockHead: lockHead, lastRow: lastRow, findKeys: findKeys, findStreams: findStreams, findTenants: findTenants,
		findSeries: findSeries, findAgents: findAgents, missed: missed, enter: enter, moveHead: moveHead, position: position,
	}
})

func writesOf(columns string, types []string) writes {
	fill := func(text, rows string) string {
		return strings.NewReplacer("{columns}", columns, "{rows}", rows).Replace(text)
	}
	swapsOf := func(head string, parameters int) (s swaps) {
		s.any = fill(head+swapInsert, arrays(parameters+1, types))
		for n := 1; n <= fewRows; n++ {
			s.few[n] = fill(head+swapInsert, values(parameters+1, n, types))
		}
		return s
	}
	return writes{swapsOf(swapHead, headParameters), swapsOf(swapHead+swapPreconditions, headParameters+preconditionParameters), fill(insertRows, arrays(1, types))}
}

func statementsOf(p int16) statements {
	s := templates()
	number := strconv.Itoa(int(p))
	texts := []*string{&s.lockHead, &s.lastRow, &s.findKeys, &s.findStreams, &s.findTenants, &s.findSeries, &s.findAgents, &s.missed, &s.enter, &s.moveHead, &s.position}
	for _, w := range []*writes{&s.plain, &s.numbered} {
		texts = append(texts, &w.swapPlain.any, &w.swapConditional.any, &w.insert)
		for n := range w.swapPlain.few {
			texts = append(texts, &w.swapPlain.few[n], &w.swapConditional.few[n])
		}
	}
	for _, text := range texts {
		*text = strings.ReplaceAll(*text, "{p}", number)
	}
	return s
}

// swap returns the statement that commits a plan, and its arguments. In a Citus cluster it always
// uses arrays, which Citus is known to accept.
func (s *statements) swap(before *heads, p *plan, cluster bool) (sql string, args []any) {
	args = append(make([]any, 0, headParameters+preconditionParameters+fewRows*len(columnTypes)),
		p.head.position, p.head.hash[:], before.position, before.hash[:], before.epoch)
	writes := s.writes(p)
	swaps := &writes.swapPlain
	if len(p.preconditions) > 0 {
		swaps = &writes.swapConditional
		tenants, streams, versions := make([]string, 0, len(p.preconditions)), make([]string, 0, len(p.preconditions)), make([]int64, 0, len(p.preconditions))
		for _, g := range p.preconditions {
			tenants, streams, versions = append(tenants, g.Tenant), append(streams, g.Stream), append(versions, g.Version)
		}
		args = append(args, tenants, streams, versions)
	}
	if n := len(p.events); n <= fewRows && !cluster {
		numbered := p.numbered()
		for i := range p.events {
			args = appendRow(args, &p.events[i], p.stored[i], numbered)
		}
		return swaps.few[n], args
	}
	return swaps.any, append(args, rowArguments(p)...)
}

// writes returns the statements that fit the events of a plan.
func (s *statements) writes(p *plan) *writes {
	if p.numbered() {
		return &s.numbered
	}
	return &s.plain
}

func appendRow(args []any, e *Event, stored []byte, numbered bool) []any {
	args = append(args, e.Position, e.Tenant, e.Sequence, e.Stream, e.Version, e.ID, e.Type, int32(e.SchemaVersion), int16(e.More),
		e.OccurredUS, e.Actor, e.KeyID, e.IdemKey, e.ContentHash, stored, e.PayloadHash[:], e.Prev[:], e.Hash[:])
	if numbered {
		args = append(args, zeronull.Text(e.Series), zeronull.Int8(e.SeriesN), e.SeriesPrev, zeronull.Text(e.Agent), zeronull.Int8(e.AgentN), e.AgentPrev)
	}
	return args
}

// rowArguments returns the rows of a plan as one array per column, in the order of the columns.
func rowArguments(p *plan) []any {
	events, n := p.events, len(p.events)
	// These functions return one column of all events.
	text := func(of func(*Event) string) []string {
		column := make([]string, n)
		for i := range events {
			column[i] = of(&events[i])
		}
		return column
	}
	number := func(of func(*Event) int64) []int64 {
		column := make([]int64, n)
		for i := range events {
			column[i] = of(&events[i])
		}
		return column
	}
	octets := func(of func(*Event) []byte) [][]byte {
		column := make([][]byte, n)
		for i := range events {
			column[i] = of(&events[i])
		}
		return column
	}
	schema, more := make([]int32, n), make([]int16, n)
	for i := range events {
		schema[i], more[i] = int32(events[i].SchemaVersion), int16(events[i].More)
	}
	args := []any{
		number(func(e *Event) int64 { return e.Position }),
		text(func(e *Event) string { return e.Tenant }),
		number(func(e *Event) int64 { return e.Sequence }),
		text(func(e *Event) string { return e.Stream }),
		number(func(e *Event) int64 { return e.Version }),
		text(func(e *Event) string { return e.ID }),
		text(func(e *Event) string { return e.Type }),
		schema, more,
		number(func(e *Event) int64 { return e.OccurredUS }),
		text(func(e *Event) string { return e.Actor }),
		text(func(e *Event) string { return e.KeyID }),
		octets(func(e *Event) []byte { return e.IdemKey }),
		octets(func(e *Event) []byte { return e.ContentHash }),
		p.stored,
		octets(func(e *Event) []byte { return e.PayloadHash[:] }),
		octets(func(e *Event) []byte { return e.Prev[:] }),
		octets(func(e *Event) []byte { return e.Hash[:] }),
	}
	// Numbered batches have six more columns.
	if !p.numbered() {
		return args
	}
	series, seriesN, agents, agentN := make([]zeronull.Text, n), make([]zeronull.Int8, n), make([]zeronull.Text, n), make([]zeronull.Int8, n)
	for i := range events {
		e := &events[i]
		series[i], seriesN[i], agents[i], agentN[i] = zeronull.Text(e.Series), zeronull.Int8(e.SeriesN), zeronull.Text(e.Agent), zeronull.Int8(e.AgentN)
	}
	return append(args, series, seriesN, octets(func(e *Event) []byte { return e.SeriesPrev }),
		agents, agentN, octets(func(e *Event) []byte { return e.AgentPrev }))
}

// readHeads locks the head row and reads all that planning needs, in one round trip. Each read is
// a separate statement, so that its snapshot is taken after the lock. If heads are cached,
// readHeads also returns the events that other nodes have appended since.
func (s *sequencer) readHeads(ctx context.Context, appends []*Append) (*heads, []Event, error) {
	want := collect(appends)
	keys := keyMap{}
	h := newHeads(0, Hash{}, 0, keys)
	h.complete = true
	var origin string
	var last struct {
		position int64
		hash     Hash
	}
	// Lock the head row, and read the last event, with which checkHead compares it.
	batch := &pgx.Batch{}
	batch.Queue(`begin`)
	batch.Queue(s.sql.lockHead).QueryRow(func(row pgx.Row) error {
		return row.Scan(&origin, &h.epoch, &h.position, &h.hash)
	})
	batch.Queue(s.sql.lastRow).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&last.position, &last.hash); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		last.hash = Genesis(s.origin, "")
		return nil
	})
	// Find the keys that were used before, and the last versions of streams, tenants and series.
	batch.Queue(s.sql.findKeys, want.keyTenants, want.keys).Query(func(rows pgx.Rows) error {
		var k keyName
		var hit keyHit
		_, err := pgx.ForEachRow(rows, []any{&k.tenant, &k.key, &hit.position, &hit.content}, func() error {
			keys[k] = hit
			return nil
		})
		return err
	})
	batch.Queue(s.sql.findStreams, want.streamTenants, want.streams).Query(func(rows pgx.Rows) error {
		var name streamName
		var version int64
		_, err := pgx.ForEachRow(rows, []any{&name.tenant, &name.stream, &version}, func() error {
			h.streams[name] = version
			return nil
		})
		return err
	})
	batch.Queue(s.sql.findTenants, want.tenants).Query(func(rows pgx.Rows) error {
		var tenant string
		var head tenantHead
		_, err := pgx.ForEachRow(rows, []any{&tenant, &head.sequence, &head.hash, &head.occurredUS}, func() error {
			h.tenants[tenant] = head
			return nil
		})
		return err
	})
	if len(want.kinds.series) > 0 {
		batch.Queue(s.sql.findSeries, want.kinds.numbers(), want.kinds.tenants, want.kinds.series).Query(want.kinds.into(h))
	}
	if len(want.agents.series) > 0 {
		batch.Queue(s.sql.findAgents, want.agents.numbers(), want.agents.tenants, want.agents.agents, want.agents.series).Query(want.agents.into(h))
	}
	// Read the events with which catchUp updates the cached heads.
	var since []Event
	if s.heads != nil {
		batch.Queue(s.sql.missed, s.heads.position, mostMissed+1).Query(func(rows pgx.Rows) (err error) {
			since, err = pgx.CollectRows(rows, scanMissed)
			return err
		})
	}
	if err := s.conn.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, err
	}
	return h, since, s.checkHead(h, origin, last.position, last.hash)
}

// scanMissed reads a row of the statement missed.
func scanMissed(row pgx.CollectableRow) (e Event, err error) {
	return e, row.Scan(&e.Position, &e.Tenant, &e.Sequence, &e.Stream, &e.Version, &e.OccurredUS, &e.Hash,
		(*zeronull.Text)(&e.Series), (*zeronull.Int8)(&e.SeriesN), (*zeronull.Text)(&e.Agent), (*zeronull.Int8)(&e.AgentN))
}

// checkHead stops appends if the table is not the one to which this node has appended.
func (s *sequencer) checkHead(h *heads, origin string, lastPosition int64, lastHash Hash) error {
	switch {
	case origin != s.origin:
		return s.halt(errors.New("the ledger has another origin"))
	case s.epoch != 0 && s.epoch != h.epoch:
		return s.halt(errors.New("the ledger's epoch changed: an operator accepted a rollback elsewhere; start this node again"))
	case h.position < s.seen:
		return s.halt(fmt.Errorf("the head is at position %d, but was at %d: the database was restored to an older state; start this node again to see what is missing and what to do", h.position, s.seen))
	case h.position != lastPosition || h.hash != lastHash:
		return s.halt(fmt.Errorf("the head row (position %d) does not match the last event (position %d)", h.position, lastPosition))
	}
	s.epoch = h.epoch
	return nil
}

// writeLocked inserts the rows, moves the head and commits, in one round trip. It writes the head
// row even if there are no new rows: then this commit also waits for a synchronous standby, and
// the answers depend only on durable rows.
func (s *sequencer) writeLocked(ctx context.Context, p *plan) error {
	batch := &pgx.Batch{}
	if len(p.events) > 0 {
		batch.Queue(s.sql.writes(p).insert, rowArguments(p)...)
	}
	for i := range p.events {
		if e := &p.events[i]; e.Type == events.TypeSubjectErased {
			batch.Queue(`select erase_subject($1, $2) where not exists (select from pg_extension where extname = 'citus')`, e.Partition, e.Position)
		}
	}
	for _, e := range p.entries {
		batch.Queue(s.sql.enter, e.Name, e.Value, e.position)
	}
	batch.Queue(s.sql.moveHead, p.head.position, p.head.hash[:])
	batch.Queue(`commit`)
	return s.conn.SendBatch(ctx, batch).Close()
}

// wanted contains the parameters of the reads that planning needs.
type wanted struct {
	tenants, keyTenants, streamTenants, streams []string
	keys                                        [][]byte
	kinds, agents                               wantedSeries // series of tenants, and series of agents
}

// wantedSeries lists the series whose highest numbers are read.
type wantedSeries struct {
	have                    map[seriesKey]bool
	keys                    []seriesKey
	tenants, agents, series []string
}

func (w *wantedSeries) add(key seriesKey, tenant, agent, series string) {
	if !w.have[key] {
		w.have[key] = true
		w.keys, w.tenants, w.agents, w.series = append(w.keys, key), append(w.tenants, tenant), append(w.agents, agent), append(w.series, series)
	}
}

// numbers returns the indexes of the series. The rows of the answer refer to the series by index.
func (w *wantedSeries) numbers() []int64 {
	list := make([]int64, len(w.keys))
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

// into returns a function that copies the rows of the answer to h.
func (w *wantedSeries) into(h *heads) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var i int
		var head seriesHead
		_, err := pgx.ForEachRow(rows, []any{&i, &head.n, &head.hash}, func() error {
			h.series[w.keys[i]] = head
			return nil
		})
		return err
	}
}

func collect(appends []*Append) wanted {
	w := wanted{kinds: wantedSeries{have: map[seriesKey]bool{}}, agents: wantedSeries{have: map[seriesKey]bool{}}}
	tenants, streams := map[string]bool{}, map[streamName]bool{}
	stream := func(tenant, name string) {
		if s := (streamName{tenant, name}); !streams[s] {
			streams[s] = true
			w.streamTenants, w.streams = append(w.streamTenants, tenant), append(w.streams, name)
		}
	}
	for _, a := range appends {
		if !tenants[a.Tenant] {
			tenants[a.Tenant] = true
			w.tenants = append(w.tenants, a.Tenant)
		}
		w.keyTenants, w.keys = append(w.keyTenants, a.Tenant), append(w.keys, a.IdemKey[:])
		for i, d := range a.Events {
			stream(a.Tenant, d.Stream)
			ready := &a.ready[i]
			if ready.series != "" {
				w.kinds.add(ready.inKind, a.Tenant, "", ready.series)
			}
			if d.Agent != "" {
				w.agents.add(ready.inAgent, a.Tenant, d.Agent, ready.series)
			}
		}
		for _, g := range a.Preconditions {
			stream(g.Tenant, g.Stream)
		}
	}
	return w
}
