// Package serve implements the command serve, which runs the service, and the command demo.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/stripe"
	"github.com/countersign/countersign/api/traces"
	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/serve/settling"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// Command starts the service.
type Command struct {
	setting.Ledger
	setting.Service
	setting.X402
	Verbose        bool `help:"Log every request." short:"v"`
	AcceptRollback bool `help:"Continue with a database that lacks events covered by a published checkpoint. A signed event records which events were lost." name:"accept-rollback" rare:""`
	AcceptFindings bool `help:"Continue to append although the daily verification found altered history; /readyz still reports it." name:"accept-findings" rare:""`
}

const shutdownWithin = 20 * time.Second

// Run serves until a signal. Then it ends, in this order, readiness, requests, projections,
// appends and the database, so that no work in progress is lost.
func (c *Command) Run(ctx context.Context, o *screen.Output) error {
	level := slog.LevelWarn
	if c.Verbose || !screen.IsTerminal(os.Stderr) {
		level = slog.LevelInfo
	}
	if os.Getenv("GOGC") == "" {
		// The live heap is small, but each request leaves garbage. With the default setting, Go
		// would collect several times a second under load and use a tenth of the processor time.
		debug.SetGCPercent(300)
	}
	s, err := c.start(ctx, logs.New(level), o.Stderr)
	if err != nil {
		return err
	}
	if err := s.announce(o); err != nil {
		return err
	}
	return s.wait(ctx)
}

// running is a started service.
type running struct {
	cmd              *Command
	node             *node.Node
	projections      *projections.Projections
	api              *api.Server
	traces           *trace.TracerProvider // nil if --traces is not set
	reconciler       *settling.Reconciler  // nil if payments are off
	public, internal *http.Server
	address, metrics string
	members          string // text for the user: how members sign in
	checkout         string // text for the user: how customers pay by card
	heads            string // text for the user: where checkpoints are stored
	payments         *setting.Settler
	background       context.CancelFunc // cancels the work that settle has started
	working          sync.WaitGroup
	failed           chan error
}

func (c *Command) start(ctx context.Context, log *slog.Logger, progress io.Writer) (_ *running, err error) {
	// Check the settings of the listener and open it.
	proxies, err := c.Proxies()
	if err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --listen HOST:PORT (LISTEN)", c.Listen, errors.Unwrap(err))
	}
	s := &running{cmd: c, address: listener.Addr().String(), failed: make(chan error, 2)}
	defer func() {
		if err != nil {
			_ = listener.Close()
			s.close(context.Background())
		}
	}()
	if c.BaseURL == "" {
		c.BaseURL = "http://" + s.address
	}
	if err = c.mayServe(len(proxies) > 0, log); err != nil {
		return nil, err
	}
	// Start the node: database, ledger and keys.
	say := func(format string, args ...any) { fmt.Fprintf(progress, "countersign: "+format+"\n", args...) }
	c.Serves, c.Begins, c.RollbackAccepted, c.FindingsAccepted = true, true, c.AcceptRollback, c.AcceptFindings
	if s.node, err = node.Start(ctx, &c.Ledger, c.Migrate, c.OnThisMachine(), c.BaseURL, log, say); err != nil {
		return nil, err
	}
	for _, f := range s.node.Archived(ctx) {
		if f.State != "ok" {
			log.Warn("the archive has a problem; requests for archived events get 503", "found", f.Detail)
		}
	}
	// Set the parts that only a serving node has: token keys, read models, payments, mail, checkout, traces.
	if s.node.App.TokenKeys, err = c.tokenKeys(s.node.App.Signer); err != nil {
		return nil, err
	}
	if s.node.App.SupportClients, err = c.supportClients(); err != nil {
		return nil, err
	}
	if s.node.App.WebhookNetworks, err = setting.Networks("WEBHOOK_NETWORKS", c.WebhookNets); err != nil {
		return nil, err
	}
	if s.projections, err = projections.Start(ctx, s.node.Ledger, log); err != nil {
		return nil, err
	}
	if s.payments, err = c.X402.Open(ctx, &c.Ledger, c.OnThisMachine(), log); err != nil {
		return nil, err
	}
	if err = c.RightLedger(ctx, s.payments, s.node.App); err != nil {
		return nil, err
	}
	s.node.App.Settler = s.payments.Settler
	config := api.Config{App: s.node.App, Projections: s.projections, Log: log,
		RateLimit: c.RateLimit == "on", TrustedProxies: proxies, Contact: c.ContactEmail, Proofs: c.OwnershipProofs,
		Durability: c.Durability, NoCheckpoints: s.node.Checkpoints.Signer == nil, Loopback: setting.Loopback(c.Listen), MCPOrigins: c.MCPOrigins, Terms: s.payments.Terms}
	if s.members, err = c.mail(&config, progress); err != nil {
		return nil, err
	}
	if s.checkout, err = c.card(&config); err != nil {
		return nil, err
	}
	if c.Traces != "" {
		if s.traces, err = traces.Open(ctx, traces.Settings{Endpoint: c.Traces, Headers: c.TraceHeaders, Version: policy.Version, Log: log}); err != nil {
			return nil, err
		}
		config.Traces = s.traces
	}
	// Create the API and the worker that settles payments.
	if s.api, err = api.New(config); err != nil {
		return nil, err
	}
	if s.node.App.Settler != nil {
		s.reconciler = settling.New(settling.Config{App: s.node.App, Projections: s.projections, Log: log, Service: s.api.Service, Watch: s.api})
		s.node.App.Settling = s.reconciler.Take
	}
	internal, err := c.listenForMetrics(setting.MetricsAddress, say)
	if err != nil {
		return nil, err
	}
	s.metrics = internal.Addr().String()
	// Every setting is checked now: activate the keys and answer requests.
	if err = s.begin(ctx); err != nil {
		_ = internal.Close()
		return nil, err
	}
	s.public, s.internal = request.HTTP(s.api.Handler(), log), request.HTTP(s.api.Internal(), log)
	go func() { s.failed <- s.public.Serve(request.Bounded(listener)) }()
	go func() { s.failed <- s.internal.Serve(internal) }()
	s.settle(ctx)
	audit.Daily(s.node.Ledger, s.node.SelfChecks(&c.Ledger))
	return s, nil
}

