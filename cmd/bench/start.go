package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/bench/faults"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// startCmd measures how long callers wait when a service with a long ledger starts with empty
// read models, including the start of its own PostgreSQL. The ledger is created once; half of
// it is signed decisions, half is workflows.
type startCmd struct {
	built
	Events int64         `help:"Length of the ledger." default:"1000000"`
	Folder string        `help:"Data folder, in which the ledger is created if it does not exist." required:"" placeholder:"DIR"`
	Runs   int           `help:"Number of starts to measure." default:"3"`
	Most   time.Duration `help:"Fail if a service is not serving within this time." default:"3s"`
}

// startSeed signs the ledger; startKEK wraps the keys of its personal members.
var startSeed, startKEK = bytes.Repeat([]byte{0xab}, 32), bytes.Repeat([]byte{0xcd}, 32)

// Run prints one line per start. The first start is on a ledger without a tree, whose events no
// service has appended; it is printed but not checked against the limit.
func (c *startCmd) Run(ctx context.Context) error {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return err
	}
	c.Folder = folder
	return c.with(ctx, func(program string) error { return c.measure(ctx, program) })
}

func (c *startCmd) measure(ctx context.Context, program string) error {
	if err := c.inDatabase(ctx, c.fill); err != nil {
		return fmt.Errorf("make the ledger: %w", err)
	}
	for n := range c.Runs + 1 {
		if n > 0 {
			if err := c.inDatabase(ctx, readNothing); err != nil {
				return fmt.Errorf("put the read models to zero: %w", err)
			}
		}
		at, err := c.start(ctx, program)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("start %d, every read model at zero", n)
		if n == 0 {
			name = "start on the ledger as it was"
		}
		fmt.Printf("%-36s serving after %s, first durable append after %s, nothing degraded after %s\n", name, at.serving, at.appended, at.whole)
		if n > 0 && (at.serving > c.Most || at.appended > c.Most) {
			return fmt.Errorf("not serving within %s", c.Most)
		}
	}
	return c.inDatabase(ctx, check)
}

// inDatabase calls do while the folder's PostgreSQL runs without a service.
func (c *startCmd) inDatabase(ctx context.Context, do func(context.Context, *scratch) error) error {
	server, err := localpg.Start(ctx, localpg.Options{DataDir: c.Folder})
	if err != nil {
		return err
	}
	err = do(ctx, &scratch{app: server.URL(migrations.AppRole), owner: server.URL(migrations.OwnerRole), dir: c.Folder})
	return errors.Join(err, server.Stop())
}

