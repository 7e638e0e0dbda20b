package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/countersign/countersign/ledger/stored"
)

const selectEvents = `select p, ` + EventColumns + ` from events where p = $1 and `

// ScanEvent reads a row with the columns p and EventColumns. The payload of an archived event is
// nil.
func ScanEvent(row pgx.CollectableRow) (Event, error) {
	var e Event
	var more int16
	err := row.Scan(&e.Partition, &e.Position, &e.Tenant, &e.Sequence, &e.Stream, &e.Version, &e.ID, &e.Type,
		&e.SchemaVersion, &more, &e.OccurredUS, &e.Actor, &e.KeyID, &e.IdemKey, &e.ContentHash,
		(*payloadColumn)(&e.Payload), &e.PayloadHash, &e.Prev, &e.Hash,
		(*zeronull.Text)(&e.Series), (*zeronull.Int8)(&e.SeriesN), &e.SeriesPrev, (*zeronull.Text)(&e.Agent), (*zeronull.Int8)(&e.AgentN), &e.AgentPrev)
	e.More = int(more)
	return e, err
}

// payloadColumn scans the column payload.
type payloadColumn []byte

// ScanBytes unpacks a copy of the column, because pgx reuses its memory.
func (p *payloadColumn) ScanBytes(column []byte) error {
	*p = stored.Payload(bytes.Clone(column))
	return nil
}

// Reading runs a read on Pool, and repeats it if the connection was lost: a connection in the pool
// may be older than a restart of the database. It returns pgx.ErrNoRows and ErrTampered unchanged,
// and every other error as ErrUnavailable.
func (l *Ledger) Reading(ctx context.Context, read func() error) error {
	for n := 1; ; n++ {
		before := l.resets.Load()
		err := read()
		if errors.Is(err, ErrTampered) {
			l.note(err)
			return err
		}
		if err == nil || errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if n == readTries || ctx.Err() != nil || certainlyNot(err) && !pgconn.SafeToRetry(err) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		// The other connections are equally old, so drop all of them, but only once: if every
		// reader of every partition reset the pool, it would never have a usable connection.
		if l.resets.CompareAndSwap(before, before+1) {
			l.pool.Reset()
		}
	}
}

// Row reads one row. It runs the query through Ledger.Reading.
func (l *Ledger) Row(ctx context.Context, sql string, args []any, into ...any) error {
	return l.Reading(ctx, func() error { return l.pool.QueryRow(ctx, sql, args...).Scan(into...) })
}

// query reads events with their payloads. It recomputes the hashes of each event and returns
// ErrTampered if they differ. $1 in the condition is the partition.
func (p *Partition) query(ctx context.Context, where string, args ...any) ([]Event, error) {
	events, err := p.rows(ctx, where, args...)
	if err == nil {
		err = p.fill(ctx, events)
	}
	if err != nil {
		return nil, err
	}
	return events, nil
}

// fill reads missing payloads from the archive.
func (p *Partition) fill(ctx context.Context, events []Event) error {
	for i := range events {
		e := &events[i]
		if e.Payload != nil {
			continue
		}
		if p.ledger.archive == nil {
			return fmt.Errorf("%w: the payload of position %d is archived, and this ledger was opened without an archive", ErrUnavailable, e.Position)
		}
		payload, err := p.ledger.archive.Payload(ctx, p.ledger.pool, e)
		if err != nil {
			return err
		}
		e.Payload = payload
	}
	return nil
}

// rows does the same as query, except that the payloads of archived events stay nil.
func (p *Partition) rows(ctx context.Context, where string, args ...any) ([]Event, error) {
	l := p.ledger
	var events []Event
	err := l.Reading(ctx, func() error {
		rows, err := l.pool.Query(ctx, selectEvents+where, append([]any{p.p}, args...)...)
		if err != nil {
			return err
		}
		events, err = pgx.CollectRows(rows, ScanEvent)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	for i := range events {
		if e := &events[i]; e.Hash != e.Sum() || e.Payload != nil && e.PayloadHash != sha256.Sum256(e.Payload) {
			return nil, l.tampered("partition %d, position %d", p.p, events[i].Position)
		}
	}
	return events, nil
}

// Read returns a whole stream. The history is empty if the stream has no events.
func (l *Ledger) Read(ctx context.Context, tenant, stream string) (History, error) {
	events, err := l.Home(tenant).query(ctx, `tenant = $2 and stream = $3 order by version`, tenant, stream)
	if err != nil {
		return History{}, err
	}
	for i, e := range events {
		if e.Version != int64(i)+1 {
			return History{}, l.tampered("stream %s lacks version %d", stream, i+1)
		}
	}
	return History{Tenant: tenant, Stream: stream, Events: events}, nil
}

// Last returns a history that contains only the last event of a stream. That is enough for a
// stream whose events carry a running total.
func (l *Ledger) Last(ctx context.Context, tenant, stream string) (History, error) {
	events, err := l.Home(tenant).query(ctx, `tenant = $2 and stream = $3 order by version desc limit 1`, tenant, stream)
	if err != nil {
		return History{}, err
	}
	h := History{Tenant: tenant, Stream: stream, Events: events}
	if len(events) == 1 {
		h.before = events[0].Version - 1
	}
	return h, nil
}

// Version returns the version of a stream's last event, or 0.
func (l *Ledger) Version(ctx context.Context, tenant, stream string) (int64, error) {
	var version int64
	err := l.Row(ctx, `select version from events where p = $1 and tenant = $2 and stream = $3
		order by version desc limit 1`, []any{l.Home(tenant).p, tenant, stream}, &version)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return version, err
}

// Lookup returns in one round trip the result of ByKey and the time of the tenant's last event
// (zero if the tenant has none). A command needs both before it writes a record.
func (l *Ledger) Lookup(ctx context.Context, tenant string, key, content Hash) (found []Event, last time.Time, err error) {
	var us, position *int64
	var storedContent []byte
	home := l.Home(tenant)
	err = l.Row(ctx, `select (select occurred_us from events where p = $1 and tenant = $2 order by tseq desc limit 1), e.pos, e.content_hash
		from (select) one left join events e on e.p = $1 and e.tenant = $2 and e.idem_key = $3`,
		[]any{home.p, tenant, key[:]}, &us, &position, &storedContent)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("look up an idempotency key: %w", err)
	}
	if us != nil {
		last = time.UnixMicro(*us).UTC()
	}
	switch {
	case position == nil:
		return nil, last, nil
	case !bytes.Equal(storedContent, content[:]):
		return nil, last, ErrKeyReused
	}
	found, err = home.group(ctx, *position)
	return found, last, err
}

// ByKey returns the events of the append that used an idempotency key, or none. It returns
// ErrKeyReused if that append had other content.
func (l *Ledger) ByKey(ctx context.Context, tenant string, key, content Hash) ([]Event, error) {
	var position int64
	var used Hash
	home := l.Home(tenant)
	err := l.Row(ctx, `select pos, content_hash from events where p = $1 and tenant = $2 and idem_key = $3`,
		[]any{home.p, tenant, key[:]}, &position, &used)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up an idempotency key: %w", err)
	case used != content:
		return nil, ErrKeyReused
	}
	return home.group(ctx, position)
}

