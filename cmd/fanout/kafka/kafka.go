// Package kafka publishes to Apache Kafka: a Watermill publisher for a projection of the ledger
// (projections.Sink). Each event is one record of the topic in the URL. The topic must exist:
//
//	kafka://user:password@host:9092,host2:9092/topic?tls=true&sasl=SCRAM-SHA-512
//
// All parameters are optional. The files cert, key and token are read for every connection, so
// their contents may change:
//
//	tls=true              TLS 1.2 or newer
//	ca=FILE               certificates (PEM) to trust in place of the system's
//	cert=FILE, key=FILE   the client's certificate and its key (PEM); one file may hold both
//	sasl=MECHANISM        SCRAM-SHA-512 (the default if there is a user), SCRAM-SHA-256, and
//	                      with TLS also PLAIN and OAUTHBEARER
//	token=FILE            the token for OAUTHBEARER
//	token_url=URL         instead of token: the server that issues a token for user and password
//	                      (OAuth 2.0 client credentials), with scope=NAMES if it requires scopes
//
// A record is a CloudEvent in the structured mode of the Kafka protocol binding, with its
// attributes repeated as headers. Its key is the tenant, so that the events of one tenant are in
// one partition, in order. The broker drops repeats by the client's own retries. When the
// projection publishes a message again, the new record has the same ce_id.
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
	// patience is the time limit of a connection, and of the acknowledgement of messages that are
	// published together. The projection's transaction stays open for that time.
	patience = 5 * time.Second

	// Messages that are published together must form one batch per partition: a broker accepts or
	// refuses a batch completely, so a later message cannot arrive before an earlier one that was
	// refused. Therefore the client waits until all messages have been added, and its limit for a
	// batch is larger than all of them. The brokers limit the size of a batch.
	gather    = 100 * time.Millisecond // longer than the client needs to add the messages
	batchMost = 16 << 20
)

// Publisher is a client of a Kafka cluster. It reconnects without a limit of attempts. Publish
// returns when all in-sync replicas have every message.
type Publisher struct{ client *kgo.Client }

// New returns a publisher for a URL in the format of the package comment. The brokers may be
// unreachable at this time. Errors do not contain the URL, because it may contain a password.
func New(address string, log *slog.Logger) (*Publisher, error) {
	options, err := parse(address)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options,
		kgo.ClientID("countersign"), kgo.WithLogger(logger{log}), kgo.DialTimeout(patience),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(gather), kgo.ProducerBatchMaxBytes(batchMost),
		// Without this option the client waits without a time limit for a record that it has sent
		// to a broker that is down.
		kgo.AllowIdempotentProduceCancellation(),
	)...)
	if err != nil {
		return nil, errors.New("the Kafka client does not accept this URL")
	}
	return &Publisher{client}, nil
}

// Publish implements message.Publisher. It publishes to the topic in the URL.
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
				name = "ce_" + attribute // the Kafka binding of CloudEvents separates with an underscore, other bindings with a hyphen
			}
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
	}
	err := refusal(p.client.ProduceSync(ctx, records...))
	if errors.Is(err, context.DeadlineExceeded) {
		// The error of a record only says that the time is over. A request to the brokers returns
		// the reason.
		asking, cancel := context.WithTimeout(messages[0].Context(), patience)
		defer cancel()
		err = errors.Join(err, p.client.Ping(asking))
	}
	if err != nil {
		return fmt.Errorf("produce to Kafka: %w", err)
	}
	return nil
}

// refusal returns ErrTooLarge if a record is too large, otherwise the first error.
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

// logger writes the warnings of the Kafka client to the log, such as why no broker accepts a
// record.
type logger struct{ log *slog.Logger }

// Level implements kgo.Logger.
func (logger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements kgo.Logger.
func (l logger) Log(_ kgo.LogLevel, text string, pairs ...any) { l.log.Warn("Kafka: "+text, pairs...) }
