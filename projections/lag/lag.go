// Package lag exports Prometheus metrics about how far read models and sinks are behind the
// ledger. The service and the fanout program use the same names, so that one alert rule covers
// both.
package lag

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/projections"
)

var (
	behind = prometheus.NewDesc("countersign_projection_behind_events", "Events that a read model or a sink has not read yet.", []string{"projection"}, nil)
	parked = prometheus.NewDesc("countersign_projection_parked_events", "Events that a read model could not apply.", []string{"projection"}, nil)
)

// Collector collects the lag of every projection of a node.
type Collector struct{ Projections *projections.Projections }

// Describe implements prometheus.Collector.
func (Collector) Describe(ch chan<- *prometheus.Desc) { ch <- behind; ch <- parked }

// Collect implements prometheus.Collector. It collects nothing while the database is unreachable.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	all, err := c.Projections.Lags(ctx)
	if err != nil {
		return
	}
	for name, l := range all {
		ch <- prometheus.MustNewConstMetric(behind, prometheus.GaugeValue, float64(l.Behind), name)
		ch <- prometheus.MustNewConstMetric(parked, prometheus.GaugeValue, float64(l.Parked), name)
	}
}
