package projections

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/policy/canon"
)

// Sink is another system that receives every event from the first one on, through Watermill. The
// message id is the event's id, the payload is a forms.CloudEvent, and its attributes are also
// metadata ce-NAME. A sink receives events at least once, in order, from one node at a time. If
// its broker refuses an event as too large (ErrTooLarge), the event is published without its data,
// but with a hash of the data and a URL to get them.
type Sink struct {
	Name      string // part of the name of its checkpoint, so it must never change
	Publisher message.Publisher
	BaseURL   string // URL of the service, for links to data
}

const (
	sinkTopic = "countersign"
	sinkBytes = 512 << 10 // largest size in bytes of events that are published together; below the limits of all brokers
)

// EventsPath followed by a position is the URL path at which an organization can read one event in
// the form of message data.
const EventsPath = "/api/assurance/events/"

// ErrTooLarge is the error of a publisher if its broker refuses messages only because of their
// size. Some of the messages may have been published.
var ErrTooLarge = errors.New("the broker refuses a message as too large")

// errUnpublished means that a sink does not accept an event now. The event is not parked but sent
// again before all later ones.
var errUnpublished = errors.New("the event could not be published")

// feed is a sink as this node runs it.
type feed struct {
	Sink
	ledger      *ledger.Ledger
	log         *slog.Logger
	withoutData *atomic.Int64
}

// projection returns a projection that publishes a batch within the step that advances the
// checkpoint. So the checkpoint advances only after the broker's acknowledgement.
func (f feed) projection() projection {
	return projection{
		name: "sink/" + f.Name, version: 1, handles: events.Types,
		applyRun: func(ctx context.Context, _ *ledger.Ledger, _ pgx.Tx, batch []ledger.Event) (int, error) {
			return f.publish(ctx, batch)
		},
	}
}

func (f feed) send(messages ...*message.Message) error {
	if err := f.Publisher.Publish(sinkTopic, messages...); err != nil {
		return fmt.Errorf("%w to %s: %w", errUnpublished, f.Name, err)
	}
	return nil
}

// publish publishes events from the start of a batch and returns their number. If the broker
// refuses them together as too large, it tries them one by one.
func (f feed) publish(ctx context.Context, batch []ledger.Event) (int, error) {
	var messages []*message.Message
	for octets := 0; len(messages) < len(batch) && octets < sinkBytes; octets += len(messages[len(messages)-1].Payload) {
		m, err := sinkMessage(ctx, f.event(batch[len(messages)]))
		if err != nil {
			return 0, err
		}
		messages = append(messages, m)
	}
	err := f.send(messages...)
	if !errors.Is(err, ErrTooLarge) {
		return len(messages), err
	}
	for i, m := range messages {
		if len(messages) > 1 {
			err = f.send(m)
		}
		if errors.Is(err, ErrTooLarge) {
			err = f.publishWithoutData(ctx, batch[i], len(m.Payload))
		}
		if err != nil {
			return 0, err
		}
	}
	return len(messages), nil
}

// publishWithoutData publishes an event without its data: its attributes, the hash of the data,
// and a URL to get the data. Events without an organization get no URL, because only operators can
// read them.
func (f feed) publishWithoutData(ctx context.Context, e ledger.Event, octets int) error {
	event := f.event(e)
	data, err := canon.Marshal(event.Data)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(data)
	event.Data, event.DataHash = nil, hex.EncodeToString(hash[:])
	if !ledger.IsService(e.Tenant) {
		event.DataRef = f.BaseURL + EventsPath + event.Position
	}
	m, err := sinkMessage(ctx, event)
	if err != nil {
		return err
	}
	if err := f.send(m); err != nil {
		return err
	}
	f.withoutData.Add(1)
	f.log.Warn("event published without its data, which the broker refuses as too large", "sink", f.Name, "id", event.ID, "octets", octets)
	return nil
}

// event converts an event to the form that a sink publishes. Brokers drop messages with a known
// id. Ids of events are never reused, not even in another ledger or after events were lost with a
// disk.
func (f feed) event(e ledger.Event) forms.CloudEvent {
	return forms.NewCloudEvent(f.ledger.Partition(e.Partition).Origin(), e, forms.DataOf(e))
}

func sinkMessage(ctx context.Context, event forms.CloudEvent) (*message.Message, error) {
	body, err := canon.Marshal(event)
	if err != nil {
		return nil, err
	}
	m := message.NewMessageWithContext(ctx, event.ID, body)
	m.Metadata = message.Metadata{
		"content-type":    forms.CloudEventType,
		"ce-specversion":  event.SpecVersion,
		"ce-id":           event.ID,
		"ce-source":       event.Source,
		"ce-type":         event.Type,
		"ce-subject":      event.Subject,
		"ce-time":         event.Time,
		"ce-partitionkey": event.PartitionKey,
		"ce-position":     event.Position,
	}
	for name, value := range map[string]string{"ce-datahash": event.DataHash, "ce-dataref": event.DataRef} {
		if value != "" {
			m.Metadata[name] = value
		}
	}
	return m, nil
}

// WithoutData returns the number of events that this node has published without their data. Call
// it only on the result of Publish.
func (p *Projections) WithoutData() int64 { return p.withoutData.Load() }

// Event returns an event of a tenant in the form of message data, or ErrNotFound.
func (p *Projections) Event(ctx context.Context, tenant string, position int64) (forms.EventData, error) {
	e, err := p.event(ctx, tenant, position)
	if err != nil {
		return forms.EventData{}, err
	}
	return forms.DataOf(e), nil
}

func (p *Projections) event(ctx context.Context, tenant string, position int64) (ledger.Event, error) {
	list, err := p.ledger.Home(tenant).After(ctx, position-1, 1)
	switch {
	case err != nil:
		return ledger.Event{}, err
	case len(list) == 0 || list[0].Position != position || list[0].Tenant != tenant:
		return ledger.Event{}, ErrNotFound
	}
	return list[0], nil
}

// handOn writes the first checkpoint of a projection without tables. A sink starts at the first
// event; webhooks start at the head, because no webhook existed before. If a checkpoint names no
// event of this ledger because the database was restored, handOn writes a first checkpoint again.
// A sink then publishes events twice, and readers can drop repeated messages by their ids.
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
	// Read without a lock, because another node may hold the lock while it works on a batch.
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
