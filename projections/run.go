package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign/countersign/ledger"
)

// model is one running projection: tables that all partitions share, and one run per partition.
type model struct {
	projection
	schema string // schema of its tables; a rebuild uses a separate one
	key    string // name of its checkpoints in the database
	ledger *ledger.Ledger
	log    *slog.Logger
	made   chan struct{} // closed when the tables are sound
	runs   []*run        // indexed by partition
}

// run applies the events of one partition, in the router's handler goroutine. Two runs never
// change the same row, because a tenant is in one partition.
type run struct {
	*model
	partition *ledger.Partition

	mu       sync.Mutex    // guards position, stored and moved
	position int64         // every event up to this position has been applied
	stored   int64         // checkpoint when this node last read or wrote it
	moved    chan struct{} // closed when position grows

	// Owned by the handler during a message and by the subscriber between two messages. The events
	// after from, up to passed, do not change the read model. So a batch that starts at passed+1
	// may follow any checkpoint between from and passed.
	from, passed int64
	savedAt      time.Time
}

const liveSchema = "readmodels"

func newModel(p projection, l *ledger.Ledger, log *slog.Logger) *model {
	m := &model{projection: p, schema: liveSchema, key: p.name, ledger: l, log: log, made: make(chan struct{})}
	for _, partition := range l.Partitions() {
		m.runs = append(m.runs, &run{model: m, partition: partition, moved: make(chan struct{})})
	}
	return m
}

// sound reports whether the tables are sound.
func (m *model) sound() bool {
	select {
	case <-m.made:
		return true
	default:
		return false
	}
}

// start waits until the tables are sound and returns the checkpoint. It is called between two
// messages, so it may initialize fields that belong to the handler. A checkpoint that was just read
// counts as just stored, so events without effect can pass it without a transaction.
func (r *run) start(ctx context.Context) (int64, error) {
	select {
	case <-r.made:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	position, err := r.checkpoint(ctx)
	if err == nil && r.savedAt.IsZero() {
		r.from, r.passed, r.savedAt = position, position, time.Now()
	}
	return position, err
}

// checkpoint reads the checkpoint from the database.
func (r *run) checkpoint(ctx context.Context) (int64, error) {
	before := r.seen()
	var version int
	var position int64
	err := r.ledger.InTurn(ctx, func() error {
		return r.ledger.Pool().QueryRow(ctx, `select version, pos from projection_checkpoint where name = $1 and p = $2`, r.key, r.partition.Number()).Scan(&version, &position)
	})
	switch {
	case err != nil:
		return 0, err
	case version != r.version:
		return 0, r.otherVersion(version)
	}
	r.saw(position, before)
	return position, nil
}

func (r *run) seen() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored
}

// saw records a checkpoint that was just read; before is the value known earlier. If the
// checkpoint is lower, the read model was rebuilt or a crash has undone its last steps, so this
// node's position is reset.
func (r *run) saw(stored, before int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stored < before {
		r.stored, r.position = stored, stored
	}
	r.stored = max(r.stored, stored)
	r.advance(stored)
}

// reached records that every event up to a position has been applied.
func (r *run) reached(position int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(position)
}

