package projections

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/canon"
)

// The cache of webhooks equals the state of the webhooks' streams after each event,
// both on a node that sees every batch and on one that starts later. A stream is
// read again only if it has grown.
func TestWebhooksAreRememberedByTheVersionOfTheirStream(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.NewPartitioned(t, 1)) // one partition, because the test reads the feed of one
	change := func(tenant, kind, id string) {
		t.Helper()
		var stored any = events.WebhookCreated{WebhookID: id, Topics: []string{topicDecisions}, URL: "https://a.example", Secret: "s"}
		if kind == events.TypeWebhookRemoved {
			stored = events.WebhookRemoved{WebhookID: id}
		}
		payload, err := canon.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(t.Context(), ledger.Append{Tenant: tenant, Events: []ledger.Pending{{Stream: "webhooks", Expect: ledger.Any(100),
			ID: "evt_" + tenant + kind + id, Type: kind, SchemaVersion: 1, Actor: "system", Payload: payload}}}); err != nil {
			t.Fatal(err)
		}
	}
	// listening lists the webhooks that would get the next decision of each tenant.
	listening := func(w *listeners) (ids []string) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), l.Pool(), func(tx pgx.Tx) error {
			return w.learn(t.Context(), tx, []ledger.Event{{Tenant: "org_a"}, {Tenant: "org_b"}, {Tenant: "org_c"}})
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range w.known {
			for _, k := range known {
				if k.removed == 0 {
					ids = append(ids, k.tenant+" "+k.id)
				}
			}
		}
		slices.Sort(ids)
		return ids
	}
	old := &listeners{}
	for _, step := range []struct{ tenant, kind, id, want string }{
		{"org_a", events.TypeWebhookCreated, "1", "[org_a 1]"},
		{"org_b", events.TypeWebhookCreated, "2", "[org_a 1 org_b 2]"},
		{"org_a", events.TypeWebhookCreated, "3", "[org_a 1 org_a 3 org_b 2]"},
		{"org_a", events.TypeWebhookRemoved, "1", "[org_a 3 org_b 2]"},
		{"org_b", events.TypeWebhookRemoved, "2", "[org_a 3]"},
	} {
		change(step.tenant, step.kind, step.id)
		for name, w := range map[string]*listeners{"goes on": old, "begins": {}} {
			if got := fmt.Sprint(listening(w)); got != step.want {
				t.Errorf("after %s of %s, a node that %s: %s, want %s", step.kind, step.id, name, got, step.want)
			}
		}
	}
	old.known["org_a"] = nil // remove the webhooks from the cache; the version is unchanged, so they must not be read again
	if got := fmt.Sprint(listening(old)); got != "[]" {
		t.Errorf("read again although nothing has grown: %s", got)
	}
}

// Partitions are followed concurrently, so each has its own cache of webhooks and never writes to
// the cache of another partition.
func TestWebhooksAreRememberedByPartition(t *testing.T) {
	t.Parallel()
	l := openLedger(t, ledgertest.NewPartitioned(t, 4))
	list := followers(l)
	follows := list[slices.IndexFunc(list, func(p projection) bool { return p.name == webhooks.name })]
	payload, err := canon.Marshal(events.WebhookCreated{WebhookID: "1", Topics: []string{topicDecisions}, URL: "https://a.example", Secret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	begun := make([]pgx.Tx, len(l.Partitions()))
	for i, p := range l.Partitions() {
		if _, err := l.Append(t.Context(), ledger.Append{Tenant: p.Service(), Events: []ledger.Pending{{Stream: "webhooks", Expect: ledger.New(),
			ID: "evt_1", Type: events.TypeWebhookCreated, SchemaVersion: 1, Actor: "system", Payload: payload}}}); err != nil {
			t.Fatal(err)
		}
		if begun[i], err = l.Pool().Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer begun[i].Rollback(context.Background())
	}
	var together sync.WaitGroup
	for i, p := range l.Partitions() {
		together.Go(func() {
			if _, err := follows.applyRun(t.Context(), l, begun[i], []ledger.Event{{Partition: p.Number(), Tenant: p.Service(), Type: events.TypeApprovalRecorded}}); err != nil {
				t.Errorf("partition %d: %v", p.Number(), err)
			}
		})
	}
	together.Wait()
}
