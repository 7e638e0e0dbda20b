//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/localpg"
)

// replicas is a primary database server with its standby. Nodes connect to a proxy, which forwards
// to the server that is the primary.
type replicas struct {
	proxy            *proxy
	primary, standby *localpg.Server
}

// replicated runs a primary and a standby for the ledger in this program.
func (w *world) replicated(ctx context.Context) (*replicas, error) {
	p, err := w.proxied(ctx)
	if err != nil {
		return nil, err
	}
	// The folder of a stopped server is a complete base backup, so the standby starts with a copy.
	from, to := filepath.Join(w.dir, "postgres"), filepath.Join(w.dir, "standby")
	if err := w.postgres.Stop(); err != nil {
		return nil, err
	}
	if err := copyTree(from, to); err != nil {
		return nil, err
	}
	// The standby connects as superuser, under the system user of its server. The default access
	// rules refuse that if root started the server, so the primary gets its own rules.
	access := filepath.Join(from, "replicated_hba.conf")
	if err := os.WriteFile(access, []byte("local all all trust\nlocal replication all trust\n"), 0o644); err != nil {
		return nil, err
	}
	r := &replicas{proxy: p}
	if r.primary, err = localpg.Start(ctx, localpg.Options{DataDir: from, Settings: []string{"wal_keep_size=1GB", "hba_file=" + access}}); err != nil {
		return nil, err
	}
	w.postgres = r.primary
	config, err := pgx.ParseConfig(r.primary.URL(localpg.Superuser))
	if err != nil {
		return nil, err
	}
	follow := fmt.Sprintf("host=%s port=%d user=%s application_name=standby", config.Host, config.Port, localpg.Superuser)
	if err := os.WriteFile(filepath.Join(to, "pg", "standby.signal"), nil, 0o644); err != nil {
		return nil, err
	}
	r.standby, err = localpg.Start(ctx, localpg.Options{DataDir: to, Settings: []string{"primary_conninfo=" + follow}})
	if err != nil {
		return nil, fmt.Errorf("start the standby: %w", err)
	}
	w.closers = append(w.closers, func() { _ = r.standby.Stop() })
	return r, nil
}

// noted returns the size in the newest checkpoint of a node, or 0 if the node does not answer.
func noted(base string) int64 {
	answer, err := http.Get(base + "/api/ledger/checkpoint")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	newest, _ := checkpoint.Parse(text)
	return newest.Size
}

// ask runs a query as the superuser of a server and returns its result, which must be one text.
func ask(ctx context.Context, s *localpg.Server, query string) (answer string, err error) {
	err = superuserOf(ctx, s, func(c *pgx.Conn) error { return c.QueryRow(ctx, query).Scan(&answer) })
	return answer, err
}

// kill ends a server with SIGKILL.
func kill(s *localpg.Server) error {
	if err := killPostgres(s.DataDir()); err != nil {
		return err
	}
	<-s.Done()
	return nil
}

// lead sets the server to which the proxy forwards.
func (r *replicas) lead(s *localpg.Server) error {
	config, err := pgx.ParseConfig(s.URL(localpg.Superuser))
	if err != nil {
		return err
	}
	socket := socketOf(config)
	r.proxy.target.Store(&socket)
	return nil
}

// promote promotes the standby to primary and lets the proxy forward to it.
func (r *replicas) promote(ctx context.Context) error {
	promoted, err := ask(ctx, r.standby, `select pg_promote()::text`)
	if err == nil && promoted != "true" {
		err = errors.New("the standby was not promoted")
	}
	if err != nil {
		return err
	}
	return r.lead(r.standby)
}

func standbyPromoted(ctx context.Context, w *world) error {
	r, err := w.replicated(ctx)
	if err != nil {
		return err
	}
	for _, statement := range []string{`alter system set synchronous_standby_names = 'any 1 (standby)'`, `select pg_reload_conf()`} {
		if err := superuserOf(ctx, r.primary, func(c *pgx.Conn) error { _, err := c.Exec(ctx, statement); return err }); err != nil {
			return err
		}
	}
	if err := w.until(ctx, "the standby to be synchronous", func() bool {
		state, err := ask(ctx, r.primary, `select coalesce(max(sync_state), '') from pg_stat_replication`)
		return err == nil && state == "quorum"
	}); err != nil {
		return err
	}
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		if err := kill(r.primary); err != nil {
			return err
		}
		return r.promote(ctx)
	})
}

func standbyBehind(ctx context.Context, w *world) error {
	r, err := w.replicated(ctx)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	n := w.nodes[0]
	if err := w.around(ctx, nothing); err != nil {
		return err
	}
	// From here on the standby is stopped and gets no acknowledged event.
	if err := r.standby.Stop(); err != nil {
		return err
	}
	had, err := w.head(ctx)
	if err != nil {
		return err
	}
	if err := w.around(ctx, nothing); err != nil {
		return err
	}
	// A node notices lost events only if a checkpoint outside the database covers them.
	// Checkpoints are about a second late, so the row waits for one.
	err = w.until(ctx, "a checkpoint of what the standby lacks", func() bool { return noted(n.base()) > had })
	if err != nil {
		return err
	}
	if err := kill(r.primary); err != nil {
		return err
	}
	n.stop()
	if r.standby, err = localpg.Start(ctx, localpg.Options{DataDir: r.standby.DataDir()}); err != nil {
		return err
	}
	if err := r.promote(ctx); err != nil {
		return err
	}
	if err := w.refusesWrites(ctx, n); err != nil {
		return err
	}
	if err := r.standby.Stop(); err != nil {
		return err
	}
	if r.primary, err = localpg.Start(ctx, localpg.Options{DataDir: r.primary.DataDir()}); err != nil {
		return err
	}
	w.postgres = r.primary
	if err := r.lead(r.primary); err != nil {
		return err
	}
	return w.start(ctx, n)
}
