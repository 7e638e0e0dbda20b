package node

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/migrations"
)

// Server keeps a private PostgreSQL running. If the server that it has started or joined ends, it
// starts or joins another one.
type Server struct {
	options localpg.Options
	log     *slog.Logger
	end     context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex // guards server
	server *localpg.Server
}

func startPrivate(ctx context.Context, d *setting.Ledger, log *slog.Logger, say func(string, ...any)) (*Server, error) {
	if !d.Begins && !localpg.Made(d.Dir()) {
		return nil, d.NoLedger()
	}
	options := localpg.Options{DataDir: d.Dir(), NoFetch: d.NoFetch, WAL: d.WALDir, Log: writerFunc(say)}
	server, err := localpg.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &Server{options: options, log: log, end: end, server: server}
	p.done.Go(func() { p.watch(background) })
	return p, nil
}

// Database returns the URL of the database for a command that opens no ledger. Without
// DATABASE_URL it starts or joins the private PostgreSQL and returns its URL for a login with the
// given role. The command must call leave at its end.
func Database(ctx context.Context, d *setting.Ledger, role string) (url string, leave func(), err error) {
	if !d.Private() {
		return d.DatabaseURL, func() {}, migrations.Check(ctx, d.DatabaseURL)
	}
	server, err := startPrivate(ctx, d, slog.New(slog.DiscardHandler), func(string, ...any) {})
	if err != nil {
		return "", nil, err
	}
	if err := migrations.Check(ctx, server.URL(role)); err != nil {
		server.stop()
		return "", nil, err
	}
	return server.URL(role), server.stop, nil
}

// Current returns the PostgreSQL server that is running.
func (p *Server) Current() *localpg.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// URL returns the database's URL for a role.
func (p *Server) URL(role string) string { return p.Current().URL(role) }

func (p *Server) watch(ctx context.Context) {
	for {
		select {
		case <-p.Current().Done():
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
		p.log.Warn("the private PostgreSQL ended; starting it again")
		server, err := localpg.Start(ctx, p.options)
		if err != nil {
			p.log.Error("the private PostgreSQL does not start", "error", err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		p.mu.Lock()
		p.server = server
		p.mu.Unlock()
	}
}

func (p *Server) stop() {
	p.end()
	p.done.Wait()
	if err := p.Current().Stop(); err != nil {
		p.log.Error("stop the private PostgreSQL", "error", err)
	}
}

// writerFunc is an io.Writer that calls a function with each text.
type writerFunc func(string, ...any)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) {
	f("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
