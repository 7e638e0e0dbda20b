// Package sinktest contains what the tests of every sink use: a ledger, events in it, the
// projection that publishes to the sink, and checks of the arrived messages.
package sinktest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// Free waits until no socket uses an address on which a test will listen again. The system may
// have given the port to a client's connection meanwhile.
func Free(t *testing.T, address string) {
	t.Helper()
	ledgertest.Until(t, address+" is free", func() bool {
		l, err := net.Listen("tcp", address)
		if err == nil {
			_ = l.Close()
		}
		return err == nil
	})
}

// Discard is a logger that writes nothing.
var Discard = slog.New(slog.DiscardHandler)

// Type is the message type of the events that Append appends.
const Type = "countersign.member.removed"

const baseURL = "https://countersign.example"

// Ledger returns an empty ledger. The environment variable TEST_PARTITIONS sets its number of
// partitions.
func Ledger(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledgertest.New(t).URL, ledger.Options{Log: Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// Append appends n events for five tenants in turn. The number of the first event is from.
func Append(t *testing.T, l *ledger.Ledger, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		AppendLarge(t, l, i, 0)
	}
}

// AppendMixed appends 45 events with different payload sizes: event 7 has 60,000 bytes, event 40
// has two million, events 8 to 39 have the given size, and the others are small.
func AppendMixed(t *testing.T, l *ledger.Ledger, size int) {
	t.Helper()
	Append(t, l, 1, 6)
	AppendLarge(t, l, 7, 60_000)
	for i := 8; i < 40; i++ {
		AppendLarge(t, l, i, size)
	}
	AppendLarge(t, l, 40, 2_000_000)
	Append(t, l, 41, 5)
}

// AppendLarge appends event i with a payload slightly larger than size bytes.
func AppendLarge(t *testing.T, l *ledger.Ledger, i, size int) {
	t.Helper()
	// Hexadecimal digits of hashes compress by half at most, so that a broker that measures
	// compressed sizes still finds the payload large.
	var filling strings.Builder
	for n := 0; filling.Len() < size; n++ {
		fmt.Fprintf(&filling, "%x", sha256.Sum256(fmt.Append(nil, i, n)))
	}
	_, err := l.Append(t.Context(), ledger.Append{Tenant: fmt.Sprint("org_", i%5), Events: []ledger.Pending{{Stream: "s", Expect: ledger.Any(1 << 40), ID: fmt.Sprint("evt_", i),
		Type: "member.removed", SchemaVersion: 1, Actor: "a", Payload: fmt.Appendf(nil, `{"memberId":"%d%s"}`, i, filling.String())}}})
	if err != nil {
		t.Fatal(err)
	}
}

// Start starts a node that publishes to the sink until stop is called. withoutData returns the
// number of events that were published without their data.
func Start(t *testing.T, l *ledger.Ledger, name string, p message.Publisher) (stop func(), withoutData func() int64) {
	t.Helper()
	views, err := projections.Publish(t.Context(), l, Discard, projections.Sink{Name: name, Publisher: p, BaseURL: baseURL})
	if err != nil {
		t.Fatal(err)
	}
	return func() { views.Close(); _ = p.Close() }, views.WithoutData
}

// PutBack simulates a crash after the broker's acknowledgement and before the checkpoint is
// written. It moves the checkpoint back by n events of each partition and returns the total number
// of these events.
func PutBack(t *testing.T, l *ledger.Ledger, name string, n int) (events int) {
	t.Helper()
	err := l.Pool().QueryRow(t.Context(), `with back as (
			update projection_checkpoint c set pos = greatest(c.pos - $2, 0),
				hash = coalesce((select hash from events e where e.p = c.p and e.pos = c.pos - $2), decode(repeat('00', 32), 'hex'))
			where name = $1 returning p, pos)
		select count(*) from back join events using (p) where events.pos > back.pos`, "sink/"+name, n).Scan(&events)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// Arrivals collects the messages that arrived at a broker. The zero value is empty.
type Arrivals struct {
	Messages int // number of messages, including repeats
	first    map[string]forms.CloudEvent
	last     map[string]int64 // newest position by tenant
}

// Events returns the number of different events that have arrived.
func (a *Arrivals) Events() int { return len(a.first) }

// Add records a message. Its attributes have names of the form ce-NAME. Add checks that the
// attributes agree with the text, that new events of a tenant arrive in order, and that a repeated
// message is identical.
func (a *Arrivals) Add(t *testing.T, text []byte, attributes map[string]string) forms.CloudEvent {
	t.Helper()
	a.Messages++
	var e forms.CloudEvent
	var members map[string]jsontext.Value
	if err := errors.Join(json.Unmarshal(text, &e), json.Unmarshal(text, &members)); err != nil {
		t.Fatal(err)
	}
	delete(members, "data")
	delete(members, "datacontenttype")
	for name, value := range members {
		if want := jsontext.Value(strconv.Quote(attributes["ce-"+name])); string(value) != string(want) {
			t.Errorf("message %s: attribute %s is %s, want %s", e.ID, name, want, value)
		}
	}
	if attributes["content-type"] != forms.CloudEventType || e.Type != Type || e.SpecVersion != "1.0" {
		t.Errorf("message %s is %s of %s", e.ID, e.Type, attributes["content-type"])
	}
	if a.first == nil {
		a.first, a.last = map[string]forms.CloudEvent{}, map[string]int64{}
	}
	if was, repeated := a.first[e.ID]; repeated {
		if was.DataHash != e.DataHash {
			t.Errorf("message %s is repeated with %q in place of %q", e.ID, e.DataHash, was.DataHash)
		}
		return e
	}
	position, err := strconv.ParseInt(e.Position, 10, 64)
	if err != nil || position <= a.last[e.PartitionKey] {
		t.Errorf("position %s of %s comes after %d", e.Position, e.PartitionKey, a.last[e.PartitionKey])
	}
	a.first[e.ID], a.last[e.PartitionKey] = e, position
	return e
}

// Check compares the arrived messages with all events of the ledger. large lists the numbers of
// the events that must arrive without data. No event may be parked: a broker that is down or
// refuses messages is not a fault of the event.
func (a *Arrivals) Check(t *testing.T, l *ledger.Ledger, large ...int) {
	t.Helper()
	arrived := map[string]forms.CloudEvent{}
	for _, e := range a.first {
		arrived[e.Source+" "+e.Position] = e
	}
	events := 0
	for _, p := range l.Partitions() {
		stored, err := p.After(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		events += len(stored)
		for _, e := range stored {
			number, err := strconv.Atoi(strings.TrimPrefix(e.ID, "evt_"))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, arrived[fmt.Sprint(p.Origin(), " ", e.Position)], e, slices.Contains(large, number))
		}
	}
	if len(arrived) != events || len(a.first) != events {
		t.Errorf("%d events have arrived of %d", len(a.first), events)
	}
	var n int
	if err := l.Pool().QueryRow(t.Context(), `select count(*) from projection_dead`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d events are parked, %v", n, err)
	}
}

// compare checks that a message contains its event.
func compare(t *testing.T, m forms.CloudEvent, e ledger.Event, large bool) {
	t.Helper()
	want, err := canon.Marshal(forms.DataOf(e))
	if err != nil {
		t.Fatal(err)
	}
	if m.PartitionKey != e.Tenant || m.Subject != e.Stream || m.ID != e.ID {
		t.Errorf("%s came as %s of %s", e.ID, m.ID, m.PartitionKey)
	}
	if large {
		hash := sha256.Sum256(want)
		if got, want := []any{m.Data, m.DataHash, m.DataRef}, []any{nil, hex.EncodeToString(hash[:]), fmt.Sprint(baseURL, projections.EventsPath, e.Position)}; !slices.Equal(got, want) {
			t.Errorf("%s came without its data as %v, want %v", e.ID, got, want)
		}
		return
	}
	data, err := canon.Marshal(m.Data)
	if err != nil || string(data) != string(want) || m.DataHash+m.DataRef != "" {
		t.Errorf("%s came as %.200s, %v", e.ID, data, err)
	}
}
