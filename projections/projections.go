// Package projections holds the read models: tables for queries, built from the ledger's
// events, which can be dropped and rebuilt at any time. The read models are listed in all. Each
// has a file with its queries and the effect of events on it, and its tables are in
// migrations/readmodels. The other files run, rebuild and compare read models.
//
// The rows of a read model and its checkpoint (the position up to which it has read) change in
// one transaction. So a repeated batch, two nodes, or a crash at any point can neither apply an
// event twice nor skip one.
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

// projection is one read model. Its name is that of its file in migrations/readmodels. A higher
// version than the stored one causes a rebuild.
type projection struct {
	name    string
	tables  []string // none if it builds no rows but hands events on (handOn)
	version int
	handles []string                                          // types of events that change it; it receives no others
	signed  []string                                          // those of handles whose events change it only if they have a signed record
	apply   func(context.Context, pgx.Tx, ledger.Event) error // may be nil if applyRun applies every event
	// applyRun, if set, applies the first events of a list in one statement, as many as
	// possible, and returns their number. It may read earlier events from the ledger.
	applyRun func(context.Context, *ledger.Ledger, pgx.Tx, []ledger.Event) (int, error)
	sweep    string // deletes rows that are not shown any more; may be empty
}

// takes reports whether an event may change the read model. It is called for every event, so it
// does not read the payload.
func (p projection) takes(e ledger.Event) bool {
	return slices.Contains(p.handles, e.Type) && (e.KeyID != "" || !slices.Contains(p.signed, e.Type))
}

// all lists every read model: help, tools and tests read it (Names).
var all = []projection{status, organizations, history, spend, payments, oversight, access}

const (
	readYourWrites = 2 * time.Second       // a query waits no longer for its projection
	pollCheckpoint = 10 * time.Millisecond // when another node moves it
	tries          = 5                     // of an event before it is parked
	firstPause     = 10 * time.Millisecond // between tries; each is twice the one before
	saveAfter      = 1000                  // events that changed nothing before the checkpoint follows
	maxParked      = 1000                  // events; more means that the projection is broken
	sweepEvery     = time.Hour
)

// ErrBehind is returned by a query whose read model has not caught up in time, or has parked an
// event that the query concerns: 503.
var ErrBehind = errors.New("the read model is behind the ledger")

// ErrNotFound is returned for a row that does not exist, or is not shown any more.
var ErrNotFound = errors.New("not found")

// Projections runs every read model of this node.
type Projections struct {
	// Patience is how long a query waits for its projection. Start sets the 2 s of production;
	// a test that is not about the waiting sets more.
	Patience time.Duration

	ledger *ledger.Ledger
	log    *slog.Logger
	router *message.Router
	stop   context.CancelFunc
	done   sync.WaitGroup
	models map[string]*model

	withoutData *atomic.Int64 // events that the sink received without their data; nil without a sink
}

// Start creates missing read models, starts to rebuild unsound ones while they are still shown,
// and starts to follow the ledger. It does not wait for any of this.
func Start(ctx context.Context, l *ledger.Ledger, log *slog.Logger) (*Projections, error) {
	return follow(ctx, l, log, followers(l))
}

// followers lists everything that follows the ledger on a node of the service.
func followers(l *ledger.Ledger) []projection {
	return append(slices.Clone(all), queueing(len(l.Partitions())))
}

// Publish starts to publish every event of the ledger to a sink. It has no read models.
func Publish(ctx context.Context, l *ledger.Ledger, log *slog.Logger, sink Sink) (*Projections, error) {
	withoutData := new(atomic.Int64)
	p, err := follow(ctx, l, log, []projection{feed{sink, l, log, withoutData}.projection()})
	if err != nil {
		return nil, err
	}
	p.withoutData = withoutData
	return p, nil
}

// follow is Start with a list of projections, which tests replace.
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
			router.AddConsumerHandler(fmt.Sprintf("%s %d", m.name, r.partition.Number()), "events", r.partition.Subscriber(r.start), r.handle)
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

// collect returns the rows of a query of read models, each as scan reads it. The list is never
// nil, so that it is an array in JSON.
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

// Lag is the number of events that a projection has not read yet, the number it has parked, and
// whether this node shows nothing of it because it is being rebuilt.
type Lag struct {
	Behind, Parked int64
	Rebuilding     bool
}

// Lags returns the lags of all projections of this node, by name.
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

// warnings passes only records that an operator needs, because the router logs each of its
// steps.
type warnings struct {
	slog.Handler
	told *told
}

func newWarnings(h slog.Handler) warnings { return warnings{h, &told{}} }

// told is the error that was logged last. A batch that cannot be applied is repeated twice a
// second; an error that lasts for hours is logged only from time to time.
type told struct {
	mu   sync.Mutex // guards the members below
	what string
	at   time.Time
}

// tellEvery is the time between two lines about the same error.
const tellEvery = 5 * time.Second

// again reports whether an error was logged just now.
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

// Handle implements slog.Handler. It drops the message that another node was faster with a
// batch, because that is how two nodes share the work.
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
