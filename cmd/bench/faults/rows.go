//go:build unix

package faults

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

// Row is one way in which something breaks.
type Row struct {
	Name string
	Says string // what breaks, and what is expected beyond the promise to every client
	run  func(context.Context, *world) error
}

// Table is every row, in the order in which they are run.
var Table = []Row{
	{"node-killed", "the only node is killed with -9, three times, in the last one its PostgreSQL just before it; a supervisor starts it again", nodeKilled},
	{"database-killed", "PostgreSQL is killed with -9; the node starts it again by itself", databaseKilled},
	{"two-nodes-one-killed", "two nodes on one ledger; the one that runs PostgreSQL is killed with -9; the other takes it over", oneOfTwoKilled},
	{"backends-terminated", "two nodes; every connection to PostgreSQL is terminated, ten times", backendsTerminated},
	{"listener-terminated", "the connections that wait for notifications are terminated; read models follow by polling", listenerTerminated},
	{"connection-cut", "the network between node and PostgreSQL cuts connections at any octet, fifty times", connectionCut},
	{"database-slow", "the head row is locked for eight seconds, then every packet is late by 100 ms; health answers", databaseSlow},
	{"proxy-cuts", "a proxy before the service cuts requests and answers at any octet, fifty times", proxyCuts},
	{"terminated", "SIGTERM under load: what was begun is finished, and the exit status is 0", terminated},
	{"rolling-upgrade", "two nodes, one after the other replaced by a release whose read models have other versions", rollingUpgrade},
	{"rebuild", "every read model is rebuilt beside two loaded nodes", rebuild},
	{"key-rotated", "the signing key is rotated under load; nodes that know the next one go on", keyRotated},
	{"checkpoints-unwritable", "the folder of signed heads becomes unwritable and comes back; appends go on", checkpointsUnwritable},
	{"older-database", "an older copy of the database is put back: refused with the lost positions; with the newest copy all is well", olderDatabase},
	{"disk-full", "the disk of the data is full, then is not", diskFull},
	{"wal-full", "the disk of the write-ahead log is full, so that PostgreSQL stops; there is room again and a supervisor starts it", walFull},
	{"doors-held", "400 bodies that are never finished and 16 heavy manifests at once; others are served, health answers", doorsHeld},
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
				if err := syscall.Kill(w.postmaster(), syscall.SIGKILL); err != nil {
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
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
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

// terminate ends connections of two nodes, again and again.
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
				return errors.New("no connection was there to terminate: the row shows nothing")
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

// healthy asks for health all the time; every answer must be 200.
func (w *world) healthy(ctx context.Context, during time.Duration) error {
	for end := time.Now().Add(during); time.Now().Before(end); {
		if got := status(w.nodes[0].base() + "/healthz"); got != http.StatusOK {
			return fmt.Errorf("health answered %d", got)
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
			return fmt.Errorf("the node ended with %d", code)
		}
		return w.start(ctx, w.nodes[0])
	})
}

// readModels are those that a release may give another version: they are made anew
// from the events.
var readModels = []string{"status", "organizations", "history", "payments"}

// versions finds the version of a read model's table in its declaration.
var versions = regexp.MustCompile(`(?m)^(\s+version:\s+)(\d+),`)

// otherRelease builds the program with every read model at another version.
func (w *world) otherRelease(ctx context.Context) (string, error) {
	if w.options.other != "" {
		return w.options.other, nil
	}
	replaced := map[string]string{}
	dir := filepath.Join(w.options.scratch, "other")
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	for _, name := range readModels {
		source := filepath.Join(w.options.Source, "projections", name+".go")
		text, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		changed := versions.ReplaceAll(text, []byte("${1}1000$2,"))
		if string(changed) == string(text) {
			return "", fmt.Errorf("read model %s declares no version where it is looked for", name)
		}
		copied := filepath.Join(dir, filepath.Base(source))
		if err := os.WriteFile(copied, changed, 0o600); err != nil {
			return "", err
		}
		replaced[source] = copied
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "countersign")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	fmt.Fprintln(w.options.Log, "faults: building the other release")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", program, "./cmd/countersign")
	build.Dir = w.options.Source
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the other release: %w: %s", err, said)
	}
	w.options.other = program
	return program, nil
}

