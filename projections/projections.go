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
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
)

// projection is one read model. Its name is that of its file in
// migrations/readmodels; a higher version than the stored one rebuilds it.
type projection struct {
	name    string
	tables  []string // none: it builds no rows, it hands events on (handOn)
	version int
	handles []string // types of events that change it, as package events says; no others reach it
	signed  []string // of these the types of which only events with a signed record change it
	apply   func(context.Context, pgx.Tx, ledger.Event) error
	// applyRun, if there is one, applies the first events of a list in one
	// statement, as many as can go together, and says how many. From the ledger it may
	// read earlier events.
	applyRun func(context.Context, *ledger.Ledger, pgx.Tx, []ledger.Event) (int, error)
	sweep    string // deletes rows nobody is shown any more; empty for none
}

// takes says whether an event may change the read model. It is asked of every event, so
// it looks at no payload.
func (p projection) takes(e ledger.Event) bool {
	return slices.Contains(p.handles, e.Type) && (e.KeyID != "" || !slices.Contains(p.signed, e.Type))
}

// all lists every read model: help, tools and tests read it (Names).
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
	// Patience is how long a query waits for its projection. Start sets the 2 s of
	// production; a test whose verdict is about something else sets more.
	Patience time.Duration

	ledger *ledger.Ledger
	log    *slog.Logger
	router *message.Router
	stop   context.CancelFunc
	done   sync.WaitGroup
	models map[string]*model

	withoutData *atomic.Int64 // events that the sink got without their data; nil without a sink
}

// Start creates missing read models, begins to rebuild the unsound ones while they go on
// being shown, and begins to follow the ledger. It waits for none of them.
func Start(ctx context.Context, l *ledger.Ledger, log *slog.Logger) (*Projections, error) {
	return follow(ctx, l, log, followers(l))
}

// followers lists everything that follows the ledger on a node of the service.
func followers(l *ledger.Ledger) []projection {
	return append(slices.Clone(all), queueing(len(l.Partitions())))
}

// Publish begins to publish every event of the ledger to a sink. It has no read models.
func Publish(ctx context.Context, l *ledger.Ledger, log *slog.Logger, sink Sink) (*Projections, error) {
	withoutData := new(atomic.Int64)
	p, err := follow(ctx, l, log, []projection{feed{sink, l, log, withoutData}.projection()})
	if err != nil {
		return nil, err
	}
	p.withoutData = withoutData
	return p, nil
}

// follow is Start with a list of projections: tests have them in other versions.
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

// Close ends every projection after the batch it works on. It may be called
// twice.
func (p *Projections) Close() {
	p.stop()
	_ = p.router.Close()
	p.done.Wait()
}

// Lag is how many events each projection has still to read, how many it has
// parked, and whether this node shows nothing of it because it is rebuilt.
type Lag struct {
	Behind, Parked int64
	Rebuilding     bool
}

// Lags of all projections of this node, by name.
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

// warnings lets only what is worth a line through: the router reports each of
// its steps.
type warnings struct {
	slog.Handler
	told *told
}

func newWarnings(h slog.Handler) warnings { return warnings{h, &told{}} }

// told is the error that was logged last: a batch that cannot be applied is sent again
// twice a second, and what goes on for hours is a line now and then.
type told struct {
	mu   sync.Mutex // guards what follows
	what string
	at   time.Time
}

// tellEvery is the time between two lines about the same error.
const tellEvery = 5 * time.Second

// again says whether an error was logged just now.
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

// Handle implements slog.Handler. That another node was faster with a batch is how
// two nodes share the work, and no line for an operator.
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
