//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/projections"
)

// Row is one kind of fault.
type Row struct {
	Name string
	Says string // what breaks, and what the row checks in addition to the promise to every client
	run  func(context.Context, *world) error
}

// Table lists all rows in the order in which they run.
var Table = []Row{
	{"node-killed", "the only node is killed with -9 three times, the last time just after its PostgreSQL; a supervisor starts it again", nodeKilled},
	{"database-killed", "PostgreSQL is killed with -9; the node starts it again by itself", databaseKilled},
	{"two-nodes-one-killed", "two nodes on one ledger; the node that runs PostgreSQL is killed with -9; the other node then runs PostgreSQL", oneOfTwoKilled},
	{"backends-terminated", "two nodes; every connection to PostgreSQL is terminated, ten times", backendsTerminated},
	{"listener-terminated", "the connections that wait for notifications are terminated; read models follow by polling", listenerTerminated},
	{"connection-cut", "the network between node and PostgreSQL cuts connections at random bytes, fifty times", connectionCut},
	{"database-slow", "the head row is locked for eight seconds, then every packet is 100 ms late; the health endpoint answers", databaseSlow},
	{"proxy-cuts", "a proxy before the service cuts requests and answers at random bytes, fifty times", proxyCuts},
	{"terminated", "SIGTERM under load: started calls are finished, and the exit code is 0", terminated},
	{"rolling-upgrade", "two nodes, one after the other replaced by a release whose read models have other versions", rollingUpgrade},
	{"rebuild", "every read model is rebuilt while two nodes are under load", rebuild},
	{"key-rotated", "the signing key is rotated under load; nodes that have the next key continue", keyRotated},
	{"checkpoints-unwritable", "the folder of signed heads becomes unwritable and is restored; appends continue", checkpointsUnwritable},
	{"older-database", "the database is replaced by an older copy: refused with the lost positions; accepted with the newest copy", olderDatabase},
	{"disk-full", "the disk of the data is full, then has space again", diskFull},
	{"wal-full", "the disk of the write-ahead log is full, so that PostgreSQL stops; then there is space again and a supervisor starts it", walFull},
	{"doors-held", "400 unfinished bodies and 16 expensive manifests at once; other clients are served, and the health endpoint answers", doorsHeld},
	{"clock-jumps", "two nodes; the clock of one jumps an hour back, a day ahead and back again; readiness reports it, decisions say clock.adjusted, nothing else is refused", clockJumps},
	{"poison-event", "two nodes of a release whose read model of decisions fails at every seventh position: these events are parked with their streams, other events and all commands continue; the next release reads them", poisonEvent},
	{"keyless-node", "a node comes back without its signing key, then with an unknown one: acknowledged calls are answered, nothing is written; with an unknown key it does not start", keylessNode},
	{"many-callers", "500 callers at once on one node: each is served or told to retry, and the health endpoint answers", manyCallers},
	{"payments-unclear", "two nodes and a facilitator whose answers are lost, late or wrong, before and after the payment, while each node is killed with -9: one settlement for one answer", paymentsUnclear},
	{"standby-promoted", "two nodes; the primary is killed with -9 and its synchronous standby promoted; nothing is lost", standbyPromoted},
	{"standby-without-its-tail", "an asynchronous standby that was behind is promoted: refused with the lost positions; accepted when it follows the old primary again", standbyBehind},
	{"citus-head-killed", "two nodes on a Citus cluster; the worker that stores the head is killed with -9 and started again", citusHeadKilled},
	{"citus-coordinator-killed", "two nodes on a Citus cluster; the coordinator is killed with -9 and started again", citusCoordinatorKilled},
	{"citus-worker-killed", "two nodes on a Citus cluster; the worker that stores no part of the ledger is killed with -9 and started again", citusWorkerKilled},
	{"organization-suspended", "an organization is suspended and restored by another process; both nodes follow", organizationSuspended},
}

