package ledgertest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A test database of a cluster consists of one database of the same name on each server. The
// template is joined and distributed once. A copy of it on every server is complete, because it
// includes the cluster's own tables, which list the server of each row.

// Plain skips the test on a cluster, for tests that need a ledger in one database, for example its
// triggers or all rows of a table together.
func Plain(t testing.TB) {
	t.Helper()
	if OnCluster() {
		t.Skip("TEST_DATABASE_URL names a cluster, but the test needs a ledger in one database")
	}
}

// Cluster skips the test unless there is a cluster, for tests that need a distributed ledger.
func Cluster(t testing.TB) {
	t.Helper()
	if !OnCluster() {
		t.Skip("TEST_DATABASE_URL names no Citus cluster (.ci/citus/cluster starts one)")
	}
}

// OnCluster reports whether test databases belong to a Citus cluster.
func OnCluster() bool {
	ctx, cancel := context.WithTimeout(context.Background(), setupWithin)
	defer cancel()
	s, err := server(ctx)
	return err == nil && len(s.workers) > 0
}

// workersOf returns the superuser's URLs of the workers of a database's cluster, or none.
func workersOf(ctx context.Context, super string) ([]string, error) {
	conn, err := pgx.Connect(ctx, super)
	if err != nil {
		return nil, fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var cluster bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_extension where extname = 'citus')`).Scan(&cluster); err != nil || !cluster {
		return nil, err
	}
	rows, err := conn.Query(ctx, `select nodename, nodeport::text from pg_dist_node where groupid <> 0 and noderole = 'primary' order by nodeid`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var host, port string
		if err := row.Scan(&host, &port); err != nil {
			return "", err
		}
		u, err := url.Parse(super)
		if err != nil {
			return "", err
		}
		u.Host, u.Path = net.JoinHostPort(host, port), "/postgres"
		return u.String(), nil
	})
}

// join connects the databases with this name on all servers to a cluster.
func (s testServer) join(ctx context.Context, database string) error {
	servers := append([]string{s.super}, s.workers...)
	for _, server := range servers {
		if err := (testServer{super: testServer{super: server}.url(database, "")}).run(ctx, "create extension citus"); err != nil {
			return err
		}
	}
	statements := []string{}
	for i, server := range servers {
		u, err := url.Parse(server)
		if err != nil {
			return err
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			return fmt.Errorf("the cluster's servers are named by host and port: %w", err)
		}
		add := "citus_add_node"
		if i == 0 {
			add = "citus_set_coordinator_host"
		}
		statements = append(statements, fmt.Sprintf("select %s('%s', %d)", add, u.Hostname(), port))
	}
	return testServer{super: s.url(database, "")}.run(ctx, statements...)
}
