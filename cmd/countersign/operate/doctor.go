// Package operate implements the commands of operators: backup, restore, archive, migrate, signer,
// erase, doctor, config, tail and top.
package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/gate"
	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/manage"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Doctor checks everything that the service needs, and prints how to repair each problem.
type Doctor struct {
	setting.Ledger
	Health string `help:"Only request /readyz of a running service, for container health checks." placeholder:"URL"`
	Hook   bool   `help:"Only check the guards of coding agents: start each hook as its agent would, and check that it blocks a test command."`
	Agent  string `help:"With --hook: only this agent (claude, codex, cursor, gemini, opencode, qwen, copilot)." enum:",claude,codex,cursor,gemini,opencode,qwen,copilot" default:""`

	HookCommand []string `arg:"" optional:"" name:"hook-command" help:"With --hook: after --, the command of a hook, which is checked instead of the hooks in the settings. Without --hook: the word payments checks only payments."`
	setting.X402
}

// Run prints the findings. The exit code is 1 if one of them is bad.
func (c *Doctor) Run(ctx context.Context, o *gate.Output) error {
	payments := !c.Hook && c.Agent == "" && slices.Equal(c.HookCommand, []string{"payments"})
	switch {
	case payments:
		return o.Findings(c.examinePayments(ctx))
	case !c.Hook && (c.Agent != "" || len(c.HookCommand) > 0):
		return errors.New("an agent and a hook's command need --hook")
	case c.Health != "":
		return o.Findings([]screen.Finding{readiness(ctx, c.Health)})
	case c.Hook:
		return o.Findings(gate.HookFindings(ctx, o, c.Agent, c.HookCommand))
	}
	return o.Findings(c.examine(ctx))
}

func readiness(ctx context.Context, base string) screen.Finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/readyz", nil)
	if err != nil {
		return screen.Bad("readyz", "the address is not a URL")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return screen.Bad("readyz", "no answer")
	}
	defer answer.Body.Close()
	var said struct {
		Ledger string `json:"ledger"`
	}
	if text, err := files.ReadAtMost(answer.Body, 1<<16); err == nil {
		_ = json.Unmarshal(text, &said) // other answers, for example a proxy's error page, have no such member
	}
	switch {
	case answer.StatusCode != http.StatusOK:
		return screen.Bad("readyz", strings.TrimSuffix("not ready: "+answer.Status+"; "+screen.Printable(said.Ledger), "; "))
	case said.Ledger != "":
		return screen.Warning("readyz", "ready, but "+screen.Printable(said.Ledger))
	}
	return screen.OK("readyz", "ready")
}

func (c *Doctor) examine(ctx context.Context) []screen.Finding {
	version, hash := actionrisk.Ruleset()
	found := []screen.Finding{screen.OK("rules", fmt.Sprintf("rule set %s, %s…, %d rules", version, hash[:12], len(actionrisk.Rules()))), c.key()}
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return append(append(found, screen.Bad("database", err.Error())), c.cluster(ctx)...)
	}
	defer n.Close()
	found = append(found, database(ctx, n, c.ByProvider())...)
	found = append(found, c.cluster(ctx)...)
	found = append(found, n.Heads(&c.Ledger))
	found = append(found, n.Archived(ctx)...)
	found = append(found, c.Supported(ctx, &c.Ledger, logs.New(slog.LevelError))...)
	if text := n.ReadOnly(); text != "" { // the read models of a read-only node do not advance
		found = append(found, screen.Bad("ledger", text))
	} else {
		found = append(found, openPayments(ctx, n)...)
	}
	report, err := audit.Ledger(ctx, n.Ledger, nil, n.Checkpoints.Stores()...)
	switch {
	case err != nil:
		found = append(found, screen.Bad("ledger", err.Error()))
	case len(report.Faults) > 0:
		found = append(found, screen.Bad("ledger", fmt.Sprintf("%s: %d faults, the first: %s (countersign verify lists them)", ledger.SaysAltered, len(report.Faults), report.Faults[0])))
	default:
		found = append(found, screen.OK("ledger", fmt.Sprintf("%d events verify, origin %s", report.Events, report.Origin)))
	}
	return found
}

