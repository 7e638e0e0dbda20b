package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/stored"
	"github.com/countersign/countersign/policy/canon"
)

// webhooks is the projection that queues a message for every webhook that subscribes to an event's
// topic. Its rows are work to do and are never rebuilt. queueing returns the complete projection.
// The sender gets messages from Take and reports results to Tried.
var webhooks = projection{
	name:    "webhooks",
	version: 1,
	handles: events.ShownIn("webhooks"),

	sweep: `delete from webhook_deliveries where state <> 'due'
		and due_at < now() - case state when 'sent' then interval '7 days' else interval '30 days' end`,
}

// Topics in the event webhook.created.
const (
	topicDecisions   = "decisions"
	topicViolations  = "violations"
	topicReviews     = "reviews"
	topicCheckpoints = "checkpoints"
)

// maxListening is the largest number of tenants whose webhooks are cached.
const maxListening = 10_000

// listener contains the members of a webhook that queueing needs.
type listener struct {
	tenant, id    string
	partition     int16
	topics        []string
	from, removed int64 // positions of the events that created and removed the webhook; removed is 0 while the webhook exists
}

// listeners caches the webhooks of tenants together with the version of their stream, so that for
// a batch only the versions must be read again. It belongs to the goroutine that follows the
// partition.
type listeners struct {
	version map[string]int64 // version of the stream by tenant; no entry if the tenant has no webhooks
	known   map[string][]listener
}

// queueing returns the projection webhooks for one node of a ledger with this number of
// partitions, each with its own cache.
func queueing(partitions int) projection {
	p, remembered := webhooks, make([]listeners, partitions)
	p.applyRun = func(ctx context.Context, _ *ledger.Ledger, tx pgx.Tx, list []ledger.Event) (int, error) {
		return remembered[list[0].Partition].queue(ctx, tx, list)
	}
	return p
}

// queue queues the messages about the events of a list.
func (w *listeners) queue(ctx context.Context, tx pgx.Tx, list []ledger.Event) (int, error) {
	if err := w.learn(ctx, tx, list); err != nil {
		return 0, err
	}
	for _, e := range list {
		if e.Type == events.TypeWebhookRemoved {
			if err := dropMessages(ctx, tx, e); err != nil {
				return 0, err
			}
			continue
		}
		if len(w.known[e.Tenant]) == 0 {
			continue
		}
		topics, err := topicsOf(e)
		if err != nil {
			return 0, err
		}
		for _, l := range w.known[e.Tenant] {
			if l.from >= e.Position || l.removed > 0 && l.removed < e.Position {
				continue
			}
			for _, topic := range l.topics {
				if err := queueMessage(ctx, tx, l, e.Position, topic, topics); err != nil {
					return 0, err
				}
			}
		}
	}
	return len(list), nil
}

// learn reads the webhooks of a batch's tenants if they are not cached or their stream has grown.
func (w *listeners) learn(ctx context.Context, tx pgx.Tx, list []ledger.Event) error {
	if w.known == nil || len(w.known) > maxListening {
		w.version, w.known = map[string]int64{}, map[string][]listener{}
	}
	var tenants []string
	for _, e := range list {
		tenants = append(tenants, e.Tenant)
	}
	slices.Sort(tenants)
	p := list[0].Partition
	rows, err := tx.Query(ctx, `select t.tenant, e.version from unnest($2::text[]) t(tenant), lateral (
		select version from public.events where p = $1 and tenant = t.tenant and stream = 'webhooks' order by version desc limit 1) e`, p, slices.Compact(tenants))
	if err != nil {
		return err
	}
	grown := map[string]int64{}
	var tenant string
	var version int64
	if _, err := pgx.ForEachRow(rows, []any{&tenant, &version}, func() error {
		if w.version[tenant] != version {
			grown[tenant] = version
		}
		return nil
	}); err != nil || len(grown) == 0 {
		return err
	}
	found, err := listenersOf(ctx, tx, p, slices.Collect(maps.Keys(grown)))
	if err != nil {
		return err
	}
	for tenant, version := range grown {
		w.version[tenant], w.known[tenant] = version, found[tenant]
	}
	return nil
}

// listenersOf reads the webhooks of tenants from their streams. It includes removed ones, because
// a batch may contain events before the removal.
func listenersOf(ctx context.Context, tx pgx.Tx, p int16, tenants []string) (map[string][]listener, error) {
	rows, err := tx.Query(ctx, `select tenant, pos, type, schema_version, payload from public.events
		where p = $1 and tenant = any($2) and stream = 'webhooks' order by pos`, p, tenants)
	if err != nil {
		return nil, err
	}
	found := map[string][]listener{}
	var e ledger.Event
	_, err = pgx.ForEachRow(rows, []any{&e.Tenant, &e.Position, &e.Type, &e.SchemaVersion, &e.Payload}, func() error {
		e.Payload = stored.Payload(e.Payload)
		read, err := e.Stored()
		switch fact := read.(type) {
		case events.WebhookCreated:
			found[e.Tenant] = append(found[e.Tenant], listener{tenant: e.Tenant, partition: p, id: fact.WebhookID, topics: fact.Topics, from: e.Position})
		case events.WebhookRemoved:
			for i, l := range found[e.Tenant] {
				if l.id == fact.WebhookID {
					found[e.Tenant][i].removed = e.Position
				}
			}
		}
		return err
	})
	return found, err
}

