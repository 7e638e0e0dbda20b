package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// Sink is another system that is told of every event, from the first on, through
// Watermill: message id p:position:hash, a CloudEvent as payload and its attributes
// as metadata ce-NAME. It is never a source of truth; at least once, in order, and
// by one node at a time.
type Sink struct {
	Name      string // of its checkpoint; for ever
	Publisher message.Publisher
}

const (
	sinkTopic  = "countersign"
	sinkOctets = 1 << 20 // from which on no further event joins what is published together: within every broker's patience
)

// errUnpublished is a sink that does not take an event now. The event is not at
// fault, so it is never parked: the sink gets it again, before any other.
var errUnpublished = errors.New("the event could not be published")

// projection publishes a batch inside the step that moves the checkpoint, so the
// checkpoint follows the acknowledgements and never leads them.
func (s Sink) projection(origin func(p int16) string) projection {
	return projection{
		name: "sink/" + s.Name, version: 1, handles: events.Types,
		applyRun: func(ctx context.Context, _ *ledger.Ledger, _ pgx.Tx, batch []ledger.Event) (int, error) {
			var messages []*message.Message
			for octets := 0; len(messages) < len(batch) && octets < sinkOctets; octets += len(messages[len(messages)-1].Payload) {
				e := batch[len(messages)]
				m, err := sinkMessage(ctx, origin(e.Partition), e)
				if err != nil {
					return 0, err
				}
				messages = append(messages, m)
			}
			if err := s.Publisher.Publish(sinkTopic, messages...); err != nil {
				return 0, fmt.Errorf("%w to %s: %w", errUnpublished, s.Name, err)
			}
			return len(messages), nil
		},
	}
}

// sinkMessage is an event as a sink publishes it.
func sinkMessage(ctx context.Context, origin string, e ledger.Event) (*message.Message, error) {
	event := cloudEvent(origin, e, e.Type, e.Stream, eventData(e))
	// Brokers drop what has an id they know: that of another ledger, or of an event
	// that was lost with its disk, must not be this one's.
	event.ID += ":" + e.Hash.String()[:16]
	body, err := canon.Marshal(event)
	if err != nil {
		return nil, err
	}
	m := message.NewMessageWithContext(ctx, event.ID, body)
	m.Metadata = message.Metadata{
		"content-type":    CloudEventType,
		"ce-specversion":  event.SpecVersion,
		"ce-id":           event.ID,
		"ce-source":       event.Source,
		"ce-type":         event.Type,
		"ce-subject":      event.Subject,
		"ce-time":         event.Time,
		"ce-partitionkey": event.PartitionKey,
		"ce-position":     event.Position,
	}
	return m, nil
}

// followers lists everything that follows the ledger on this node.
func followers(l *ledger.Ledger, sinks []Sink) []projection {
	list := append([]projection{}, all...)
	list = append(list, queueing(len(l.Partitions())))
	for _, s := range sinks {
		list = append(list, s.projection(func(p int16) string { return l.Partition(p).Origin() }))
	}
	return list
}

// handOn writes the first checkpoint of what hands events on: a sink begins at the
// first event, webhooks at the head, since none was there before. What stands
// behind an event that this ledger does not have, because the database was put
// back, begins anew: a sink's messages have ids.
func (m *model) handOn(ctx context.Context) error {
	for _, r := range m.runs {
		if err := r.handOn(ctx); err != nil {
			return err
		}
	}
	_, err := m.read(ctx)
	return err
}

func (r *run) handOn(ctx context.Context) error {
	// Without a lock first: another node may hold it for as long as it works on a batch.
	p, pool := r.partition.Number(), r.ledger.Pool()
	var ours bool
	var at int64
	var behind []byte
	err := pool.QueryRow(ctx, `select pos, hash from projection_checkpoint where name = $1 and p = $2`, r.key, p).Scan(&at, &behind)
	if err == nil {
		err = pool.QueryRow(ctx, behindOurs, r.key, p).Scan(&ours)
	}
	if ours || err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	position, hash := int64(0), make([]byte, 32)
	if r.name == webhooks.name {
		err := pool.QueryRow(ctx, `select pos, last_hash from ledger_head where p = $1`, p).Scan(&position, &hash)
		if err != nil {
			return err
		}
	}
	_, err = pool.Exec(ctx, `insert into projection_checkpoint as c (name, p, version, pos, hash, state) values ($1, $2, $3, $4, $5, '')
		on conflict (name, p) do update set pos = excluded.pos, hash = excluded.hash where c.pos = $6 and c.hash = $7`,
		r.key, p, r.version, position, hash, at, behind)
	return err
}
