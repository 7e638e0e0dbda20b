package rig

import (
	"context"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/projections"
)

// Service is the complete service with its own database, on a loopback address.
type Service struct {
	Scratch     *Scratch
	Base        string
	App         *commands.App
	Projections *projections.Projections
	Close       func()
}

// StartService starts a service on a new scratch database. Close ends the service and the
// database.
func StartService(ctx context.Context) (*Service, error) {
	s, err := NewScratch(ctx)
	if err != nil {
		return nil, err
	}
	service, err := Serve(ctx, s)
	if err != nil {
		s.Close()
		return nil, err
	}
	return service, nil
}

// Serve starts a service on this database. Close ends the service and the database.
func Serve(ctx context.Context, s *Scratch) (*Service, error) {
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300) // the same value as in countersign serve
	}
	l, err := ledger.Open(ctx, s.App, ledger.Options{Log: log})
	if err != nil {
		return nil, err
	}
	signer, err := seal.NewSigner(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	app := commands.New(&ground.Ground{Ledger: l, Signer: signer, Clock: time.Now, BaseURL: "http://localhost"})
	if err := l.Activate(ctx, signer, app.NewID("evt_")); err != nil {
		return nil, err
	}
	if app.Vault, err = vault.Open(ctx, l, make([]byte, 32)); err != nil {
		return nil, err
	}
	p, err := projections.Start(ctx, l, log)
	if err != nil {
		return nil, err
	}
	server, err := api.New(api.Config{App: app, Projections: p, Log: log})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	httpServer := request.HTTP(server.Handler(), log)
	go func() { _ = httpServer.Serve(listener) }()
	return &Service{Scratch: s, Base: "http://" + listener.Addr().String(), App: app, Projections: p, Close: func() {
		_ = httpServer.Close()
		p.Close()
		l.Close()
		s.Close()
	}}, nil
}

// StartOrganization starts a service and returns it with an access token of a new organization.
func StartOrganization(ctx context.Context) (*Service, string, error) {
	service, err := StartService(ctx)
	if err != nil {
		return nil, "", err
	}
	token, err := service.Organization(ctx)
	if err != nil {
		service.Close()
		return nil, "", err
	}
	return service, token, nil
}

// Organization creates an organization with an active policy and returns an access token of it.
func (b *Service) Organization(ctx context.Context) (string, error) {
	o, err := b.App.CreateOrganization(ctx, "operator", "Bench", organizations.PlanTeam, "bench@example.com")
	if err != nil {
		return "", err
	}
	operator, err := b.App.Operator(ctx, o.OrgID)
	if err != nil {
		return "", err
	}
	policy := `{"policyId":"bench","maxUsdPerTransaction":1,"allowedNetworks":["base"],"allowedHosts":["*.weather.example"],"requireHttps":true}`
	if _, err := b.App.DraftAndActivate(ctx, operator, []byte(policy), "bench"); err != nil {
		return "", err
	}
	issued, err := b.App.IssueToken(ctx, operator, organizations.TokenOrder{})
	return issued.Token, err
}

// Measured runs a load and measures the processor time until the read models contain all of its
// events, so that work after the answers counts, too.
func (b *Service) Measured(ctx context.Context, load func() (Sample, error)) (Sample, error) {
	var result Sample
	used, err := b.Scratch.Spent(func() (err error) {
		if result, err = load(); err != nil {
			return err
		}
		return CaughtUp(ctx, b.Projections)
	})
	result.Used = used
	return result, err
}

// Profiled starts a CPU profile and returns the function that ends it. It does nothing if file is
// empty.
func Profiled(file string) (end func()) {
	if file == "" {
		return func() {}
	}
	f, err := os.Create(file)
	if err != nil || pprof.StartCPUProfile(f) != nil {
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}
}

// CaughtUp waits until every read model contains all events.
func CaughtUp(ctx context.Context, p *projections.Projections) error {
	for {
		lags, err := p.Lags(ctx)
		behind := int64(0)
		for _, lag := range lags {
			behind += lag.Behind
		}
		if err != nil || behind == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
