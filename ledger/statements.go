package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/events"
)

const columns = `pos, tenant, tseq, stream, version, event_id, type, schema_version, more, occurred_us,
	actor, key_id, idem_key, content_hash, payload, payload_hash, prev, hash`

// The rows of a batch travel as one array per column.
const rows = `unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[],
	$8::int[], $9::smallint[], $10::bigint[], $11::text[], $12::text[], $13::bytea[], $14::bytea[],
	$15::bytea[], $16::bytea[], $17::bytea[], $18::bytea[])`

// The statements of a sequencer name their partition {p} as a constant, so that tables
// distributed by p need no other SQL.
const swapHead = `with head as (
	update ledger_head set pos = $19, last_hash = $20
	where p = {p} and pos = $21 and last_hash = $22 and epoch = $23`

// A guard has moved if its stream has a next version. The head is compared in
// the same statement, so what the guards' snapshot shows is what the rows follow.
// The look-up is lateral, with an order and a limit: so the plan is one step into
// the streams' index per guard, whatever the size of the table it was made for.
const swapGuards = ` and not exists (
		select from unnest($24::text[], $25::text[], $26::bigint[]) g (tenant, stream, version),
		lateral (select from events e where e.p = {p} and e.tenant = g.tenant and e.stream = g.stream and e.version > g.version
			order by e.version limit 1) moved)`

const swapInsert = ` returning p)
	insert into events (p, ` + columns + `) select {p}, r.* from head, ` + rows + ` r`

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
	insertRows = `insert into events (p, ` + columns + `) select {p}, r.* from ` + rows + ` r`
	position   = `select pos from ledger_head where p = {p}`
	moveHead   = `update ledger_head set pos = $1, last_hash = $2 where p = {p}`
)

// statements are those of one partition's sequencer.
type statements struct {
	swapAlone, swapGuarded                                                            string
	lockHead, lastRow, findKeys, findStreams, findTenants, insert, moveHead, position string
}

func statementsOf(p int16) statements {
	of := func(text string) string { return strings.ReplaceAll(text, "{p}", strconv.Itoa(int(p))) }
	return statements{
		swapAlone: of(swapHead + swapInsert), swapGuarded: of(swapHead + swapGuards + swapInsert),
		lockHead: of(lockHead), lastRow: of(lastRow), findKeys: of(findKeys), findStreams: of(findStreams),
		findTenants: of(findTenants), insert: of(insertRows), moveHead: of(moveHead), position: of(position),
	}
}

func (s *statements) swap(guarded bool) string {
	if guarded {
		return s.swapGuarded
	}
	return s.swapAlone
}

func swapArguments(before *heads, p *plan) []any {
	args := append(rowArguments(p),
		p.head.position, p.head.hash[:], before.position, before.hash[:], before.epoch)
	if len(p.guards) == 0 {
		return args
	}
	tenants, streams, versions := make([]string, 0, len(p.guards)), make([]string, 0, len(p.guards)), make([]int64, 0, len(p.guards))
	for _, g := range p.guards {
		tenants, streams, versions = append(tenants, g.Tenant), append(streams, g.Stream), append(versions, g.Version)
	}
	return append(args, tenants, streams, versions)
}

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

// readHeads locks the head row and reads, each in a statement of its own so that
// its snapshot is taken after the lock, all that planning the appends needs. One
// round trip.
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
		return row.Scan(&origin, &h.epoch, &h.position, into(&h.hash))
	})
	batch.Queue(s.sql.lastRow).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&last.position, into(&last.hash)); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		last.hash = Genesis(s.origin, "")
		return nil
	})
	batch.Queue(s.sql.findKeys, want.keyTenants, want.keys).Query(func(rows pgx.Rows) error {
		var k keyName
		var hit keyHit
		_, err := pgx.ForEachRow(rows, []any{&k.tenant, into(&k.key), &hit.position, into(&hit.content)}, func() error {
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
		_, err := pgx.ForEachRow(rows, []any{&tenant, &head.sequence, into(&head.hash), &head.occurredUS}, func() error {
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

// checkHead finds what must never be: a ledger other than the one this node has
// appended to.
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

// writeLocked inserts, moves the head and commits in one round trip. The head
// row is written even if nothing is new: so this commit, too, waits for a
// synchronous standby, and what it answers rests on durable rows.
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

// wanted are the rows that planning asks for, as arrays.
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
		for _, d := range a.Drafts {
			stream(a.Tenant, d.Stream)
		}
		for _, g := range a.Guards {
			stream(g.Tenant, g.Stream)
		}
	}
	return w
}
