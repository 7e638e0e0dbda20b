//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/migrations"
)

// cluster is a Citus cluster of three servers: coordinator, worker1 and worker2. A script of the
// module runs them, on three consecutive ports.
type cluster struct {
	script, dir string
	super       string // URL of the ledger's database for the superuser
	port        int    // port of the coordinator; the workers have the next two
}

// distributed creates a Citus cluster for the ledger. It returns ErrSkipped if the extension is
// not installed.
func (w *world) distributed(ctx context.Context) (*cluster, error) {
	c := &cluster{script: filepath.Join(w.options.Source, ".ci", "citus", "cluster"), dir: filepath.Join(w.dir, "cluster")}
	if _, err := c.do(ctx, "find"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSkipped, err)
	}
	for c.port = 0; !free(c.port); { // chosen below the ports that the system assigns to clients
		c.port = 15_000 + w.rand.IntN(15_000)
	}
	var err error
	w.closers = append(w.closers, func() { _, _ = c.do(context.WithoutCancel(ctx), "stop", c.dir) })
	if c.super, err = c.do(ctx, "start", c.dir, strconv.Itoa(c.port)); err != nil {
		return nil, err
	}
	if err := migrations.UpPartitioned(ctx, c.super, "faults.example/ledger", w.options.Partitions); err != nil {
		return nil, err
	}
	if err := migrations.Distribute(ctx, c.super); err != nil {
		return nil, err
	}
	w.outside(strings.Replace(c.super, "postgres@", migrations.AppRole+"@", 1))
	return c, nil
}

// free reports whether a port and the two ports after it are unused.
func free(port int) bool {
	for n := port; port > 0 && n < port+3; n++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n)))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return port > 0
}

// do runs the script and returns the last line that it prints.
func (c *cluster) do(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, c.script, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("cluster %s: %w: %s", args[0], err, failed.Stderr)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1], err
}

// holder returns the names of the worker that stores partition 0 and of the other worker.
func (c *cluster) holder(ctx context.Context) (head, other string, err error) {
	conn, err := pgx.Connect(ctx, c.super)
	if err != nil {
		return "", "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var port int
	err = conn.QueryRow(ctx, `select nodeport from citus_shards where shardid = get_shard_id_for_distribution_column('ledger_head', 0)`).Scan(&port)
	return fmt.Sprintf("worker%d", port-c.port), fmt.Sprintf("worker%d", 3-(port-c.port)), err
}

// killed kills one server of the cluster while clients call two nodes. It starts the server again
// after 0.5 to 2 seconds, as a supervisor would.
func (w *world) killed(ctx context.Context, which func(*cluster) (string, error)) error {
	c, err := w.distributed(ctx)
	if err != nil {
		return err
	}
	server, err := which(c)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		if _, err := c.do(ctx, "kill", c.dir, server); err != nil {
			return err
		}
		if err := w.pause(ctx, 500, 2000); err != nil {
			return err
		}
		_, err := c.do(ctx, "run", c.dir, server)
		return err
	})
}

func citusHeadKilled(ctx context.Context, w *world) error {
	return w.killed(ctx, func(c *cluster) (string, error) {
		head, _, err := c.holder(ctx)
		return head, err
	})
}

func citusWorkerKilled(ctx context.Context, w *world) error {
	return w.killed(ctx, func(c *cluster) (string, error) {
		_, other, err := c.holder(ctx)
		return other, err
	})
}

func citusCoordinatorKilled(ctx context.Context, w *world) error {
	return w.killed(ctx, func(*cluster) (string, error) { return "coordinator", nil })
}
