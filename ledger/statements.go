package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/events"
)

// EventColumns are the columns of the table events after p, in the order of rows and
// parameters.
const EventColumns = `pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
	actor, key_id, idem_key, content_hash, payload, payload_hash, prev, hash`

// columnTypes are the types of EventColumns, in their order.
var columnTypes = [...]string{"bigint", "text", "bigint", "text", "bigint", "text", "text", "int", "smallint", "bigint",
	"text", "text", "bytea", "bytea", "bytea", "bytea", "bytea", "bytea"}

// arrays writes the rows of a batch as one array parameter per column. The first has this
// number.
func arrays(parameter int) string {
	list := make([]string, len(columnTypes))
	for i, t := range columnTypes {
		list[i] = fmt.Sprintf("$%d::%s[]", parameter+i, t)
	}
	return "unnest(" + strings.Join(list, ", ") + ")"
}

// values writes count rows as parameters. For few rows this beats arrays, whose fixed cost
// equals one or two rows.
func values(parameter, count int) string {
	list := make([]string, count)
	for i := range list {
		row := make([]string, len(columnTypes))
		for j, t := range columnTypes {
			row[j] = fmt.Sprintf("$%d::%s", parameter+i*len(columnTypes)+j, t)
		}
		list[i] = "(" + strings.Join(row, ", ") + ")"
	}
	return "(values " + strings.Join(list, ", ") + ")"
}

// The statements of a sequencer have their partition {p} as a constant, so that tables which
// are distributed by p need no other SQL. A swap has first the parameters of the head, then
// those of the preconditions, then the rows.
const (
	swapHead = `with head as (
	update ledger_head set pos = $1, last_hash = $2
	where p = {p} and pos = $3 and last_hash = $4 and epoch = $5`
	headParameters = 5

	// A precondition fails if its stream has a later version. The same statement compares the
	// head, so no event is between the snapshot of the preconditions and the rows. The look-up
	// is lateral, with an order and a limit, so that the plan is one index access per
	// precondition whatever the planner believes about the size of the table.
	swapPreconditions = ` and not exists (
		select from unnest($6::text[], $7::text[], $8::bigint[]) g (tenant, stream, version),
		lateral (select from events e where e.p = {p} and e.tenant = g.tenant and e.stream = g.stream and e.version > g.version
			order by e.version limit 1) moved)`
	preconditionParameters = 3

	swapInsert = ` returning p)
	insert into events (p, ` + EventColumns + `) select {p}, r.* from head, {rows} r`
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
	insertRows = `insert into events (p, ` + EventColumns + `) select {p}, r.* from {rows} r`
	position   = `select pos from ledger_head where p = {p}`
	moveHead   = `update ledger_head set pos = $1, last_hash = $2 where p = {p}`
)

// statements are the SQL of one partition's sequencer.
type statements struct {
	swapPlain, swapConditional                                                        swaps
	lockHead, lastRow, findKeys, findStreams, findTenants, insert, moveHead, position string
}

// swaps are the statements that commit a plan: few by its number of rows, any for all others.
type swaps struct {
	few [fewRows + 1]string
	any string
}

// templates are the statements with {p} in the place of the partition.
var templates = sync.OnceValue(func() statements {
	rows := func(text, rows string) string { return strings.ReplaceAll(text, "{rows}", rows) }
	swapsOf := func(head string, parameters int) (s swaps) {
		s.any = rows(head+swapInsert, arrays(parameters+1))
		for n := 1; n <= fewRows; n++ {
			s.few[n] = rows(head+swapInsert, values(parameters+1, n))
		}
		return s
	}
	return statements{
		swapPlain: swapsOf(swapHead, headParameters), swapConditional: swapsOf(swapHead+swapPreconditions, headParameters+preconditionParameters),
		lockHead: lockHead, lastRow: lastRow, findKeys: findKeys, findStreams: findStreams,
		findTenants: findTenants, insert: rows(insertRows, arrays(1)), moveHead: moveHead, position: position,
	}
})

func statementsOf(p int16) statements {
	s := templates()
	number := strconv.Itoa(int(p))
	texts := []*string{&s.swapPlain.any, &s.swapConditional.any, &s.lockHead, &s.lastRow, &s.findKeys, &s.findStreams, &s.findTenants, &s.insert, &s.moveHead, &s.position}
	for n := range s.swapPlain.few {
		texts = append(texts, &s.swapPlain.few[n], &s.swapConditional.few[n])
	}
	for _, text := range texts {
		*text = strings.ReplaceAll(*text, "{p}", number)
	}
	return s
}

