package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/countersign/countersign/cmd/fanout/sinktest"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// The scheme of the URL selects the sink. The checkpoint is stored under the name of the sink,
// which must never change.
func TestAnAddressNamesItsSink(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
	for address, name := range map[string]string{"nats://127.0.0.1:1": "nats", "tls://127.0.0.1:1": "nats", "kafka://127.0.0.1:1/events": "kafka",
		"pubsub://projects/p-1/topics/events": "pubsub"} {
		sink, err := sinkAt(address, slog.New(slog.DiscardHandler))
		if err != nil || sink.Name != name {
			t.Errorf("%s: %q, %v", address, sink.Name, err)
			continue
		}
		_ = sink.Publisher.Close()
	}
	for _, bad := range []string{"S3CRET", "amqp://u:S3CRET@h", "kafka://u:S3CRET@h", "pubsub://u:S3CRET@projects/p-1/topics/events"} {
		if _, err := sinkAt(bad, slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The program publishes existing and new events, reports the number of waiting events at /metrics,
// and ends without an error when it is stopped.
func TestEventsReachTheBroker(t *testing.T) {
	db := ledgertest.New(t)
	l, err := ledger.Open(t.Context(), db.URL, ledger.Options{Log: sinktest.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	sinktest.Append(t, l, 1, 3)
	broker, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	broker.Start()
	t.Cleanup(broker.Shutdown)
	if !broker.ReadyForConnections(time.Minute) {
		t.Fatal("the broker does not start")
	}
	var logged syncBuffer
	c := cli{FanoutURL: broker.ClientURL(), DatabaseURL: db.URL, BaseURL: "https://countersign.example/", MetricsListen: "127.0.0.1:0"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, slog.New(slog.NewTextHandler(&logged, nil))) }()

	conn, err := nats.Connect(broker.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := conn.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	arrived := func(n uint64) func() bool {
		return func() bool {
			info, err := js.StreamInfo("countersign")
			return err == nil && info.State.Msgs == n
		}
	}
	ledgertest.Until(t, "the first events are published", arrived(3))
	sinktest.Append(t, l, 4, 2)
	ledgertest.Until(t, "later events are published", arrived(5))
	address := regexp.MustCompile(`metrics=(\S+)`).FindStringSubmatch(logged.String())
	if address == nil {
		t.Fatalf("the log names no address: %s", logged.String())
	}
	ledgertest.Until(t, "metrics say that nothing waits", func() bool {
		r, err := http.Get(address[1])
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return err == nil && strings.Contains(string(text), `countersign_projection_behind_events{projection="sink/nats"} 0`) &&
			strings.Contains(string(text), "countersign_fanout_without_data_total 0")
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The program refuses to start on a database with a schema of another release, and publishes
// nothing.
func TestAnotherSchemaIsRefused(t *testing.T) {
	db := ledgertest.New(t)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `update schema_migrations set version = version + 1`); err != nil {
		t.Fatal(err)
	}
	c := cli{FanoutURL: "nats://127.0.0.1:1", DatabaseURL: db.URL, MetricsListen: "127.0.0.1:0"}
	if err := c.run(t.Context(), sinktest.Discard); err == nil || !strings.Contains(err.Error(), "start a newer program") {
		t.Error(err)
	}
}

// syncBuffer is a buffer that is safe for concurrent use by a logger and a test.
type syncBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the text written so far.
func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
