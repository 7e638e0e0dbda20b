// Package pubsub publishes to Google Cloud Pub/Sub: a Watermill publisher for a projection of the
// ledger (projections.Sink). Each event is one message of the topic in the URL. The topic must
// exist:
//
//	pubsub://projects/PROJECT/topics/TOPIC?region=us-east1
//
// It uses the default credentials of the platform. If the URL has a region, messages go to the
// endpoint of that region, wherever the node runs: Pub/Sub keeps the order of messages only within
// one region. If PUBSUB_EMULATOR_HOST=host:port is set, messages go to that emulator without
// credentials.
//
// A message is a CloudEvent in structured mode, with its attributes repeated as message attributes
// ce-NAME. Its ordering key is the tenant: a subscription with ordering gets the events of one
// tenant in order. A message that is published again has the same ce-id.
//
// The package calls the documented method topics.publish over HTTP, because Google's client
// library would add gRPC and nineteen modules.
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
	patience    = 5 * time.Second // time limit of an answer
	requestMost = 1000            // largest number of messages per request that Pub/Sub allows
	answerMost  = 1 << 20         // largest part of an answer that is read, in bytes
	scope       = "https://www.googleapis.com/auth/pubsub"
)

// Publisher publishes to one topic. Publish returns when Pub/Sub has assigned an id to every
// message.
type Publisher struct {
	client *http.Client
	url    string
}

// address matches the URLs that New accepts. Project, topic and region may contain only the
// characters that Google allows.
var address = regexp.MustCompile(`^pubsub://(projects/[a-z0-9][a-z0-9.:-]+/topics/[A-Za-z][A-Za-z0-9._~+-]+)(?:\?region=([a-z0-9-]+))?$`)

// New returns a publisher for a URL in the format of the package comment. Pub/Sub may be
// unreachable at this time, but the credentials must exist.
func New(to string) (*Publisher, error) {
	parts := address.FindStringSubmatch(to)
	if parts == nil {
		return nil, errors.New("the URL must look like pubsub://projects/PROJECT/topics/TOPIC or pubsub://projects/PROJECT/topics/TOPIC?region=us-east1")
	}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	endpoint := "https://pubsub.googleapis.com"
	if parts[2] != "" {
		endpoint = "https://" + parts[2] + "-pubsub.googleapis.com"
	}
	if emulator := os.Getenv("PUBSUB_EMULATOR_HOST"); emulator != "" {
		endpoint = "http://" + emulator
	} else {
		// The credentials keep this context and use its HTTP client for every later token.
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

// pubsubMessage is a message as the API reference defines it. The types of the request and the
// answer follow the same reference.
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

// Publish implements message.Publisher. It publishes to the topic in the URL, with at least one
// call per tenant, because the messages of a call must have the same ordering key.
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

// tooLarge matches the error text for a request above 10 MB. The error code does not show this,
// because every invalid request has the same code.
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
		return fmt.Errorf("the answer has ids for %d of %d messages", len(a.MessageIDs), len(messages))
	}
	return nil
}

// Close implements message.Publisher.
func (p *Publisher) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
