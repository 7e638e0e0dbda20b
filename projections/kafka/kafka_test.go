package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/countersign/countersign/projections"
	"github.com/countersign/countersign/projections/kafka"
	"github.com/countersign/countersign/projections/sinktest"
)

// cluster is a broker in this process, with the topic "events".
func cluster(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(options, kfake.NumBrokers(1), kfake.SeedTopics(8, "events"))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// read takes records out of the topic until n different messages have come. Each
// tenant's are in one partition and in their order, and a repeat is the same.
func read(t *testing.T, c *kfake.Cluster, n int) (arrived []projections.CloudEvent, records int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("events"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, last, partition := map[string]projections.CloudEvent{}, map[string]int{}, map[string]int32{}
	for len(first) < n {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d messages have come", len(first), n)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			records++
			e, key := event(t, r), string(r.Key)
			if p, ok := partition[key]; ok && p != r.Partition {
				t.Errorf("events of %s are in the partitions %d and %d", key, p, r.Partition)
			}
			partition[key] = r.Partition
			if _, repeated := first[e.ID]; repeated {
				return
			}
			var position int
			if _, err := fmt.Sscan(e.Position, &position); err != nil || position <= last[key] {
				t.Errorf("position %s of %s comes behind %d", e.Position, key, last[key])
			}
			first[e.ID], last[key] = e, position
		})
	}
	byPosition := map[string]projections.CloudEvent{}
	for _, e := range first {
		byPosition[e.Position] = e
	}
	for i := range n {
		arrived = append(arrived, byPosition[fmt.Sprint(i+1)])
	}
	return arrived, records
}

// event is a record's, whose headers say what its value says.
func event(t *testing.T, r *kgo.Record) (e projections.CloudEvent) {
	t.Helper()
	if err := json.Unmarshal(r.Value, &e); err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{}
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	for name, want := range map[string]string{"content-type": projections.CloudEventType, "ce_id": e.ID, "ce_type": "countersign.member.removed", "ce_source": e.Source,
		"ce_specversion": "1.0", "ce_subject": "s", "ce_time": e.Time, "ce_partitionkey": string(r.Key), "ce_position": e.Position} {
		if headers[name] != want {
			t.Errorf("message %s: %s is %q, want %q", e.ID, name, headers[name], want)
		}
	}
	return e
}

// Every event arrives in its tenant's order, although the node ends, another
// begins and the broker goes away; what is repeated has the same id.
func TestEveryEventArrivesInOrder(t *testing.T) {
	l, folder := sinktest.Ledger(t), t.TempDir()
	c := cluster(t, kfake.DataDir(folder))
	address := c.ListenAddrs()[0]
	start := func() func() {
		p, err := kafka.New("kafka://"+address+"/events", sinktest.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return sinktest.Start(t, l, "kafka", p)
	}
	sinktest.Append(t, l, 1, 20)
	stop := start()
	if _, n := read(t, c, 20); n != 20 {
		t.Errorf("%d records, want 20", n)
	}
	stop()
	sinktest.PutBack(t, l, "kafka", 15)
	stop = start()
	defer func() { stop() }()
	sinktest.Append(t, l, 21, 5)
	if _, n := read(t, c, 25); n != 30 {
		t.Errorf("%d records, want 25 and 5 that are repeated", n)
	}
	_, text, _ := net.SplitHostPort(address)
	var port int
	if _, err := fmt.Sscan(text, &port); err != nil {
		t.Fatal(err)
	}
	c.Close()
	sinktest.Append(t, l, 26, 5) // the ledger does not wait for the broker
	c = cluster(t, kfake.DataDir(folder), kfake.Ports(port))
	defer c.Close()
	arrived, _ := read(t, c, 30)
	sinktest.Check(t, l, arrived)
}

func note() *message.Message {
	m := message.NewMessage("1", []byte("{}"))
	m.Metadata.Set("ce-partitionkey", "org_1")
	return m
}

// A message counts as sent when every replica in sync has it, and not when a broker
// refuses it.
func TestOnlyWhatIsAcknowledgedCounts(t *testing.T) {
	c := cluster(t)
	defer c.Close()
	p, err := kafka.New("kafka://"+c.ListenAddrs()[0]+"/events", sinktest.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if acks := r.(*kmsg.ProduceRequest).Acks; acks != -1 {
			t.Errorf("asks for %d acknowledgements", acks)
		}
		return nil, nil, false
	})
	if err := p.Publish("", note()); err != nil {
		t.Error(err)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if err := p.Publish("", note()); err == nil {
		t.Error("what was refused counts as sent")
	}
}

// certificate is a server's, and a file that makes it trusted.
func certificate(t *testing.T) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, file
}

func TestCredentialsUnderTLS(t *testing.T) {
	config, ca := certificate(t)
	mechanisms := []string{"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"}
	options := []kfake.Opt{kfake.TLS(config), kfake.EnableSASL()}
	for _, m := range mechanisms {
		options = append(options, kfake.Superuser(m, "u-"+m, "p@ss"))
	}
	c := cluster(t, options...)
	defer c.Close()
	for _, m := range append(mechanisms, "") {
		user, parameter := "u-"+m, "&sasl="+m
		if m == "" {
			user, parameter = "u-SCRAM-SHA-512", ""
		}
		p, err := kafka.New("kafka://"+user+":p%40ss@"+c.ListenAddrs()[0]+"/events?tls=true&ca="+ca+parameter, sinktest.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Publish("", note()); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		_ = p.Close()
	}
	var log strings.Builder
	p, err := kafka.New("kafka://u-PLAIN:S3CRET@"+c.ListenAddrs()[0]+"/events?tls=true&sasl=PLAIN&ca="+ca, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(kmsg.Request) (kmsg.Response, error, bool) {
		cancel()
		return nil, nil, false
	})
	m := note()
	m.SetContext(ctx)
	err = p.Publish("", m)
	_ = p.Close()
	if err == nil || strings.Contains(err.Error()+log.String(), "S3CRET") {
		t.Errorf("a wrong password: %v; %s", err, log.String())
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, bad := range []string{"kafka://", "kafka:///events", "kafka://h", "kafka://h/", "kafka://h/a/b", "kafka://h,,i/events", "kafka://u:S3CRET@%/events",
		"http://h/events", "kafka://h/events?acks=0", "kafka://h/events?tls=yes", "kafka://h/events?ca=x", "kafka://h/events?tls=true&ca=S3CRET",
		"kafka://h/events?sasl=PLAIN", "kafka://u:S3CRET@h/events?sasl=PLAIN", "kafka://u:S3CRET@h/events?tls=true&sasl=GSSAPI"} {
		if _, err := kafka.New(bad, sinktest.Discard); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, good := range []string{"kafka://h/events", "kafka://[::1]:9092/events", "kafka://u:p@h:9092,i:9093/events?tls=true&sasl=PLAIN"} {
		p, err := kafka.New(good, sinktest.Discard)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		_ = p.Close()
	}
}
