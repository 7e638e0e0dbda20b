package jetstream_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/countersign/countersign/projections"
	"github.com/countersign/countersign/projections/jetstream"
	"github.com/countersign/countersign/projections/sinktest"
)

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
		if m.Subject != "countersign.member.removed" || m.Header.Get("content-type") != projections.CloudEventType || m.Header.Get(nats.MsgIdHdr) != e.ID ||
			m.Header.Get("ce-id") != e.ID || m.Header.Get("ce-position") != e.Position {
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
	l, folder := sinktest.Ledger(t), t.TempDir()
	nats := broker(t, folder, -1)
	url := nats.ClientURL()
	start := func() func() {
		p, err := jetstream.New(url, sinktest.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return sinktest.Start(t, l, "nats", p)
	}
	sinktest.Append(t, l, 1, 20)
	stop := start()
	read(t, url, 20)
	stop()
	sinktest.PutBack(t, l, "nats", 15)
	stop = start()
	defer func() { stop() }()
	sinktest.Append(t, l, 21, 5)
	read(t, url, 25)
	port := nats.Addr().(*net.TCPAddr).Port
	nats.Shutdown()
	nats.WaitForShutdown()
	sinktest.Append(t, l, 26, 5) // the ledger does not wait for the broker
	nats = broker(t, folder, port)
	defer nats.Shutdown()
	sinktest.Check(t, l, read(t, url, 30))
}

func TestAddressesAreChecked(t *testing.T) {
	for _, bad := range []string{"", "localhost:4222", "http://localhost:4222", "nats://", "nats://u:S3CRET@%"} {
		if _, err := jetstream.New(bad, sinktest.Discard); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