// advance sets the position, if it is higher, and wakes the waiting queries. mu must be held.
func (r *run) advance(position int64) {
	if position > r.position {
		r.position = position
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// Reasons why a step has changed nothing. The events after the checkpoint are then sent again.
var (
	errElsewhere = errors.New("another node works on this projection")
	errGap       = errors.New("the batch does not follow the checkpoint, which another node or a crash has moved back")
	errVersion   = errors.New("the read model has another version: only programs of that version advance it")
	errForeign   = errors.New("the checkpoint names an event that this ledger does not have: rebuild the read model with countersign replay rebuild")
)

func (m *model) otherVersion(stored int) error {
	return fmt.Errorf("%w: %s has version %d, this program %d", errVersion, m.name, stored, m.version)
}

// handle applies one batch. If it returns an error, the router sends the batch again.
func (r *run) handle(m *message.Message) error { return r.through(m.Context(), ledger.Batch(m)) }

// through applies a batch, one event at a time if necessary, and advances the checkpoint.
func (r *run) through(ctx context.Context, batch []ledger.Event) error {
	err := r.step(ctx, batch)
	if !errors.Is(err, errPoison) {
		return err
	}
	// At least one event cannot be applied. Apply the events one by one, to park only that one.
	for _, e := range batch {
		if err := r.one(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// errPoison means that an event cannot be applied although the database works.
var errPoison = errors.New("the event cannot be applied")

// one applies an event, or parks it after several attempts. It makes these attempts itself,
// because sending the batch again would delay all other events. A failure of the database never
// parks an event.
func (r *run) one(ctx context.Context, e ledger.Event) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := r.step(ctx, []ledger.Event{e})
		if !errors.Is(err, errPoison) {
			return err
		}
		if n == tries {
			return r.bury(ctx, e, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause *= 2
	}
}

// passes reports whether a batch has no effect and follows the applied events. If so, the read
// model counts as up to date without a message: most events concern one or two of the read models,
// and a message costs more than most batches. The checkpoint is stored only from time to time, for
// nodes that start later.
func (r *run) passes(batch []ledger.Event) bool {
	for _, e := range batch {
		if r.takes(e) {
			return false
		}
	}
	last := batch[len(batch)-1].Position
	if batch[0].Position > r.passed+1 || last-r.from > saveAfter || time.Since(r.savedAt) > time.Second {
		return false
	}
	r.passed = max(r.passed, last)
	r.reached(last)
	return true
}

// step applies events and advances the checkpoint in one transaction. It skips events at or before
// the checkpoint, and refuses a batch with a gap after the checkpoint.
func (r *run) step(ctx context.Context, batch []ledger.Event) error {
	last := batch[len(batch)-1]
	var at checkpoint
	err := pgx.BeginTxFunc(ctx, r.ledger.Pool(), r.opening(), func(tx pgx.Tx) (err error) {
		if at, err = r.begin(ctx, tx, batch[0].Position); err != nil {
			return err
		}
		ready, err := r.ready(ctx, tx, batch, at)
		if err != nil {
			return err
		}
		for len(ready) > 0 {
			n, err := r.try(ctx, tx, ready)
			if err != nil {
				return fmt.Errorf("apply %s at %d to %s: %w", ready[0].Type, ready[0].Position, r.name, err)
			}
			ready = ready[n:]
		}
		return r.move(ctx, tx, last, at.position)
	})
	if err == nil {
		r.moveOn(max(at.position, last.Position))
	}
	return err
}

// ready returns the events of a batch that must be applied. It parks events of streams that
// already have a parked event.
func (r *run) ready(ctx context.Context, tx pgx.Tx, batch []ledger.Event, at checkpoint) ([]ledger.Event, error) {
	var ready []ledger.Event
	for _, e := range batch {
		switch {
		case e.Position <= at.position || !r.takes(e):
		case !at.dead[[2]string{e.Tenant, e.Stream}]:
			ready = append(ready, e)
		default:
			if err := r.park(ctx, tx, e, "an earlier event of the stream is parked"); err != nil {
				return nil, err
			}
		}
	}
	return ready, nil
}

// moveOn records the checkpoint of a committed step.
func (r *run) moveOn(position int64) {
	r.from, r.passed, r.savedAt = position, position, time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = max(r.stored, position)
	r.advance(position)
}

// checkpoint is the stored position of a read model, locked by a transaction.
type checkpoint struct {
	version  int
	position int64
	ours     bool               // the ledger contains the event that the checkpoint names
	dead     map[[2]string]bool // streams with parked events, by tenant and name
}

// opening returns the options of a step's transaction. The commit need not be durable, because
// rows and checkpoint can only be lost together, and are rebuilt.
func (m *model) opening() pgx.TxOptions {
	return pgx.TxOptions{BeginQuery: `begin; set local search_path = ` + m.schema + `, public; set local synchronous_commit = off`}
}

// begin locks and reads the checkpoint in one round trip. It refuses events that do not follow the
// checkpoint, and a read model of another version or ledger. Each check is a separate statement,
// so that its snapshot is taken after the lock.
func (r *run) begin(ctx context.Context, tx pgx.Tx, first int64) (at checkpoint, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`select version, pos from public.projection_checkpoint where name = $1 and p = $2 for update skip locked`, r.key, r.partition.Number()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at.version, &at.position) })
	batch.Queue(behindOurs, r.key, r.partition.Number()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at.ours) })
	batch.Queue(`select distinct tenant, stream from public.projection_dead where name = $1 and p = $2`, r.key, r.partition.Number()).
		Query(func(rows pgx.Rows) error {
			var stream [2]string
			_, err := pgx.ForEachRow(rows, []any{&stream[0], &stream[1]}, func() error {
				if at.dead == nil {
					at.dead = map[[2]string]bool{}
				}
				at.dead[stream] = true
				return nil
			})
			return err
		})
	err = tx.SendBatch(ctx, batch).Close()
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return at, errElsewhere
	case err != nil:
		return at, err
	case at.version != r.version:
		return at, r.otherVersion(at.version)
	case !at.ours:
		return at, fmt.Errorf("%w %s", errForeign, r.name)
	}
	r.saw(at.position, r.seen()) // the position is exact, because no other node can advance a locked checkpoint
	if !r.follows(first, at.position) {
		r.from, r.passed = at.position, at.position
		return at, fmt.Errorf("%w: %s is at position %d", errGap, r.name, at.position)
	}
	return at, nil
}