// topicsOf returns the topics of an event, except the topic checkpoints.
func topicsOf(e ledger.Event) ([]string, error) {
	switch e.Type {
	case events.TypeDecisionRecorded:
		decision, err := memberOf(e, "decision")
		if decision == "needs_review" {
			return []string{topicDecisions, topicReviews}, err
		}
		return []string{topicDecisions}, err
	case events.TypeReceiptRecorded:
		if conformance, err := memberOf(e, "conformance"); err != nil || conformance == "violation" {
			return []string{topicViolations}, err
		}
	}
	return nil, nil
}

// checkpointAfter is the delay of a checkpoint message after new events, so that one message
// covers more of them.
const checkpointAfter = time.Minute

func queueMessage(ctx context.Context, tx pgx.Tx, l listener, position int64, topic string, topics []string) error {
	var err error
	switch {
	case topic == topicCheckpoints:
		_, err = tx.Exec(ctx, `insert into public.webhook_deliveries (p, webhook_id, pos, topic, tenant, due_at)
			select $6::smallint, $1, $2::bigint, $3, $4, now() + $5::interval where not exists (select from public.webhook_deliveries
				where p = $6 and webhook_id = $1 and topic = $3 and state = 'due' and attempts = 0) on conflict do nothing`,
			l.id, position, topic, l.tenant, checkpointAfter, l.partition)
	case slices.Contains(topics, topic):
		_, err = tx.Exec(ctx, `insert into public.webhook_deliveries (p, webhook_id, pos, topic, tenant, due_at)
			values ($5, $1, $2, $3, $4, now()) on conflict do nothing`, l.id, position, topic, l.tenant, l.partition)
	}
	return err
}

// dropMessages deletes the queued messages of a removed webhook.
func dropMessages(ctx context.Context, tx pgx.Tx, e ledger.Event) error {
	removed, err := events.As[events.WebhookRemoved](e)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `delete from public.webhook_deliveries where p = $3 and webhook_id = $1 and tenant = $2 and state = 'due'`,
		removed.WebhookID, e.Tenant, e.Partition)
	return err
}

// Delivery is one message to one webhook.
type Delivery struct {
	MessageID string `json:"messageId"` // partition:position:topic; also the header webhook-id of every attempt
	Topic     string `json:"topic" jsonschema:"enum=decisions,enum=violations,enum=reviews,enum=checkpoints"`
	Position  int64  `json:"position"` // position of the event; for a checkpoint the position that it must cover at least
	State     string `json:"state" jsonschema:"enum=due,enum=sent,enum=dead"`
	Attempts  int    `json:"attempts"`
	DueAt     string `json:"dueAt" jsonschema:"format=date-time" jsonschema_description:"Time of the next attempt, or of the last one if there is no further attempt."`
	Status    int    `json:"status" jsonschema_description:"HTTP status of the last answer; 0 if there was none."`
	Error     string `json:"error"`

	Tenant    string `json:"-"`
	WebhookID string `json:"-"`
	Partition int16  `json:"-"`
}

const deliveryColumns = `p, webhook_id, tenant, pos, topic, state, attempts, due_at, status, error`

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var due time.Time
	err = row.Scan(&d.Partition, &d.WebhookID, &d.Tenant, &d.Position, &d.Topic, &d.State, &d.Attempts, &due, &d.Status, &d.Error)
	d.MessageID, d.DueAt = fmt.Sprintf("%d:%d:%s", d.Partition, d.Position, d.Topic), canon.Stamp(due)
	return d, err
}

// Deliveries lists the newest messages to a webhook; a non-empty state selects only messages in
// that state. Removed webhooks have no due messages.
func (p *Projections) Deliveries(ctx context.Context, tenant, webhookID, state string, limit int) ([]Delivery, error) {
	if err := p.wait(ctx, webhooks.name, tenant, ""); err != nil {
		return nil, err
	}
	return collect(ctx, p, scanDelivery, `select `+deliveryColumns+` from webhook_deliveries
		where p = $5 and webhook_id = $1 and tenant = $2 and ($3 = '' or state = $3) order by pos desc, topic limit $4`, webhookID, tenant, state, limit, p.ledger.Home(tenant).Number())
}

// SendAgain makes all dead messages of a webhook due again, or only one sent or dead message, and
// resets their attempts. It returns the number of messages.
func (p *Projections) SendAgain(ctx context.Context, tenant, webhookID, message string) (int, error) {
	done, err := p.ledger.Pool().Exec(ctx, `update webhook_deliveries set state = 'due', attempts = 0, due_at = now()
		where p = $4 and webhook_id = $1 and tenant = $2
		and case when $3 = '' then state = 'dead' else state <> 'due' and p || ':' || pos || ':' || topic = $3 end`, webhookID, tenant, message, p.ledger.Home(tenant).Number())
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrBehind, err)
	}
	return int(done.RowsAffected()), nil
}

