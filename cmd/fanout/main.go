// Command fanout publishes every event of a ledger, from the first one on, to a broker: NATS
// JetStream, Kafka or Google Pub/Sub. It runs next to the service and uses the same database, so
// that the service does not need the client libraries of the brokers.
//
// Each event is published at least once, and the events of an organization in order. Several
// fanout processes may run at the same time: one of them publishes, and another takes over when it
// stops. Errors are logged to stderr. Exit codes: 0 stopped by a signal, 2 an error ended it or it
// could not start.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/cmd/fanout/jetstream"
	"github.com/countersign/countersign/cmd/fanout/kafka"
	"github.com/countersign/countersign/cmd/fanout/pubsub"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/projections"
	"github.com/countersign/countersign/projections/lag"
)

// cli has the settings of the program. A setting that the service has, too, has the same name
// here.
type cli struct {
	FanoutURL     string `help:"Broker that gets every event: NATS with JetStream, such as nats://user:password@host:4222, Kafka, such as kafka://user:password@host:9092/topic (and ?tls=true for TLS), or Google Pub/Sub, such as pubsub://projects/PROJECT/topics/TOPIC." env:"FANOUT_URL" name:"fanout-url" secret:"" placeholder:"URL" required:""`
	DatabaseURL   string `help:"URL of the PostgreSQL database of the ledger." env:"DATABASE_URL" name:"database-url" secret:"" placeholder:"URL" required:""`
	BaseURL       string `help:"URL of the service, for references to data that a broker refuses as too large." env:"BASE_URL" name:"base-url" placeholder:"URL" required:""`
	ArchiveStore  string `help:"Store of the payloads that countersign archive moved out of the database: a folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME." env:"ARCHIVE_STORE" name:"archive-store" placeholder:"PLACE"`
	MetricsListen string `help:"Address of the listener for /metrics." env:"FANOUT_METRICS_LISTEN" name:"metrics-listen" placeholder:"HOST:PORT" default:"127.0.0.1:9465"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var c cli
	parser, err := kong.New(&c, kong.Name("fanout"), kong.Description("Publishes every event of a countersign ledger to NATS JetStream, Kafka or Google Pub/Sub."),
		setting.SecretsFromFiles)
	if err == nil {
		_, err = parser.Parse(os.Args[1:])
	}
	if err == nil {
		err = c.run(ctx, logs.New(slog.LevelInfo))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fanout: %v\n", err)
		os.Exit(2)
	}
}

// run publishes until ctx ends. An event that the broker has acknowledged is published again only
// if the checkpoint after it was not written.
func (c *cli) run(ctx context.Context, log *slog.Logger) error {
	if err := migrations.CheckCurrent(ctx, c.DatabaseURL); err != nil {
		return err
	}
	var files checkpoint.Files // if nil, reading an archived payload returns an error that names ARCHIVE_STORE
	if c.ArchiveStore != "" {
		var err error
		if files, err = checkpoint.ParseFiles(c.ArchiveStore, os.Getenv); err != nil {
			return fmt.Errorf("ARCHIVE_STORE: %w", err)
		}
	}
	l, err := ledger.Open(ctx, c.DatabaseURL, ledger.Options{Log: log, Archive: archive.NewReader(files)})
	if err != nil {
		return err
	}
	defer l.Close()
	sink, err := sinkAt(c.FanoutURL, log)
	if err != nil {
		return fmt.Errorf("FANOUT_URL: %w", err)
	}
	defer sink.Publisher.Close()
	sink.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	listener, err := net.Listen("tcp", c.MetricsListen)
	if err != nil {
		return fmt.Errorf("listen on %s for metrics: %w; choose another address with --metrics-listen HOST:PORT", c.MetricsListen, errors.Unwrap(err))
	}
	defer listener.Close()
	published, err := projections.Publish(ctx, l, log, sink)
	if err != nil {
		return err
	}
	defer published.Close()
	failed := make(chan error, 1)
	server := &http.Server{Handler: metrics(published), ReadHeaderTimeout: 5 * time.Second}
	defer server.Close()
	go func() { failed <- server.Serve(listener) }() // ends when server is closed
	log.Info("publishing events", "ledger", l.Origin(), "broker", sink.Name, "metrics", "http://"+listener.Addr().String()+"/metrics")
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("metrics: %w", err)
	}
}

// sinkAt returns the sink for the scheme of the URL. The ledger stores the checkpoint of a sink
// under its name, so a name must never change.
func sinkAt(address string, log *slog.Logger) (sink projections.Sink, err error) {
	switch scheme, _, _ := strings.Cut(address, ":"); scheme {
	case "kafka":
		sink.Name = "kafka"
		sink.Publisher, err = kafka.New(address, log)
	case "pubsub":
		sink.Name = "pubsub"
		sink.Publisher, err = pubsub.New(address)
	default:
		sink.Name = "nats"
		sink.Publisher, err = jetstream.New(address, log)
	}
	return sink, err
}

// metrics serves /metrics in the text format of Prometheus.
func metrics(p *projections.Projections) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(lag.Collector{Projections: p}, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "countersign_fanout_without_data_total",
		Help: "Events published without their data, because the broker refuses them as too large."}, func() float64 { return float64(p.WithoutData()) }))
	h := http.NewServeMux()
	h.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return h
}
