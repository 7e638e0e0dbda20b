package api

import (
	"context"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/projections"
)

// metrics of one server. No label holds anything a caller sent.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	panics   prometheus.Counter
	attempts *prometheus.HistogramVec

	irreproducible prometheus.Counter
	deliveries     *prometheus.CounterVec
}

func newMetrics(l *ledger.Ledger, p *projections.Projections) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_request_seconds", Help: "Duration of requests by route and status.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15},
		}, []string{"route", "status"}),
		attempts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_settle_seconds", Help: "Duration of attempts to settle a payment by the state afterwards.",
			Buckets: []float64{.005, .05, .25, .5, 1, 2, 5, 10, 20, 30, 45},
		}, []string{"state"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{Name: "countersign_panics_total", Help: "Panics caught in handlers."}),
	}
	m.irreproducible = prometheus.NewCounter(prometheus.CounterOpts{Name: "countersign_irreproducible_calls_total",
		Help: "Settled calls that gave another output when they were recomputed."})
	m.deliveries = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "countersign_webhook_attempts_total",
		Help: "Attempts to send messages to webhooks, by the state of the message afterwards."}, []string{"state"})
	m.registry.MustRegister(m.irreproducible, m.deliveries, m.requests, m.panics, m.attempts, collectors.NewGoCollector(), lags{p}, openPayments{p})
	stats := l.Stats()
	for name, counter := range map[string]interface{ Load() int64 }{
		"events": &stats.Events, "batches": &stats.Batches, "fast_path": &stats.FastPath,
		"lock_path": &stats.LockPath, "lost_swaps": &stats.LostSwaps, "unknown_commits": &stats.Unknown,
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "countersign_ledger_" + name + "_total", Help: "Of the ledger's sequencer on this node: " + name + ".",
		}, func() float64 { return float64(counter.Load()) }))
	}
	return m
}

func (m *metrics) observe(route string, status int, d time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(d.Seconds())
}

func (m *metrics) delivered(state string) { m.deliveries.WithLabelValues(state).Inc() }

func (m *metrics) settled(state string, d time.Duration) {
	m.attempts.WithLabelValues(state).Observe(d.Seconds())
}

// openPayments collects what is not settled yet.
type openPayments struct{ p *projections.Projections }

var (
	openMetric   = prometheus.NewDesc("countersign_open_payments", "Payments whose end is not known.", []string{"state"}, nil)
	oldestMetric = prometheus.NewDesc("countersign_open_payment_age_seconds", "Age of the oldest payment whose end is not known.", nil, nil)
)

// Describe implements prometheus.Collector.
func (openPayments) Describe(ch chan<- *prometheus.Desc) { ch <- openMetric; ch <- oldestMetric }

// Collect implements prometheus.Collector.
func (o openPayments) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	open, err := o.p.PaymentSummary(ctx)
	if err != nil {
		return // the database is down, as other metrics show
	}
	ch <- prometheus.MustNewConstMetric(openMetric, prometheus.GaugeValue, float64(open.Claimed), "claimed")
	ch <- prometheus.MustNewConstMetric(openMetric, prometheus.GaugeValue, float64(open.Unknown), "unknown")
	age := 0.0
	if !open.Oldest.IsZero() {
		age = time.Since(open.Oldest).Seconds()
	}
	ch <- prometheus.MustNewConstMetric(oldestMetric, prometheus.GaugeValue, age)
}

// lags collects how far each read model is behind.
type lags struct{ p *projections.Projections }

var (
	behindMetric = prometheus.NewDesc("countersign_projection_behind_events", "Events a read model has still to read.", []string{"projection"}, nil)
	parkedMetric = prometheus.NewDesc("countersign_projection_parked_events", "Events a read model could not apply.", []string{"projection"}, nil)
)

// Describe implements prometheus.Collector.
func (lags) Describe(ch chan<- *prometheus.Desc) { ch <- behindMetric; ch <- parkedMetric }

// Collect implements prometheus.Collector.
func (l lags) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	all, err := l.p.Lags(ctx)
	if err != nil {
		return // the database is down, as other metrics show
	}
	for name, lag := range all {
		ch <- prometheus.MustNewConstMetric(behindMetric, prometheus.GaugeValue, float64(lag.Behind), name)
		ch <- prometheus.MustNewConstMetric(parkedMetric, prometheus.GaugeValue, float64(lag.Parked), name)
	}
}

// Internal is the second listener's: metrics and profiles, for operators only.
// Profiles hold parts of what was asked for, so they are for this machine alone,
// wherever the listener is.
func (s *Server) Internal() http.Handler {
	h := http.NewServeMux()
	h.Handle("/metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile,
		"symbol": pprof.Symbol, "trace": pprof.Trace} {
		h.HandleFunc("/debug/pprof/"+path, func(w http.ResponseWriter, r *http.Request) {
			if peer, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !peer.Addr().Unmap().IsLoopback() {
				http.NotFound(w, r)
				return
			}
			profile(w, r)
		})
	}
	return h
}
