package main

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
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/policy/actionrisk"
)

// doctorCmd looks at everything a service needs and says what to do about it.
type doctorCmd struct {
	data
	Health string `help:"Only ask a running service's /readyz; for container health checks." placeholder:"URL"`
	Hook   bool   `help:"Only look at the guards of coding agents: start each hook as its agent would and check that it blocks a canary."`
	Agent  string `help:"With --hook: only this agent (claude, codex, cursor, gemini, opencode, qwen, copilot)." enum:",claude,codex,cursor,gemini,opencode,qwen,copilot" default:""`

	HookCommand []string `arg:"" optional:"" name:"hook-command" help:"With --hook, after --: the hook's command, instead of what the settings name. Without it, payments: only look at those."`
	x402Settings
}

// finding is one thing doctor looked at.
type finding gate.Finding

// Run prints the findings; a bad one is exit code 1.
func (c *doctorCmd) Run(ctx context.Context, o *output) error {
	var findings []finding
	payments := !c.Hook && c.Agent == "" && slices.Equal(c.HookCommand, []string{"payments"})
	switch {
	case payments:
		findings = c.examinePayments(ctx)
	case !c.Hook && (c.Agent != "" || len(c.HookCommand) > 0):
		return errors.New("an agent and a hook's command belong to --hook")
	case c.Health != "":
		findings = []finding{readiness(ctx, c.Health)}
	case c.Hook:
		return o.gate().Findings(gate.HookFindings(ctx, o.gate(), c.Agent, c.HookCommand))
	default:
		findings = c.examine(ctx)
	}
	list := make([]gate.Finding, len(findings))
	for i, f := range findings {
		list[i] = gate.Finding(f)
	}
	return o.gate().Findings(list)
}

func readiness(ctx context.Context, base string) finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/readyz", nil)
	if err != nil {
		return finding{"readyz", "bad", "the address is not a URL"}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return finding{"readyz", "bad", "no answer"}
	}
	defer answer.Body.Close()
	var said struct {
		Ledger string `json:"ledger"`
	}
	if text, err := files.ReadAtMost(answer.Body, 1<<16); err == nil {
		_ = json.Unmarshal(text, &said) // a proxy's page says nothing
	}
	switch {
	case answer.StatusCode != http.StatusOK:
		return finding{"readyz", "bad", strings.TrimSuffix("not ready: "+answer.Status+"; "+screen.Printable(said.Ledger), "; ")}
	case said.Ledger != "":
		return finding{"readyz", "warning", "ready, but " + screen.Printable(said.Ledger)}
	}
	return finding{"readyz", "ok", "ready"}
}

func (c *doctorCmd) examine(ctx context.Context) []finding {
	version, hash := actionrisk.Ruleset()
	found := []finding{{"rules", "ok", fmt.Sprintf("rule set %s, %s…, %d rules", version, hash[:12], len(actionrisk.Rules()))}, c.key()}
	n, err := c.data.open(ctx)
	if err != nil {
		return append(append(found, finding{"database", "bad", err.Error()}), c.cluster(ctx)...)
	}
	defer n.close()
	found = append(found, n.database(ctx, c.byProvider())...)
	found = append(found, c.cluster(ctx)...)
	found = append(found, n.heads(&c.data))
	found = append(found, n.archived(ctx)...)
	found = append(found, c.supported(ctx, &c.data, logs.New(slog.LevelError))...)
	found = append(found, n.payments(ctx)...)
	if text := n.readOnly(); text != "" {
		found = append(found, finding{"ledger", "bad", text})
	}
	report, err := audit.Ledger(ctx, n.ledger, nil, n.checkpoints.Stores()...)
	switch {
	case err != nil:
		found = append(found, finding{"ledger", "bad", err.Error()})
	case len(report.Faults) > 0:
		found = append(found, finding{"ledger", "bad", fmt.Sprintf("%s: %d faults, the first: %s (countersign verify lists them)", ledger.SaysAltered, len(report.Faults), report.Faults[0])})
	default:
		found = append(found, finding{"ledger", "ok", fmt.Sprintf("%d events verify, origin %s", report.Events, report.Origin)})
	}
	return found
}