func nodeKilled(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		for round := range 3 {
			if err := w.pause(ctx, 200, 600); err != nil {
				return err
			}
			if round == 2 {
				if err := killPostgres(w.data); err != nil {
					return err
				}
			}
			w.nodes[0].signal(syscall.SIGKILL)
			if err := w.start(ctx, w.nodes[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

func databaseKilled(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		before := w.postmaster()
		if err := killPostgres(w.data); err != nil {
			return err
		}
		return w.until(ctx, "another PostgreSQL", func() bool { now := w.postmaster(); return now != 0 && now != before })
	})
}

func oneOfTwoKilled(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		before := w.postmaster()
		w.nodes[0].signal(syscall.SIGKILL)
		if err := w.until(ctx, "the other node to run PostgreSQL", func() bool { now := w.postmaster(); return now != 0 && now != before }); err != nil {
			return err
		}
		if err := w.ready(ctx, w.nodes[1]); err != nil {
			return err
		}
		return w.start(ctx, w.nodes[0])
	})
}

func backendsTerminated(ctx context.Context, w *world) error {
	return w.terminate(ctx, 10, `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'`)
}

func listenerTerminated(ctx context.Context, w *world) error {
	return w.terminate(ctx, 10, `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and query ilike 'listen%'`)
}

// terminate runs a statement that ends connections of two nodes, this many times.
func (w *world) terminate(ctx context.Context, times int, statement string) error {
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		return w.superuser(ctx, func(c *pgx.Conn) error {
			ended := int64(0)
			for range times {
				tag, err := c.Exec(ctx, statement)
				if err != nil {
					return err
				}
				ended += tag.RowsAffected()
				if err := w.pause(ctx, 50, 200); err != nil {
					return err
				}
			}
			if ended == 0 {
				return errors.New("no connection was terminated, so the row tested nothing")
			}
			return nil
		})
	})
}

func connectionCut(ctx context.Context, w *world) error {
	p, err := w.proxied(ctx)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error { return p.cutting(ctx, w, 50) })
}

func databaseSlow(ctx context.Context, w *world) error {
	p, err := w.proxied(ctx)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		err := w.superuser(ctx, func(c *pgx.Conn) error {
			tx, err := c.Begin(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
			if _, err := tx.Exec(ctx, "select 1 from ledger_head for update"); err != nil {
				return err
			}
			return w.healthy(ctx, 8*time.Second)
		})
		if err != nil {
			return err
		}
		p.delay.Store(int64(100 * time.Millisecond))
		defer p.delay.Store(0)
		return w.healthy(ctx, 4*time.Second)
	})
}

// healthy calls the health endpoint repeatedly for this time. Every answer must be 200.
func (w *world) healthy(ctx context.Context, during time.Duration) error {
	for end := time.Now().Add(during); time.Now().Before(end); {
		if got := status(w.nodes[0].base() + "/healthz"); got != http.StatusOK {
			return fmt.Errorf("the health endpoint answered %d", got)
		}
		if err := w.pause(ctx, 50, 100); err != nil {
			return err
		}
	}
	return nil
}

func proxyCuts(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	p, err := newProxy("tcp", w.nodes[0].address)
	if err != nil {
		return err
	}
	w.closers = append(w.closers, p.close)
	direct := w.nodes[0].address
	w.nodes[0].address = p.address()
	defer func() { w.nodes[0].address = direct }()
	return w.around(ctx, func(ctx context.Context) error { return p.cutting(ctx, w, 50) })
}

func terminated(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		if code := w.nodes[0].signal(syscall.SIGTERM); code != 0 {
			return fmt.Errorf("the node ended with exit code %d", code)
		}
		return w.start(ctx, w.nodes[0])
	})
}

func rollingUpgrade(ctx context.Context, w *world) error {
	other, err := w.options.built(ctx, otherRelease)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error { return w.replace(ctx, other) })
}

// replace replaces the nodes by another release, one after the other.
func (w *world) replace(ctx context.Context, release string) error {
	for _, n := range w.nodes {
		n.stop()
		n.program = release
		if err := w.start(ctx, n); err != nil {
			return err
		}
		if err := w.ready(ctx, n); err != nil {
			return err
		}
	}
	w.program = release // commands that run next to the nodes use this release, too
	return nil
}

func poisonEvent(ctx context.Context, w *world) error {
	poisoned, err := w.options.built(ctx, poisonedRelease)
	if err != nil {
		return err
	}
	mended, err := w.options.built(ctx, otherRelease)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		if err := w.replace(ctx, poisoned); err != nil {
			return err
		}
		if err := w.until(ctx, "readiness to report parked events", func() bool { return w.degraded(w.nodes[0], "projections") }); err != nil {
			return err
		}
		if err := w.answeredMore(ctx, "decisions next to parked events", kindDecision); err != nil {
			return err
		}
		return w.replace(ctx, mended)
	})
}

