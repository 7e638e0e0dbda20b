// Package traces sends the traces of requests to an OpenTelemetry collector, as OTLP over HTTP in
// its binary form.
//
// A trace is one request. Its span has a child for each step of package request. The run step has
// a child for each append (ledger.append), which has separate children for the wait for a batch
// and for the commit:
//
//	POST /api/assurance/decisions
//	  serve  admit  decode
//	  run
//	    ledger.append
//	      ledger.wait
//	      ledger.commit
//
// A span contains the route, method, status, request id, and the public ids of the caller. It
// contains nothing that the caller sent, except that it continues the trace of a traceparent
// header. The library itself reads the other settings of OpenTelemetry: OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and OTEL_BSP_*.
//
// Traces are best effort: a batch that cannot be delivered is dropped, and no request waits for
// it.
package traces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	exportTimeout = 10 * time.Second // time to send one batch; the default of OTEL_EXPORTER_OTLP_TIMEOUT
	answerLimit   = 64 << 10         // bytes that are read of the collector's answer; its content is ignored
)

// Settings configures where traces are sent.
type Settings struct {
	Endpoint string // base URL of the collector, without /v1/traces
	Headers  string // name=value pairs, separated by commas; values are URL-encoded
	Version  string // version of this program
	Log      *slog.Logger
}

// Open returns a provider of tracers that sends spans in batches. The caller must shut it down,
// which sends the remaining spans.
func Open(ctx context.Context, s Settings) (*trace.TracerProvider, error) {
	c, err := newCollector(s)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, c)
	if err != nil {
		return nil, err
	}
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override this name.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "countersign"), attribute.String("service.version", s.Version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about)), nil
}

// collector sends batches of spans. The library's own client would link gRPC, which would slow
// down every start of the guard.
type collector struct {
	url     string
	headers http.Header
	client  http.Client
	log     *slog.Logger
	failing atomic.Bool // the last batch failed; used to log each change once
}

func newCollector(s Settings) (*collector, error) {
	at, err := url.Parse(s.Endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL, such as http://127.0.0.1:4318")
	}
	c := &collector{url: strings.TrimSuffix(s.Endpoint, "/") + "/v1/traces", headers: http.Header{}, log: s.Log, client: http.Client{
		Timeout:       exportTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for pair := range strings.SplitSeq(s.Headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, encoded, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(encoded))
		if !found || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs, separated by commas, with URL-encoded values")
		}
		c.headers.Set(strings.TrimSpace(name), value)
	}
	return c, nil
}

// Start does nothing, because an unreachable collector must not prevent the start of the service.
func (c *collector) Start(context.Context) error { return nil }

// Stop closes idle connections.
func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends a batch once.
func (c *collector) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	err := c.post(ctx, spans)
	if failing := err != nil; c.failing.Swap(failing) != failing {
		if failing {
			c.log.Warn("the collector does not accept traces, so they are dropped", "error", err)
		} else {
			c.log.Info("the collector accepts traces again")
		}
	}
	return nil // no error, because post's error was logged
}

// post sends spans as TracesData, which has the same wire format as the export request.
func (c *collector) post(ctx context.Context, spans []*otlp.ResourceSpans) error {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = c.headers.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := c.client.Do(r)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err // omit the URL, which may contain a password
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, answerLimit)) // read the answer, so that the connection can be reused
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %d", answer.StatusCode)
	}
	return nil
}