// begin activates the keys and starts the checkpoints. It is called after all settings were
// checked, so that a wrong setting changes nothing in the ledger.
func (s *running) begin(ctx context.Context) (err error) {
	if err = s.node.Begin(ctx, &s.cmd.Ledger, s.cmd.OnThisMachine()); err != nil {
		return err
	}
	s.heads, err = s.node.KeepCheckpoints(ctx)
	return err
}

// listenForMetrics opens the listener for metrics. If no address is set and the usual one is
// taken, it uses a free port, so that two services can run on one machine.
func (c *Command) listenForMetrics(usual string, say func(string, ...any)) (net.Listener, error) {
	if c.MetricsListen != "" {
		l, err := net.Listen("tcp", c.MetricsListen)
		if err != nil {
			return nil, fmt.Errorf("listen on %s for metrics: %w; choose another address with --metrics-listen HOST:PORT (METRICS_LISTEN)", c.MetricsListen, errors.Unwrap(err))
		}
		return l, nil
	}
	l, err := net.Listen("tcp", usual)
	if errors.Is(err, syscall.EADDRINUSE) {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			say("%s is taken: metrics are at %s (set METRICS_LISTEN to choose)", usual, l.Addr())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	return l, nil
}

// settle starts the background work that close ends: settling payments, sending to webhooks, and
// returning memory.
func (s *running) settle(ctx context.Context) {
	ctx, s.background = context.WithCancel(context.WithoutCancel(ctx))
	if s.reconciler != nil {
		s.working.Go(func() { s.reconciler.Run(ctx) })
	}
	s.working.Go(func() { s.api.Deliver(ctx) })
	s.working.Go(func() { returnMemory(ctx) })
	if s.payments.Run != nil {
		s.working.Go(func() { s.payments.Run(ctx) })
	}
}

// mail configures where sign-in links are sent: to a mail server, or to an outbox that only this
// machine can read, or nowhere, so that sign-in answers 503.
func (c *Command) mail(config *api.Config, terminal io.Writer) (said string, err error) {
	switch {
	case c.SMTPURL != "":
		config.Mail, err = mail.NewSMTP(c.SMTPURL)
		return "sign in at " + c.BaseURL + "/sign-in", err
	case c.Private() && c.OnThisMachine():
		path := filepath.Join(c.Dir(), setting.LettersFile)
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err == nil {
			err = file.Chmod(0o600) // an existing file may have other permissions
		}
		if err != nil {
			return "", fmt.Errorf("write e-mail to %s: %w", setting.LettersFile, files.WithoutPath(err))
		}
		config.Outbox = mail.NewOutbox(config.Log, file, terminal)
		config.Mail = config.Outbox
		fmt.Fprintf(terminal, "countersign: e-mail is printed here and stored in %s; %s/outbox shows it for the code %s\n", path, c.BaseURL, config.Outbox.Code())
		return "sign in at " + c.BaseURL + "/sign-in; e-mail is printed by this program and stored in " + path, nil
	}
	return "sign-in answers 503 (set SMTP_URL)", nil
}

// card configures the card provider. Without one, card checkout answers 503.
func (c *Command) card(config *api.Config) (said string, err error) {
	if c.StripeKey == "" && c.StripeWebhook == "" {
		return "off: card checkout answers 503 (set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET)", nil
	}
	config.Checkout, err = stripe.New(stripe.Config{SecretKey: c.StripeKey, WebhookSecrets: c.StripeWebhook, APIBase: c.StripeAPIBase, Clock: time.Now})
	return "Stripe; send webhooks to " + c.BaseURL + "/api/webhooks/stripe", err
}

// announce prints the service's addresses and the next steps.
func (s *running) announce(o *screen.Output) error {
	key := "none: signed services answer 503 (set SIGNING_KEY)"
	if signer := s.node.App.Signer; signer != nil {
		key = signer.KeyID()
		if s.cmd.SigningKey == "" {
			key += " (development key in the data folder)"
		}
	}
	agents := "register at " + s.cmd.BaseURL + "/api/auth/register"
	if len(s.node.App.TokenKeys) == 0 {
		agents = "no access tokens (set TOKEN_KEY)"
	}
	where := "DATABASE_URL"
	if s.cmd.Private() {
		where = s.cmd.Dir() + " (delete this folder to delete everything)"
	}
	listens := ""
	if s.cmd.BaseURL != "http://"+s.address {
		listens = "\n  listens   on " + s.address
	}
	text := fmt.Sprintf(`countersign answers at %[1]s%[11]s
  ledger    %[2]s, stored in %[3]s
  signing   %[4]s
  heads     %[10]s
  payments  %[9]s
  members   %[6]s
  agents    %[7]s
  checkout  %[8]s
  metrics   http://%[5]s/metrics
  mcp       %[1]s/mcp
next, in another terminal:
  KEY=$(curl -s %[1]s/api/keys/free -H 'Content-Type: application/json' \
       -d '{"email":"you@example.com"}' | sed 's/.*"apiKey":"\([^"]*\)".*/\1/')
  curl -s %[1]s/api/agent-services/action-safety/quick -H 'Content-Type: application/json' \
       -H "X-API-Key: $KEY" -d '{"command":"git push --force origin main"}'
stop with Ctrl-C
`, s.cmd.BaseURL, s.node.Ledger.Origin(), where, key, s.metrics, s.members, agents, s.checkout, s.payments.Said, s.heads, listens)
	return o.Result(map[string]string{
		"baseUrl": s.cmd.BaseURL, "origin": s.node.Ledger.Origin(), "keyId": s.node.App.Signer.KeyID(), "metrics": "http://" + s.metrics + "/metrics",
	}, text)
}

// wait waits for a signal or for a listener that fails, closes the service and returns the
// listener's error.
func (s *running) wait(ctx context.Context) error {
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.failed:
		err = fmt.Errorf("serve: %w", err)
	}
	s.api.Drain()
	if s.cmd.Drain > 0 {
		time.Sleep(s.cmd.Drain)
	}
	s.close(context.WithoutCancel(ctx))
	return err
}

// close stops everything that was started. It ignores errors of the listeners.
func (s *running) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownWithin)
	defer cancel()
	if s.public != nil {
		_ = s.public.Shutdown(ctx)
		_ = s.internal.Close()
	}
	if s.background != nil {
		s.background()
		s.working.Wait()
	}
	if s.api != nil {
		s.api.Close(ctx)
	}
	if s.reconciler != nil {
		s.reconciler.Close(ctx)
	}
	if s.traces != nil {
		_ = s.traces.Shutdown(ctx) // sends the spans that are not sent yet
	}
	if s.projections != nil {
		s.projections.Close()
	}
	if s.node != nil {
		s.node.Close()
	}
}
