package rate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/projections"
)

// Feed measures the read models: the delay from the answer to a decision until the read model
// contains it, and how fast read models are rebuilt from the first event. The rebuild is compared
// with a consumer of watermill-sql, which stores messages in the same PostgreSQL.
type Feed struct {
	During  time.Duration `help:"Length of each run of delays." default:"5s"`
	Callers []int         `help:"Numbers of callers in addition to the one whose decisions are timed." default:"0,8,32"`
	Events  int64         `help:"Number of events, and of watermill-sql messages, to catch up with." default:"50000"`
	Within  time.Duration `help:"Time limit of watermill-sql." default:"20s"`
}

// Run prints one line for each number of callers and one line that compares the two rebuilds.
func (c *Feed) Run(ctx context.Context) error {
	if err := c.printDelays(ctx); err != nil {
		return err
	}
	s, err := rig.NewScratch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	theirs, err := c.watermillSQL(ctx, s)
	if err != nil {
		return fmt.Errorf("watermill-sql: %w", err)
	}
	ours, err := c.catchUp(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("catching up with %d: one read model of watermill-sql %.0f messages/s, all read models of countersign %.0f events/s, %.1f times as many\n", c.Events, theirs, ours, ours/theirs)
	return rig.Check(ctx, s)
}

// printDelays prints the time from the answer to a decision until the table of the history has its
// row. It makes no query through the service meanwhile, because the reader of events works faster
// while a query waits for it.
func (c *Feed) printDelays(ctx context.Context) error {
	service, token, err := rig.StartOrganization(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	fmt.Printf("%-14s %14s %28s\n", "other callers", "decisions/s", "in the history p50/p99 ms")
	for _, callers := range c.Callers {
		var others rig.Sample
		var failed error
		var group sync.WaitGroup
		if callers > 0 {
			group.Go(func() { others, failed = service.Decide(token, callers, 100, c.During+time.Second) })
		}
		delays, err := delays(ctx, service, token, c.During)
		group.Wait()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		fmt.Printf("%-14d %14.0f %28s\n", callers, others.PerSecond, delays.P50P99())
	}
	return rig.Check(ctx, service.Scratch)
}

const (
	lookEvery = 500 * time.Microsecond // interval at which the table is polled
	atRandom  = 30 * time.Millisecond  // longest random pause before a decision, so that decisions are not in step with the reader's polling
)

// delays requests decisions one after the other. After each it polls the table of the history
// until the table contains the decision.
func delays(ctx context.Context, b *rig.Service, token string, during time.Duration) (rig.Sample, error) {
	c, err := b.Client()
	if err != nil {
		return rig.Sample{}, err
	}
	defer c.Close()
	reader, err := pgx.Connect(ctx, b.Scratch.App)
	if err != nil {
		return rig.Sample{}, err
	}
	defer reader.Close(ctx)
	var delays rig.Sample
	run := time.Now()
	for n := 0; time.Since(run) < during; n++ {
		time.Sleep(rand.N(atRandom))
		answer, err := c.Decision(token, fmt.Sprintf("delay-%d-%d", run.UnixNano(), n), "")
		if err != nil {
			return rig.Sample{}, err
		}
		answered := time.Now()
		var envelope struct {
			Record struct {
				DecisionID string `json:"decisionId"`
			} `json:"record"`
		}
		if err := json.Unmarshal(answer, &envelope); err != nil || envelope.Record.DecisionID == "" {
			return rig.Sample{}, fmt.Errorf("no decision in the answer: %w", err)
		}
		for there := false; !there; {
			if err := reader.QueryRow(ctx, `select exists (select from readmodels.history where decision_id = $1)`, envelope.Record.DecisionID).Scan(&there); err != nil {
				return rig.Sample{}, err
			}
			if !there {
				time.Sleep(lookEvery)
			}
		}
		delays.Latencies = append(delays.Latencies, time.Since(answered))
	}
	slices.Sort(delays.Latencies)
	return delays, nil
}

// watermillSQL returns the messages per second that a consumer of watermill-sql processes. It
// reads batches of 100 messages, the default, and inserts one row per message.
func (c *Feed) watermillSQL(ctx context.Context, s *rig.Scratch) (float64, error) {
	pool, err := pgxpool.New(ctx, s.Owner)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	log := watermill.NewSlogLogger(slog.New(slog.DiscardHandler))
	schema := watermillsql.DefaultPostgreSQLSchema{}
	publisher, err := watermillsql.NewPublisher(watermillsql.BeginnerFromPgx(pool), watermillsql.PublisherConfig{SchemaAdapter: schema, AutoInitializeSchema: true}, log)
	if err != nil {
		return 0, err
	}
	defer publisher.Close()
	// Publish the messages.
	const together = 500 // messages per publish call
	text := rig.Padded(600)
	for sent := int64(0); sent < c.Events; sent += together {
		messages := make([]*message.Message, min(together, c.Events-sent))
		for i := range messages {
			messages[i] = message.NewMessage(watermill.NewUUID(), text)
		}
		if err := publisher.Publish("bench", messages...); err != nil {
			return 0, err
		}
	}
	if _, err := pool.Exec(ctx, `drop table if exists public.bench_model; create table public.bench_model (uuid text primary key, payload bytea)`); err != nil {
		return 0, err
	}
	// Consume the messages and insert a row for each, until all are consumed or the time limit is
	// over.
	subscriber, err := watermillsql.NewSubscriber(watermillsql.BeginnerFromPgx(pool), watermillsql.SubscriberConfig{
		SchemaAdapter: schema, OffsetsAdapter: watermillsql.DefaultPostgreSQLOffsetsAdapter{}, InitializeSchema: true}, log)
	if err != nil {
		return 0, err
	}
	defer subscriber.Close()
	ctx, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	messages, err := subscriber.Subscribe(ctx, "bench")
	if err != nil {
		return 0, err
	}
	began, got := time.Now(), int64(0)
	for m := range messages {
		if _, err := pool.Exec(ctx, `insert into public.bench_model values ($1, $2) on conflict do nothing`, m.UUID, []byte(m.Payload)); ctx.Err() != nil {
			break
		} else if err != nil {
			return 0, err
		}
		m.Ack()
		if got++; got == c.Events {
			break
		}
	}
	return float64(got) / time.Since(began).Seconds(), nil
}

// catchUp returns the events per second that the read models process from the first event on. Half
// of the events are signed decisions, half are workflows.
func (c *Feed) catchUp(ctx context.Context, s *rig.Scratch) (float64, error) {
	if err := rig.MakeLedger(ctx, s, c.Events); err != nil {
		return 0, err
	}
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(ctx, s.App, ledger.Options{Log: log})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	began := time.Now()
	p, err := projections.Start(ctx, l, log)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	if err := rig.CaughtUp(ctx, p); err != nil {
		return 0, err
	}
	return float64(c.Events) / time.Since(began).Seconds(), nil
}