// examinePayments makes only the checks of payments.
func (c *Doctor) examinePayments(ctx context.Context) []screen.Finding {
	found := c.Supported(ctx, &c.Ledger, logs.New(slog.LevelError))
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return append(found, screen.Bad("database", err.Error()))
	}
	defer n.Close()
	return append(found, openPayments(ctx, n)...)
}

// openPayments reports payments without a final result.
func openPayments(ctx context.Context, n *node.Node) []screen.Finding {
	p, err := node.ReadModels(ctx, n.Ledger, n.Log)
	if err != nil {
		return []screen.Finding{screen.Bad("payments", err.Error())}
	}
	defer p.Close()
	open, err := p.Payments(ctx, "open", manage.ReconcileAtOnce)
	switch {
	case err != nil:
		return []screen.Finding{screen.Bad("payments", err.Error())}
	case len(open) == 0:
		return []screen.Finding{screen.OK("payments", "no payment is open")}
	}
	return []screen.Finding{screen.Warning("payments", fmt.Sprintf("%d are open, the oldest (%s) since %s: run countersign payments reconcile, or payments resolve",
		len(open), open[len(open)-1].PaymentID, open[len(open)-1].ClaimedAt.UTC().Format(time.RFC3339)))}
}

// key checks the signing key, before the database is opened.
func (c *Doctor) key() screen.Finding {
	switch {
	case c.SigningKey != "":
		if _, err := setting.ParseSeed(c.SigningKey); err != nil {
			return screen.Bad("signer", "SIGNING_KEY: "+err.Error())
		}
		return screen.OK("signer", "SIGNING_KEY is an Ed25519 seed")
	case !c.Private():
		return screen.Bad("signer", "no SIGNING_KEY: signed services answer 503")
	}
	_, err := os.Stat(filepath.Join(c.Dir(), "signing.key"))
	if errors.Is(err, fs.ErrNotExist) {
		return screen.OK("signer", "a development key will be created at the first start")
	}
	return screen.Warning("signer", "a development key in the data folder; set SIGNING_KEY for a ledger that must last")
}

// database checks the ledger's PostgreSQL server. byProvider is true if the provider makes commits
// durable.
func database(ctx context.Context, n *node.Node, byProvider bool) []screen.Finding {
	var version, user, superuser, checksums, fsync, fullPage string
	var now time.Time
	err := n.Ledger.Pool().QueryRow(ctx, `select current_setting('server_version'), session_user,
		(select rolsuper::text from pg_roles where rolname = session_user),
		current_setting('data_checksums'), current_setting('fsync'), current_setting('full_page_writes'), now()`).
		Scan(&version, &user, &superuser, &checksums, &fsync, &fullPage, &now)
	if err != nil {
		return []screen.Finding{screen.Bad("database", err.Error())}
	}
	found := []screen.Finding{screen.OK("database", fmt.Sprintf("PostgreSQL %s, schema %d", version, migrations.Latest()))}
	if superuser == "true" {
		found = append(found, screen.Warning("role", "the login is a superuser: use a login that can only switch to "+migrations.AppRole))
	}
	if checksums != "on" {
		found = append(found, screen.Warning("checksums", "data checksums are off: turn them on with pg_checksums --enable"))
	}
	switch {
	case fsync == "on" && fullPage == "on":
	case byProvider:
		found = append(found, screen.Warning("durability", "fsync or full_page_writes is off: the provider makes commits durable (DURABILITY=provider)"))
	default:
		found = append(found, screen.Bad("durability", "fsync or full_page_writes is off: an acknowledged event may be lost, and serve does not start; turn on both"))
	}
	if skew := time.Since(now); skew.Abs() > 2*time.Second {
		found = append(found, screen.Warning("clock", fmt.Sprintf("the clocks of this machine and of the database differ by %s", skew.Round(time.Millisecond))))
	}
	return found
}