func keylessNode(ctx context.Context, w *world) error {
	if err := w.separate(ctx); err != nil {
		return err
	}
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	if err := w.around(ctx, nothing); err != nil {
		return err
	}
	n := w.nodes[0]
	n.stop()
	n.more = []string{"SIGNING_KEY="}
	if err := w.start(ctx, n); err != nil {
		return err
	}
	if err := w.onlyReads(ctx); err != nil {
		return err
	}
	n.stop()
	n.more = []string{"SIGNING_KEY=" + strings.Repeat("5a", 32)}
	if err := w.start(ctx, n); err == nil {
		return errors.New("a node started with a signing key of another ledger")
	}
	n.more = nil
	if err := w.start(ctx, n); err != nil {
		return err
	}
	return w.around(ctx, nothing)
}

// onlyReads checks a node without a signing key: it must answer every acknowledged call as before,
// refuse calls that need a signature with 503, and append no event.
func (w *world) onlyReads(ctx context.Context) error {
	before, err := w.head(ctx)
	if err != nil {
		return err
	}
	for at, a := range w.journal.known {
		switch a.Kind {
		case kindKey: // a repeated call would issue another key, for which no signature is needed
			continue
		case kindDecision:
			unknown := a
			unknown.Body = strings.Replace(a.Body, a.ID, a.ID+"-new", 1)
			if got, answer, err := w.send(ctx, w.nodes[0].base(), unknown); err != nil || got != http.StatusServiceUnavailable {
				return fmt.Errorf("a node without a signing key answered a new decision with %d %s %w", got, answer, err)
			}
		}
		got, answer, err := w.send(ctx, w.nodes[0].base(), a)
		if err != nil {
			return err
		}
		if got != http.StatusOK || answer != a.Answer {
			return fmt.Errorf("a node without a signing key answered %s with %d %s", at, got, answer)
		}
	}
	if after, err := w.head(ctx); err != nil || after != before {
		return fmt.Errorf("a node without a signing key appended %d events: %w", after-before, err)
	}
	return nil
}

// head returns the position of the newest event.
func (w *world) head(ctx context.Context) (at int64, err error) {
	err = w.superuser(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, "select pos from ledger_head where p = 0").Scan(&at) })
	return at, err
}

// crowd is the number of concurrent callers.
const crowd = 500

func manyCallers(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		calling, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		defer func() { stop(); all.Wait() }()
		for i := range crowd {
			all.Go(func() { (&caller{world: w, name: fmt.Sprintf("crowd-%d-%d", runs.Add(1), i)}).decide(calling) })
		}
		before := w.journal.counts()
		if err := w.healthy(ctx, 5*time.Second); err != nil {
			return err
		}
		return w.answered(ctx, "a decision for each of the crowd", before, crowd+1, kindDecision)
	})
}

func rebuild(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		for _, name := range projections.Names() {
			if _, err := w.command(ctx, "replay", "rebuild", name); err != nil {
				return err
			}
		}
		return nil
	})
}

func keyRotated(ctx context.Context, w *world) error {
	next := "NEXT_SIGNING_KEY=" + w.secret()
	if err := w.serve(ctx, 2, next); err != nil {
		return err
	}
	w.where = append(w.where, next)
	return w.around(ctx, func(ctx context.Context) error {
		_, err := w.command(ctx, "signer", "rotate")
		return err
	})
}

func checkpointsUnwritable(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	folder := filepath.Join(w.data, "checkpoints")
	return w.around(ctx, func(ctx context.Context) error {
		// A folder without write permission is still writable for root. A file in its place is
		// not.
		if err := os.Rename(folder, folder+".away"); err != nil {
			return err
		}
		if err := os.WriteFile(folder, nil, 0o600); err != nil {
			return err
		}
		if err := w.answeredMore(ctx, "answers without a folder for checkpoints", kindGate); err != nil {
			return err
		}
		if err := os.Remove(folder); err != nil {
			return err
		}
		return os.Rename(folder+".away", folder)
	})
}

