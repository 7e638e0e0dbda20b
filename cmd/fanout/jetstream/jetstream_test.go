package jetstream_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/countersign/countersign/cmd/fanout/jetstream"
	"github.com/countersign/countersign/cmd/fanout/sinktest"
)

// broker starts a NATS server in this process.
func broker(t *testing.T, options server.Options) *server.Server {
	t.Helper()
	options.Host, options.JetStream, options.NoLog, options.NoSigs = "127.0.0.1", true, true, true
	s, err := server.NewServer(&options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the broker does not start")
	}
	return s
}

func dial(t *testing.T, url string) nats.JetStreamContext {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := conn.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// read reads n messages from the stream, in order.
func read(t *testing.T, url string, n int) (arrived sinktest.Arrivals) {
	t.Helper()
	js := dial(t, url)
	var sub *nats.Subscription
	for sub == nil { // wait until the stream exists
		sub, _ = js.SubscribeSync("countersign.>", nats.OrderedConsumer())
	}
	for range n {
		m, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatalf("message %d: %v", arrived.Messages+1, err)
		}
		attributes := map[string]string{}
		for name := range m.Header {
			attributes[name] = m.Header.Get(name)
		}
		if e := arrived.Add(t, m.Data, attributes); m.Subject != e.Type || m.Header.Get(nats.MsgIdHdr) != e.ID {
			t.Errorf("message %s: subject %s, %v", e.ID, m.Subject, m.Header)
		}
	}
	if info, err := js.StreamInfo("countersign"); err != nil || info.State.Msgs != uint64(n) {
		t.Errorf("the stream holds %+v, want %d messages, %v", info.State, n, err)
	}
	return arrived
}

// Every event arrives once and in order, although one node ends and another starts, the broker
// restarts, and the checkpoint is moved back. The broker drops repeats by their ids.
func TestEveryEventArrivesOnceInOrder(t *testing.T) {
	l, folder := sinktest.Ledger(t), t.TempDir()
	nats := broker(t, server.Options{StoreDir: folder, Port: -1})
	url := nats.ClientURL()
	start := func() func() {
		p, err := jetstream.New(url, sinktest.Discard)
		if err != nil {
			t.Fatal(err)
		}
		stop, _ := sinktest.Start(t, l, "nats", p)
		return stop
	}
	sinktest.Append(t, l, 1, 20)
	stop := start()
	read(t, url, 20)
	stop()
	sinktest.PutBack(t, l, "nats", 5)
	stop = start()
	defer func() { stop() }()
	sinktest.Append(t, l, 21, 5)
	read(t, url, 25)
	port := nats.Addr().(*net.TCPAddr).Port
	nats.Shutdown()
	nats.WaitForShutdown()
	sinktest.Append(t, l, 26, 5) // the broker is down; appending must work all the same
	sinktest.Free(t, fmt.Sprint("127.0.0.1:", port))
	nats = broker(t, server.Options{StoreDir: folder, Port: port})
	defer nats.Shutdown()
	arrived := read(t, url, 30)
	arrived.Check(t, l)
}

// A message that the server or the stream refuses as too large arrives without its data. Later
// messages still arrive.
func TestWhatIsTooLargeArrivesWithoutData(t *testing.T) {
	for name, c := range map[string]struct {
		server int32
		stream int32
	}{"server": {server: 20_000}, "stream": {server: 1 << 20, stream: 20_000}} {
		t.Run(name, func(t *testing.T) {
			l := sinktest.Ledger(t)
			s := broker(t, server.Options{StoreDir: t.TempDir(), Port: -1, MaxPayload: c.server})
			defer s.Shutdown()
			if c.stream > 0 {
				operatorsStream(t, s.ClientURL(), c.stream)
			}
			sinktest.Append(t, l, 1, 6)
			sinktest.AppendLarge(t, l, 7, 30_000)
			sinktest.Append(t, l, 8, 6)
			p, err := jetstream.New(s.ClientURL(), sinktest.Discard)
			if err != nil {
				t.Fatal(err)
			}
			stop, withoutData := sinktest.Start(t, l, "nats", p)
			defer stop()
			sinktest.AppendLarge(t, l, 14, 9_500)
			arrived := read(t, s.ClientURL(), 14)
			arrived.Check(t, l, 7)
			if n := withoutData(); n != 1 {
				t.Errorf("%d events are counted", n)
			}
		})
	}
}

// operatorsStream creates the stream before the sink starts, with a limit of this many bytes per
// message, as an operator can.
func operatorsStream(t *testing.T, url string, octets int32) {
	t.Helper()
	js := dial(t, url)
	if _, err := js.AddStream(&nats.StreamConfig{Name: "countersign", Subjects: []string{"countersign.>"}, MaxMsgSize: octets}); err != nil {
		t.Fatal(err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, bad := range []string{"", "localhost:4222", "http://localhost:4222", "nats://", "nats://u:S3CRET@%"} {
		if _, err := jetstream.New(bad, sinktest.Discard); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