// readNothing resets every read model to before the first event.
func readNothing(ctx context.Context, s *scratch) error {
	owner, err := pgx.Connect(ctx, s.owner)
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

// filler appends copies of a decision and of a workflow.
type filler struct {
	app    *commands.App
	org    string
	actor  string
	record []byte // the record of a decision, and the id in it
	id     string

	appends atomic.Int64
}

// fill appends until the ledger has its length.
func (c *startCmd) fill(ctx context.Context, s *scratch) error {
	if err := migrations.Up(ctx, s.owner, ""); err != nil {
		return err
	}
	l, err := ledger.Open(ctx, s.app, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer l.Close()
	head, err := l.Total(ctx)
	if err != nil || head >= c.Events {
		return err
	}
	began := time.Now()
	f, err := newFiller(ctx, l, startSeed, startKEK)
	if err != nil {
		return err
	}
	if head, err = l.Total(ctx); err != nil {
		return err
	}
	if err := f.fill(ctx, c.Events-head); err != nil {
		return err
	}
	fmt.Printf("made a ledger of %d events in %s\n", c.Events, time.Since(began).Round(time.Second))
	return nil
}

// newFiller creates an organization and its first decision, signed and encrypted with these
// keys.
func newFiller(ctx context.Context, l *ledger.Ledger, seed, kek []byte) (*filler, error) {
	signer, err := seal.NewSigner(seed)
	if err != nil {
		return nil, err
	}
	a := commands.New(&ground.Ground{Ledger: l, Signer: signer, Clock: time.Now, BaseURL: "http://localhost", Environment: "dev"})
	if err := l.Activate(ctx, signer, a.NewID("evt_")); err != nil {
		return nil, err
	}
	if a.Vault, err = vault.Open(ctx, l, kek); err != nil {
		return nil, err
	}
	token, err := (&benchService{app: a}).organization(ctx)
	if err != nil {
		return nil, err
	}
	p, err := a.AuthenticateOrganization(ctx, token)
	if err != nil {
		return nil, err
	}
	request, err := assurance.ParseDecision([]byte(`{"protocol":"x402","idempotencyKey":"first","subject":{"runId":"run"},"intent":{` +
		`"resourceUrl":"https://api.weather.example/v1/forecast","method":"GET","scheme":"exact","network":"base",` +
		`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`))
	if err != nil {
		return nil, err
	}
	decided, err := a.Decide(ctx, p, request)
	if err != nil {
		return nil, err
	}
	d, err := assurance.ReadDecision(decided.Envelope.Record)
	return &filler{app: a, org: p.OrgID, actor: p.ActorID, record: decided.Envelope.Record, id: d.DecisionID}, err
}

// fill appends a number of events.
func (f *filler) fill(ctx context.Context, events int64) (err error) {
	const callers, together = 16, 64 // callers, and events of one append
	var left atomic.Int64
	left.Store(events)
	failed := make(chan error, callers)
	for range callers {
		go func() {
			for {
				rest := min(left.Add(-together)+together, together)
				if rest <= 0 {
					failed <- nil
					return
				}
				if err := f.append(ctx, int(rest)); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	for range callers {
		err = errors.Join(err, <-failed)
	}
	return err
}

// append appends decisions and workflows in turn.
func (f *filler) append(ctx context.Context, n int) error {
	tenant, next := f.org, f.decision
	if f.appends.Add(1)%2 == 0 {
		tenant, next = ledger.ServiceTenant, f.workflow
	}
	pending := make([]ledger.Pending, n)
	for i := range pending {
		var err error
		if pending[i], err = next(); err != nil {
			return err
		}
	}
	for {
		_, err := f.app.Ledger.Append(ctx, ledger.Append{Tenant: tenant, Events: pending})
		if !errors.Is(err, ledger.ErrBusy) {
			return err
		}
	}
}

func (f *filler) decision() (ledger.Pending, error) {
	id := f.app.NewID("asd_")
	envelope, err := f.app.Signer.SignCanonical(assurance.DecisionType, bytes.ReplaceAll(f.record, []byte(f.id), []byte(id)))
	if err != nil {
		return ledger.Pending{}, err
	}
	payload, err := canon.Marshal(events.DecisionRecorded{Record: envelope.Record, Integrity: envelope.Integrity, VerifyURL: f.app.BaseURL + "/api/verify"})
	return ledger.Pending{Stream: "decision/" + id, Expect: ledger.New(), ID: f.app.NewID("evt_"), Type: events.TypeDecisionRecorded,
		SchemaVersion: 1, Actor: f.actor, KeyID: f.app.Signer.KeyID(), Payload: payload}, err
}

func (f *filler) workflow() (ledger.Pending, error) {
	id := "asw_" + uuid.NewString()
	now := time.Now().UTC()
	const layout = "2006-01-02T15:04:05.000Z"
	payload, err := canon.Marshal(events.WorkflowCompleted{Workflow: events.Workflow{WorkflowID: id, Status: "completed", Risk: "critical",
		RiskScore: 95, Decision: "needs_review", RequiresHumanReview: true, MatchedRuleIDs: []string{"git.push.force-protected"},
		CreatedAt: now.Format(layout), ExpiresAt: now.AddDate(0, 0, 30).Format(layout)}})
	return ledger.Pending{Stream: "workflow/" + id, Expect: ledger.New(), ID: f.app.NewID("evt_"), Type: events.TypeWorkflowCompleted,
		Actor: "system", Payload: payload}, err
}

// started has the times, from the start of the process, when a service first answered, first
// appended, and had read models that were close enough to the head (/readyz).
type started struct{ serving, appended, whole time.Duration }

// start starts the program, calls it until nothing is degraded, and ends it.
func (c *startCmd) start(ctx context.Context, program string) (at started, err error) {
	address, err := faults.FreeAddress()
	if err != nil {
		return at, err
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "serve", "--data", c.Folder, "--listen", address)
	cmd.Stderr = &log
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DATABASE_URL=") }),
		"SIGNING_KEY="+hex.EncodeToString(startSeed), "DATA_KEK="+hex.EncodeToString(startKEK), "RATE_LIMIT=off")
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

// answers reports whether a service answers with success, and with these words.
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
