package api

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/countersign/countersign/migrations"
)

// healthStatus is what GET /api/health answers.
type healthStatus struct {
	Status   string `json:"status" jsonschema:"enum=ok,enum=degraded"`
	Site     string `json:"site" jsonschema:"format=uri"`
	Name     string `json:"name"`
	Payments string `json:"payments" jsonschema:"enum=off,enum=dev,enum=facilitator"`
}

var health = &operation{
	id: "get_health", method: http.MethodGet, path: "/api/health",
	summary: "Whether the service works. Always 200; readiness is /readyz.",
	output:  reflect.TypeFor[healthStatus](),
	run: func(s *Server, c *call) (reply, error) {
		state := "ok"
		if len(s.Ready(c.request.Context())) > 0 {
			state = "degraded"
		}
		return reply{value: healthStatus{state, s.app.BaseURL, "Countersign", s.paymentMode()}}, nil
	},
}

// healthz says that the process runs.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	s.reply(w, r, &operation{success: http.StatusOK}, reply{value: map[string]string{"status": "ok"}})
}

// readyz says whether the node should get requests, and if not, what failed.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	failed := s.Ready(r.Context())
	status := http.StatusOK
	if len(failed) > 0 {
		status = http.StatusServiceUnavailable
	}
	said := map[string]any{"ready": len(failed) == 0, "failed": failed}
	if open := s.openPayments(r.Context()); open > 0 { // they need somebody's attention, and no other node
		said["openPayments"] = open
	}
	s.reply(w, r, &operation{}, reply{status: status, value: said})
}

const (
	readyTimeout = 2 * time.Second
	maxLag       = 10_000          // events a read model may be behind
	maxClockSkew = 2 * time.Second // between this node and the database
)

// Ready names what keeps the node from serving, sorted; none if all is well.
func (s *Server) Ready(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	failed := []string{}
	if s.draining.Load() {
		failed = append(failed, "draining")
	}
	if s.app.Signer == nil {
		failed = append(failed, "signer")
	}
	if s.app.Ledger.Stopped() != nil {
		failed = append(failed, "ledger")
	}
	var now time.Time
	var version uint
	err := s.app.Ledger.Pool().QueryRow(ctx, `select now(), (select version from public.schema_migrations limit 1)`).Scan(&now, &version)
	if err != nil {
		return append(failed, "database")
	}
	if version != migrations.Latest() {
		failed = append(failed, "migrations")
	}
	if skew := s.app.Clock().Sub(now); skew.Abs() > maxClockSkew {
		failed = append(failed, "clock")
	}
	lags, err := s.projections.Lags(ctx)
	for _, lag := range lags {
		if lag.Behind > maxLag || lag.Parked > 0 {
			failed = append(failed, "projections")
			break
		}
	}
	if err != nil {
		failed = append(failed, "projections")
	}
	slices.Sort(failed)
	return failed
}
