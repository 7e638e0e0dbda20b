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

// replicas are a primary and its standby, and the address at which nodes reach the server that
// leads.
type replicas struct {
	proxy            *proxy
	primary, standby *localpg.Server
}

// replicated puts the ledger into a primary with a standby, both run by this program.
func (w *world) replicated(ctx context.Context) (*replicas, error) {
	p, err := w.proxied(ctx)
	if err != nil {
		return nil, err
	}
	// A copy of a stopped server is a base backup.
	from, to := filepath.Join(w.dir, "postgres"), filepath.Join(w.dir, "standby")
	if err := w.postgres.Stop(); err != nil {
		return nil, err
	}
	if err := copyTree(from, to); err != nil {
		return nil, err
	}
	// The standby logs in as the user that its server runs as, which a server started by root
	// refuses.
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

// noted returns the size of a node's newest checkpoint, or 0 if there is no answer.
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

// ask runs a query that returns one text, as the superuser of a server.
func ask(ctx context.Context, s *localpg.Server, query string) (answer string, err error) {
	err = superuserOf(ctx, s, func(c *pgx.Conn) error { return c.QueryRow(ctx, query).Scan(&answer) })
	return answer, err
}

// kill ends a server with -9.
func kill(s *localpg.Server) error {
	if err := killPostgres(s.DataDir()); err != nil {
		return err
	}
	<-s.Done()
	return nil
}

// lead makes a server the one that nodes reach.
func (r *replicas) lead(s *localpg.Server) error {
	config, err := pgx.ParseConfig(s.URL(localpg.Superuser))
	if err != nil {
		return err
	}
	socket := socketOf(config)
	r.proxy.target.Store(&socket)
	return nil
}

// promote promotes the standby and makes it the server that nodes reach.
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
	// The stopped standby gets nothing that is acknowledged from now on.
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
	// The loss of events that no checkpoint outside covers yet, about the last second, cannot
	// be noticed.
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
