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
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/countersign/countersign/cmd/fanout/kafka"
	"github.com/countersign/countersign/cmd/fanout/sinktest"
)

// cluster starts a broker in this process, with the topic "events".
func cluster(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(options, kfake.NumBrokers(1), kfake.SeedTopics(8, "events"))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// read reads records from the topic until n different messages have arrived. Messages of one
// tenant must be in one partition.
func read(t *testing.T, c *kfake.Cluster, n int) (arrived sinktest.Arrivals) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("events"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	partition := map[string]int32{}
	for arrived.Events() < n {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d messages have come", arrived.Events(), n)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			attributes := map[string]string{}
			for _, h := range r.Headers {
				attributes[strings.Replace(h.Key, "ce_", "ce-", 1)] = string(h.Value)
			}
			e := arrived.Add(t, r.Value, attributes)
			if p, ok := partition[e.PartitionKey]; ok && p != r.Partition || e.PartitionKey != string(r.Key) {
				t.Errorf("events of %s are in the partitions %d and %d, with the key %s", e.PartitionKey, p, r.Partition, r.Key)
			}
			partition[e.PartitionKey] = r.Partition
		})
	}
	return arrived
}

// Every event arrives in the order of its tenant, although one node ends and another starts, and
// the broker restarts. A repeated message has the same id.
func TestEveryEventArrivesInOrder(t *testing.T) {
	l, folder := sinktest.Ledger(t), t.TempDir()
	c := cluster(t, kfake.DataDir(folder))
	address := c.ListenAddrs()[0]
	start := func() func() {
		p, err := kafka.New("kafka://"+address+"/events", sinktest.Discard)
		if err != nil {
			t.Fatal(err)
		}
		stop, _ := sinktest.Start(t, l, "kafka", p)
		return stop
	}
	sinktest.Append(t, l, 1, 20)
	stop := start()
	if arrived := read(t, c, 20); arrived.Messages != 20 {
		t.Errorf("%d records, want 20", arrived.Messages)
	}
	stop()
	again := sinktest.PutBack(t, l, "kafka", 5)
	stop = start()
	defer func() { stop() }()
	sinktest.Append(t, l, 21, 5)
	if arrived := read(t, c, 25); arrived.Messages > 25+again {
		t.Errorf("%d records, want 25 and %d that are repeated", arrived.Messages, again)
	}
	_, text, _ := net.SplitHostPort(address)
	var port int
	if _, err := fmt.Sscan(text, &port); err != nil {
		t.Fatal(err)
	}
	c.Close()
	sinktest.Append(t, l, 26, 5) // the broker is down; appending must work all the same
	sinktest.Free(t, address)
	c = cluster(t, kfake.DataDir(folder), kfake.Ports(port))
	defer c.Close()
	arrived := read(t, c, 30)
	arrived.Check(t, l)
}

// publisher returns a publisher for the topic of the cluster.
func publisher(t *testing.T, c *kfake.Cluster) *kafka.Publisher {
	t.Helper()
	p, err := kafka.New("kafka://"+c.ListenAddrs()[0]+"/events", sinktest.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A message that the brokers refuse as too large arrives without its data. The messages around it
// arrive completely and in order, also if the brokers refuse only the batch that the client
// formed.
func TestWhatIsTooLargeArrivesWithoutData(t *testing.T) {
	l := sinktest.Ledger(t)
	c := cluster(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "20000"}))
	defer c.Close()
	sinktest.AppendMixed(t, l, 4_000)
	p := publisher(t, c)
	stop, withoutData := sinktest.Start(t, l, "kafka", p)
	defer stop()
	arrived := read(t, c, 45)
	arrived.Check(t, l, 7, 40)
	if n := withoutData(); n != 2 {
		t.Errorf("%d events are counted", n)
	}
}

// A broker that accepts large messages gets them with their data.
func TestWhatBrokersTakeArrivesWhole(t *testing.T) {
	l := sinktest.Ledger(t)
	c := cluster(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "8000000"}))
	defer c.Close()
	sinktest.AppendLarge(t, l, 1, 2_000_000)
	p := publisher(t, c)
	stop, _ := sinktest.Start(t, l, "kafka", p)
	defer stop()
	arrived := read(t, c, 1)
	arrived.Check(t, l)
}

