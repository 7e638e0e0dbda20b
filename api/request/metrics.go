package request

import (
	"context"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/countersign/countersign/api/mcp"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
	"github.com/countersign/countersign/projections/lag"
)

// Telemetry contains the metrics and traces of one server. No label contains a value that a caller
// sent.
type Telemetry struct {
	tracer   trace.Tracer
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	attempts *prometheus.HistogramVec
	stages   *prometheus.HistogramVec
	Panics   prometheus.Counter

	irreproducible prometheus.Counter

	// Counters of outcomes that this node produced. A stored answer that is sent again is not
	// counted.
	verdicts, Decisions, Receipts, Approvals, payments, deliveries *prometheus.CounterVec
}

// NewTelemetry returns the metrics of a ledger and its read models. A nil provider means no
// traces.
func NewTelemetry(l *ledger.Ledger, p *projections.Projections, traces trace.TracerProvider) *Telemetry {
	if traces == nil {
		traces = noop.NewTracerProvider()
	}
	m := &Telemetry{tracer: traces.Tracer(ledger.TracerName), registry: prometheus.NewRegistry()}
	m.requests = m.histogram("countersign_request_seconds", "Duration of requests, by route and status.",
		[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15}, "route", "status")
	m.attempts = m.histogram("countersign_settle_seconds", "Duration of attempts to settle a payment, by the state of the payment afterwards.",
		[]float64{.005, .05, .25, .5, 1, 2, 5, 10, 20, 30, 45}, "state")
	m.stages = m.histogram("countersign_stage_seconds", "Duration of each step of a request's path: serve, admit, decode, run.",
		[]float64{.00001, .00005, .0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 2.5}, "stage")
	m.verdicts = m.counters("countersign_verdicts_total", "Answers of services, by their result: risk, decision, verdict or recommendation.", "service", "verdict")
	m.Decisions = m.counters("countersign_decisions_total", "Decisions recorded.", "decision")
	m.Receipts = m.counters("countersign_receipts_total", "Receipts recorded, by conformance with their decision.", "conformance")
	m.Approvals = m.counters("countersign_approvals_total", "Approvals and rejections recorded.", "verdict")
	m.payments = m.counters("countersign_payments_total", "Attempts to settle a payment, by outcome: settled, refused, unknown, failed.", "outcome")
	m.deliveries = m.counters("countersign_webhook_attempts_total", "Attempts to send messages to webhooks, by the state of the message afterwards.", "state")
	m.Panics = prometheus.NewCounter(prometheus.CounterOpts{Name: "countersign_panics_total", Help: "Panics caught in handlers."})
	m.irreproducible = prometheus.NewCounter(prometheus.CounterOpts{Name: "countersign_irreproducible_calls_total",
		Help: "Settled calls whose output was different when it was recomputed."})
	m.registry.MustRegister(m.irreproducible, m.Panics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		lag.Collector{Projections: p}, openPayments{p}, waitingMessages{p}, sequencer{l.Stats()})
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "countersign_checkpoint_lag_seconds",
		Help: "Age in seconds of the oldest event that no checkpoint covers; 0 if this node signs no checkpoints."},
		func() float64 { return keeper.Lag(l).Seconds() }))
	m.selfCheck(l)
	m.archive(l)
	stats := l.Stats()
	for name, counter := range map[string]interface{ Load() int64 }{
		"events": &stats.Events, "batches": &stats.Batches, "fast_path": &stats.FastPath,
		"lock_path": &stats.LockPath, "lost_swaps": &stats.LostSwaps, "unknown_commits": &stats.Unknown,
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "countersign_ledger_" + name + "_total", Help: "Counter " + name + " of the ledger's sequencer on this node.",
		}, func() float64 { return float64(counter.Load()) }))
	}
	return m
}

// CheckpointKey registers a gauge that shows whether the node lacks the key to sign heads. The lag
// does not show it, because it is 0 without the key.
func (m *Telemetry) CheckpointKey(missing bool) {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "countersign_checkpoint_key_missing",
		Help: "1 if this node has no CHECKPOINT_KEY and so cannot notice that the database was restored to an older state."})
	if missing {
		gauge.Set(1)
	}
	m.registry.MustRegister(gauge)
}

