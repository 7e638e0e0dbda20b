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

// A test database of a cluster is one database of the same name on each server. The
// template is joined and distributed once. A copy of it on every server is complete, since it
// includes the cluster's own tables, which say on which server each row is.

// Plain skips a test on a cluster if it needs a ledger in one database, for example its
// triggers, or all rows of a table in one place.
func Plain(t testing.TB) {
	t.Helper()
	if OnCluster() {
		t.Skip("TEST_DATABASE_URL names a cluster: this is about a ledger in one database")
	}
}

// Cluster skips a test that needs a distributed ledger unless there is one.
func Cluster(t testing.TB) {
	t.Helper()
	if !OnCluster() {
		t.Skip("TEST_DATABASE_URL names no Citus cluster (.ci/citus/cluster starts one)")
	}
}

// OnCluster says whether test databases are those of a cluster.
func OnCluster() bool {
	ctx, cancel := context.WithTimeout(context.Background(), setupWithin)
	defer cancel()
	s, err := server(ctx)
	return err == nil && len(s.workers) > 0
}

// workersOf returns the superuser's URLs of the workers of the cluster that a
// database belongs to, none if it does not.
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

// join adds a database that exists on all servers to the cluster.
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
