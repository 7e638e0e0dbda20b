package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/projections"
)

// feed compares read models that are rebuilt from the first event with a consumer of
// watermill-sql, which stores its messages in the same PostgreSQL.
type feed struct {
	Events int64         `help:"Number of events, and of messages of watermill-sql." default:"50000"`
	Within time.Duration `help:"Time limit of watermill-sql." default:"20s"`
}

// Run prints one line.
func (c *feed) Run(ctx context.Context) error {
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

// watermillSQL returns the messages per second that a consumer of watermill-sql processes. It
// reads batches of 100 messages, the default, and inserts one row per message.
func (c *feed) watermillSQL(ctx context.Context, s *rig.Scratch) (float64, error) {
	pool, err := pgxpool.New(ctx, s.Owner)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	schema := watermillsql.DefaultPostgreSQLSchema{}
	publisher, err := watermillsql.NewPublisher(watermillsql.BeginnerFromPgx(pool), watermillsql.PublisherConfig{SchemaAdapter: schema, AutoInitializeSchema: true}, silent)
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
		if err := publisher.Publish("peers", messages...); err != nil {
			return 0, err
		}
	}
	if _, err := pool.Exec(ctx, `drop table if exists public.peers_model; create table public.peers_model (uuid text primary key, payload bytea)`); err != nil {
		return 0, err
	}
	// Consume the messages and insert a row for each, until all are consumed or the time limit is
	// over.
	subscriber, err := watermillsql.NewSubscriber(watermillsql.BeginnerFromPgx(pool), watermillsql.SubscriberConfig{
		SchemaAdapter: schema, OffsetsAdapter: watermillsql.DefaultPostgreSQLOffsetsAdapter{}, InitializeSchema: true}, silent)
	if err != nil {
		return 0, err
	}
	defer subscriber.Close()
	ctx, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	messages, err := subscriber.Subscribe(ctx, "peers")
	if err != nil {
		return 0, err
	}
	began, got := time.Now(), int64(0)
	for m := range messages {
		if _, err := pool.Exec(ctx, `insert into public.peers_model values ($1, $2) on conflict do nothing`, m.UUID, []byte(m.Payload)); ctx.Err() != nil {
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
func (c *feed) catchUp(ctx context.Context, s *rig.Scratch) (float64, error) {
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
