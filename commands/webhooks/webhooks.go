// Package webhooks implements the commands for the webhooks of organizations, and for the logs
// that guards of coding agents send.
package webhooks

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// Webhooks implements the commands for an organization's webhooks and its guards' logs.
type Webhooks struct {
	*ground.Ground
	*organizations.Organizations

	// WebhookNetworks are the private networks that webhooks may reach. If there is none, webhooks
	// reach only public addresses.
	WebhookNetworks []netip.Prefix
}

// The topics that a webhook can subscribe to.
const (
	TopicDecisions   = "decisions"   // every decision
	TopicViolations  = "violations"  // receipts of actions that violate their decision
	TopicReviews     = "reviews"     // decisions that need a person's approval
	TopicCheckpoints = "checkpoints" // signed tree heads of the ledger
)

// Topics lists all topics.
var Topics = []string{TopicCheckpoints, TopicDecisions, TopicReviews, TopicViolations}

// webhooksStream has the events of all webhooks of an organization, so that an append to it can
// also check their number.
const webhooksStream = "webhooks"

// secretPrefix begins a secret, as the Standard Webhooks specification requires. The secret's
// bytes in standard base64 follow.
const secretPrefix = "whsec_"

var errNoWebhook = policy.Refuse(ground.CodeNotFound, "", "webhook not found")

// webhook is the state of one webhook. Address and secrets stay encrypted in its events until they
// are needed.
type webhook struct {
	id, name      string
	topics        []string
	created       time.Time
	creation      ledger.Event
	rotations     []ledger.Event // events, the newest last
	previousUntil time.Time      // end of the validity of the secret before the newest
	removed       bool
}

// webhooks is the state of the stream: all webhooks, the oldest first.
type webhooks []webhook

// Apply returns the state after one more event.
func (w webhooks) Apply(e ledger.Event) (webhooks, error) {
	stored, err := e.Stored()
	w = slices.Clone(w) // find returns a pointer into the slice, and the receiver must not change
	switch fact := stored.(type) {
	case events.WebhookCreated:
		return append(w, webhook{id: fact.WebhookID, name: fact.Name, topics: fact.Topics, created: e.Occurred(), creation: e}), nil
	case events.WebhookRotated:
		until, err := time.Parse(time.RFC3339, fact.PreviousUntil)
		hook := w.find(fact.WebhookID)
		if err != nil || hook == nil {
			return w, ledger.ErrTampered
		}
		hook.rotations, hook.previousUntil = append(slices.Clip(hook.rotations), e), until
	case events.WebhookRemoved:
		hook := w.find(fact.WebhookID)
		if hook == nil {
			return w, ledger.ErrTampered
		}
		hook.removed = true
	}
	return w, err
}

// find returns the webhook with an id, or nil if there is none or it was removed.
func (w webhooks) find(id string) *webhook {
	i := slices.IndexFunc(w, func(hook webhook) bool { return hook.id == id && !hook.removed })
	if i < 0 {
		return nil
	}
	return &w[i]
}

func (a *Webhooks) readWebhooks(ctx context.Context, orgID string) (webhooks, ledger.History, error) {
	return ground.Fold(ctx, a.Ground, orgID, webhooksStream, webhooks(nil))
}

// WebhookOrder describes a webhook to create.
type WebhookOrder struct {
	URL    string
	Topics []string // if empty: decisions, reviews and violations
	Name   string
}

// WebhookInfo describes a webhook to members. It has the origin of the address only, because path
// and query may contain a secret of the receiver.
type WebhookInfo struct {
	WebhookID string   `json:"webhookId"`
	Name      string   `json:"name"`
	Origin    string   `json:"origin" jsonschema_description:"Scheme, host and port of the address; path and query are not shown, because they may contain a secret."`
	Topics    []string `json:"topics"`
	CreatedAt string   `json:"createdAt" jsonschema:"format=date-time"`
	// RotatesUntil is the time until which messages are also signed with the previous secret;
	// empty if they are not.
	RotatesUntil string `json:"rotatesUntil,omitempty" jsonschema:"format=date-time"`
}

// CreatedWebhook is a webhook with its new secret, which is shown only once.
type CreatedWebhook struct {
	Secret string `json:"secret"`
	WebhookInfo
}

// CreateWebhook creates a webhook of the principal's organization.
func (a *Webhooks) CreateWebhook(ctx context.Context, p organizations.Principal, order WebhookOrder) (CreatedWebhook, error) {
	if err := p.May(organizations.RightManage); err != nil {
		return CreatedWebhook{}, err
	}
	order, err := a.checkWebhook(order)
	if err != nil {
		return CreatedWebhook{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, organizations.RightManage), func(ctx context.Context) (CreatedWebhook, error) {
		hooks, history, err := a.readWebhooks(ctx, p.OrgID)
		if err != nil {
			return CreatedWebhook{}, err
		}
		live := slices.DeleteFunc(hooks, func(hook webhook) bool { return hook.removed })
		if len(live) >= maxWebhooks {
			return CreatedWebhook{}, policy.Refuse(organizations.CodeConflict, "", "organization has too many webhooks; remove one first")
		}
		id, secret := a.NewID("whk_"), newWebhookSecret()
		event, err := a.appendWebhook(ctx, p, history, id, events.TypeWebhookCreated,
			events.WebhookCreated{WebhookID: id, Name: order.Name, Topics: order.Topics, URL: order.URL, Secret: secret})
		if err != nil {
			return CreatedWebhook{}, err
		}
		info := WebhookInfo{WebhookID: id, Name: order.Name, Topics: order.Topics, CreatedAt: canon.Stamp(event.Occurred())}
		info.Origin = originOf(order.URL)
		return CreatedWebhook{secretPrefix + secret, info}, nil
	})
}