// archive registers counters of this node's reads from the archive.
func (m *Telemetry) archive(l *ledger.Ledger) {
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "countersign_archive_reads_total", Help: "Objects of the archive that were read for a request of an old record."},
			func() float64 { reads, _ := archive.Of(l).Reads(); return float64(reads) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "countersign_archive_failures_total", Help: "Objects of the archive that could not be read; the requests were answered with 503."},
			func() float64 { _, failures := archive.Of(l).Reads(); return float64(failures) }),
	)
}

// selfCheck registers gauges with the result of the ledger's daily self-check.
func (m *Telemetry) selfCheck(l *ledger.Ledger) {
	for name, of := range map[string]struct {
		help  string
		value func(ledger.SelfCheck) float64
	}{
		"timestamp_seconds": {"Unix time of the ledger's last self-check; 0 if there was none since the start.", func(c ledger.SelfCheck) float64 {
			if c.At.IsZero() {
				return 0
			}
			return float64(c.At.Unix())
		}},
		"failed":  {"1 if the ledger's last self-check found an error or could not be completed.", func(c ledger.SelfCheck) float64 { return map[bool]float64{true: 1}[c.Failed()] }},
		"events":  {"Events that the last self-check verified.", func(c ledger.SelfCheck) float64 { return float64(c.Events) }},
		"seconds": {"Duration of the last self-check in seconds.", func(c ledger.SelfCheck) float64 { return c.Took.Seconds() }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "countersign_verification_" + name, Help: of.help},
			func() float64 { return of.value(l.LastCheck()) }))
	}
}

func (m *Telemetry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Telemetry) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// Answered counts a service's answer by its result: the first of the members decision, verdict,
// recommendation, risk and riskLevel that the answer has. Their values are enumerations.
func (m *Telemetry) Answered(service string, body []byte) {
	for _, member := range []string{"decision", "verdict", "recommendation", "risk", "riskLevel"} {
		if said := memberOf(body, member); said != "" {
			m.verdicts.WithLabelValues(service, said).Inc()
			return
		}
	}
}

// Recorded counts a new signed record by the value of one of its members. It returns its
// arguments, so that a call can be wrapped in it.
func Recorded(counter *prometheus.CounterVec, member string, r decisions.Recorded, err error) (decisions.Recorded, error) {
	if err == nil && !r.Replayed {
		counter.WithLabelValues(memberOf(r.Envelope.Record, member)).Inc()
	}
	return r, err
}

// memberOf returns the text of a member of a canonical JSON object, or "".
func memberOf(canonical []byte, name string) (text string) {
	if start, end, found := canon.Find(canonical, name); found {
		_ = json.Unmarshal(canonical[start:end], &text)
	}
	return text
}

// sequencer exports histograms of the ledger's sequencer: the size of batches, and the time of
// waits and commits.
type sequencer struct{ stats *ledger.Stats }

var (
	batchMetric  = prometheus.NewDesc("countersign_ledger_batch_events", "Number of events in each committed batch.", nil, nil)
	waitMetric   = prometheus.NewDesc("countersign_ledger_wait_seconds", "Time that an append waited for its batch.", nil, nil)
	commitMetric = prometheus.NewDesc("countersign_ledger_commit_seconds", "Duration of the commit of a batch, including failed commits.", nil, nil)
)

// Describe implements prometheus.Collector.
func (sequencer) Describe(ch chan<- *prometheus.Desc) {
	ch <- batchMetric
	ch <- waitMetric
	ch <- commitMetric
}

// Collect implements prometheus.Collector.
func (s sequencer) Collect(ch chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, d *ledger.Distribution, scale, least, most float64) {
		count, sum, atMost := d.Read(scale)
		for bound := range atMost {
			if bound < least || bound > most {
				delete(atMost, bound)
			}
		}
		ch <- prometheus.MustNewConstHistogram(desc, count, sum, atMost)
	}
	const microsecond, longest = 1e-6, 20
	send(batchMetric, &s.stats.BatchEvents, 1, 1, 4096)
	send(waitMetric, &s.stats.Waits, microsecond, 60*microsecond, longest)
	send(commitMetric, &s.stats.Commits, microsecond, 60*microsecond, longest)
}

// waitingMessages exports the number of messages that webhooks have not received.
type waitingMessages struct{ p *projections.Projections }

