package events_test

import (
	"slices"
	"testing"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// A change of any of these bytes is a new schema version.
func TestGoldenBytesOfWebhooks(t *testing.T) {
	for _, g := range []struct {
		eventType string
		stored    any
		bytes     string
	}{
		{events.TypeWebhookCreated, events.WebhookCreated{WebhookID: "whk_1", Name: "siem", Topics: []string{"decisions", "violations"}, URL: "https://example.com/in", Secret: "c2VjcmV0"},
			`{"name":"siem","secret":"c2VjcmV0","topics":["decisions","violations"],"url":"https://example.com/in","webhookId":"whk_1"}`},
		{events.TypeWebhookRotated, events.WebhookRotated{WebhookID: "whk_1", Secret: "c2VjcmV0", PreviousUntil: "2026-11-21T15:00:00.000Z"},
			`{"previousUntil":"2026-11-21T15:00:00.000Z","secret":"c2VjcmV0","webhookId":"whk_1"}`},
		{events.TypeWebhookRemoved, events.WebhookRemoved{WebhookID: "whk_1", Reason: "moved"}, `{"reason":"moved","webhookId":"whk_1"}`},
	} {
		got, err := canon.Marshal(g.stored)
		if err != nil || string(got) != g.bytes {
			t.Errorf("%s: %s, %v\nwant %s", g.eventType, got, err, g.bytes)
		}
		if !slices.Contains(events.Types, g.eventType) {
			t.Errorf("%s is not among the types", g.eventType)
		}
	}
}