func newWebhookSecret() string {
	secret := make([]byte, 32)
	rand.Read(secret)
	return base64.StdEncoding.EncodeToString(secret)
}

func originOf(address string) string {
	u, err := normal.ParseURL(address)
	if err != nil {
		return ""
	}
	return u.Origin()
}

// checkWebhook checks an order and returns it in normal form. It resolves no names: if a name
// resolves to a private address, the sender refuses when it connects.
func (a *Webhooks) checkWebhook(o WebhookOrder) (WebhookOrder, error) {
	u, err := normal.ParseURL(o.URL)
	if err != nil || u.UserInfo || u.Fragment || u.Scheme != "https" && u.Scheme != "http" {
		return o, policy.Refuse("out_of_range", "/url", "url must be an https address without user name or fragment")
	}
	private := normal.IsPrivate(u.Host)
	if u.Scheme == "http" && !private {
		return o, policy.Refuse("out_of_range", "/url", "url must be an https address, except in a private network")
	}
	if private && !a.mayReach(u.Host) {
		return o, policy.Refuse("out_of_range", "/url", "url must not be a private address (the operator can allow networks with WEBHOOK_NETWORKS)")
	}
	o.URL = u.String()
	if len(o.Topics) == 0 {
		o.Topics = []string{TopicDecisions, TopicReviews, TopicViolations}
	}
	o.Topics = slices.Compact(slices.Sorted(slices.Values(o.Topics)))
	for _, topic := range o.Topics {
		if !slices.Contains(Topics, topic) {
			return o, policy.Refuse("invalid_enum", "/topics", "topics must contain only checkpoints, decisions, reviews and violations")
		}
	}
	if o.Name != "" {
		return o, ground.CheckText("name", o.Name, ground.MaxName)
	}
	return o, nil
}

// mayReach reports whether a webhook may have this private host. An IP address must be in one of
// WebhookNetworks. A name is permitted if there is any such network; the sender checks its address
// when it connects.
func (a *Webhooks) mayReach(host string) bool {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return len(a.WebhookNetworks) > 0
	}
	return slices.ContainsFunc(a.WebhookNetworks, func(n netip.Prefix) bool { return n.Contains(ip.Unmap()) })
}

// appendWebhook appends one event, encrypted with the webhook's data key.
func (a *Webhooks) appendWebhook(ctx context.Context, p organizations.Principal, history ledger.History, id, eventType string, stored any) (ledger.Event, error) {
	if a.Vault == nil {
		return ledger.Event{}, a.NoVault()
	}
	dataKey, err := a.Vault.Subject(ctx, p.OrgID, "webhook:"+id, a.NewID("sub_"))
	if err != nil {
		return ledger.Event{}, err
	}
	pending := ledger.Pending{Stream: webhooksStream, Expect: history.At(), ID: a.NewID("evt_"), Type: eventType, SchemaVersion: 1, Actor: p.ActorID}
	if pending.Payload, err = a.Vault.Seal(ctx, p.OrgID, pending.ID, dataKey, stored); err != nil {
		return ledger.Event{}, err
	}
	result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: p.OrgID, Events: []ledger.Pending{pending}, Preconditions: p.Preconditions})
	if err != nil {
		return ledger.Event{}, err
	}
	return result.Events[0], nil
}

// RotateWebhook gives a webhook a new secret, which is shown only once. For 24 hours
// (RotationOverlap) messages are signed with the old secret, too.
func (a *Webhooks) RotateWebhook(ctx context.Context, p organizations.Principal, id string) (CreatedWebhook, error) {
	if err := p.May(organizations.RightManage); err != nil {
		return CreatedWebhook{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, organizations.RightManage), func(ctx context.Context) (CreatedWebhook, error) {
		hooks, history, err := a.readWebhooks(ctx, p.OrgID)
		if err != nil {
			return CreatedWebhook{}, err
		}
		hook := hooks.find(id)
		switch {
		case hook == nil:
			return CreatedWebhook{}, errNoWebhook
		case len(hook.rotations) >= maxRotations:
			return CreatedWebhook{}, policy.Refuse(organizations.CodeConflict, "", "webhook was rotated too often; create a new one")
		}
		secret, until := newWebhookSecret(), a.Now().Add(organizations.RotationOverlap)
		event, err := a.appendWebhook(ctx, p, history, id, events.TypeWebhookRotated,
			events.WebhookRotated{WebhookID: id, Secret: secret, PreviousUntil: canon.Stamp(until)})
		if err != nil {
			return CreatedWebhook{}, err
		}
		hook.rotations, hook.previousUntil = append(hook.rotations, event), until
		info, err := a.webhookInfo(ctx, *hook)
		return CreatedWebhook{secretPrefix + secret, info}, err
	})
}