var (
	messagesMetric = prometheus.NewDesc("countersign_webhook_messages", "Messages to webhooks, by state: due, or given up in the last 30 days (dead).", []string{"state"}, nil)
	messageMetric  = prometheus.NewDesc("countersign_webhook_oldest_due_seconds", "Seconds since the oldest message that can be sent to a webhook became due.", nil, nil)
)

// Describe implements prometheus.Collector.
func (waitingMessages) Describe(ch chan<- *prometheus.Desc) {
	ch <- messagesMetric
	ch <- messageMetric
}

// Collect implements prometheus.Collector.
func (w waitingMessages) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	due, dead, oldest, err := w.p.WaitingMessages(ctx)
	if err != nil {
		return // other metrics show that the database is down
	}
	ch <- prometheus.MustNewConstMetric(messagesMetric, prometheus.GaugeValue, float64(due), "due")
	ch <- prometheus.MustNewConstMetric(messagesMetric, prometheus.GaugeValue, float64(dead), "dead")
	ch <- prometheus.MustNewConstMetric(messageMetric, prometheus.GaugeValue, oldest.Seconds())
}

// stage records the duration of one step of a request.
func (m *Telemetry) stage(name string, d time.Duration) {
	m.stages.WithLabelValues(name).Observe(d.Seconds())
}

func (m *Telemetry) observe(route string, status int, d time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(d.Seconds())
}

// Delivered counts an attempt to send a message to a webhook, by the resulting state.
func (m *Telemetry) Delivered(state string) { m.deliveries.WithLabelValues(state).Inc() }

// Settled counts an attempt to settle a payment, by the resulting state.
func (m *Telemetry) Settled(state string, took time.Duration) {
	m.attempts.WithLabelValues(state).Observe(took.Seconds())
	m.payments.WithLabelValues(state).Inc()
}

// Irreproducible counts a settled call whose output differs when it is computed again.
func (m *Telemetry) Irreproducible() { m.irreproducible.Inc() }

// openPayments exports the payments that are not settled yet.
type openPayments struct{ p *projections.Projections }

var (
	openMetric   = prometheus.NewDesc("countersign_open_payments", "Payments that are neither settled nor refused, by state.", []string{"state"}, nil)
	oldestMetric = prometheus.NewDesc("countersign_open_payment_age_seconds", "Age in seconds of the oldest payment that is neither settled nor refused.", nil, nil)
)

// Describe implements prometheus.Collector.
func (openPayments) Describe(ch chan<- *prometheus.Desc) { ch <- openMetric; ch <- oldestMetric }

// Collect implements prometheus.Collector.
func (o openPayments) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	open, err := o.p.PaymentSummary(ctx)
	if err != nil {
		return // other metrics show that the database is down
	}
	ch <- prometheus.MustNewConstMetric(openMetric, prometheus.GaugeValue, float64(open.Claimed), "claimed")
	ch <- prometheus.MustNewConstMetric(openMetric, prometheus.GaugeValue, float64(open.Unknown), "unknown")
	age := 0.0
	if !open.Oldest.IsZero() {
		age = time.Since(open.Oldest).Seconds()
	}
	ch <- prometheus.MustNewConstMetric(oldestMetric, prometheus.GaugeValue, age)
}

// Internal handles the second listener: metrics and profiles for the operator. Profiles contain
// parts of requests, so they are served only to this machine, even if the listener has a public address.
// Requests that a local proxy forwards, and pages that use DNS rebinding, get 404.
func (m *Telemetry) Internal() http.Handler {
	h := http.NewServeMux()
	h.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile,
		"symbol": pprof.Symbol, "trace": pprof.Trace} {
		h.HandleFunc("/debug/pprof/"+path, func(w http.ResponseWriter, r *http.Request) {
			peer, err := netip.ParseAddrPort(r.RemoteAddr)
			passedOn := r.Header.Get("X-Forwarded-For")+r.Header.Get("Forwarded")+r.Header.Get("Via") != ""
			if err != nil || !peer.Addr().Unmap().IsLoopback() || passedOn || !mcp.IsLoopback(mcp.Hostname(r.Host)) {
				http.NotFound(w, r)
				return
			}
			profile(w, r)
		})
	}
	return h
}
