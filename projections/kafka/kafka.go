// Package kafka is the sink Apache Kafka: a Watermill publisher that a projection
// of the ledger feeds (projections.Sink). Each event is one record of the topic that
// the address names, which must be there:
//
//	kafka://user:password@host:9092,host2:9092/topic?tls=true&sasl=SCRAM-SHA-512
//
// User and password are there if the brokers ask for SASL; sasl is then
// SCRAM-SHA-512, if it says nothing, SCRAM-SHA-256 or, under TLS alone, PLAIN.
// ca=FILE names the certificates (PEM) to trust in place of the system's.
//
// A record is a CloudEvent in the structured form of the Kafka protocol binding,
// with its attributes beside it as headers. Its key is the tenant, so one tenant's
// events lie in one partition in their order. A broker drops what the client sends
// again by itself; what was given up and is published again has the same ce_id.
package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// patience is for a connection, and for the acknowledgement of what is published
// together: a transaction is open for as long.
const patience = 5 * time.Second

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
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// Without this a record on its way to a broker that is away is waited for without end.
		kgo.AllowIdempotentProduceCancellation(),
	)...)
	if err != nil {
		return nil, errors.New("the client of Kafka does not take this address")
	}
	return &Publisher{client}, nil
}

// parse reads an address.
func parse(address string) ([]kgo.Opt, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "kafka" {
		return nil, errors.New("want an address such as kafka://user:password@host:9092,host2:9092/topic?tls=true")
	}
	brokers, topic, q := strings.Split(u.Host, ","), strings.TrimPrefix(u.Path, "/"), u.Query()
	for name := range q {
		if !slices.Contains([]string{"tls", "sasl", "ca"}, name) {
			return nil, errors.New("an address of Kafka has the parameters tls, sasl and ca, and no other")
		}
	}
	secure := q.Get("tls") == "true"
	switch {
	case slices.Contains(brokers, ""):
		return nil, errors.New("want the brokers, as host:port with commas between")
	case topic == "" || strings.Contains(topic, "/"):
		return nil, errors.New("want one topic behind the brokers: kafka://host:9092/topic")
	case q.Has("tls") && !secure && q.Get("tls") != "false":
		return nil, errors.New("tls is true or false")
	case q.Has("ca") && !secure:
		return nil, errors.New("ca wants tls=true")
	case q.Has("sasl") && u.User == nil:
		return nil, errors.New("sasl wants a user and a password")
	}
	options := []kgo.Opt{kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic)}
	if secure {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if q.Has("ca") {
			config.RootCAs = x509.NewCertPool()
			if pem, err := os.ReadFile(q.Get("ca")); err != nil || !config.RootCAs.AppendCertsFromPEM(pem) {
				return nil, errors.New("ca wants a file of PEM certificates that can be read")
			}
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if u.User != nil {
		m, err := mechanism(q.Get("sasl"), u.User, secure)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(m))
	}
	return options, nil
}

func mechanism(name string, user *url.Userinfo, secure bool) (sasl.Mechanism, error) {
	password, _ := user.Password()
	switch name {
	case "", "SCRAM-SHA-512":
		return scram.Auth{User: user.Username(), Pass: password}.AsSha512Mechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user.Username(), Pass: password}.AsSha256Mechanism(), nil
	case "PLAIN":
		if !secure {
			return nil, errors.New("sasl=PLAIN wants tls=true: anyone on the way could read the password")
		}
		return plain.Auth{User: user.Username(), Pass: password}.AsMechanism(), nil
	}
	return nil, errors.New("sasl is SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN")
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
	err := p.client.ProduceSync(ctx, records...).FirstErr()
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
