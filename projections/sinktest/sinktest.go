// Package sinktest is what the tests of every sink need: a ledger, events in it,
// the projection that feeds the sink, and a look at what has arrived.
package sinktest

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/projections"
)

// Discard is a log for nobody.
var Discard = slog.New(slog.DiscardHandler)

// Ledger is an empty ledger.
func Ledger(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledgertest.New(t).URL, ledger.Options{Log: Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// Append appends n events, the first at position from, of two tenants in turn.
func Append(t *testing.T, l *ledger.Ledger, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		_, err := l.Append(t.Context(), ledger.Append{Tenant: tenant(i), Drafts: []ledger.Draft{{Stream: "s", Expect: ledger.Any(1 << 40), ID: fmt.Sprint("evt_", i),
			Type: "member.removed", SchemaVersion: 1, Actor: "a", Payload: fmt.Appendf(nil, `{"memberId":"%d"}`, i)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func tenant(position int) string { return fmt.Sprint("org_", 1+position%2) }

// Start has a node feed a sink until stop is called.
func Start(t *testing.T, l *ledger.Ledger, name string, p message.Publisher) (stop func()) {
	t.Helper()
	views, err := projections.Start(t.Context(), l, Discard, projections.Sink{Name: name, Publisher: p})
	if err != nil {
		t.Fatal(err)
	}
	return func() { views.Close(); _ = p.Close() }
}

// PutBack is a crash between an acknowledgement and the checkpoint.
func PutBack(t *testing.T, l *ledger.Ledger, name string, position int) {
	t.Helper()
	_, err := l.Pool().Exec(t.Context(), `update projection_checkpoint set pos = $2, hash = (select hash from events where pos = $2) where name = $1`, "sink/"+name, position)
	if err != nil {
		t.Fatal(err)
	}
}

// Check compares what has arrived, sorted by position and without repeats, with the
// events of the ledger. None may be parked: a broker that is away is no fault of an
// event.
func Check(t *testing.T, l *ledger.Ledger, arrived []projections.CloudEvent) {
	t.Helper()
	for i, e := range arrived {
		text, _ := json.Marshal(e.Data)
		var data projections.EventData
		if err := json.Unmarshal(text, &data); err != nil || e.Position != fmt.Sprint(i+1) || data.Position != int64(i+1) || e.PartitionKey != tenant(i+1) {
			t.Fatalf("message %d is %s %s", i+1, e.ID, text)
		}
		stored, err := l.Partition(0).After(t.Context(), int64(i), 1)
		if err != nil || data.Hash != hex.EncodeToString(stored[0].Hash[:]) || string(data.Payload) != string(stored[0].Payload) {
			t.Errorf("message %d does not hold its event: %s, %v", i+1, text, err)
		}
	}
	var n int
	if err := l.Pool().QueryRow(t.Context(), `select count(*) from projection_dead`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d events are parked, %v", n, err)
	}
}
