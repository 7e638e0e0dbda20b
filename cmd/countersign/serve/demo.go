package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/proof"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// Demo starts the service in a temporary folder, calls it as an agent would, and verifies the
// records as an auditor would.
type Demo struct {
	NoFetch bool `help:"Never download PostgreSQL."`
	Keep    bool `help:"Keep the temporary folder."`
}

// demoCommands are the commands to judge, the least risky first.
var demoCommands = []string{
	"git status",
	"npm install left-pad",
	"terraform apply",
	"git push --force origin feature/login",
	"rm -rf / --no-preserve-root",
}

// Run runs the demonstration.
func (c *Demo) Run(ctx context.Context, o *screen.Output) (err error) {
	dir, err := os.MkdirTemp("", "countersign-demo-")
	if err != nil {
		return err
	}
	// If root runs the demo, PostgreSQL runs as another user, who must be able to enter the
	// folder.
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	if !c.Keep {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	t := &tour{out: o.Stdout, step: 1}
	t.say("Start the service, with its own PostgreSQL, in %s", dir)
	serve := &Command{Ledger: setting.Ledger{Data: dir, NoFetch: c.NoFetch}, Service: setting.Service{Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", RateLimit: "off"}}
	s, err := serve.start(ctx, slog.New(slog.DiscardHandler), o.Stderr)
	if err != nil {
		return err
	}
	defer s.close(context.WithoutCancel(ctx))
	t.base = serve.BaseURL
	t.note("it answers at %s", t.base)
	if err := t.callAll(ctx); err != nil {
		return err
	}
	if err := t.verify(ctx); err != nil {
		return err
	}
	t.say("Verify the ledger: every hash, link, signature and position")
	report, err := audit.Ledger(ctx, s.node.Ledger, nil)
	if err != nil {
		return err
	}
	t.note("%d events, %d signed records, %d faults, head %s", report.Events, report.Records, len(report.Faults), report.Hash)
	if len(report.Faults) > 0 {
		return screen.ErrNo
	}
	fmt.Fprintf(t.out, "\nThese were the main functions. Start your own service: countersign serve\n")
	return nil
}

// tour is the state of the demonstration between its steps.
type tour struct {
	out     io.Writer
	step    int
	base    string
	key     string
	receipt jsontext.Value
}

func (t *tour) say(format string, args ...any) {
	fmt.Fprintf(t.out, "\n%d. "+format+"\n", append([]any{t.step}, args...)...)
	t.step++
}

func (t *tour) note(format string, args ...any) { fmt.Fprintf(t.out, "   "+format+"\n", args...) }

// call sends a request and decodes the answer into a value. An answer other than success is an
// error.
func (t *tour) call(ctx context.Context, method, path string, body, into any) error {
	var in io.Reader
	if body != nil {
		text, err := canon.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, t.base+path, in)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if t.key != "" {
		r.Header.Set("X-API-Key", t.key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return json.Unmarshal(text, into)
}

func (t *tour) callAll(ctx context.Context) error {
	t.say("Get a free key: POST /api/keys/free")
	var key struct {
		APIKey        string `json:"apiKey"`
		CallsPerMonth int    `json:"callsPerMonth"`
	}
	if err := t.call(ctx, http.MethodPost, "/api/keys/free", map[string]string{"email": "you@example.com"}, &key); err != nil {
		return err
	}
	t.key = key.APIKey
	t.note("%s…  good for %d calls a month, shown only now", key.APIKey[:17], key.CallsPerMonth)

	t.say("Ask the quick gate about five commands: POST /api/agent-services/action-safety/quick")
	for _, command := range demoCommands {
		var verdict struct {
			Risk           string   `json:"risk"`
			MatchedRuleIDs []string `json:"matchedRuleIds"`
			Next           *struct {
				Path string `json:"path"`
			} `json:"nextRecommendedCall"`
		}
		if err := t.call(ctx, http.MethodPost, "/api/agent-services/action-safety/quick", map[string]string{"command": command}, &verdict); err != nil {
			return err
		}
		next := "go ahead"
		if verdict.Next != nil {
			next = "next: " + strings.TrimPrefix(verdict.Next.Path, "/api/agent-services/")
		}
		t.note("%-40s %-9s %s  %s", command, verdict.Risk, next, strings.Join(verdict.MatchedRuleIDs, " "))
	}

	t.say("Run the complete workflow for the last one: POST /api/agent-services/action-safety/run")
	var run struct {
		WorkflowID string         `json:"workflowId"`
		Status     string         `json:"status"`
		Decision   string         `json:"decision"`
		Receipt    jsontext.Value `json:"receipt"`
	}
	body := map[string]string{"command": demoCommands[len(demoCommands)-1], "environment": "production"}
	if err := t.call(ctx, http.MethodPost, "/api/agent-services/action-safety/run", body, &run); err != nil {
		return err
	}
	t.receipt = run.Receipt
	t.note("%s  %s, decision %s, with a signed receipt", run.WorkflowID, run.Status, run.Decision)

	t.say("Read its status record, kept for 30 days: GET /api/agent-workflows/action-safety/status/…")
	var status struct {
		Status     string `json:"status"`
		ExpiresAt  string `json:"expiresAt"`
		Boundaries struct {
			HumanApprovalIncluded bool `json:"humanApprovalIncluded"`
		} `json:"boundaries"`
	}
	if err := t.call(ctx, http.MethodGet, "/api/agent-workflows/action-safety/status/"+run.WorkflowID, nil, &status); err != nil {
		return err
	}
	t.note("%s until %s, humanApprovalIncluded %v: a recommendation is not an approval", status.Status, status.ExpiresAt, status.Boundaries.HumanApprovalIncluded)
	return nil
}

// verify verifies the receipt with the service's public keys, and shows that a receipt with one
// changed byte is not valid.
func (t *tour) verify(ctx context.Context) error {
	t.say("Verify the receipt without trusting the server: countersign verify receipt.json --keys jwks.json")
	var set jsontext.Value
	if err := t.call(ctx, http.MethodGet, "/.well-known/jwks.json", nil, &set); err != nil {
		return err
	}
	keys, err := bundle.ReadKeySet(set)
	if err != nil {
		return err
	}
	examiner, shown := seal.Examiner{Keys: setting.ForRecords(keys)}, &screen.Output{Stdout: t.out}
	found, err := examiner.Examine(t.receipt)
	if err != nil {
		return err
	}
	if err := proof.PrintExamination(shown, found); err != nil {
		return err
	}
	t.say("Change one byte of it and verify again")
	if found, err = examiner.Examine(bytes.Replace(t.receipt, []byte("needs_review"), []byte("needs_reviev"), 1)); err != nil {
		return err
	}
	if err := proof.PrintExamination(shown, found); err == nil {
		return fmt.Errorf("the changed record was accepted as valid")
	}
	return nil
}
