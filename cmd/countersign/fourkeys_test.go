package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// A start that fails does not activate a signing key or a data key, so the next start can use
// other keys. It fails, for example, because of a checkpoint setting without CHECKPOINT_KEY, or
// another ledger name.
func TestAStartThatFailsHasActivatedNothing(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	folder := t.TempDir()
	key := func(digits string) string { return strings.Repeat(digits, 32) }
	start := func(settings ...string) (said string) {
		t.Helper()
		cmd := program("serve", "--listen", "127.0.0.1:0")
		cmd.Env = append(cmd.Env, "DATABASE_URL="+db.URL, "DATA_DIR="+folder, "SIGNING_KEY="+key("07"), "DATA_KEK="+key("08"), "TOKEN_KEY="+key("09"))
		cmd.Env = append(cmd.Env, settings...)
		text, _ := cmd.CombinedOutput() // the exit code is checked below
		if code := cmd.ProcessState.ExitCode(); code != 2 {
			t.Errorf("%v: exit %d: %s", settings, code, text)
		}
		return string(text)
	}
	for says, settings := range map[string][]string{
		"CHECKPOINT_DIR is set, and CHECKPOINT_KEY is not":     {"CHECKPOINT_DIR=" + folder},
		"CHECKPOINT_MIRRORS is set, and CHECKPOINT_KEY is not": {"CHECKPOINT_MIRRORS=" + folder},
		"CHECKPOINT_KEY is the signing key":                    {"CHECKPOINT_KEY=" + key("07")},
		"CHECKPOINT_KEY: the value must be":                    {"CHECKPOINT_KEY=7"},
		"the origin of this ledger":                            {"LEDGER_ORIGIN=another.example.com"},
		"TOKEN_KEY is the signing key":                         {"TOKEN_KEY=" + key("07")},
		"DATA_KEK":                                             {"DATA_KEK=8"},
		"SUPPORT_CLIENTS":                                      {"SUPPORT_CLIENTS=ada"},
		"WEBHOOK_NETWORKS":                                     {"WEBHOOK_NETWORKS=here"},
		"needs X402_FACILITATOR_URL":                           {"X402_MODE=facilitator", "X402_NETWORK=eip155:8453", "X402_PAY_TO=0x329EdA9C18561571bA257177847A993E354e81b7"},
		"SMTP_URL":                                             {"SMTP_URL=mail"},
		"STRIPE_WEBHOOK_SECRET":                                {"STRIPE_SECRET_KEY=sk_test_x"},
		"MCP_ALLOWED_ORIGINS":                                  {"MCP_ALLOWED_ORIGINS=*"},
		"--metrics-listen":                                     {"METRICS_LISTEN=127.0.0.1:99999"},
	} {
		if said := start(settings...); !strings.Contains(said, says) {
			t.Errorf("%v: %q does not say %q", settings, said, says)
		}
	}
	for _, table := range []string{"events", "subject_keys"} {
		if n := rowsOf(t, db.SuperURL, table); n > 0 {
			t.Errorf("%d %s after starts that failed", n, table)
		}
	}
	// So a start with other keys works, and reports a missing key.
	s := serveIn(t, folder, "DATABASE_URL="+db.URL, "SIGNING_KEY="+key("17"), "DATA_KEK="+key("18"), "TOKEN_KEY="+key("19"), "LEDGER_ORIGIN="+ledgertest.Origin)
	says := s.readyz(t)
	if degraded, _ := says["degraded"].([]any); !slices.Contains(degraded, any("checkpoints")) || !strings.Contains(says["checkpoints"].(string), "CHECKPOINT_KEY") {
		t.Errorf("readyz without CHECKPOINT_KEY: %v", says)
	}
	o := &operator{t, []string{"--database-url", db.URL, "--signing-key", key("17"), "--data-kek", key("18")}}
	if text := line(o.run(0, "doctor"), "checkpoints"); !strings.Contains(text, "warning") || !strings.Contains(text, "CHECKPOINT_KEY") {
		t.Errorf("doctor without CHECKPOINT_KEY: %s", text)
	}
	if text := line(o.run(1, "doctor", "--checkpoint-dir", folder), "checkpoints"); !strings.Contains(text, "bad") {
		t.Errorf("doctor with CHECKPOINT_DIR alone: %s", text)
	}
	if text := line(o.run(0, "doctor", "--checkpoint-key", key("16")), "checkpoints"); !strings.Contains(text, "ok") {
		t.Errorf("doctor with a key: %s", text)
	}
}

// Each example configuration in the repository, and the page about self-hosting, names all four
// keys.
func TestEveryShippedFileNamesFourKeys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".deploy/README.md", ".deploy/countersign.env.example", ".deploy/kubernetes/countersign.yaml",
		".deploy/systemd/countersign.service", "api/site/content/docs/self-hosting.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"SIGNING_KEY", "DATA_KEK", "TOKEN_KEY", "CHECKPOINT_KEY"} {
			if !regexp.MustCompile(`\b` + key + `(_FILE)?[=\x60]`).Match(text) {
				t.Errorf("%s does not name %s", name, key)
			}
		}
	}
}

// rowsOf returns the number of rows in a table of the ledger.
func rowsOf(t *testing.T, url, table string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "select count(*) from "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