// Take returns due messages, by the database's clock, except those of busy webhooks. Each message
// belongs to the caller until the lease ends. After that another sender may take it, for example
// after a crash.
func (p *Projections) Take(ctx context.Context, lease time.Duration, busy []string, most int) ([]Delivery, error) {
	rows, err := p.ledger.Pool().Query(ctx, `update webhook_deliveries set attempts = attempts + 1, due_at = now() + $1::interval
		where (p, webhook_id, pos, topic) in (select p, webhook_id, pos, topic from webhook_deliveries
			where state = 'due' and due_at <= now() and webhook_id <> all($2) order by due_at limit $3 for update skip locked)
		returning `+deliveryColumns, lease, append([]string{}, busy...), most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanDelivery)
}

// Result is the result of one attempt to send a message.
type Result struct {
	State  string        // "sent", "dead", or "due" for another attempt
	After  time.Duration // time until the next attempt, if State is "due"
	Status int           // HTTP status of the answer; 0 if there was none
	Error  string        // one line of at most 200 characters; empty if the message was sent
}

// Tried records the result of an attempt to send the delivery d. If the lease has ended and
// another sender has taken the message, Tried does nothing.
func (p *Projections) Tried(ctx context.Context, d Delivery, r Result) error {
	_, err := p.ledger.Pool().Exec(ctx, `update webhook_deliveries set state = $5, due_at = now() + $6::interval, status = $7, error = $8
		where p = $9 and webhook_id = $1 and pos = $2 and topic = $3 and attempts = $4 and state = 'due'`,
		d.WebhookID, d.Position, d.Topic, d.Attempts, r.State, r.After, r.Status, r.Error, d.Partition)
	return err
}

// Forget deletes a message to a webhook that no longer exists.
func (p *Projections) Forget(ctx context.Context, d Delivery) error {
	_, err := p.ledger.Pool().Exec(ctx, `delete from webhook_deliveries where p = $4 and webhook_id = $1 and pos = $2 and topic = $3`,
		d.WebhookID, d.Position, d.Topic, d.Partition)
	return err
}

// Message returns the content of a delivery: for decisions and receipts the entry in the history,
// for a checkpoint its note.
func (p *Projections) Message(ctx context.Context, d Delivery) (forms.CloudEvent, error) {
	home := p.ledger.Home(d.Tenant)
	e, err := p.event(ctx, d.Tenant, d.Position)
	if errors.Is(err, ErrNotFound) {
		err = ledger.ErrTampered
	}
	if err != nil {
		return forms.CloudEvent{}, err
	}
	var m forms.CloudEvent
	switch d.Topic {
	case topicDecisions, topicReviews:
		item, err := decisionItem(e)
		if err != nil {
			return m, err
		}
		m = forms.NewCloudEvent(home.Origin(), e, item)
	case topicViolations:
		history, err := p.ledger.Read(ctx, e.Tenant, e.Stream)
		if err != nil {
			return m, err
		}
		_, item, err := receiptItem(e, history.Events[0])
		if err != nil {
			return m, err
		}
		m = forms.NewCloudEvent(home.Origin(), e, item)
	case topicCheckpoints:
		if m, err = p.checkpointMessage(ctx, e); err != nil {
			return m, err
		}
	}
	m.Topic = d.Topic
	return m, nil
}

// CheckpointData is the data of a message about a checkpoint.
type CheckpointData struct {
	Size     int64  `json:"size"`     // size of the tree, which is the last position that it covers
	RootHash string `json:"rootHash"` // root of the tree in hex
	Note     string `json:"note"`     // C2SP signed note, to be stored where the service cannot change it
}

func (p *Projections) checkpointMessage(ctx context.Context, e ledger.Event) (forms.CloudEvent, error) {
	home := p.ledger.Home(e.Tenant)
	newest, err := keeper.Newest(ctx, home)
	if err != nil {
		return forms.CloudEvent{}, err
	}
	if newest == nil || newest.Size < e.Position {
		return forms.CloudEvent{}, fmt.Errorf("no checkpoint covers position %d yet", e.Position)
	}
	// The message is about the checkpoint. The event only determined its recipient and its time.
	m := forms.NewCloudEvent(home.Origin(), e, CheckpointData{newest.Size, fmt.Sprintf("%x", newest.Root), string(newest.Note)})
	m.Position = fmt.Sprint(newest.Size)
	m.ID, m.Type, m.Subject = "checkpoint:"+m.Position, "countersign.checkpoint.signed", ""
	return m, nil
}

// WaitingMessages returns the numbers of due and dead messages, and how long the oldest due
// message has been overdue.
func (p *Projections) WaitingMessages(ctx context.Context) (due, dead int, oldest time.Duration, err error) {
	var seconds float64
	err = p.ledger.Pool().QueryRow(ctx, `select count(*) filter (where state = 'due'), count(*) filter (where state = 'dead'),
		greatest(0, coalesce(extract(epoch from now() - min(due_at) filter (where state = 'due')), 0))
		from webhook_deliveries where state <> 'sent'`).Scan(&due, &dead, &seconds)
	return due, dead, time.Duration(seconds * float64(time.Second)), err
}
