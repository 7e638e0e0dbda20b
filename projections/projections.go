// Package projections holds the read models: what queries show, built from the
// ledger's events, thrown away and built again at will. Each file is one read
// model: how an event changes it, and its queries, side by side. Its tables are
// in migrations/readmodels.
//
// The rows of a read model and its checkpoint (how far it has read) move in one
// transaction, so a batch delivered twice, two nodes or a crash at any point can
// neither apply an event twice nor skip one.
package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/migrations"
)

// projection is one read model. Its name is that of its file in
// migrations/readmodels; a higher version than the stored one rebuilds it.
type projection struct {
	name    string
	tables  string // to drop before they are made anew
	version int
	handles []string // types of events that change it; no others reach it
	apply   func(context.Context, pgx.Tx, ledger.Event) error
	// applyRun, if there is one, applies the first events of a list in one
	// statement, as many as can go together, and says how many.
	applyRun func(context.Context, pgx.Tx, []ledger.Event) (int, error)
	sweep    string // deletes rows nobody is shown any more; empty for none
}

// all lists every projection.
var all = []projection{status, organizations, history, payments}

const (
	readYourWrites = 2 * time.Second       // a query waits no longer for its projection
	pollCheckpoint = 10 * time.Millisecond // when another node moves it
	tries          = 5                     // of an event before it is parked
	firstPause     = 10 * time.Millisecond // between tries; each is twice the one before
	saveAfter      = 1000                  // events that changed nothing before the checkpoint follows
	maxParked      = 1000                  // events; more means that the projection is broken
	sweepEvery     = time.Hour
)

// ErrBehind is a read model that has not caught up in time, or that has parked
// an event of what was asked for: 503.
var ErrBehind = errors.New("the read model is behind the ledger")

// ErrNotFound is a row that is not there, or not shown any more.
var ErrNotFound = errors.New("not found")

// Projections runs every read model of this node.
type Projections struct {
	ledger *ledger.Ledger
	log    *slog.Logger
	router *message.Router
	stop   context.CancelFunc
	done   sync.WaitGroup
	runs   map[string]*run
}

// run is one projection at work; its goroutine is the router's handler.
type run struct {
	projection
	ledger *ledger.Ledger
	log    *slog.Logger

	mu       sync.Mutex    // guards position, stored and moved
	position int64         // everything up to here has been applied
	stored   int64         // checkpoint as this node has last read or written it
	moved    chan struct{} // closed when position grows

	// Owned by the handler. No event above from and up to passed changes the read
	// model, so a batch that begins behind passed follows a checkpoint in between.
	from, passed int64
	savedAt      time.Time
}

// Start makes missing or outdated read models and begins to follow the ledger.
func Start(ctx context.Context, l *ledger.Ledger, log *slog.Logger) (*Projections, error) {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 5 * time.Second}, watermill.NewSlogLogger(slog.New(warnings{log.Handler()})))
	if err != nil {
		return nil, err
	}
	p := &Projections{ledger: l, log: log, router: router, runs: map[string]*run{}}
	for _, projection := range all {
		r := &run{projection: projection, ledger: l, log: log, moved: make(chan struct{})}
		if err := r.prepare(ctx); err != nil {
			return nil, fmt.Errorf("prepare read model %s: %w", r.name, err)
		}
		p.runs[r.name] = r
		router.AddConsumerHandler(r.name, "events", l.Subscriber(r.checkpoint), r.handle)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	p.done.Go(func() {
		if err := router.Run(background); err != nil {
			log.Error("projections ended", "error", err)
		}
	})
	p.done.Go(func() { p.sweep(background) })
	<-router.Running()
	return p, nil
}

// Close ends every projection after the batch it works on. It may be called
// twice.
func (p *Projections) Close() {
	p.stop()
	_ = p.router.Close()
	p.done.Wait()
}

