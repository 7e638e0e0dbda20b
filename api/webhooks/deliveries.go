package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/webhook"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// deliveryPauses are the pauses before the second and later attempts to send a message. The last
// attempt is three days after the first; after it the message is dead. Each pause is lengthened at
// random by up to a fifth, so that many messages are not sent at the same moment.
var deliveryPauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Deliveries sends the queued messages to webhooks. Every node runs one. A message is processed by
// one node at a time.
type Deliveries struct {
	webhooks    *webhooks.Webhooks
	projections *projections.Projections
	sender      *webhook.Sender
	log         *slog.Logger
	telemetry   *request.Telemetry
	work        sync.WaitGroup
	slots       chan struct{} // one element per message that is being sent

	mu    sync.Mutex           // protects the fields below
	now   map[string]int       // number of messages that are being sent, by webhook
	until map[string]time.Time // time of the next attempt at a webhook that failed
	pause map[string]time.Duration
}

// NewDeliveries returns a Deliveries for the queued messages.
func NewDeliveries(w *webhooks.Webhooks, p *projections.Projections, t *request.Telemetry, log *slog.Logger) *Deliveries {
	return &Deliveries{webhooks: w, projections: p, log: log, telemetry: t,
		sender: webhook.NewSender(w.WebhookNetworks, w.Clock), slots: make(chan struct{}, op.DeliveriesAtOnce),
		now: map[string]int{}, until: map[string]time.Time{}, pause: map[string]time.Duration{}}
}

// Run sends messages until ctx ends, and then waits for the messages that are being sent.
func (d *Deliveries) Run(ctx context.Context) {
	defer d.work.Wait()
	tick := time.NewTicker(op.DeliveriesEvery)
	defer tick.Stop()
	for {
		for d.round(ctx) {
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// round starts to send messages that are due, and reports whether there may be more.
func (d *Deliveries) round(ctx context.Context) bool {
	free := cap(d.slots) - len(d.slots)
	if free == 0 || ctx.Err() != nil {
		return false
	}
	taken, err := d.projections.Take(ctx, op.DeliveryLease, d.busy(), free)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("reading the messages to webhooks failed", "error", err)
		}
		return false
	}
	for _, one := range taken {
		d.slots <- struct{}{} // does not block: only this goroutine takes slots, and enough are free
		d.begin(one.WebhookID)
		d.work.Go(func() {
			defer func() { <-d.slots }()
			d.one(context.WithoutCancel(ctx), one)
		})
	}
	return len(taken) > 0
}

// busy lists the webhooks that get no further message at the moment, so that a slow receiver does
// not take the slots of others.
func (d *Deliveries) busy() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	now := time.Now()
	for id, until := range d.until {
		if now.Before(until) {
			list = append(list, id)
		} else {
			delete(d.until, id)
		}
	}
	for id, n := range d.now {
		if n >= op.DeliveriesToOne {
			list = append(list, id)
		}
	}
	return list
}

func (d *Deliveries) begin(webhookID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now[webhookID]++
}

// end records the result of an attempt. After a failure the webhook gets no message for a pause,
// which doubles with each failure. Its messages remain due.
func (d *Deliveries) end(webhookID string, reached bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now[webhookID]--; d.now[webhookID] == 0 {
		delete(d.now, webhookID)
	}
	if reached {
		delete(d.until, webhookID)
		delete(d.pause, webhookID)
		return
	}
	pause := min(max(2*d.pause[webhookID], time.Second), time.Minute)
	d.pause[webhookID], d.until[webhookID] = pause, time.Now().Add(pause)
}

// one makes one attempt and stores its result. If the result cannot be stored, the lease expires
// and the message is sent again. So a message arrives at least once.
func (d *Deliveries) one(ctx context.Context, m projections.Delivery) {
	ctx, cancel := context.WithTimeout(ctx, op.DeliveryTimeout)
	defer cancel()
	result, forget := d.attempt(ctx, m)
	d.end(m.WebhookID, result.State == "sent" || forget)
	var err error
	if forget {
		err = d.projections.Forget(ctx, m)
	} else {
		d.telemetry.Delivered(result.State)
		err = d.projections.Tried(ctx, m, result)
	}
	if err != nil {
		d.log.Warn("recording an attempt to send to a webhook failed", "webhookId", m.WebhookID, "messageId", m.MessageID, "error", err)
	}
}

func (d *Deliveries) attempt(ctx context.Context, m projections.Delivery) (result projections.Result, forget bool) {
	endpoint, err := d.webhooks.WebhookEndpoint(ctx, m.Tenant, m.WebhookID)
	var refused *policy.Error
	if errors.As(err, &refused) && refused.Code == ground.CodeNotFound {
		return result, true
	}
	var body []byte
	if err == nil {
		body, err = d.body(ctx, m)
	}
	var signer *seal.Signer
	if err == nil {
		signer, err = d.signer(ctx, m.Tenant)
	}
	if err != nil {
		d.log.Warn("building a message to a webhook failed", "webhookId", m.WebhookID, "messageId", m.MessageID, "error", err)
		return later(m, webhook.Answer{}, errors.New("the message could not be built")), false
	}
	answer, err := d.sender.Send(ctx, endpoint.URL, webhook.Message{ID: m.MessageID, Media: forms.CloudEventType, Body: body, Secrets: endpoint.Secrets, Signer: signer})
	if err == nil {
		return projections.Result{State: "sent", Status: answer.Status}, false
	}
	return later(m, answer, err), false
}

// signer returns the key that signs messages in addition to the secrets. It is nil if this node
// has no active signing key.
func (d *Deliveries) signer(ctx context.Context, tenant string) (*seal.Signer, error) {
	signer, _, err := d.webhooks.ActiveSigner(ctx, tenant)
	if errors.Is(err, seal.ErrNoSigner) {
		return nil, nil
	}
	return signer, err
}

func (d *Deliveries) body(ctx context.Context, m projections.Delivery) ([]byte, error) {
	event, err := d.projections.Message(ctx, m)
	if err != nil {
		return nil, err
	}
	return canon.Marshal(event)
}

// later returns the result of a failed attempt: the time of the next one, or that the message is
// dead.
func later(m projections.Delivery, answer webhook.Answer, err error) projections.Result {
	result := projections.Result{State: "dead", Status: answer.Status, Error: err.Error()}
	if answer.Status == http.StatusGone || m.Attempts > len(deliveryPauses) {
		return result
	}
	pause := deliveryPauses[m.Attempts-1]
	result.State, result.After = "due", max(pause+rand.N(pause/5), answer.Wait)
	return result
}