// follows reports whether the events between a checkpoint and a batch are known to have no effect.
func (r *run) follows(first, position int64) bool {
	return first <= position+1 || r.from <= position && first <= r.passed+1
}

// try applies events from the start of a list and returns their number. A failure of the events
// themselves, even a panic, becomes errPoison.
func (r *run) try(ctx context.Context, tx pgx.Tx, ready []ledger.Event) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v", errPoison, p)
		}
	}()
	if r.applyRun != nil {
		n, err = r.applyRun(ctx, r.ledger, tx, ready)
	}
	if err == nil && n == 0 {
		n, err = 1, r.apply(ctx, tx, ready[0])
	}
	if err == nil || errors.Is(err, errUnpublished) || errors.Is(err, ledger.ErrUnavailable) || databaseFailed(ctx, tx, err) {
		return n, err
	}
	return 0, fmt.Errorf("%w: %w", errPoison, err)
}

// damaged lists SQLSTATE codes that every event causes if the tables are damaged (no table, no
// column, no right). A rebuild repairs that, so these errors do not park an event.
var damaged = []string{"42P01", "42703", "42501", "3F000"}

// databaseFailed reports whether the database has caused an error: the connection is lost or the
// server has ended it, the server has a temporary problem (classes of SQLSTATE), or the tables are
// damaged.
func databaseFailed(ctx context.Context, tx pgx.Tx, err error) bool {
	var refused *pgconn.PgError
	return tx.Conn().IsClosed() || ctx.Err() != nil || errors.As(err, &refused) &&
		(slices.Contains([]string{"08", "40", "53", "55", "57", "58"}, refused.Code[:2]) || slices.Contains(damaged, refused.Code))
}

func (r *run) move(ctx context.Context, tx pgx.Tx, last ledger.Event, position int64) error {
	if last.Position <= position {
		return nil
	}
	_, err := tx.Exec(ctx, `update public.projection_checkpoint set pos = $3, hash = $4 where name = $1 and p = $2`,
		r.key, r.partition.Number(), last.Position, last.Hash[:])
	return err
}

// bury parks an event in the transaction that advances the checkpoint past it, unless another node
// has advanced the checkpoint meanwhile.
func (r *run) bury(ctx context.Context, e ledger.Event, cause error) error {
	var at checkpoint
	err := pgx.BeginTxFunc(ctx, r.ledger.Pool(), r.opening(), func(tx pgx.Tx) (err error) {
		if at, err = r.begin(ctx, tx, e.Position); err != nil || e.Position <= at.position {
			return err
		}
		r.log.Error("event parked", "projection", r.name, "position", e.Position, "error", cause)
		if err := r.park(ctx, tx, e, cause.Error()); err != nil {
			return err
		}
		return r.move(ctx, tx, e, at.position)
	})
	if err == nil {
		r.moveOn(max(at.position, e.Position))
	}
	return err
}

func (r *run) park(ctx context.Context, tx pgx.Tx, e ledger.Event, why string) error {
	var parked int
	if err := tx.QueryRow(ctx, `select count(*) from public.projection_dead where name = $1 and p = $2`, r.key, r.partition.Number()).Scan(&parked); err != nil {
		return err
	}
	if parked >= maxParked {
		return fmt.Errorf("projection %s is stopped: %d events are parked", r.name, parked)
	}
	_, err := tx.Exec(ctx, `insert into public.projection_dead (name, p, pos, tenant, stream, attempts, error, parked_us)
		values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
		r.key, e.Partition, e.Position, e.Tenant, e.Stream, tries, why, max(e.OccurredUS, 1))
	return err
}
