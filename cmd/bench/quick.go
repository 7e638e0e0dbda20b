package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// quickCmd compares a whole quick gate call over loopback HTTP, one durable
// event each, with the bare append.
type quickCmd struct {
	Runs    int           `help:"Runs of each; the median counts." default:"3"`
	During  time.Duration `help:"Length of each run." default:"3s"`
	Callers []int         `help:"Numbers of callers." default:"1,8,64"`
}

// Run prints one line per number of callers.
func (c *quickCmd) Run(ctx context.Context) error {
	service, err := startService(ctx)
	if err != nil {
		return err
	}
	defer service.close()
	fmt.Printf("%-10s %12s %12s %8s %20s %20s %12s\n", "in flight", "appends/s", "calls/s", "p50", "append p50/p99 ms", "call p50/p99 ms", "p99 over ms")
	for _, callers := range c.Callers {
		var appends, calls []sample
		for range c.Runs {
			a, err := appendLoad(ctx, service.scratch, 1, callers, c.During, payload)
			if err != nil {
				return err
			}
			b, err := service.quick(ctx, callers, c.During)
			if err != nil {
				return err
			}
			appends, calls = append(appends, a), append(calls, b)
		}
		a, b := median(appends), median(calls)
		fmt.Printf("%-10d %12.0f %12.0f %8.2f %20s %20s %12s\n", callers, a.perSecond, b.perSecond,
			float64(b.quantile(.5))/float64(a.quantile(.5)), ms(a.quantile(.5))+" / "+ms(a.quantile(.99)),
			ms(b.quantile(.5))+" / "+ms(b.quantile(.99)), ms(b.quantile(.99)-a.quantile(.99)))
	}
	return check(ctx, service.scratch)
}

// benchService is the whole service on a loopback listener, with a database of its
// own.
type benchService struct {
	scratch     *scratch
	base        string
	app         *commands.App
	projections *projections.Projections
	close       func()
}

// startService starts one; close ends it, and the database with it.
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
	app := &commands.App{Ledger: l, Signer: signer, Clock: time.Now, BaseURL: "http://localhost"}
	if err := l.Activate(ctx, signer, app.NewID("evt_")); err != nil {
		return nil, err
	}
	kek, err := ledger.DeriveKEK(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	if app.Vault, err = l.OpenVault(ctx, kek); err != nil {
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
	httpServer := api.HTTP(server.Handler(), log)
	go func() { _ = httpServer.Serve(listener) }()
	return &benchService{scratch: s, base: "http://" + listener.Addr().String(), app: app, projections: p, close: func() {
		_ = httpServer.Close()
		p.Close()
		l.Close()
		s.close()
	}}, nil
}

// quick calls the quick gate. A key is good for 250 calls, so each caller takes
// a new one whenever its own is used up, outside the measured time of a call.
func (b *benchService) quick(ctx context.Context, callers int, during time.Duration) (sample, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	run := time.Now().UnixNano()
	keys := make([][]string, callers)
	for caller := range keys {
		// Enough keys for the fastest machine there is: 10,000 calls a second.
		for n := range int(during.Seconds()+1)*10_000/callers/commands.FreeCallsPerMonth + 1 {
			issued, err := b.app.IssueFreeKey(ctx, fmt.Sprintf("bench-%d-%d-%d@example.com", run, caller, n))
			if err != nil {
				return sample{}, err
			}
			keys[caller] = append(keys[caller], issued.APIKey)
		}
	}
	body := []byte(`{"command":"git push --force origin main","environment":"production"}`)
	return load(callers, during, func(caller, n int) error {
		key := keys[caller][min(n/commands.FreeCallsPerMonth, len(keys[caller])-1)]
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/api/agent-services/action-safety/quick", bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-API-Key", key)
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("quick gate: %s %s %v", answer.Status, text, err)
		}
		return nil
	})
}