// examinePayments looks at payments alone.
func (c *doctorCmd) examinePayments(ctx context.Context) []finding {
	found := c.supported(ctx, &c.data, logs.New(slog.LevelError))
	n, err := c.data.open(ctx)
	if err != nil {
		return append(found, finding{"database", "bad", err.Error()})
	}
	defer n.close()
	return append(found, n.payments(ctx)...)
}

// payments looks for those whose end is not known.
func (n *node) payments(ctx context.Context) []finding {
	p, err := readModels(ctx, n.ledger, n.log)
	if err != nil {
		return []finding{{"payments", "bad", err.Error()}}
	}
	defer p.Close()
	open, err := p.Payments(ctx, "open", reconcileAtOnce)
	switch {
	case err != nil:
		return []finding{{"payments", "bad", err.Error()}}
	case len(open) == 0:
		return []finding{{"payments", "ok", "none is open"}}
	}
	return []finding{{"payments", "warning", fmt.Sprintf("%d are open, the oldest (%s) since %s: countersign payments reconcile, or resolve",
		len(open), open[len(open)-1].PaymentID, open[len(open)-1].ClaimedAt.UTC().Format(time.RFC3339))}}
}

// key looks at the signing key before the database is opened.
func (c *doctorCmd) key() finding {
	switch {
	case c.SigningKey != "":
		if _, err := parseSeed(c.SigningKey); err != nil {
			return finding{"signer", "bad", "SIGNING_KEY: " + err.Error()}
		}
		return finding{"signer", "ok", "SIGNING_KEY is an Ed25519 seed"}
	case !c.private():
		return finding{"signer", "bad", "no SIGNING_KEY: signed services answer 503"}
	}
	_, err := os.Stat(filepath.Join(c.dir(), "signing.key"))
	if errors.Is(err, fs.ErrNotExist) {
		return finding{"signer", "ok", "a development key will be made at the first start"}
	}
	return finding{"signer", "warning", "a development key made here; set SIGNING_KEY for anything that must last"}
}

// database looks at the server behind the ledger, whose commits its provider may keep.
func (n *node) database(ctx context.Context, byProvider bool) []finding {
	var version, user, superuser, checksums, fsync, fullPage string
	var now time.Time
	err := n.ledger.Pool().QueryRow(ctx, `select current_setting('server_version'), session_user,
		(select rolsuper::text from pg_roles where rolname = session_user),
		current_setting('data_checksums'), current_setting('fsync'), current_setting('full_page_writes'), now()`).
		Scan(&version, &user, &superuser, &checksums, &fsync, &fullPage, &now)
	if err != nil {
		return []finding{{"database", "bad", err.Error()}}
	}
	found := []finding{{"database", "ok", fmt.Sprintf("PostgreSQL %s, schema %d", version, migrations.Latest())}}
	if superuser == "true" {
		found = append(found, finding{"role", "warning", "the login is a superuser: use one that may only become " + migrations.AppRole})
	}
	if checksums != "on" {
		found = append(found, finding{"checksums", "warning", "data checksums are off: pg_checksums --enable"})
	}
	switch {
	case fsync == "on" && fullPage == "on":
	case byProvider:
		found = append(found, finding{"durability", "warning", "fsync or full_page_writes is off: its provider keeps commits durable (DURABILITY=provider)"})
	default:
		found = append(found, finding{"durability", "bad", "fsync or full_page_writes is off: an acknowledged event may be lost, and serve does not start; turn both on"})
	}
	if skew := time.Since(now); skew.Abs() > 2*time.Second {
		found = append(found, finding{"clock", "warning", fmt.Sprintf("this clock and the database's differ by %s", skew.Round(time.Millisecond))})
	}
	return found
}
