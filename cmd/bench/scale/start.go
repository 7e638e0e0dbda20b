package scale

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/bench/faults"
	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/projections"
)

// Start measures how long callers wait when a service starts on a long ledger with empty read
// models. The time includes the start of the service's own PostgreSQL. The ledger is created once:
// half of its events are signed decisions, half are workflows.
type Start struct {
	rig.Built
	Events int64         `help:"Length of the ledger." default:"1000000"`
	Folder string        `help:"Data folder, in which the ledger is created if it does not exist." required:"" placeholder:"DIR"`
	Runs   int           `help:"Number of starts to measure." default:"3"`
	Most   time.Duration `help:"Fail if a service is not serving within this time." default:"3s"`
}

// Run prints one line for each start. At the first start the ledger has no tree yet, because its
// events were not appended by a service; this start is not compared with the limit.
func (c *Start) Run(ctx context.Context) error {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return err
	}
	c.Folder = folder
	return c.With(ctx, func(program string) error { return c.measure(ctx, program) })
}

func (c *Start) measure(ctx context.Context, program string) error {
	if err := c.inDatabase(ctx, func(ctx context.Context, s *rig.Scratch) error { return rig.MakeLedger(ctx, s, c.Events) }); err != nil {
		return fmt.Errorf("create the ledger: %w", err)
	}
	for n := range c.Runs + 1 {
		if n > 0 {
			if err := c.inDatabase(ctx, readNothing); err != nil {
				return fmt.Errorf("reset the read models: %w", err)
			}
		}
		at, err := c.start(ctx, program)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("start %d, read models empty", n)
		if n == 0 {
			name = "first start on this ledger"
		}
		fmt.Printf("%-36s serving after %s, first durable append after %s, nothing degraded after %s\n", name, at.serving, at.appended, at.whole)
		if n > 0 && (at.serving > c.Most || at.appended > c.Most) {
			return fmt.Errorf("the service was not ready after %s", c.Most)
		}
	}
	return c.inDatabase(ctx, rig.Check)
}

// inDatabase starts the PostgreSQL of the folder without a service, and calls the function do.
func (c *Start) inDatabase(ctx context.Context, do func(context.Context, *rig.Scratch) error) error {
	server, err := localpg.Start(ctx, localpg.Options{DataDir: c.Folder})
	if err != nil {
		return err
	}
	err = do(ctx, &rig.Scratch{App: server.URL(migrations.AppRole), Owner: server.URL(migrations.OwnerRole), Dir: c.Folder})
	return errors.Join(err, server.Stop())
}

// readNothing resets every read model, so that it starts at the first event.
func readNothing(ctx context.Context, s *rig.Scratch) error {
	owner, err := pgx.Connect(ctx, s.Owner)
	if err != nil {
		return err
	}
	defer owner.Close(ctx)
	done, err := owner.Exec(ctx, `update projection_checkpoint set version = 0, pos = 0, hash = decode(repeat('00', 32), 'hex'), state = ''
		where name = any($1)`, projections.Names())
	if err == nil && done.RowsAffected() != int64(len(projections.Names())) {
		err = fmt.Errorf("%d read models of %d", done.RowsAffected(), len(projections.Names()))
	}
	return err
}

// started has three times since the start of the process: until the service first answered, until
// it first appended an event, and until /readyz reported nothing as degraded.
type started struct{ serving, appended, whole time.Duration }

// start starts the program, waits until nothing is degraded, and ends the program.
func (c *Start) start(ctx context.Context, program string) (at started, err error) {
	address, err := faults.FreeAddress()
	if err != nil {
		return at, err
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "serve", "--data", c.Folder, "--listen", address)
	cmd.Stderr = &log
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DATABASE_URL=") }),
		"SIGNING_KEY="+hex.EncodeToString(rig.LedgerSeed), "DATA_KEK="+hex.EncodeToString(rig.LedgerKEK), "RATE_LIMIT=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return at, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if left := <-ended; left != nil && err == nil {
			err = fmt.Errorf("the service ended with %w: %s", left, log.String())
		}
	}()
	for _, step := range []struct {
		at   *time.Duration
		done func() bool
	}{
		{&at.serving, func() bool { return answers(address, "/api/health", nil) }},
		{&at.appended, func() bool {
			return answers(address, "/api/keys/free", fmt.Appendf(nil, `{"email":"bench-%d@example.com"}`, time.Now().UnixNano()))
		}},
		{&at.whole, func() bool { return answers(address, "/readyz", nil, `"degraded":[]`) }},
	} {
		for !step.done() {
			select {
			case left := <-ended:
				ended <- left
				return at, fmt.Errorf("the service ended: %s", log.String())
			case <-time.After(2 * time.Millisecond):
			}
		}
		*step.at = time.Since(began).Round(time.Millisecond)
	}
	return at, nil
}

// answers reports whether the service answers a request with success, and whether the answer
// contains all of these words.
func answers(address, path string, body []byte, words ...string) bool {
	var r *http.Response
	var err error
	if body == nil {
		r, err = http.Get("http://" + address + path)
	} else {
		r, err = http.Post("http://"+address+path, "application/json", bytes.NewReader(body))
	}
	if err != nil {
		return false
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return err == nil && r.StatusCode/100 == 2 && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(text), w) })
}
