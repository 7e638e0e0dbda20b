package jetstream_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/projections"
	"github.com/countersign/countersign/projections/jetstream"
)

var discard = slog.New(slog.DiscardHandler)

// broker is a NATS server in this process.
func broker(t *testing.T, folder string, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the broker does not start")
	}
	return s
}

func appendEvents(t *testing.T, l *ledger.Ledger, from, n int) {
	t.Helper()
	for i := range n {
		_, err := l.Append(t.Context(), ledger.Append{Tenant: "org_1", Drafts: []ledger.Draft{{Stream: "s", Expect: ledger.Any(1 << 40), ID: fmt.Sprint("evt_", from+i),
			Type: "member.removed", SchemaVersion: 1, Actor: "a", Payload: fmt.Appendf(nil, `{"memberId":"%d"}`, from+i)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// read takes n messages out of the stream, in its order.
func read(t *testing.T, url string, n int) []projections.CloudEvent {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	var sub *nats.Subscription
	for sub == nil { // until the stream is there
		sub, _ = js.SubscribeSync("countersign.>", nats.OrderedConsumer())
	}
	var got []projections.CloudEvent
	for range n {
		m, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatalf("message %d: %v", len(got)+1, err)
		}
		var e projections.CloudEvent
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Fatal(err)
		}
		if m.Subject != "countersign.member.removed" || m.Header.Get("content-type") != projections.CloudEventType || m.Header.Get(nats.MsgIdHdr) != e.ID {
			t.Errorf("message %s: subject %s, %v", e.ID, m.Subject, m.Header)
		}
		got = append(got, e)
	}
	if info, err := js.StreamInfo("countersign"); err != nil || info.State.Msgs != uint64(n) {
		t.Errorf("the stream holds %+v, want %d messages, %v", info.State, n, err)
	}
	return got
}

// Every event arrives once and in order, although the node ends, another begins,
// the broker goes away and the checkpoint is put back: its message is dropped by
// its id.
func TestEveryEventArrivesOnceInOrder(t *testing.T) {
	db, ctx, folder := ledgertest.New(t), t.Context(), t.TempDir()
	l, err := ledger.Open(ctx, db.URL, ledger.Options{Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	nats := broker(t, folder, -1)
	url := nats.ClientURL()
	start := func() func() {
		p, err := jetstream.New(url, discard)
		if err != nil {
			t.Fatal(err)
		}
		views, err := projections.Start(ctx, l, discard, projections.Sink{Name: "nats", Publisher: p})
		if err != nil {
			t.Fatal(err)
		}
		return func() { views.Close(); _ = p.Close() }
	}
	appendEvents(t, l, 1, 20)
	stop := start()
	read(t, url, 20)
	stop()
	// A crash between the acknowledgement and the checkpoint.
	if _, err := l.Pool().Exec(ctx, `update projection_checkpoint set pos = 15, hash = (select hash from events where pos = 15) where name = 'sink/nats'`); err != nil {
		t.Fatal(err)
	}
	stop = start()
	defer func() { stop() }()
	appendEvents(t, l, 21, 5)
	read(t, url, 25)
	port := nats.Addr().String()[strings.LastIndex(nats.Addr().String(), ":")+1:]
	nats.Shutdown()
	nats.WaitForShutdown()
	appendEvents(t, l, 26, 5) // the ledger does not wait for the broker
	var number int
	if _, err := fmt.Sscan(port, &number); err != nil {
		t.Fatal(err)
	}
	nats = broker(t, folder, number)
	defer nats.Shutdown()

	for i, e := range read(t, url, 30) {
		text, _ := json.Marshal(e.Data)
		var data projections.EventData
		if err := json.Unmarshal(text, &data); err != nil || e.Position != fmt.Sprint(i+1) || data.Position != int64(i+1) || e.PartitionKey != "org_1" {
			t.Fatalf("message %d is %s %s", i+1, e.ID, text)
		}
		stored, err := l.Partition(0).After(ctx, int64(i), 1)
		if err != nil || data.Hash != hex.EncodeToString(stored[0].Hash[:]) || string(data.Payload) != string(stored[0].Payload) {
			t.Errorf("message %d does not hold its event: %s, %v", i+1, text, err)
		}
	}
	parked(ctx, t, l)
}

// parked: a broker that is away is no fault of an event.
func parked(ctx context.Context, t *testing.T, l *ledger.Ledger) {
	t.Helper()
	var n int
	if err := l.Pool().QueryRow(ctx, `select count(*) from projection_dead`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d events are parked, %v", n, err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, bad := range []string{"", "localhost:4222", "http://localhost:4222", "nats://", "nats://u:S3CRET@%"} {
		if _, err := jetstream.New(bad, discard); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
