// Package pubsub publishes to Google Cloud Pub/Sub: a Watermill publisher for a projection of
// the ledger (projections.Sink). Each event is one message of the topic that the URL names,
// which must exist:
//
//	pubsub://projects/PROJECT/topics/TOPIC?region=us-east1
//
// It uses the platform's default credentials. If the URL names a region, messages go to the
// endpoint of that region wherever the node is, because Pub/Sub keeps the order of messages
// only within one region. PUBSUB_EMULATOR_HOST=host:port sends to an emulator, without
// credentials.
//
// A message is a CloudEvent in structured form, with its attributes repeated as message
// attributes ce-NAME. Its ordering key is the tenant: ordered subscriptions get the events of
// one tenant in order. A message that is published again has the same ce-id.
//
// The package calls the documented method topics.publish over HTTP, because Google's client
// would add gRPC and nineteen modules.
package pubsub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/countersign/countersign/projections"
)

const (
	patience    = 5 * time.Second // wait for an answer
	requestMost = 1000            // messages per request, from the quotas of Pub/Sub
	answerMost  = 1 << 20         // bytes read of an answer
	scope       = "https://www.googleapis.com/auth/pubsub"
)

// Publisher publishes to one topic. Publish returns when Pub/Sub has assigned an id to every
// message.
type Publisher struct {
	client *http.Client
	url    string
}

// address matches the URLs that New accepts, with the characters that Google allows in a
// project, topic and region.
var address = regexp.MustCompile(`^pubsub://(projects/[a-z0-9][a-z0-9.:-]+/topics/[A-Za-z][A-Za-z0-9._~+-]+)(?:\?region=([a-z0-9-]+))?$`)

// New returns a publisher for a URL as above. Pub/Sub need not be reachable yet, but the
// credentials must exist.
func New(to string) (*Publisher, error) {
	parts := address.FindStringSubmatch(to)
	if parts == nil {
		return nil, errors.New("the URL must be such as pubsub://projects/PROJECT/topics/TOPIC, with ?region=us-east1 for a region")
	}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	endpoint := "https://pubsub.googleapis.com"
	if parts[2] != "" {
		endpoint = "https://" + parts[2] + "-pubsub.googleapis.com"
	}
	if emulator := os.Getenv("PUBSUB_EMULATOR_HOST"); emulator != "" {
		endpoint = "http://" + emulator
	} else {
		// This context's client also fetches every later token.
		credentials, err := google.FindDefaultCredentials(context.WithValue(context.Background(), oauth2.HTTPClient, client), scope)
		if err != nil {
			return nil, fmt.Errorf("find the default credentials of Google Cloud: %w", err)
		}
		authorized := *client
		authorized.Transport = &oauth2.Transport{Source: credentials.TokenSource}
		client = &authorized
	}
	return &Publisher{client, endpoint + "/v1/" + parts[1] + ":publish"}, nil
}

// pubsubMessage and the bodies of request and answer follow the API reference.
type pubsubMessage struct {
	Data        []byte            `json:"data"`
	Attributes  map[string]string `json:"attributes"`
	OrderingKey string            `json:"orderingKey"`
}

type request struct {
	Messages []pubsubMessage `json:"messages"`
}

type answer struct {
	MessageIDs []string `json:"messageIds"`
	Error      struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	} `json:"error"`
}

// Publish implements message.Publisher. It publishes to the topic of the URL. Pub/Sub allows
// one ordering key per call.
func (p *Publisher) Publish(_ string, messages ...*message.Message) error {
	var keys []string
	byKey := map[string][]pubsubMessage{}
	for _, m := range messages {
		key := m.Metadata.Get("ce-partitionkey")
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], pubsubMessage{m.Payload, m.Metadata, key})
	}
	for _, key := range keys {
		for together := range slices.Chunk(byKey[key], requestMost) {
			if err := p.call(messages[0].Context(), together); err != nil {
				return fmt.Errorf("publish to Pub/Sub: %w", err)
			}
		}
	}
	return nil
}

// tooLarge matches the error text for a request above 10 MB. The error code is that of every
// invalid request.
var tooLarge = regexp.MustCompile(`(?i)\b(too large|exceeds the limit|exceeds maximum size)\b`)

func (p *Publisher) call(ctx context.Context, messages []pubsubMessage) error {
	body, err := json.Marshal(request{messages})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, answerMost))
	if err != nil {
		return err
	}
	var a answer
	err = json.Unmarshal(body, &a)
	switch {
	case response.StatusCode == http.StatusRequestEntityTooLarge, a.Error.Status == "INVALID_ARGUMENT" && tooLarge.MatchString(a.Error.Message):
		return fmt.Errorf("%w: answer %d: %s", projections.ErrTooLarge, response.StatusCode, a.Error.Message)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("answer %d %s: %s", response.StatusCode, a.Error.Status, a.Error.Message)
	case err != nil:
		return fmt.Errorf("read the answer: %w", err)
	case len(a.MessageIDs) != len(messages):
		return fmt.Errorf("%d of %d messages have an id", len(a.MessageIDs), len(messages))
	}
	return nil
}

// Close implements message.Publisher.
func (p *Publisher) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
