// Package kafka publishes to Apache Kafka: a Watermill publisher for a projection of the ledger
// (projections.Sink). Each event is one record of the topic that the URL names, which must
// exist:
//
//	kafka://user:password@host:9092,host2:9092/topic?tls=true&sasl=SCRAM-SHA-512
//
// All parameters are optional. The files cert, key and token are read at every connection, so
// their contents may change:
//
//	tls=true              TLS 1.2 or newer
//	ca=FILE               certificates (PEM) to trust in place of the system's
//	cert=FILE, key=FILE   the client's certificate and its key (PEM); one file may hold both
//	sasl=MECHANISM        SCRAM-SHA-512 (where there is a user), SCRAM-SHA-256 and, under TLS
//	                      alone, PLAIN and OAUTHBEARER
//	token=FILE            the token of OAUTHBEARER
//	token_url=URL         or the server that gives user and password one (OAuth 2.0 client
//	                      credentials), with scope=NAMES if it asks for them
//
// A record is a CloudEvent in the structured form of the Kafka protocol binding, with its
// attributes repeated as headers. Its key is the tenant, so that the events of one tenant are
// in one partition, in order. A broker drops the client's own retries. A message that was given
// up and is published again has the same ce_id.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/countersign/countersign/projections"
)

const (
	// patience is the time limit of a connection, and of the acknowledgement of messages that
	// are published together: their transaction stays open that long.
	patience = 5 * time.Second

	// The messages that are published together form one batch of each partition. A broker takes
	// or refuses a batch completely, so no message arrives before an earlier one that was
	// refused. So the client waits until a batch is complete, and its batch limits are above
	// anything published together. The brokers limit the size of a batch.
	gather    = 100 * time.Millisecond // longer than adding the messages takes
	batchMost = 16 << 20
)

// Publisher is a client of a Kafka cluster that reconnects for as long as necessary. Publish
// returns when all in-sync replicas have every message.
type Publisher struct{ client *kgo.Client }

// New returns a publisher for a URL as above. The brokers need not be reachable yet. Errors do
// not contain the URL, which contains a secret.
func New(address string, log *slog.Logger) (*Publisher, error) {
	options, err := parse(address)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options,
		kgo.ClientID("countersign"), kgo.WithLogger(logger{log}), kgo.DialTimeout(patience),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(gather), kgo.ProducerBatchMaxBytes(batchMost),
		// Without this the client waits without end for a record on its way to a broker that is
		// down.
		kgo.AllowIdempotentProduceCancellation(),
	)...)
	if err != nil {
		return nil, errors.New("the client of Kafka does not accept this URL")
	}
	return &Publisher{client}, nil
}

// Publish implements message.Publisher. It publishes to the topic of the URL.
func (p *Publisher) Publish(_ string, messages ...*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(messages[0].Context(), patience)
	defer cancel()
	records := make([]*kgo.Record, len(messages))
	for i, m := range messages {
		records[i] = &kgo.Record{Key: []byte(m.Metadata.Get("ce-partitionkey")), Value: m.Payload}
		for name, value := range m.Metadata {
			if attribute, ok := strings.CutPrefix(name, "ce-"); ok {
				name = "ce_" + attribute // only Kafka's binding uses another separator
			}
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
	}
	err := refusal(p.client.ProduceSync(ctx, records...))
	if errors.Is(err, context.DeadlineExceeded) {
		// The errors of records only say that they waited; asking the brokers gives the reason.
		asking, cancel := context.WithTimeout(messages[0].Context(), patience)
		defer cancel()
		err = errors.Join(err, p.client.Ping(asking))
	}
	if err != nil {
		return fmt.Errorf("produce to Kafka: %w", err)
	}
	return nil
}

// refusal returns a permanent failure if there is one, otherwise the first.
func refusal(results kgo.ProduceResults) error {
	for _, r := range results {
		if errors.Is(r.Err, kerr.MessageTooLarge) || errors.Is(r.Err, kerr.RecordListTooLarge) {
			return fmt.Errorf("%w: %w", projections.ErrTooLarge, r.Err)
		}
	}
	return results.FirstErr()
}

// Close implements message.Publisher.
func (p *Publisher) Close() error {
	p.client.Close()
	return nil
}

// logger logs why no broker accepts a record: it is down, or it refuses the credentials.
type logger struct{ log *slog.Logger }

// Level implements kgo.Logger.
func (logger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements kgo.Logger.
func (l logger) Log(_ kgo.LogLevel, text string, pairs ...any) { l.log.Warn("Kafka: "+text, pairs...) }
