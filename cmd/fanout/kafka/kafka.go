// Package kafka is the sink Apache Kafka: a Watermill publisher that a projection
// of the ledger feeds (projections.Sink). Each event is one record of the topic that
// the address names, which must be there:
//
//	kafka://user:password@host:9092,host2:9092/topic?tls=true&sasl=SCRAM-SHA-512
//
// Its parameters, all of them optional; cert, key and token are read at every
// connection, so what lies there may change:
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
// A record is a CloudEvent in the structured form of the Kafka protocol binding,
// with its attributes beside it as headers. Its key is the tenant, so one tenant's
// events lie in one partition in their order. A broker drops what the client sends
// again by itself; what was given up and is published again has the same ce_id.
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
	// patience is for a connection, and for the acknowledgement of what is published
	// together: a transaction is open for as long.
	patience = 5 * time.Second

	// What is published together is one batch of each partition, which a broker takes or
	// refuses whole: nothing behind a message that is refused arrives before it. So a
	// batch waits until all of it is there, and holds more than is ever published
	// together. How much a batch may hold is for the brokers to say.
	gather    = 100 * time.Millisecond // more than it takes
	batchMost = 16 << 20
)

// Publisher is a client of a Kafka cluster, which connects again for as long as it
// takes. Publish returns when all replicas in sync have every message.
type Publisher struct{ client *kgo.Client }

// New makes a publisher to an address as above. The brokers need not be there yet.
// Errors do not repeat the address, which holds a secret.
func New(address string, log *slog.Logger) (*Publisher, error) {
	options, err := parse(address)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options,
		kgo.ClientID("countersign"), kgo.WithLogger(logger{log}), kgo.DialTimeout(patience),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(gather), kgo.ProducerBatchMaxBytes(batchMost),
		// Without this a record on its way to a broker that is away is waited for without end.
		kgo.AllowIdempotentProduceCancellation(),
	)...)
	if err != nil {
		return nil, errors.New("the client of Kafka does not take this address")
	}
	return &Publisher{client}, nil
}

// Publish implements message.Publisher. The topic is the address's.
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
				name = "ce_" + attribute // Kafka's binding alone has another sign here
			}
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
	}
	err := refusal(p.client.ProduceSync(ctx, records...))
	if errors.Is(err, context.DeadlineExceeded) {
		// The records only know that they have waited; what the brokers say tells why.
		asking, cancel := context.WithTimeout(messages[0].Context(), patience)
		defer cancel()
		err = errors.Join(err, p.client.Ping(asking))
	}
	if err != nil {
		return fmt.Errorf("produce to Kafka: %w", err)
	}
	return nil
}

// refusal is the failure that cannot pass by itself, if there is one, else the first.
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

// logger tells the node's log why a broker takes nothing: it is away, or refuses
// the credentials.
type logger struct{ log *slog.Logger }

// Level implements kgo.Logger.
func (logger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements kgo.Logger.
func (l logger) Log(_ kgo.LogLevel, text string, pairs ...any) { l.log.Warn("Kafka: "+text, pairs...) }
