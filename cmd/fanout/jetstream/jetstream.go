// Package jetstream publishes to NATS JetStream: a Watermill publisher for a projection of the
// ledger (projections.Sink). Each event is one message with the subject countersign.<type of
// event>, in the stream "countersign", which the publisher creates if it does not exist. JetStream
// drops a message whose id it has received in the last ten minutes. A repeat after that time
// reaches the readers, which must compare ids or positions.
package jetstream

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"

	"github.com/countersign/countersign/projections"
)

const (
	stream     = "countersign"
	duplicates = 10 * time.Minute // longer than a usual outage of a node, but limited, because JetStream keeps the ids in memory
	patience   = 5 * time.Second  // time limit of an acknowledgement
	tooLarge   = 10054            // the server's error code for a message larger than the limit of the stream
)

// Publisher is a connection to a NATS server. It reconnects without a limit of attempts. Publish
// returns when JetStream has stored the message.
type Publisher struct {
	conn *nats.Conn
	*watermillnats.Publisher

	mu   sync.Mutex // guards made
	made bool       // true if the stream exists
}

// New returns a publisher for a URL such as nats://user:password@host:4222. The server may be
// unreachable at this time. Errors do not contain the URL, because it may contain a password.
func New(address string, log *slog.Logger) (*Publisher, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "wss" && u.Scheme != "ws" {
		return nil, errors.New("the URL must look like nats://user:password@host:4222 or tls://host:4222")
	}
	conn, err := nats.Connect(address, nats.Name("countersign"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectBufSize(-1), // no buffer: the projection publishes unsent messages again, in order
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { log.Warn("connection to NATS lost; trying again", "error", err) }))
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	p, err := watermillnats.NewPublisherWithNatsConn(conn, watermillnats.PublisherPublishConfig{
		Marshaler: &watermillnats.NATSMarshaler{}, SubjectCalculator: watermillnats.DefaultSubjectCalculator,
		JetStream: watermillnats.JetStreamConfig{TrackMsgId: true, ConnectOptions: []nats.JSOpt{nats.MaxWait(patience)}},
	}, watermill.NopLogger{})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return &Publisher{conn: conn, Publisher: p}, nil
}

// Publish implements message.Publisher. The subject of a message is the type of its event.
func (p *Publisher) Publish(_ string, messages ...*message.Message) error {
	if err := p.make(); err != nil {
		return err
	}
	for _, m := range messages {
		err := p.Publisher.Publish(m.Metadata.Get("ce-type"), m)
		var refused *nats.APIError
		if errors.Is(err, nats.ErrMaxPayload) || errors.As(err, &refused) && refused.ErrorCode == tooLarge {
			return fmt.Errorf("%w: %w", projections.ErrTooLarge, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// make creates the stream if it does not exist. An operator who wants other limits or replicas can
// create the stream first.
func (p *Publisher) make() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made {
		return nil
	}
	js, err := p.conn.JetStream(nats.MaxWait(patience))
	if err != nil {
		return err
	}
	if _, err = js.StreamInfo(stream); errors.Is(err, nats.ErrStreamNotFound) {
		_, err = js.AddStream(&nats.StreamConfig{Name: stream, Subjects: []string{stream + ".>"}, Duplicates: duplicates})
	}
	if err != nil {
		return fmt.Errorf("find or create the stream %s: %w", stream, err)
	}
	p.made = true
	return nil
}
