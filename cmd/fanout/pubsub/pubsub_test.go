package pubsub

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/fanout/sinktest"
	"github.com/countersign/countersign/projections"
)

// service is a server that answers topics.publish as the API reference defines it. Tests with this
// server show that the package follows the reference, but not how Pub/Sub itself behaves.
type service struct {
	*httptest.Server
	arrived chan pubsubMessage
	calls   chan int // gets the number of messages of each call
	most    int64    // largest accepted request in bytes
}

func serve(t *testing.T, address string, arrived chan pubsubMessage) *service {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{arrived: arrived, calls: make(chan int, 1000), most: 10 << 20}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.publish))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	return s
}

func refuse(w http.ResponseWriter, code int, status, text string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"error":{"code":%d,"message":%q,"status":%q}}`, code, text, status)
}

func (s *service) publish(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/projects/p-1/topics/events:publish" {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "Resource not found (resource=events).")
		return
	}
	if r.ContentLength > s.most {
		refuse(w, http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf("Request payload size exceeds the limit: %d bytes.", s.most))
		return
	}
	var body request
	err := json.UnmarshalRead(r.Body, &body, json.RejectUnknownMembers(true))
	if err != nil || len(body.Messages) == 0 || len(body.Messages) > requestMost {
		refuse(w, http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprint(len(body.Messages), " messages, ", err))
		return
	}
	var ids []string
	for i, m := range body.Messages {
		if len(m.Data) == 0 || m.OrderingKey != body.Messages[0].OrderingKey {
			refuse(w, http.StatusBadRequest, "INVALID_ARGUMENT", "a message without data, or two ordering keys in one request")
			return
		}
		ids = append(ids, fmt.Sprint(i))
	}
	s.calls <- len(ids)
	for _, m := range body.Messages {
		s.arrived <- m
	}
	_ = json.MarshalWrite(w, map[string][]string{"messageIds": ids})
}

// read reads messages until n different ones have arrived.
func read(t *testing.T, from chan pubsubMessage, arrived *sinktest.Arrivals, n int) {
	t.Helper()
	for arrived.Events() < n {
		select {
		case m := <-from:
			if e := arrived.Add(t, m.Data, m.Attributes); e.PartitionKey != m.OrderingKey {
				t.Errorf("message %s has the ordering key %s", e.ID, m.OrderingKey)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d messages have come", arrived.Events(), n)
		}
	}
}

// Every event arrives in the order of its tenant, although one node ends and another starts, and
// the service restarts. A repeated message has the same id.
func TestEveryEventArrivesInOrder(t *testing.T) {
	var arrived sinktest.Arrivals
	l, messages := sinktest.Ledger(t), make(chan pubsubMessage, 1000)
	s := serve(t, "127.0.0.1:0", messages)
	address := s.Listener.Addr().String()
	t.Setenv("PUBSUB_EMULATOR_HOST", address)
	start := func() func() {
		p, err := New("pubsub://projects/p-1/topics/events?region=us-east1")
		if err != nil {
			t.Fatal(err)
		}
		stop, _ := sinktest.Start(t, l, "pubsub", p)
		return stop
	}
	sinktest.Append(t, l, 1, 20)
	stop := start()
	if read(t, messages, &arrived, 20); arrived.Messages != 20 {
		t.Errorf("%d messages, want 20", arrived.Messages)
	}
	stop()
	again := sinktest.PutBack(t, l, "pubsub", 5)
	stop = start()
	defer func() { stop() }()
	sinktest.Append(t, l, 21, 5)
	if read(t, messages, &arrived, 25); arrived.Messages > 25+again {
		t.Errorf("%d messages, want 25 and %d that are repeated", arrived.Messages, again)
	}
	s.Close()
	sinktest.Append(t, l, 26, 5) // Pub/Sub is down; appending must work all the same
	sinktest.Free(t, address)
	s = serve(t, address, messages)
	defer s.Close()
	read(t, messages, &arrived, 30)
	arrived.Check(t, l)
}

// If the service refuses one message as too large, the message arrives without its data. If it
// refuses several messages together, each arrives in its own call. The order is kept.
func TestWhatIsTooLargeArrivesWithoutData(t *testing.T) {
	var arrived sinktest.Arrivals
	l, messages := sinktest.Ledger(t), make(chan pubsubMessage, 1000)
	s := serve(t, "127.0.0.1:0", messages)
	defer s.Close()
	s.most = 40_000
	t.Setenv("PUBSUB_EMULATOR_HOST", s.Listener.Addr().String())
	sinktest.AppendMixed(t, l, 8_000)
	p, err := New("pubsub://projects/p-1/topics/events")
	if err != nil {
		t.Fatal(err)
	}
	stop, withoutData := sinktest.Start(t, l, "pubsub", p)
	defer stop()
	read(t, messages, &arrived, 45)
	arrived.Check(t, l, 7, 40)
	if n := withoutData(); n != 2 {
		t.Errorf("%d events are counted", n)
	}
}

// answered returns a publisher whose calls all get this status and body.
func answered(t *testing.T, code int, body string) *Publisher {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	t.Setenv("PUBSUB_EMULATOR_HOST", s.Listener.Addr().String())
	p, err := New("pubsub://projects/p-1/topics/events")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// Publish recognizes Google's error texts for a request that is too large, and not similar texts.
func TestWhatIsTooLargeIsToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		want bool
	}{
		"the front end":     {413, `<html>`, true},
		"the request":       {400, `{"error":{"code":400,"message":"Request payload size exceeds the limit: 10485760 bytes.","status":"INVALID_ARGUMENT"}}`, true},
		"the message":       {400, `{"error":{"code":400,"message":"The value for message_data is too large. You passed 10000001 in the request, but the maximum value is 10000000.","status":"INVALID_ARGUMENT"}}`, true},
		"another fault":     {400, `{"error":{"code":400,"message":"Invalid data in message: Message failed schema validation.","status":"INVALID_ARGUMENT"}}`, false},
		"too many requests": {429, `{"error":{"code":429,"message":"Quota exceeded: too large a share.","status":"RESOURCE_EXHAUSTED"}}`, false},
	} {
		p := answered(t, c.code, c.body)
		if err := p.Publish("", notes("a")...); err == nil || errors.Is(err, projections.ErrTooLarge) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func notes(keys ...string) (messages []*message.Message) {
	for i, key := range keys {
		m := message.NewMessage(fmt.Sprint(i), []byte("{}"))
		m.Metadata.Set("ce-partitionkey", key)
		messages = append(messages, m)
	}
	return messages
}

// The messages of one call have the same ordering key, and their number is at most what Pub/Sub
// allows.
func TestWhatGoesTogether(t *testing.T) {
	s := serve(t, "127.0.0.1:0", make(chan pubsubMessage, 2000))
	defer s.Close()
	t.Setenv("PUBSUB_EMULATOR_HOST", s.Listener.Addr().String())
	p, err := New("pubsub://projects/p-1/topics/events")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Publish("", append(notes("a", "b", "a", "", "b", "a"), notes(strings.Split(strings.Repeat("c,", requestMost)+"c", ",")...)...)...); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{3, 2, 1, requestMost, 1} {
		if got := <-s.calls; got != want {
			t.Errorf("%d messages in a call, want %d", got, want)
		}
	}
	if err := p.Publish(""); err != nil || len(s.calls) != 0 {
		t.Errorf("nothing to publish: %d calls, %v", len(s.calls), err)
	}
}

// Publish succeeds only if the answer has an id for each message.
func TestOnlyWhatIsAcknowledgedCounts(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		want string
	}{
		"no topic":     {404, `{"error":{"code":404,"message":"Resource not found (resource=events).","status":"NOT_FOUND"}}`, "NOT_FOUND"},
		"no right":     {403, `{"error":{"code":403,"message":"User not authorized to perform this action.","status":"PERMISSION_DENIED"}}`, "not authorized"},
		"quota":        {429, `{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED"}}`, "RESOURCE_EXHAUSTED"},
		"unavailable":  {503, `{"error":{"code":503,"message":"The service was unable to fulfill your request.","status":"UNAVAILABLE"}}`, "UNAVAILABLE"},
		"a proxy":      {502, `<html>`, "502"},
		"no JSON":      {200, `<html>`, "read the answer"},
		"too few ids":  {200, `{"messageIds":["1"]}`, "1 of 2"},
		"no ids":       {200, `{}`, "0 of 2"},
		"a redirect":   {302, ``, "302"},
		"half a thing": {200, `{"messageIds":["1","2"`, "read the answer"},
	} {
		p := answered(t, c.code, c.body)
		if err := p.Publish("", notes("a", "a")...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without an emulator each call has a token of the default credentials.
func TestDefaultCredentials(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var authorization string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"t-1","token_type":"Bearer","expires_in":3600}`)
	})
	mux.HandleFunc("POST /v1/projects/p-1/topics/events:publish", func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"messageIds":["1"]}`)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	file := filepath.Join(t.TempDir(), "credentials.json")
	text, err := json.Marshal(map[string]string{"type": "service_account", "project_id": "p-1", "private_key_id": "k", "client_email": "a@p-1.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": s.URL + "/token"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for address, endpoint := range map[string]string{"pubsub://projects/p-1/topics/events": "https://pubsub.googleapis.com",
		"pubsub://projects/p-1/topics/events?region=us-east1": "https://us-east1-pubsub.googleapis.com"} {
		p, err := New(address)
		if err != nil {
			t.Fatal(err)
		}
		path, ok := strings.CutPrefix(p.url, endpoint)
		if !ok {
			t.Errorf("%s is sent to %s", address, p.url)
		}
		p.url = s.URL + path
		if err := p.Publish("", notes("a")...); err != nil || authorization != "Bearer t-1" {
			t.Errorf("authorization %q, %v", authorization, err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file+".not")
	if _, err := New("pubsub://projects/p-1/topics/events"); err == nil {
		t.Error("a node without credentials begins")
	}
}

func TestAddressesAreChecked(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
	for _, bad := range []string{"pubsub://", "pubsub://projects/p/topics", "pubsub://projects/p/topics/", "pubsub://projects/p/topics/a/b", "pubsub://projects/p/topics/../x",
		"pubsub://projects/p/subscriptions/s", "pubsub://u:S3CRET@projects/p/topics/t", "pubsub://projects/p/topics/events?region=x.example.com/", "pubsub://projects/p/topics/events?acks=0"} {
		if _, err := New(bad); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