// prepare makes the tables if the stored version is not ours, and forgets how
// far the old ones had come: the events are still there.
func (r *run) prepare(ctx context.Context) error {
	ddl, err := migrations.ReadModel(r.name)
	if err != nil {
		return err
	}
	// Without a lock first: another node may hold it for as long as it catches up.
	if _, err := r.checkpoint(ctx); err == nil {
		return nil
	}
	return pgx.BeginFunc(ctx, r.ledger.Pool(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into projection_checkpoint (name, p, version, pos, hash, state)
			values ($1, 0, 0, 0, $2, '') on conflict do nothing`, r.name, make([]byte, 32))
		if err != nil {
			return err
		}
		var version int
		if err := tx.QueryRow(ctx, `select version from projection_checkpoint where name = $1 and p = 0 for update`,
			r.name).Scan(&version); err != nil {
			return err
		}
		if version > r.version {
			return fmt.Errorf("the database has version %d of it and this program %d: start the newer program", version, r.version)
		}
		if version == r.version {
			return nil
		}
		if _, err := tx.Exec(ctx, `set local search_path = readmodels, public`); err != nil {
			return err
		}
		for _, statement := range []string{`drop table if exists ` + r.tables, ddl} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `update projection_checkpoint set version = $2, pos = 0, hash = $3 where name = $1 and p = 0`,
			r.name, r.version, make([]byte, 32))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `delete from projection_dead where name = $1 and p = 0`, r.name)
		return err
	})
}

// checkpoint reads how far the read model has come.
func (r *run) checkpoint(ctx context.Context) (int64, error) {
	before := r.seen()
	var version int
	var position int64
	err := r.ledger.Pool().QueryRow(ctx, `select version, pos from projection_checkpoint where name = $1 and p = 0`, r.name).Scan(&version, &position)
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

// saw takes note of a checkpoint that was read after before had been. A lower one
// means that the read model begins anew, or that a crash has undone its last
// steps: what this node remembers of its position is no longer true.
func (r *run) saw(stored, before int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stored < before {
		r.stored, r.position = stored, stored
	}
	r.stored = max(r.stored, stored)
	r.advance(stored)
}

// reached says that everything up to a position has been applied.
func (r *run) reached(position int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(position)
}

// advance needs mu.
func (r *run) advance(position int64) {
	if position > r.position {
		r.position = position
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// Why a batch is sent again, from the checkpoint as it is then. Nothing has
// changed.
var (
	errElsewhere = errors.New("another node has this projection")
	errGap       = errors.New("the batch does not follow the checkpoint, which another node or a crash has put back")
	errVersion   = errors.New("the read model is of another version: only programs of that version go on with it")
	errForeign   = errors.New("the checkpoint names an event that this ledger does not have: rebuild the read model with countersign replay rebuild")
)

func (r *run) otherVersion(stored int) error {
	return fmt.Errorf("%w: %s is at %d, this program at %d", errVersion, r.name, stored, r.version)
}

// handle applies one batch. An error sends the batch again.
func (r *run) handle(m *message.Message) error { return r.take(m.Context(), ledger.Batch(m)) }

func (r *run) take(ctx context.Context, batch []ledger.Event) error {
	if r.passes(batch) {
		return nil
	}
	err := r.step(ctx, batch)
	if !errors.Is(err, errPoison) {
		return err
	}
	// One event of the batch cannot be applied: the others go on without it.
	for _, e := range batch {
		if err := r.one(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// errPoison is an event that cannot be applied, however good the database is.
var errPoison = errors.New("the event cannot be applied")

// one applies an event, or parks it after some tries here: sent again, each of
// many would keep the others waiting for longer than the one before. A failure
// of the database parks nothing.
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

// passes lets a batch go by that changes nothing and follows what is applied, so
// the read model is at its end; the checkpoint follows now and then, for whoever
// begins anew.
func (r *run) passes(batch []ledger.Event) bool {
	for _, e := range batch {
		if slices.Contains(r.handles, e.Type) {
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

// step applies events and moves the checkpoint in one transaction. Events at or
// below the checkpoint were applied before; a batch that does not follow it is
// never applied.
func (r *run) step(ctx context.Context, batch []ledger.Event) error {
	last := batch[len(batch)-1]
	var at checkpoint
	err := pgx.BeginTxFunc(ctx, r.ledger.Pool(), pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) (err error) {
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

// ready is what of a batch is to be applied now. Events of parked streams are
// parked, too.
func (r *run) ready(ctx context.Context, tx pgx.Tx, batch []ledger.Event, at checkpoint) ([]ledger.Event, error) {
	var ready []ledger.Event
	for _, e := range batch {
		switch {
		case e.Position <= at.position || !slices.Contains(r.handles, e.Type):
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

// moveOn remembers the checkpoint that a committed step has left.
func (r *run) moveOn(position int64) {
	r.from, r.passed, r.savedAt = position, position, time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = max(r.stored, position)
	r.advance(position)
}

// checkpoint is how far a read model has come, under the lock of a transaction.
type checkpoint struct {
	version  int
	position int64
	ours     bool               // the event it names is the ledger's
	dead     map[[2]string]bool // streams (tenant, name) with parked events
}

// begin opens the transaction of a step. Rows and checkpoint are lost together, if
// at all, and made again.
const begin = `begin; set local search_path = readmodels, public; set local synchronous_commit = off`

// begin locks the checkpoint and reads it in one round trip, and refuses what must
// not go on from it: a first event that does not follow, or another version's or
// another ledger's read model. Each look is a statement of its own, so that its
// snapshot is taken after the lock.
func (r *run) begin(ctx context.Context, tx pgx.Tx, first int64) (at checkpoint, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`select version, pos from public.projection_checkpoint where name = $1 and p = 0 for update skip locked`, r.name).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at.version, &at.position) })
	batch.Queue(`select pos = 0 or exists (select from public.events e where e.p = 0 and e.pos = c.pos and e.hash = c.hash)
		from public.projection_checkpoint c where name = $1 and p = 0`, r.name).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at.ours) })
	batch.Queue(`select distinct tenant, stream from public.projection_dead where name = $1 and p = 0`, r.name).
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
	r.saw(at.position, r.seen()) // nobody moves it while it is locked
	if !r.follows(first, at.position) {
		r.from, r.passed = at.position, at.position
		return at, fmt.Errorf("%w: %s is at %d", errGap, r.name, at.position)
	}
	return at, nil
}

// follows says whether everything between a checkpoint and a batch has been seen
// to change nothing.
func (r *run) follows(first, position int64) bool {
	return first <= position+1 || r.from <= position && first <= r.passed+1
}

// try applies the first events and says how many. Their own failures, a panic
// among them, are errPoison.
func (r *run) try(ctx context.Context, tx pgx.Tx, ready []ledger.Event) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v", errPoison, p)
		}
	}()
	if r.applyRun != nil {
		n, err = r.applyRun(ctx, tx, ready)
	}
	if err == nil && n == 0 {
		n, err = 1, r.apply(ctx, tx, ready[0])
	}
	if err == nil || databaseFailed(ctx, tx, err) {
		return n, err
	}
	return 0, fmt.Errorf("%w: %w", errPoison, err)
}

// databaseFailed says whether a failure passes by itself: the connection is gone,
// or the server refuses for reasons of its own (classes of SQLSTATE).
func databaseFailed(ctx context.Context, tx pgx.Tx, err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return slices.Contains([]string{"08", "40", "53", "55", "57", "58"}, refused.Code[:2])
	}
	return tx.Conn().IsClosed() || ctx.Err() != nil
}

func (r *run) move(ctx context.Context, tx pgx.Tx, last ledger.Event, position int64) error {
	if last.Position <= position {
		return nil
	}
	_, err := tx.Exec(ctx, `update public.projection_checkpoint set pos = $2, hash = $3 where name = $1 and p = 0`,
		r.name, last.Position, last.Hash[:])
	return err
}

// bury parks an event in the transaction that moves the checkpoint past it,
// unless another node has come past it in the meantime.
func (r *run) bury(ctx context.Context, e ledger.Event, cause error) error {
	var at checkpoint
	err := pgx.BeginTxFunc(ctx, r.ledger.Pool(), pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) (err error) {
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
	if err := tx.QueryRow(ctx, `select count(*) from public.projection_dead where name = $1 and p = 0`, r.name).Scan(&parked); err != nil {
		return err
	}
	if parked >= maxParked {
		return fmt.Errorf("projection %s stands still: %d events are parked", r.name, parked)
	}
	_, err := tx.Exec(ctx, `insert into public.projection_dead (name, p, pos, tenant, stream, attempts, error, parked_us)
		values ($1, 0, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
		r.name, e.Position, e.Tenant, e.Stream, tries, why, max(e.OccurredUS, 1))
	return err
}

// wait returns when the projection has reached the head the ledger has now, and
// ErrBehind if that takes more than 2 s, if the stream is parked, or if the read
// model is another program's. No stream means every one of the tenant.
func (p *Projections) wait(ctx context.Context, name, tenant, stream string) error {
	r := p.runs[name]
	head, err := p.ledger.Head(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBehind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readYourWrites)
	defer cancel()
	poll := time.NewTicker(pollCheckpoint)
	defer poll.Stop()
	for {
		r.mu.Lock()
		position, moved := r.position, r.moved
		r.mu.Unlock()
		if position >= head {
			there, err := r.shows(ctx, head, tenant, stream)
			if err != nil || there {
				return err
			}
		}
		select {
		case <-moved:
		case <-poll.C:
			if _, err := r.checkpoint(ctx); err != nil {
				return fmt.Errorf("%w: %w", ErrBehind, err)
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: %s is at %d of %d", ErrBehind, name, position, head)
		}
	}
}

// shows asks the database whether the read model is still what this node
// remembers: of its version, not put back below the head, and without parked
// events of what is asked for.
func (r *run) shows(ctx context.Context, head int64, tenant, stream string) (bool, error) {
	before := r.seen()
	var version int
	var stored int64
	var parked bool
	err := r.ledger.Pool().QueryRow(ctx, `select version, pos, exists (select from projection_dead d
			where d.name = c.name and d.p = 0 and d.tenant = $2 and ($3 = '' or d.stream = $3))
		from projection_checkpoint c where c.name = $1 and c.p = 0`, r.name, tenant, stream).Scan(&version, &stored, &parked)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrBehind, err)
	case version != r.version:
		return false, fmt.Errorf("%w: %w", ErrBehind, r.otherVersion(version))
	case parked:
		return false, fmt.Errorf("%w: %s has parked events of %s %s", ErrBehind, r.name, tenant, stream)
	}
	r.saw(stored, before)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.position >= head, nil
}

// Lag is how many events each projection has still to read, and how many it has
// parked.
type Lag struct{ Behind, Parked int64 }

// Lags of all projections of this node, by name.
func (p *Projections) Lags(ctx context.Context) (map[string]Lag, error) {
	head, err := p.ledger.Head(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := p.ledger.Pool().Query(ctx, `select name, count(*) from projection_dead where p = 0 group by name`)
	if err != nil {
		return nil, err
	}
	lags := map[string]Lag{}
	var name string
	var parked int64
	_, err = pgx.ForEachRow(rows, []any{&name, &parked}, func() error {
		lags[name] = Lag{Parked: parked}
		return nil
	})
	for name, r := range p.runs {
		r.mu.Lock()
		lags[name] = Lag{Behind: max(head-r.position, 0), Parked: lags[name].Parked}
		r.mu.Unlock()
	}
	return lags, err
}

func (p *Projections) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for _, projection := range all {
			if projection.sweep == "" {
				continue
			}
			if _, err := p.ledger.Pool().Exec(ctx, projection.sweep); err != nil && ctx.Err() == nil {
				p.log.Warn("sweep read model", "projection", projection.name, "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// warnings lets only what is worth a line through: the router reports each of
// its steps.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
