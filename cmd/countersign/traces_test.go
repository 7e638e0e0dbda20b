package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spans collects the trace data that a collector receives.
type spans struct {
	mu       sync.Mutex
	received []*otlp.ResourceSpans
	wrong    []string
}

func (c *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var data otlp.TracesData
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &data)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Api-Key") != "s=1" {
		c.wrong = append(c.wrong, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header, " ", err))
	}
	c.received = append(c.received, data.ResourceSpans...)
}

// The collector receives spans for each request, from its arrival to the commit of its events, as
// part of the caller's trace. They contain no data that the caller sent.
func TestTracesFromRequestToAppend(t *testing.T) {
	t.Parallel()
	var collected spans
	collector := httptest.NewServer(&collected)
	t.Cleanup(collector.Close)
	s := serveIn(t, dataDir(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=s%3D1", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test")
	key := issueKeys(t, s.base, 1)[0]
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+quickPath, strings.NewReader(`{"command":"rm -rf /srv/canary"}`))
	if err != nil {
		t.Fatal(err)
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", key)
	r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	answer.Body.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // on SIGTERM the service sends the remaining spans
	if err := s.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(collected.wrong) > 0 {
		t.Errorf("the collector was sent %s", collected.wrong)
	}
	parents, service := ofTrace(&collected, trace)
	for name, want := range map[string]string{
		"POST /api/agent-services/action-safety/quick": "00f067aa0ba902b7",
		"serve":         "POST /api/agent-services/action-safety/quick",
		"admit":         "POST /api/agent-services/action-safety/quick",
		"decode":        "POST /api/agent-services/action-safety/quick",
		"run":           "POST /api/agent-services/action-safety/quick",
		"ledger.append": "run", "ledger.wait": "ledger.append", "ledger.commit": "ledger.append",
	} {
		if parents[name] != want {
			t.Errorf("span %s is below %q, want %q; there are %v", name, parents[name], want, parents)
		}
	}
	if !strings.Contains(service, "countersign") || !strings.Contains(service, "deployment.environment") {
		t.Errorf("the service calls itself %s", service)
	}
	if text := fmt.Sprint(collected.received); strings.Contains(text, "canary") || strings.Contains(text, key) {
		t.Errorf("spans hold what the caller sent: %s", text)
	}
}

// ofTrace returns the parent of each span of a trace, by the span's name; for a parent outside our
// process, its id. It also returns the service name.
func ofTrace(c *spans, trace string) (parents map[string]string, service string) {
	parents = map[string]string{}
	names, above := map[string]string{}, map[string]string{}
	for _, from := range c.received {
		service = fmt.Sprint(from.Resource)
		for _, scope := range from.ScopeSpans {
			for _, span := range scope.Spans {
				if id := fmt.Sprintf("%x", span.SpanId); fmt.Sprintf("%x", span.TraceId) == trace {
					names[id], above[id] = span.Name, fmt.Sprintf("%x", span.ParentSpanId)
				}
			}
		}
	}
	for id, name := range names {
		if parents[name] = above[id]; names[above[id]] != "" {
			parents[name] = names[above[id]]
		}
	}
	return parents, service
}

// An unreachable collector affects neither requests nor the start. An invalid collector URL
// prevents the start.
func TestTracesGoNowhere(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := serveIn(t, dir, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1")
	issueKeys(t, s.base, 1)
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	cmd := program("serve", "--listen", "127.0.0.1:0", "--data", dir)
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318")
	if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(said), "OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL") {
		t.Errorf("an address without a scheme: %v %s", err, said)
	}
}