func olderDatabase(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	n, pg := w.nodes[0], filepath.Join(w.data, "pg")
	if err := w.around(ctx, nothing); err != nil {
		return err
	}
	n.stop()
	if err := copyTree(pg, pg+".older"); err != nil {
		return err
	}
	if err := w.start(ctx, n); err != nil {
		return err
	}
	if err := w.around(ctx, nothing); err != nil {
		return err
	}
	n.stop()
	if err := errors.Join(os.Rename(pg, pg+".newest"), os.Rename(pg+".older", pg)); err != nil {
		return err
	}
	if err := w.refusesWrites(ctx, n); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(pg), os.Rename(pg+".newest", pg)); err != nil {
		return err
	}
	return w.start(ctx, n)
}

// refusesWrites starts a node on a ledger whose newest events are lost. The node must name the
// lost positions and must not acknowledge any call.
func (w *world) refusesWrites(ctx context.Context, n *node) error {
	if err := w.start(ctx, n); err != nil {
		if !strings.Contains(n.said.String(), "--accept-rollback") {
			return fmt.Errorf("the refusal does not name --accept-rollback: %w", err)
		}
		return nil
	}
	defer n.stop()
	got, answer, err := w.send(ctx, n.base(), acknowledgement{Method: http.MethodPost, Path: keysPath, Body: `{"email":"older@example.com"}`})
	if err != nil || got != http.StatusServiceUnavailable {
		return fmt.Errorf("an older database accepted a call: %d %s %v", got, answer, err)
	}
	if !strings.Contains(n.said.String(), "--accept-rollback") {
		return errors.New("the node's output does not say what to do about an older database")
	}
	return nil
}

// copyTree copies the folder of a stopped PostgreSQL. It keeps the owner and mode of each file,
// because PostgreSQL requires them.
func copyTree(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		copied := filepath.Join(to, relative)
		if info.Mode()&os.ModeSymlink == 0 {
			if err := os.Chmod(copied, info.Mode().Perm()); err != nil {
				return err
			}
		}
		if os.Geteuid() != 0 {
			return nil // without root the copy already has the owner of the original
		}
		owner := info.Sys().(*syscall.Stat_t)
		return os.Lchown(copied, int(owner.Uid), int(owner.Gid))
	})
}

func doorsHeld(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		holding, stop := context.WithCancel(ctx)
		done := w.holdDoors(holding, 400, 16)
		defer func() { stop(); <-done }()
		before := w.journal.counts()
		if err := w.healthy(ctx, 5*time.Second); err != nil {
			return err
		}
		return w.answered(ctx, "answers while the service is occupied", before, w.options.Calls+1, kindGate)
	})
}

func organizationSuspended(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	// Create another organization with a token.
	out, err := w.command(ctx, "org", "create", "--name", "Other", "--plan", "team", "--owner", "bob@example.com", "--json")
	if err != nil {
		return err
	}
	var other struct {
		OrgID string `json:"orgId"`
	}
	if err := json.Unmarshal(out, &other); err != nil {
		return err
	}
	out, err = w.command(ctx, "org", "token", "issue", "--org", other.OrgID, "--json")
	if err != nil {
		return err
	}
	var issued struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(out, &issued); err != nil {
		return err
	}
	// everywhere returns a check whether both nodes refuse, or accept, the token.
	everywhere := func(refused bool) func() bool {
		return func() bool {
			for _, n := range w.nodes {
				got, _, err := w.send(ctx, n.base(), acknowledgement{Method: http.MethodGet, Path: "/api/assurance/history", Headers: map[string]string{"Authorization": "Bearer " + issued.Token}})
				if err != nil || got != map[bool]int{true: http.StatusForbidden, false: http.StatusOK}[refused] {
					return false
				}
			}
			return true
		}
	}
	// Suspend and restore the organization three times, and wait each time until both nodes follow.
	return w.around(ctx, func(ctx context.Context) error {
		for range 3 {
			for _, step := range []struct {
				state   string
				refused bool
			}{{"suspended", true}, {"active", false}} {
				if _, err := w.command(ctx, "org", "update", "--org", other.OrgID, "--state", step.state, "--reason", "faults"); err != nil {
					return err
				}
				if err := w.until(ctx, "both nodes to see the organization "+step.state, everywhere(step.refused)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// pause waits for a random time while clients call. least and most are the limits of the time in
// milliseconds.
func (w *world) pause(ctx context.Context, least, most int) error {
	return pauseFor(ctx, time.Duration(least+w.rand.IntN(most-least))*time.Millisecond)
}

func pauseFor(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}
