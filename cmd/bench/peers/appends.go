package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// appends compares operations that store one record durably.
type appends struct {
	Runs    int           `help:"Number of rounds. The median of each measurement is printed." default:"3"`
	During  time.Duration `help:"Length of each run." default:"3s"`
	Callers []int         `help:"Numbers of callers." default:"1,8,64"`
}

// Run prints one line for each number of callers and contestant.
func (c *appends) Run(ctx context.Context) error {
	s, err := rig.NewScratch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	list := []contestant{
		{"plain insert", func(callers int, during time.Duration) (rig.Sample, error) {
			return rig.Anchor(ctx, s, callers, during)
		}},
		{"countersign: append", func(callers int, during time.Duration) (rig.Sample, error) {
			return rig.AppendLoad(ctx, s, 1, callers, during, rig.Payload)
		}},
		{"watermill-sql: publish", func(callers int, during time.Duration) (rig.Sample, error) {
			return publish(ctx, s, callers, during)
		}},
		{"River: insert a job", func(callers int, during time.Duration) (rig.Sample, error) {
			return insertJobs(ctx, s, callers, during)
		}},
		{"Tessera (POSIX): add", func(callers int, during time.Duration) (rig.Sample, error) {
			return addEntries(ctx, callers, during)
		}},
	}
	printHeading()
	for _, callers := range c.Callers {
		medians, err := rounds(s, list, c.Runs, callers, c.During)
		if err != nil {
			return err
		}
		printLines(list, medians, callers)
	}
	return rig.Check(ctx, s)
}

// pool returns connections for all callers.
func pool(ctx context.Context, s *rig.Scratch, callers int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(s.Owner)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = int32(callers), int32(callers)
	return pgxpool.NewWithConfig(ctx, config)
}

var silent = watermill.NewSlogLogger(slog.New(slog.DiscardHandler))

// publish publishes one message per call with watermill-sql.
func publish(ctx context.Context, s *rig.Scratch, callers int, during time.Duration) (rig.Sample, error) {
	pool, err := pool(ctx, s, callers)
	if err != nil {
		return rig.Sample{}, err
	}
	defer pool.Close()
	publisher, err := watermillsql.NewPublisher(watermillsql.BeginnerFromPgx(pool), watermillsql.PublisherConfig{
		SchemaAdapter: watermillsql.DefaultPostgreSQLSchema{}, AutoInitializeSchema: true}, silent)
	if err != nil {
		return rig.Sample{}, err
	}
	defer publisher.Close()
	return rig.Load(callers, during, func(int, int) error {
		return publisher.Publish("peers", message.NewMessage(watermill.NewUUID(), message.Payload(rig.Payload)))
	})
}

// job is the argument of River's jobs. No worker runs here, so they stay in the table.
type job struct {
	Pad string `json:"pad"`
}

// Kind names the jobs.
func (job) Kind() string { return "peers" }

// insertJobs inserts one job per call with River.
func insertJobs(ctx context.Context, s *rig.Scratch, callers int, during time.Duration) (rig.Sample, error) {
	pool, err := pool(ctx, s, callers)
	if err != nil {
		return rig.Sample{}, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return rig.Sample{}, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return rig.Sample{}, err
	}
	client, err := river.NewClient(driver, &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return rig.Sample{}, err
	}
	argument := job{strings.Repeat("x", len(rig.Payload)-len(`{"pad":""}`))}
	return rig.Load(callers, during, func(int, int) error {
		_, err := client.Insert(ctx, argument, nil)
		return err
	})
}

// addEntries adds one entry per call to a Tessera log in a temporary folder, and waits until it
// has its index.
func addEntries(ctx context.Context, callers int, during time.Duration) (rig.Sample, error) {
	dir, err := os.MkdirTemp("", "countersign-peers-")
	if err != nil {
		return rig.Sample{}, err
	}
	defer os.RemoveAll(dir)
	secret, _, err := note.GenerateKey(rand.Reader, "peers.example/log")
	if err != nil {
		return rig.Sample{}, err
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		return rig.Sample{}, err
	}
	driver, err := posix.New(ctx, posix.Config{Path: dir})
	if err != nil {
		return rig.Sample{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	appender, shutdown, _, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).WithCheckpointInterval(time.Second).WithBatching(256, time.Millisecond))
	if err != nil {
		return rig.Sample{}, err
	}
	sample, err := rig.Load(callers, during, func(caller, n int) error {
		_, err := appender.Add(ctx, tessera.NewEntry(fmt.Appendf(nil, "%d %d %s", caller, n, rig.Payload)))()
		return err
	})
	if err == nil {
		err = shutdown(ctx)
	}
	return sample, err
}
