package serve

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/projections"
)

// The service starts without waiting for the read models. In this test they cannot advance,
// because another session has locked their checkpoints.
func TestServeStartsWhileReadModelsAreBehind(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	quiet := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(t.Context(), db.URL, ledger.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	p, err := projections.Start(t.Context(), l, quiet)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	_, err = l.Append(t.Context(), ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{{
		Stream: "other", Expect: ledger.New(), ID: "evt_1", Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: "system", Payload: []byte(`{}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	other, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	if _, err := other.Exec(t.Context(), `begin; select from projection_checkpoint for update`); err != nil {
		t.Fatal(err)
	}

	c := Command{Ledger: setting.Ledger{DatabaseURL: db.URL, Durability: "provider"}, Service: setting.Service{Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", RateLimit: "on"},
		X402: setting.X402{X402Mode: "dev", X402Remote: true}}
	s, err := c.start(t.Context(), quiet, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close(context.WithoutCancel(t.Context()))
	answer, err := http.Get("http://" + s.address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("health: %d", answer.StatusCode)
	}
}
