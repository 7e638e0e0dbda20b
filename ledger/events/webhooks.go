package events

import "reflect"

// Types of events about the webhooks to which an organization's events are sent, in the stream
// webhooks of its tenant.
const (
	TypeWebhookCreated = "webhook.created"
	TypeWebhookRotated = "webhook.rotated"
	TypeWebhookRemoved = "webhook.removed"
)

var webhooks = []kind{
	{name: TypeWebhookCreated, stored: reflect.TypeFor[WebhookCreated](), shown: in("access"), about: "webhookId", golden: []string{
		`{"name":"siem","secret":"c2VjcmV0","topics":["decisions","violations"],"url":"https://example.com/in","webhookId":"whk_1"}`,
	}},
	{name: TypeWebhookRotated, stored: reflect.TypeFor[WebhookRotated](), shown: in("access"), about: "webhookId", golden: []string{
		`{"previousUntil":"2026-11-21T15:00:00.000Z","secret":"c2VjcmV0","webhookId":"whk_1"}`,
	}},
	{name: TypeWebhookRemoved, stored: reflect.TypeFor[WebhookRemoved](), shown: in("access", "webhooks"), about: "webhookId", golden: []string{
		`{"reason":"moved","webhookId":"whk_1"}`,
	}},
}

// WebhookCreated is webhook.created, schema version 1. The URL is encrypted like the secret,
// because many receivers have secret URLs.
type WebhookCreated struct {
	WebhookID string   `json:"webhookId"` // whk_…
	Name      string   `json:"name,omitempty"`
	Topics    []string `json:"topics"` // sorted: "checkpoints", "decisions", "reviews", "violations"
	URL       any      `json:"url" personal:"true"`
	Secret    any      `json:"secret" personal:"true"` // 32 bytes in base64, without the prefix whsec_
}

// WebhookRotated is webhook.rotated, schema version 1. Until PreviousUntil, RFC 3339, each message
// is signed with both the previous and the new secret. Older secrets are no longer used.
type WebhookRotated struct {
	WebhookID     string `json:"webhookId"`
	Secret        any    `json:"secret" personal:"true"`
	PreviousUntil string `json:"previousUntil"`
}

// WebhookRemoved is webhook.removed, schema version 1.
type WebhookRemoved struct {
	WebhookID string `json:"webhookId"`
	Reason    string `json:"reason"`
}