// group returns the events of the append whose first event is at this position.
func (p *Partition) group(ctx context.Context, position int64) ([]Event, error) {
	events, err := p.query(ctx, `pos between $2 and $2 + (select more from events where p = $1 and pos = $2) order by pos`, position)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 || len(events) != events[0].More+1 {
		return nil, p.ledger.tampered("the append at %d is incomplete", position)
	}
	return events, nil
}

// Tenant returns up to limit events of a tenant in order. The first has the sequence number from.
func (l *Ledger) Tenant(ctx context.Context, tenant string, from int64, limit int) ([]Event, error) {
	return l.Home(tenant).query(ctx, `tenant = $2 and tseq >= $3 order by tseq limit $4`, tenant, from, limit)
}

// BySequence returns a tenant's events with these sequence numbers. Missing events are not in the
// map.
func (l *Ledger) BySequence(ctx context.Context, tenant string, sequences []int64) (map[int64]Event, error) {
	found := make(map[int64]Event, len(sequences))
	if len(sequences) == 0 {
		return found, nil
	}
	events, err := l.Home(tenant).query(ctx, `tenant = $2 and tseq = any($3)`, tenant, sequences)
	for _, e := range events {
		found[e.Sequence] = e
	}
	return found, err
}

// Series returns up to limit events of a tenant's series in the order of their numbers. The first
// has the number from. If agent is not empty, it is the agent's series.
func (l *Ledger) Series(ctx context.Context, tenant, agent, series string, from int64, limit int) ([]Event, error) {
	if agent == "" {
		return l.Home(tenant).query(ctx, `tenant = $2 and series = $3 and series_n >= $4 order by series_n limit $5`, tenant, series, from, limit)
	}
	return l.Home(tenant).query(ctx, `tenant = $2 and agent = $3 and series = $4 and agent_n >= $5 order by agent_n limit $6`, tenant, agent, series, from, limit)
}

// Newest returns the event with the highest number of a series at or before a position, or none.
func (l *Ledger) Newest(ctx context.Context, tenant, agent, series string, upTo int64) ([]Event, error) {
	if agent == "" {
		return l.Home(tenant).query(ctx, `tenant = $2 and series = $3 and pos <= $4 order by series_n desc limit 1`, tenant, series, upTo)
	}
	return l.Home(tenant).query(ctx, `tenant = $2 and agent = $3 and series = $4 and pos <= $5 order by agent_n desc limit 1`, tenant, agent, series, upTo)
}

// Followers returns the events of streams at or before a position, in order and without the first
// event of each stream.
func (l *Ledger) Followers(ctx context.Context, tenant string, streams []string, upTo int64) ([]Event, error) {
	return l.Home(tenant).query(ctx, `tenant = $2 and stream = any($3) and version > 1 and pos <= $4 order by pos`, tenant, streams, upTo)
}

// after selects at most $3 events after position $2, in order.
const after = `pos > $2 order by pos limit $3`

// After returns up to limit events after a position, in order.
func (p *Partition) After(ctx context.Context, position int64, limit int) ([]Event, error) {
	return p.query(ctx, after, position, limit)
}

// StoredAfter does the same as After but does not read the archive: the payload of an archived
// event is nil.
func (p *Partition) StoredAfter(ctx context.Context, position int64, limit int) ([]Event, error) {
	return p.rows(ctx, after, position, limit)
}

// Head returns the position of the last event, or 0 if the partition is empty.
func (p *Partition) Head(ctx context.Context) (int64, error) {
	var position int64
	if err := p.ledger.Row(ctx, `select pos from ledger_head where p = $1`, []any{p.p}, &position); err != nil {
		return 0, fmt.Errorf("read ledger head: %w", err)
	}
	return position, nil
}

// LastSequence returns the sequence number of a tenant's last event, or 0.
func (l *Ledger) LastSequence(ctx context.Context, tenant string) (int64, error) {
	var sequence int64
	err := l.Row(ctx, `select tseq from events where p = $1 and tenant = $2 order by tseq desc limit 1`, []any{l.Home(tenant).p, tenant}, &sequence)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return sequence, err
}
