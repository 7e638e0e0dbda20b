package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/projections"
)

// quickCmd compares complete quick gate calls over loopback HTTP, one durable event each, with
// the bare append.
type quickCmd struct {
	Runs    int           `help:"Runs of each; the median counts." default:"3"`
	During  time.Duration `help:"Length of each run." default:"3s"`
	Callers []int         `help:"Numbers of callers." default:"1,8,64"`
	Profile string        `help:"Write a CPU profile of all calls to this file."`
}

// Run prints one line per number of callers, and then the cost of the stages of a call.
func (c *quickCmd) Run(ctx context.Context) error {
	service, err := startService(ctx)
	if err != nil {
		return err
	}
	defer service.close()
	fmt.Printf("%-10s %10s %10s %7s %7s %20s %20s   %s\n", "in flight", "appends/s", "calls/s", "ratio", "p50", "append p50/p99 ms", "call p50/p99 ms",
		"us of CPU of each, program + database")
	for _, callers := range c.Callers {
		var appends, calls []sample
		for range c.Runs {
			a, err := service.measured(ctx, func() (sample, error) { return appendLoad(ctx, service.scratch, 1, callers, c.During, payload) })
			if err != nil {
				return err
			}
			keys, err := service.quickKeys(ctx, callers, c.During)
			if err != nil {
				return err
			}
			b, err := service.measured(ctx, func() (sample, error) {
				defer profiled(c.Profile)()
				return service.quick(keys, c.During)
			})
			if err != nil {
				return err
			}
			appends, calls = append(appends, a), append(calls, b)
		}
		a, b := median(appends), median(calls)
		fmt.Printf("%-10d %10.0f %10.0f %7.2f %7.2f %20s %20s   %s; %s\n", callers, a.perSecond, b.perSecond, b.perSecond/a.perSecond,
			float64(b.quantile(.5))/float64(a.quantile(.5)), ms(a.quantile(.5))+" / "+ms(a.quantile(.99)),
			ms(b.quantile(.5))+" / "+ms(b.quantile(.99)), a.used.per(len(a.latencies)), b.used.per(len(b.latencies)))
	}
	for _, callers := range c.Callers {
		if err := service.stages(ctx, callers, c.During); err != nil {
			return err
		}
	}
	return check(ctx, service.scratch)
}

// benchService is the complete service on a loopback listener, with its own database.
type benchService struct {
	scratch     *scratch
	base        string
	app         *commands.App
	projections *projections.Projections
	close       func()
}

// startService starts a service. close ends it and its database.
func startService(ctx context.Context) (*benchService, error) {
	s, err := newScratch(ctx)
	if err != nil {
		return nil, err
	}
	service, err := serve(ctx, s)
	if err != nil {
		s.close()
		return nil, err
	}
	return service, nil
}

func serve(ctx context.Context, s *scratch) (*benchService, error) {
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300) // as countersign serve does
	}
	l, err := ledger.Open(ctx, s.app, ledger.Options{Log: log})
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
	return &benchService{scratch: s, base: "http://" + listener.Addr().String(), app: app, projections: p, close: func() {
		_ = httpServer.Close()
		p.Close()
		l.Close()
		s.close()
	}}, nil
}

// quickKeys returns keys for each caller, enough for 10,000 calls a second, because a key is
// good for 250 calls.
func (b *benchService) quickKeys(ctx context.Context, callers int, during time.Duration) ([][]string, error) {
	run := time.Now().UnixNano()
	keys := make([][]string, callers)
	for caller := range keys {
		for n := range int(during.Seconds()+1)*10_000/callers/accounts.FreeCallsPerMonth + 1 {
			issued, err := b.app.IssueFreeKey(ctx, fmt.Sprintf("bench-%d-%d-%d@example.com", run, caller, n), "")
			if err != nil {
				return nil, err
			}
			keys[caller] = append(keys[caller], issued.APIKey)
		}
	}
	return keys, nil
}

// quick calls the quick gate, one caller per list of keys.
func (b *benchService) quick(keys [][]string, during time.Duration) (sample, error) {
	clients := make([]*client, len(keys))
	for i := range clients {
		c, err := newClient(strings.TrimPrefix(b.base, "http://"))
		if err != nil {
			return sample{}, err
		}
		defer c.close()
		clients[i] = c
	}
	return load(len(keys), during, func(caller, n int) error {
		key := keys[caller][min(n/accounts.FreeCallsPerMonth, len(keys[caller])-1)]
		status, answer, err := clients[caller].post("/api/agent-services/action-safety/quick", "X-API-Key: "+key+"\r\n", []byte(quickBody))
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("quick gate: %d %s %w", status, answer, err)
		}
		return nil
	})
}

// quickBody is the request body.
const quickBody = `{"command":"git push --force origin main","environment":"production"}`
