// Package projections contains the read models: tables for queries that are built from the
// ledger's events and can be dropped and rebuilt at any time. The variable all lists them. Each
// read model has a file with its queries and with the code that applies events to it; its tables
// are in migrations/readmodels. The other files run, rebuild and compare read models.
//
// The rows of a read model and its checkpoint (the position up to which it has read) change in one
// transaction. So after a repeated batch, with two nodes, or after a crash at any point, no event
// is applied twice or skipped.
package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
)

// projection declares one read model. Its name is that of its file in migrations/readmodels. If
// version is higher than the stored version, the read model is rebuilt.
type projection struct {
	name    string
	tables  []string // tables that it fills; none if it only hands events on (handOn)
	version int
	handles []string                                          // types of events that it receives
	signed  []string                                          // types in handles that it receives only if the event has a signed record
	apply   func(context.Context, pgx.Tx, ledger.Event) error // applies one event; may be nil if applyRun applies every event
	// applyRun, if set, applies as many events from the start of a list as it can, in one
	// statement, and returns their number. It may read earlier events from the ledger.
	applyRun func(context.Context, *ledger.Ledger, pgx.Tx, []ledger.Event) (int, error)
	sweep    string // statement that deletes expired rows; may be empty
}

// takes reports whether an event may change the read model. It does not read the payload, because
// it is called for every event.
func (p projection) takes(e ledger.Event) bool {
	return slices.Contains(p.handles, e.Type) && (e.KeyID != "" || !slices.Contains(p.signed, e.Type))
}

// all lists every read model. The function Names returns their names for the help, the tools and
// the tests.
var all = []projection{status, organizations, history, spend, payments, oversight, access, uses}

const (
	readYourWrites = 2 * time.Second       // longest time that a query waits for its projection
	pollCheckpoint = 10 * time.Millisecond // time between two reads of a checkpoint that another node advances
	tries          = 5                     // attempts to apply an event before it is parked
	firstPause     = 10 * time.Millisecond // first pause between two attempts; each pause doubles
	saveAfter      = 1000                  // events without effect after which the checkpoint is stored
	maxParked      = 1000                  // largest number of parked events; with more the projection counts as broken
	sweepEvery     = time.Hour
)

// ErrBehind is the error of a query whose read model has not caught up in time, or has parked an
// event that the query concerns. The API answers 503.
var ErrBehind = errors.New("the read model is behind the ledger")

// ErrNotFound is the error for a row that does not exist, or is no longer shown.
var ErrNotFound = errors.New("not found")

// Projections runs every read model of this node.
type Projections struct {
	// Patience is the longest time that a query waits for its projection. Start sets the 2 s of
	// production; most tests set more.
	Patience time.Duration

	ledger *ledger.Ledger
	log    *slog.Logger
	router *message.Router
	stop   context.CancelFunc
	done   sync.WaitGroup
	models map[string]*model

	withoutData *atomic.Int64 // number of events that the sink received without their data; nil without a sink
}

// Start creates missing read models and follows the ledger. It returns before the read models have
// caught up. If a stored read model has to be rebuilt, Start rebuilds it in the background.
func Start(ctx context.Context, l *ledger.Ledger, log *slog.Logger) (*Projections, error) {
	return follow(ctx, l, log, followers(l))
}

// followers lists all projections of a node of the service: the read models and the queue of
// webhooks.
func followers(l *ledger.Ledger) []projection {
	return append(slices.Clone(all), queueing(len(l.Partitions())))
}

// Publish starts to publish every event of the ledger to a sink. The result has no read models.
func Publish(ctx context.Context, l *ledger.Ledger, log *slog.Logger, sink Sink) (*Projections, error) {
	withoutData := new(atomic.Int64)
	p, err := follow(ctx, l, log, []projection{feed{sink, l, log, withoutData}.projection()})
	if err != nil {
		return nil, err
	}
	p.withoutData = withoutData
	return p, nil
}