// swap returns the statement that commits a plan, and its arguments. In a Citus cluster it
// always uses arrays, since its planner is known to accept them.
func (s *statements) swap(before *heads, p *plan, cluster bool) (sql string, args []any) {
	args = append(make([]any, 0, headParameters+preconditionParameters+fewRows*len(columnTypes)),
		p.head.position, p.head.hash[:], before.position, before.hash[:], before.epoch)
	swaps := &s.swapPlain
	if len(p.preconditions) > 0 {
		swaps = &s.swapConditional
		tenants, streams, versions := make([]string, 0, len(p.preconditions)), make([]string, 0, len(p.preconditions)), make([]int64, 0, len(p.preconditions))
		for _, g := range p.preconditions {
			tenants, streams, versions = append(tenants, g.Tenant), append(streams, g.Stream), append(versions, g.Version)
		}
		args = append(args, tenants, streams, versions)
	}
	if n := len(p.events); n <= fewRows && !cluster {
		for i := range p.events {
			args = appendRow(args, &p.events[i], p.stored[i])
		}
		return swaps.few[n], args
	}
	return swaps.any, append(args, rowArguments(p)...)
}

func appendRow(args []any, e *Event, stored []byte) []any {
	return append(args, e.Position, e.Tenant, e.Sequence, e.Stream, e.Version, e.ID, e.Type, int32(e.SchemaVersion), int16(e.More),
		e.OccurredUS, e.Actor, e.KeyID, e.IdemKey, e.ContentHash, stored, e.PayloadHash[:], e.Prev[:], e.Hash[:])
}

// rowArguments returns the rows of a plan as one array per column.
func rowArguments(p *plan) []any {
	events, n := p.events, len(p.events)
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
	return []any{
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
}

// readHeads locks the head row and reads everything that planning the appends needs, in one
// round trip. Each read is a statement of its own, so that its snapshot is taken after the
// lock.
func (s *sequencer) readHeads(ctx context.Context, appends []*Append) (*heads, error) {
	want := collect(appends)
	h := &heads{complete: true, tenants: map[string]tenantHead{}, streams: map[streamName]int64{}}
	keys := keyMap{}
	h.keys = keys
	var origin string
	var last struct {
		position int64
		hash     Hash
	}
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
	if err := s.conn.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	return h, s.checkHead(h, origin, last.position, last.hash)
}

// checkHead stops the node if the table is not the one that this node has appended to.
func (s *sequencer) checkHead(h *heads, origin string, lastPosition int64, lastHash Hash) error {
	switch {
	case origin != s.origin:
		return s.halt(errors.New("the ledger has another origin"))
	case s.epoch != 0 && s.epoch != h.epoch:
		return s.halt(errors.New("the ledger's epoch changed: an operator accepted a rollback elsewhere; start this node again"))
	case h.position < s.seen:
		return s.halt(fmt.Errorf("the head is at %d and was at %d: the database was put back to an older state; start this node again, and it says what is missing and how to go on", h.position, s.seen))
	case h.position != lastPosition || h.hash != lastHash:
		return s.halt(fmt.Errorf("the head row (%d) is not the last event (%d)", h.position, lastPosition))
	}
	s.epoch = h.epoch
	return nil
}

// writeLocked inserts the rows, moves the head and commits, in one round trip. It writes the
// head row even if there are no new rows, so that this commit also waits for a synchronous
// standby and the answers rest on durable rows.
func (s *sequencer) writeLocked(ctx context.Context, p *plan) error {
	batch := &pgx.Batch{}
	if len(p.events) > 0 {
		batch.Queue(s.sql.insert, rowArguments(p)...)
	}
	for i := range p.events {
		if e := &p.events[i]; e.Type == events.TypeSubjectErased {
			batch.Queue(`select erase_subject($1, $2) where not exists (select from pg_extension where extname = 'citus')`, e.Partition, e.Position)
		}
	}
	batch.Queue(s.sql.moveHead, p.head.position, p.head.hash[:])
	batch.Queue(`commit`)
	return s.conn.SendBatch(ctx, batch).Close()
}

// wanted are the parameters of the reads that planning needs.
type wanted struct {
	tenants, keyTenants, streamTenants, streams []string
	keys                                        [][]byte
}

func collect(appends []*Append) wanted {
	var w wanted
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
		for _, d := range a.Events {
			stream(a.Tenant, d.Stream)
		}
		for _, g := range a.Preconditions {
			stream(g.Tenant, g.Stream)
		}
	}
	return w
}