func note() *message.Message {
	m := message.NewMessage("1", []byte("{}"))
	m.Metadata.Set("ce-partitionkey", "org_1")
	return m
}

// Publish succeeds only if every in-sync replica has the message and no broker refuses it.
func TestOnlyWhatIsAcknowledgedCounts(t *testing.T) {
	c := cluster(t)
	defer c.Close()
	p := publisher(t, c)
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

// certificate creates a self-signed certificate for servers and clients. file contains the
// certificate and keyFile its key.
func certificate(t *testing.T) (config *tls.Config, file, keyFile string) {
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
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		write(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), write(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// write creates a file with this content and returns its name.
func write(t *testing.T, text []byte) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// publish publishes a message with a client for this URL. It returns the broker's refusal as an
// error.
func publish(t *testing.T, address string) error {
	t.Helper()
	p, err := kafka.New(address, sinktest.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.Publish("", note())
}

// For a broker that requires a client certificate, the client reads the certificate from its files
// at each connection.
func TestClientCertificates(t *testing.T) {
	t.Parallel() // parallel, because a refused client waits before it retries
	config, ca, key := certificate(t)
	_, other, otherKey := certificate(t)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	config.ClientCAs.AppendCertsFromPEM(text)
	private, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, kfake.TLS(config))
	defer c.Close()
	base := "kafka://" + c.ListenAddrs()[0] + "/events?tls=true&ca=" + ca
	for name, parameters := range map[string]string{"two files": "&cert=" + ca + "&key=" + key, "one file": "&cert=" + write(t, append(text, private...))} {
		if err := publish(t, base+parameters); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := kafka.New(base+"&cert="+other+"&key="+otherKey, sinktest.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := note()
	m.SetContext(ctx)
	if err := p.Publish("", m); err == nil {
		t.Error("a certificate that nobody trusts is taken")
	}
	for from, to := range map[string]string{ca: other, key: otherKey} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for p.Publish("", note()) != nil { // repeat until the client has connected again
	}
}

// bearers makes the broker accept every OAUTHBEARER token and records what clients send. The
// broker in this process does not implement this mechanism itself.
func bearers(c *kfake.Cluster, shown *sync.Map) {
	c.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		answer := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
		if r.(*kmsg.SASLHandshakeRequest).Mechanism != "OAUTHBEARER" {
			answer.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return answer, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		shown.Store(string(r.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes), true)
		return r.ResponseKind(), nil, true
	})
}

// tokenServer starts a server that issues a token to the user u with the password S3CRET. If the
// channel has a status it answers with that status instead.
func tokenServer(t *testing.T, answers <-chan int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, header := r.BasicAuth()
		if !header { // second attempt: the OAuth library sends the credentials in the form after the header was refused
			user, password = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
		}
		if user != "u" || password != "S3CRET" || r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("scope") != "a b" {
			t.Errorf("%s asks with %s", user, r.PostForm.Encode())
		}
		w.Header().Set("Content-Type", "application/json")
		select {
		case code := <-answers:
			w.WriteHeader(code)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"S3CRET"}`)
		default:
			fmt.Fprint(w, `{"access_token":"from-server","token_type":"Bearer","expires_in":3600}`)
		}
	}))
}

// The client gets a token from a file or from a token server, each time that a broker requires
// one.
func TestBearerTokens(t *testing.T) {
	t.Parallel() // parallel, because a refused client waits before it retries
	config, ca, _ := certificate(t)
	c := cluster(t, kfake.TLS(config))
	defer c.Close()
	var shown sync.Map
	bearers(c, &shown)
	answers := make(chan int, 2)
	tokens := tokenServer(t, answers)
	defer tokens.Close()
	base := c.ListenAddrs()[0] + "/events?tls=true&ca=" + ca + "&sasl=OAUTHBEARER"
	byServer := "kafka://u:S3CRET@" + base + "&scope=a+b&token_url=" + url.QueryEscape(tokens.URL)
	for want, address := range map[string]string{"from-file": "kafka://" + base + "&token=" + write(t, []byte("from-file\n")), "from-server": byServer} {
		if err := publish(t, address); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if _, ok := shown.Load("n,,\x01auth=Bearer " + want + "\x01\x01"); !ok {
			t.Errorf("%s is not shown", want)
		}
	}
	var log strings.Builder
	p, err := kafka.New(byServer, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	answers <- http.StatusUnauthorized
	answers <- http.StatusUnauthorized
	err = p.Publish("", note())
	_ = p.Close()
	if told := fmt.Sprint(err, log.String()); strings.Contains(told, "S3CRET") || strings.Contains(told, tokens.URL) || !strings.Contains(told, "token_url") || !strings.Contains(told, "invalid_client") {
		t.Errorf("what a server refuses is told as %s", told)
	}
}

func TestCredentialsUnderTLS(t *testing.T) {
	config, ca, _ := certificate(t)
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

// The error for a wrong URL names the parameter and never contains a value.
func TestAddressesAreChecked(t *testing.T) {
	_, ca, key := certificate(t)
	secret := write(t, []byte("S3CRET"))
	for bad, named := range map[string]string{"kafka://": "host", "kafka:///events": "host", "kafka://h": "topic", "kafka://h/": "topic", "kafka://h/a/b": "topic", "kafka://h,,i/events": "brokers",
		"kafka://u:S3CRET@%/events": "kafka://", "http://h/events": "kafka://", "kafka://h/events?acks=0": "parameters", "kafka://u:12?S3CRET@h/events": "parameters", "kafka://h/events?tls=yes": "tls", "kafka://h/events?ca=x": "ca",
		"kafka://h/events?tls=true&ca=S3CRET": "ca", "kafka://h/events?tls=true&tls=false": "tls", "kafka://h/events?%zz": "parameters",
		"kafka://h/events?sasl=PLAIN": "sasl", "kafka://u:S3CRET@h/events?sasl=PLAIN": "sasl", "kafka://u:S3CRET@h/events?tls=true&sasl=GSSAPI": "sasl",
		"kafka://h/events?cert=" + ca + "&key=" + key: "cert", "kafka://h/events?tls=true&key=" + key: "key", "kafka://h/events?tls=true&cert=S3CRET": "cert",
		"kafka://h/events?tls=true&cert=" + ca: "key", "kafka://h/events?tls=true&cert=" + ca + "&key=" + secret: "key",
		"kafka://h/events?tls=true&sasl=OAUTHBEARER": "token", "kafka://h/events?tls=true&token=" + secret: "token", "kafka://h/events?sasl=OAUTHBEARER&token=" + secret: "tls",
		"kafka://h/events?tls=true&sasl=OAUTHBEARER&token=S3CRET": "token", "kafka://u:S3CRET@h/events?tls=true&sasl=OAUTHBEARER&token=" + secret: "token",
		"kafka://h/events?tls=true&sasl=OAUTHBEARER&token_url=https://S3CRET": "token_url", "kafka://u:S3CRET@h/events?tls=true&sasl=OAUTHBEARER&token_url=S3CRET": "token_url",
		"kafka://u:S3CRET@h/events?tls=true&sasl=OAUTHBEARER&token_url=http://192.0.2.1/S3CRET": "token_url",
		"kafka://h/events?tls=true&sasl=OAUTHBEARER&scope=S3CRET&token=" + secret:               "scope"} {
		if _, err := kafka.New(bad, sinktest.Discard); err == nil || strings.Contains(err.Error(), "S3CRET") || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, good := range []string{"kafka://h/events", "kafka://[::1]:9092/events", "kafka://u:p@h:9092,i:9093/events?tls=true&sasl=PLAIN",
		"kafka://u:p@h/events?tls=true&cert=" + ca + "&key=" + key} {
		p, err := kafka.New(good, sinktest.Discard)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		_ = p.Close()
	}
}