// follow starts a list of projections. Tests call it with a list of their own.
func follow(ctx context.Context, l *ledger.Ledger, log *slog.Logger, list []projection) (*Projections, error) {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 5 * time.Second}, watermill.NewSlogLogger(slog.New(newWarnings(log.Handler()))))
	if err != nil {
		return nil, err
	}
	p := &Projections{Patience: readYourWrites, ledger: l, log: log, router: router, models: map[string]*model{}}
	for _, projection := range list {
		m := newModel(projection, l, log)
		sound, err := m.prepare(ctx)
		if err != nil {
			return nil, fmt.Errorf("prepare read model %s: %w", m.name, err)
		}
		if sound {
			close(m.made)
		}
		p.models[m.name] = m
		for _, r := range m.runs {
			events := r.partition.Subscriber(r.start)
			events.Passes = r.passes
			router.AddConsumerHandler(fmt.Sprintf("%s %d", m.name, r.partition.Number()), "events", events, r.handle)
		}
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	for _, m := range p.models {
		if !m.sound() {
			p.done.Go(func() { m.repair(background) })
		}
	}
	p.done.Go(func() {
		if err := router.Run(background); err != nil {
			log.Error("projections ended", "error", err)
		}
	})
	p.done.Go(func() { p.sweep(background) })
	<-router.Running()
	return p, nil
}

// Close stops every projection after its current batch. It may be called twice.
func (p *Projections) Close() {
	p.stop()
	_ = p.router.Close()
	p.done.Wait()
}

// collect runs a query on read models and returns the rows that scan reads. The list is never nil,
// so it is an array in JSON.
func collect[T any](ctx context.Context, p *Projections, scan pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, err := p.ledger.Pool().Query(ctx, query, args...)
	list := []T{}
	if err == nil {
		list, err = pgx.AppendRows(list, rows, scan)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	return list, nil
}

// Lag is the number of events that a projection has not read yet, the number that it has parked,
// and whether it is being rebuilt on this node, so that queries get ErrBehind.
type Lag struct {
	Behind, Parked int64
	Rebuilding     bool
}

// Lags returns the lags of this node's projections by name.
func (p *Projections) Lags(ctx context.Context) (map[string]Lag, error) {
	heads, err := p.ledger.Heads(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := p.ledger.Pool().Query(ctx, `select name, count(*) from projection_dead group by name`)
	if err != nil {
		return nil, err
	}
	lags, dead := map[string]Lag{}, map[string]int64{}
	var name string
	var parked int64
	_, err = pgx.ForEachRow(rows, []any{&name, &parked}, func() error {
		dead[name] = parked
		return nil
	})
	for name, m := range p.models {
		lag := Lag{Parked: dead[name], Rebuilding: !m.sound()}
		for i, r := range m.runs {
			r.mu.Lock()
			lag.Behind += max(heads[i]-r.position, 0)
			r.mu.Unlock()
		}
		lags[name] = lag
	}
	return lags, err
}

func (p *Projections) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for _, m := range p.models {
			if m.sweep == "" {
				continue
			}
			if _, err := p.ledger.Pool().Exec(ctx, m.sweep); err != nil && ctx.Err() == nil {
				p.log.Warn("sweep read model", "projection", m.name, "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// warnings is a log handler that passes only records for the operator, because the router logs
// each of its steps.
type warnings struct {
	slog.Handler
	told *told
}

func newWarnings(h slog.Handler) warnings { return warnings{h, &told{}} }

// told is the last logged error. A failing batch is retried twice a second, so a lasting error is
// logged only from time to time.
type told struct {
	mu   sync.Mutex // guards the following fields
	what string
	at   time.Time
}

// tellEvery is the shortest time between two log lines about the same error.
const tellEvery = 5 * time.Second

// again reports whether the same error was logged within tellEvery. If not, it records the error.
func (t *told) again(what string, at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if what == t.what && at.Sub(t.at) < tellEvery {
		return true
	}
	t.what, t.at = what, at
	return false
}

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler. It drops the message that another node has taken a batch,
// because that is how two nodes share the work.
func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	quiet := false
	r.Attrs(func(a slog.Attr) bool {
		err, failed := a.Value.Any().(error)
		quiet = failed && (errors.Is(err, errElsewhere) || errors.Is(err, errGap) || w.told.again(err.Error(), r.Time))
		return !quiet
	})
	if quiet {
		return nil
	}
	return w.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs), w.told}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler {
	return warnings{w.Handler.WithGroup(name), w.told}
}