func rollingUpgrade(ctx context.Context, w *world) error {
	other, err := w.otherRelease(ctx)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		for _, n := range w.nodes {
			n.stop()
			n.program = other
			if err := w.start(ctx, n); err != nil {
				return err
			}
			if err := w.ready(ctx, n); err != nil {
				return err
			}
		}
		w.program = other // for the commands beside them
		return nil
	})
}

func rebuild(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		for _, name := range readModels {
			if _, err := w.command(ctx, "replay", "rebuild", name); err != nil {
				return err
			}
		}
		return nil
	})
}

func keyRotated(ctx context.Context, w *world) error {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(w.rand.Uint32())
	}
	next := "NEXT_SIGNING_KEY=" + hex.EncodeToString(seed[:])
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
		// A file in its place is unwritable for root, too.
		if err := os.Rename(folder, folder+".away"); err != nil {
			return err
		}
		if err := os.WriteFile(folder, nil, 0o600); err != nil {
			return err
		}
		before := w.journal.counts()[kindGate]
		if err := w.until(ctx, "answers without a folder of heads", func() bool { return w.journal.counts()[kindGate] > before+w.options.Calls }); err != nil {
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
	if err := w.around(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	n.stop()
	if err := os.CopyFS(pg+".older", os.DirFS(pg)); err != nil {
		return err
	}
	if err := w.start(ctx, n); err != nil {
		return err
	}
	if err := w.around(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	n.stop()
	if err := errors.Join(os.Rename(pg, pg+".newest"), os.Rename(pg+".older", pg), copyOwner(pg+".newest", pg)); err != nil {
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

// refusesWrites starts a node on a ledger that has lost its end. It must name what
// is lost, and acknowledge nothing.
func (w *world) refusesWrites(ctx context.Context, n *node) error {
	if err := w.start(ctx, n); err != nil {
		if !strings.Contains(n.said.String(), "--accept-rollback") {
			return fmt.Errorf("the refusal does not name --accept-rollback: %w", err)
		}
		n.mu.Lock()
		n.cmd = nil
		n.mu.Unlock()
		return nil
	}
	defer n.stop()
	got, answer, err := w.send(ctx, n.base(), acknowledgement{Method: http.MethodPost, Path: keysPath, Body: `{"email":"older@example.com"}`})
	if err != nil || got != http.StatusServiceUnavailable {
		return fmt.Errorf("an older database took a call: %d %s %v", got, answer, err)
	}
	if !strings.Contains(n.said.String(), "--accept-rollback") {
		return errors.New("the node does not say what to do about an older database")
	}
	return nil
}

// copyOwner gives a copied tree of PostgreSQL's the owner of the original and closes
// it to others, which a PostgreSQL insists on. The copy is what is walked: it may
// have files that the original has lost since.
func copyOwner(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o600)
		if d.IsDir() {
			mode = 0o700
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
		if os.Geteuid() != 0 {
			return nil // the copy is ours as the original is
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
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
		before := w.journal.counts()[kindGate]
		if err := w.healthy(ctx, 5*time.Second); err != nil {
			return err
		}
		return w.until(ctx, "answers beside held doors", func() bool { return w.journal.counts()[kindGate] > before+w.options.Calls })
	})
}

func organizationSuspended(ctx context.Context, w *world) error {
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
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

// pause lets the load go on for a random time, in milliseconds.
func (w *world) pause(ctx context.Context, least, most int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(least+w.rand.IntN(most-least)) * time.Millisecond):
		return nil
	}
}
