package api_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
)

// metric returns the value of one line of /metrics.
func (s *site) metric(t *testing.T, line string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	s.server.Internal().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for text := range strings.Lines(answer.Body.String()) {
		if value, ok := strings.CutPrefix(text, line+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "no such metric"
}

// TestOutcomesAreCounted checks that new answers are counted by outcome, and that repeated answers
// are not.
func TestOutcomesAreCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	for range 2 {
		n.decide(t, decisionBody("k1", weather))
	}
	d := n.decide(t, decisionBody("k2", strings.Replace(weather, `"network":"base",`, "", 1))).decision(t)
	n.send(t, "/api/assurance/receipts", fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled"}`,
		d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash)).want(t, 201, "")
	free, err := s.app.IssueFreeKey(t.Context(), "eve@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b := s.browser(t)
		b.post("/api/agent-services/action-safety/quick", `{"command":"git push --force origin main"}`, "X-API-Key", free.APIKey, "Idempotency-Key", "one").want(t, 200, "")
	}
	events := s.metric(t, "countersign_ledger_events_total")
	for line, want := range map[string]string{
		`countersign_decisions_total{decision="allow"}`:                                   "1",
		`countersign_decisions_total{decision="needs_review"}`:                            "1",
		`countersign_receipts_total{conformance="violation"}`:                             "1",
		`countersign_verdicts_total{service="action-safety/quick",verdict="critical"}`:    "1",
		`countersign_ledger_batch_events_sum`:                                             events,
		`countersign_ledger_wait_seconds_bucket{le="+Inf"}`:                               s.metric(t, "countersign_ledger_wait_seconds_count"),
		`countersign_ledger_commit_seconds_count`:                                         s.metric(t, "countersign_ledger_batches_total"),
		`countersign_projection_parked_events{projection="webhooks"}`:                     "0",
		`countersign_webhook_messages{state="due"}`:                                       "0",
		`countersign_checkpoint_lag_seconds`:                                              "0",
		`countersign_request_seconds_count{route="/api/assurance/receipts",status="201"}`: "1",
	} {
		if got := s.metric(t, line); got != want {
			t.Errorf("%s is %s, want %s", line, got, want)
		}
	}
	// The log line must name the unit of the duration, because a reader would otherwise have to
	// guess it.
	if line := regexp.MustCompile(`"msg":"request".*"durationMs":\d+(\.\d+)?[,}]`); !line.MatchString(s.logs.String()) {
		t.Errorf("no duration with its unit in the log")
	}
}

// TestAlertsAndDashboardNameMetricsThatAreThere checks that alerts and the dashboard use only
// metrics that exist. A rule with an unknown name never fires.
func TestAlertsAndDashboardNameMetricsThatAreThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	answer := httptest.NewRecorder()
	s.server.Internal().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	there := answer.Body.String()
	// These metrics have no line before the first count. The last one is a metric of cmd/fanout.
	for _, name := range []string{"countersign_request_seconds", "countersign_verdicts_total", "countersign_decisions_total", "countersign_receipts_total",
		"countersign_approvals_total", "countersign_payments_total", "countersign_webhook_attempts_total", "countersign_fanout_without_data_total"} {
		there += "# TYPE " + name + " counter\n"
	}
	files, err := filepath.Glob("../.deploy/monitoring/*.*")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bcountersign_[a-z_]+`).FindAllString(string(text), -1) {
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
			if !strings.Contains(there, "# TYPE "+base+" ") && !strings.Contains(there, "# TYPE "+name+" ") {
				t.Errorf("%s asks for %s, which is not exported", filepath.Base(file), name)
			}
		}
	}
}
