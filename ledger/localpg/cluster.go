//go:build unix

package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/migrations"
)

// clusterMajor returns the major version of the cluster, or 0 if there is none yet.
func (l *launcher) clusterMajor() (int, error) {
	b, err := os.ReadFile(filepath.Join(l.pgDir, "PG_VERSION"))
	if err == nil {
		major, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || major <= 0 {
			return 0, fmt.Errorf("%s has an unreadable PG_VERSION", l.pgDir)
		}
		return major, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read the cluster's version: %w", err)
	}
	entries, err := os.ReadDir(l.pgDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read the cluster: %w", err)
	}
	if len(entries) > 0 {
		return 0, fmt.Errorf("%s contains files that are not a PostgreSQL cluster; they were not changed", l.pgDir)
	}
	return 0, nil
}

// makeCluster creates the cluster if it is missing. Otherwise it checks that the cluster belongs
// to the server's user. It creates the cluster under another name, syncs it and renames it, so
// there is never an incomplete cluster under the final name.
func (l *launcher) makeCluster(ctx context.Context, bin binaries) error {
	major, err := l.clusterMajor()
	if err != nil {
		return err
	}
	if major != 0 {
		return l.user.ownDir(l.pgDir)
	}
	began := time.Now()
	leftovers, _ := filepath.Glob(filepath.Join(l.dataDir, "pg.tmp-*")) // left by killed starts
	for _, dir := range leftovers {
		_ = os.RemoveAll(dir)
	}
	l.say("making a PostgreSQL cluster in %s …", l.pgDir)
	temp, err := os.MkdirTemp(l.dataDir, "pg.tmp-")
	if err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := l.user.ownDir(temp); err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	err = l.initdb(ctx, bin, "-D", temp, "-U", Superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "-k",
		"--wal-segsize="+segmentMB, "--no-instructions", "--no-sync")
	if err != nil {
		return err
	}
	if err := l.syncTree(ctx, bin, temp); err != nil {
		return fmt.Errorf("write the cluster to disk: %w", err)
	}
	if err := os.Remove(l.pgDir); err != nil && !errors.Is(err, fs.ErrNotExist) { // can only be an empty folder
		return fmt.Errorf("make the cluster: %w", err)
	}
	if err := os.Rename(temp, l.pgDir); err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	l.say("made the cluster in %v", time.Since(began).Round(time.Millisecond))
	return syncDir(l.dataDir)
}

func (l *launcher) initdb(ctx context.Context, bin binaries, args ...string) error {
	var output bytes.Buffer
	c, err := launch(filepath.Join(bin.dir, "initdb"), args, l.user, &output)
	if err != nil {
		return fmt.Errorf("start initdb: %w", err)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		_ = c.stop(fastStop, immediateStop)
		return fmt.Errorf("initdb: %w", ctx.Err())
	}
	if c.err != nil {
		return fmt.Errorf("initdb: %w\n%s", c.err, strings.TrimSpace(output.String()))
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// makeDatabase creates the two roles and the ledger's database if they are missing. Only this work
// is done as superuser.
func (s *Server) makeDatabase(ctx context.Context) error {
	err := s.asSuperuser(ctx, "postgres", func(conn *pgx.Conn) error {
		for _, role := range roles {
			if err := ensureRole(ctx, conn, role); err != nil {
				return err
			}
		}
		var exists bool
		err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, Database).Scan(&exists)
		if err != nil || exists {
			return err
		}
		_, err = conn.Exec(ctx, `create database `+Database+` owner `+migrations.OwnerRole)
		return err
	})
	if err == nil {
		err = s.asSuperuser(ctx, Database, func(conn *pgx.Conn) error { return migrations.Prepare(ctx, conn) })
	}
	if err != nil {
		return fmt.Errorf("make the ledger's database: %w", err)
	}
	return nil
}

func ensureRole(ctx context.Context, conn *pgx.Conn, role string) error {
	var exists, mayLogIn bool
	err := conn.QueryRow(ctx, `select count(*) > 0, coalesce(bool_or(rolcanlogin), false) from pg_roles where rolname = $1`, role).Scan(&exists, &mayLogIn)
	switch {
	case err != nil:
		return err
	case !exists:
		_, err = conn.Exec(ctx, `create role `+role+` login`)
	case !mayLogIn:
		_, err = conn.Exec(ctx, `alter role `+role+` login`)
	}
	return err
}

func (s *Server) asSuperuser(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.DatabaseURL(Superuser, database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}
