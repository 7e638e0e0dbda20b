//go:build unix

package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/migrations"
)

// proxy forwards connections. It can delay the bytes and cut connections.
type proxy struct {
	listener net.Listener
	network  string
	target   atomic.Pointer[string]
	delay    atomic.Int64 // delay after each read, in nanoseconds
	budget   atomic.Int64 // number of bytes until the next cut; negative if none is planned
	cuts     atomic.Int64
}

func newProxy(network, target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, network: network}
	p.target.Store(&target)
	p.budget.Store(-1)
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() { _ = p.listener.Close() }

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.pass(near)
	}
}

// pass forwards one connection in both directions.
func (p *proxy) pass(near net.Conn) {
	defer near.Close()
	far, err := net.Dial(p.network, *p.target.Load())
	if err != nil {
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	for _, way := range []struct{ from, to net.Conn }{{near, far}, {far, near}} {
		both.Go(func() {
			p.copy(way.to, way.from)
			_, _ = near.Close(), far.Close()
		})
	}
	both.Wait()
}

// copy forwards bytes in one direction. At a cut it forwards the bytes before the cut and returns.
func (p *proxy) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if late := time.Duration(p.delay.Load()); late > 0 {
			time.Sleep(late)
		}
		if left := p.budget.Load(); left >= 0 && p.budget.CompareAndSwap(left, left-int64(n)) && left < int64(n) {
			p.budget.Store(-1)
			p.cuts.Add(1)
			_, _ = to.Write(buffer[:left])
			return
		}
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// cutting cuts this number of connections, each after a random number of bytes.
func (p *proxy) cutting(ctx context.Context, w *world, times int64) error {
	for p.cuts.Load() < times {
		if p.budget.Load() < 0 {
			p.budget.Store(w.rand.Int64N(20_000))
		}
		if err := w.pause(ctx, 5, 30); err != nil {
			return fmt.Errorf("%d of %d cuts: %w", p.cuts.Load(), times, err)
		}
	}
	p.budget.Store(-1)
	return nil
}

// proxied runs a PostgreSQL server for the ledger in this program, and gives the nodes the address
// of a proxy in front of it.
func (w *world) proxied(ctx context.Context) (*proxy, error) {
	if err := w.separate(ctx); err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(w.postgres.URL(migrations.AppRole))
	if err != nil {
		return nil, err
	}
	p, err := newProxy("unix", socketOf(config))
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, p.close)
	for i, setting := range w.where {
		if strings.HasPrefix(setting, "DATABASE_URL=") {
			w.where[i] = fmt.Sprintf("DATABASE_URL=postgres://%s@%s/%s?sslmode=disable", config.User, p.address(), config.Database)
		}
	}
	return p, nil
}

// socketOf returns the path of the Unix socket on which PostgreSQL listens.
func socketOf(config *pgx.ConnConfig) string {
	return fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)
}
