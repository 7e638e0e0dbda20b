package api

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/migrations"
)

// healthStatus is the answer of GET /api/health.
type healthStatus struct {
	Status   string `json:"status" jsonschema:"enum=ok,enum=degraded"`
	Site     string `json:"site" jsonschema:"format=uri"`
	Name     string `json:"name"`
	Payments string `json:"payments" jsonschema:"enum=off,enum=dev,enum=facilitator"`
}

var health = &op.Operation{
	ID: "get_health", Method: http.MethodGet, Path: op.HealthPath,
	Summary: "The state of the service. Always 200; readiness is /readyz.",
	Output:  reflect.TypeFor[healthStatus](), Unlimited: true,
}

func (s *Server) health(c *op.Call) (op.Reply, error) {
	state := "ok"
	if r := s.Ready(c.Request.Context()); len(r.Failed)+len(r.Degraded) > 0 {
		state = "degraded"
	}
	return op.Reply{Value: healthStatus{state, s.app.BaseURL, op.Name, payments.Mode(s.app.Settler)}}, nil
}

// healthz answers 200 while the process runs.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	s.path.Answers.Reply(w, r, &op.Operation{Success: http.StatusOK}, op.Reply{Value: map[string]string{"status": "ok"}})
}

// Readiness lists the problems that prevent this node from serving (Failed), and other problems
// (Degraded). Both lists are sorted. A degraded node still gets requests, because most of the
// other problems affect every node alike.
type Readiness struct{ Failed, Degraded []string }

// readyz answers whether the node should get requests, and otherwise what failed.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ready := s.Ready(r.Context())
	status := http.StatusOK
	if len(ready.Failed) > 0 {
		status = http.StatusServiceUnavailable
	}
	said := map[string]any{"ready": len(ready.Failed) == 0, "failed": ready.Failed, "degraded": ready.Degraded}
	if says := s.app.Ledger.Condition().Sentence; says != "" {
		said["ledger"] = says
	}
	if open := s.openPayments(r.Context()); open > 0 { // information for an operator; it does not affect readiness, because another node would have it, too
		said["openPayments"] = open
	}
	if problem := s.facilitatorProblem(); problem != "" {
		said["facilitator"] = problem
	}
	if s.noHeads {
		said["checkpoints"] = "CHECKPOINT_KEY is not set: the service cannot notice that the database was restored to an older state"
	}
	if problem := keeper.Problem(s.app.Ledger); problem != "" {
		said["checkpoints"] = problem
	}
	if s.durability == "provider" {
		said["durability"] = s.durability
	}
	s.path.Answers.Reply(w, r, &op.Operation{}, op.Reply{Status: status, Value: said})
}

const (
	readyTimeout = 2 * time.Second
	maxLag       = 10_000          // largest number of events that a read model may be behind
	maxClockSkew = 2 * time.Second // largest difference between the clocks of this node and the database

	maxCheckpointLag = 10 * time.Second // longest time without a signed head for an event; usually 1 s
)

// Ready lists what prevents the node from serving: draining, signer, database, migrations, ledger
// (it cannot append). It also lists what is degraded:
//
//	clock         differs from the database's
//	checkpoints   heads are not yet signed, are no longer signed, or cannot be signed without a key
//	verification  the ledger was altered or could not be read; countersign verify shows details
//	facilitator   does not support the configured network, or does not answer
//	projections   a read model is behind, is being rebuilt, or has parked events; its queries answer 503
func (s *Server) Ready(ctx context.Context) Readiness {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	r := Readiness{Failed: []string{}, Degraded: []string{}}
	if s.draining.Load() {
		r.Failed = append(r.Failed, "draining")
	}
	if s.app.Signer == nil {
		r.Failed = append(r.Failed, "signer")
	}
	if s.facilitatorProblem() != "" {
		r.Degraded = append(r.Degraded, "facilitator")
	}
	s.readyDatabase(ctx, &r)
	slices.Sort(r.Failed)
	slices.Sort(r.Degraded)
	return r
}

func (s *Server) readyDatabase(ctx context.Context, r *Readiness) {
	var now time.Time
	var version uint
	asked := s.app.Clock()
	err := s.app.Ledger.Pool().QueryRow(ctx, `select now(), (select version from public.schema_migrations limit 1)`).Scan(&now, &version)
	if err != nil {
		r.Failed = append(r.Failed, "database")
		return
	}
	// The database's time must be between the start and the end of the request, give or take
	// maxClockSkew. Both ends are compared, so that a pause of either machine during the request
	// is not reported as a wrong clock.
	if answered := s.app.Clock(); now.Before(asked.Add(-maxClockSkew)) || now.After(answered.Add(maxClockSkew)) {
		r.Degraded = append(r.Degraded, "clock")
	}
	if err := s.app.Ledger.Failing(ctx); err != nil {
		s.path.Answers.Log.Warn("this node is not ready, because it cannot append to the ledger", "error", err)
		r.Failed = append(r.Failed, "ledger")
	}
	if version != migrations.Latest() {
		r.Failed = append(r.Failed, "migrations")
	}
	if s.app.Ledger.LastCheck().Failed() || s.app.Ledger.Condition().Word == ledger.Altered {
		r.Degraded = append(r.Degraded, "verification")
	}
	if s.noHeads || keeper.Problem(s.app.Ledger) != "" || keeper.Beginning(s.app.Ledger) || keeper.Lag(s.app.Ledger) > maxCheckpointLag {
		r.Degraded = append(r.Degraded, "checkpoints")
	}
	lags, err := s.projections.Lags(ctx)
	wrong := err != nil
	for _, lag := range lags {
		wrong = wrong || lag.Behind > maxLag || lag.Parked > 0 || lag.Rebuilding
	}
	if wrong {
		r.Degraded = append(r.Degraded, "projections")
	}
}

// facilitatorProblem explains why the facilitator cannot settle payments. It returns "" if it can,
// or if there is none.
func (s *Server) facilitatorProblem() string {
	if f, asks := s.app.Settler.(interface{ Problem() string }); asks {
		return f.Problem()
	}
	return ""
}

// openPayments counts the payments whose outcome is unknown.
func (s *Server) openPayments(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	summary, err := s.projections.PaymentSummary(ctx)
	if err != nil {
		return 0 // the check of the database reports this failure
	}
	return summary.Claimed + summary.Unknown
}