// RemoveWebhook removes a webhook. Messages that wait to be sent to it are dropped.
func (a *Webhooks) RemoveWebhook(ctx context.Context, p organizations.Principal, id, reason string) error {
	if err := p.May(organizations.RightManage); err != nil {
		return err
	}
	if reason == "" {
		reason = "removed"
	}
	if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
		return err
	}
	_, err := ground.Retry(ctx, a.Ground, a.Again(&p, organizations.RightManage), func(ctx context.Context) (struct{}, error) {
		hooks, history, err := a.readWebhooks(ctx, p.OrgID)
		if err != nil {
			return struct{}{}, err
		}
		if hooks.find(id) == nil {
			return struct{}{}, errNoWebhook
		}
		_, err = a.AppendAs(ctx, p, []ledger.Pending{{Stream: webhooksStream, Expect: history.At(), Type: events.TypeWebhookRemoved}},
			[]any{events.WebhookRemoved{WebhookID: id, Reason: reason}})
		return struct{}{}, err
	})
	return err
}

// ListWebhooks lists an organization's webhooks, the oldest first.
func (a *Webhooks) ListWebhooks(ctx context.Context, p organizations.Principal) ([]WebhookInfo, error) {
	if err := p.May(organizations.RightMembers); err != nil {
		return nil, err
	}
	hooks, _, err := a.readWebhooks(ctx, p.OrgID)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	list := []WebhookInfo{}
	for _, hook := range hooks {
		if hook.removed {
			continue
		}
		info, err := a.webhookInfo(ctx, hook)
		if err != nil {
			return nil, ground.Refusal(err)
		}
		list = append(list, info)
	}
	return list, nil
}

func (a *Webhooks) webhookInfo(ctx context.Context, hook webhook) (WebhookInfo, error) {
	info := WebhookInfo{WebhookID: hook.id, Name: hook.name, Topics: hook.topics, CreatedAt: canon.Stamp(hook.created)}
	if a.Clock().Before(hook.previousUntil) {
		info.RotatesUntil = canon.Stamp(hook.previousUntil)
	}
	if a.Vault == nil {
		return info, nil
	}
	var created events.WebhookCreated
	if err := a.Vault.Open(ctx, hook.creation, &created); err != nil && !errors.Is(err, vault.ErrErased) {
		return info, err
	}
	address, _ := created.URL.(string)
	info.Origin = originOf(address)
	return info, nil
}

// HasWebhook returns nil if an organization has a webhook with this id, and the refusal not_found
// otherwise. It does not check the principal's rights.
func (a *Webhooks) HasWebhook(ctx context.Context, p organizations.Principal, id string) error {
	hooks, _, err := a.readWebhooks(ctx, p.OrgID)
	if err == nil && hooks.find(id) == nil {
		return errNoWebhook
	}
	return ground.Refusal(err)
}

// WebhookEndpoint is the address that a webhook's messages are sent to, and the secrets that sign
// them, the newest first. Only the sender of messages uses it; it is never part of an answer.
type WebhookEndpoint struct {
	URL     string
	Secrets [][]byte
}

// WebhookEndpoint reads a webhook's address and the secrets that are valid now. It returns the
// refusal CodeNotFound if the webhook was removed.
func (a *Webhooks) WebhookEndpoint(ctx context.Context, orgID, id string) (WebhookEndpoint, error) {
	if a.Vault == nil {
		return WebhookEndpoint{}, a.NoVault()
	}
	hooks, _, err := a.readWebhooks(ctx, orgID)
	if err != nil {
		return WebhookEndpoint{}, ground.Refusal(err)
	}
	hook := hooks.find(id)
	if hook == nil {
		return WebhookEndpoint{}, errNoWebhook
	}
	var created events.WebhookCreated
	if err := a.Vault.Open(ctx, hook.creation, &created); err != nil {
		return WebhookEndpoint{}, ground.Refusal(err)
	}
	texts := []any{created.Secret}
	for _, e := range hook.rotations[max(0, len(hook.rotations)-2):] {
		var rotated events.WebhookRotated
		if err := a.Vault.Open(ctx, e, &rotated); err != nil {
			return WebhookEndpoint{}, ground.Refusal(err)
		}
		texts = append(texts, rotated.Secret)
	}
	keep := 1
	if a.Clock().Before(hook.previousUntil) {
		keep = 2
	}
	endpoint := WebhookEndpoint{}
	endpoint.URL, _ = created.URL.(string)
	for _, text := range slices.Backward(texts[max(0, len(texts)-keep):]) {
		base, _ := text.(string)
		secret, err := base64.StdEncoding.DecodeString(base)
		if err != nil || len(secret) == 0 {
			return WebhookEndpoint{}, ledger.ErrTampered
		}
		endpoint.Secrets = append(endpoint.Secrets, secret)
	}
	return endpoint, nil
}
