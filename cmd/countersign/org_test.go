package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// operator runs subcommands on one database.
type operator struct {
	t    *testing.T
	base []string
}

// in returns the operator for a step of a test, so that a failure names the step.
func (o *operator) in(t *testing.T) *operator { return &operator{t, o.base} }

func newOperator(t *testing.T) *operator {
	t.Helper()
	db := ledgertest.New(t)
	return &operator{t, []string{"--database-url", db.URL, "--signing-key", strings.Repeat("07", 32), "--data-kek", strings.Repeat("08", 32)}}
}

// run runs a subcommand, checks the exit code, and returns the output.
func (o *operator) run(code int, args ...string) string {
	o.t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(append(args, o.base...), &stdout, &stderr); got != code {
		o.t.Fatalf("%v: exit %d, want %d: %s%s", args, got, code, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// value runs a subcommand with --json and returns one member of its result.
func (o *operator) value(name string, args ...string) string {
	o.t.Helper()
	var members map[string]any
	text := o.run(0, append([]string{"--json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		o.t.Fatalf("%v: %s", args, text)
	}
	value, _ := members[name].(string)
	if value == "" {
		o.t.Fatalf("%v: no %s in %s", args, name, text)
	}
	return value
}

func (o *operator) file(text string) string {
	o.t.Helper()
	path := filepath.Join(o.t.TempDir(), "policy.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return path
}

func TestOrganizationOnTheCommandLine(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	org := o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	member := o.value("memberId", "org", "member", "add", "--org", org, "--email", "bob@example.com", "--role", "developer")
	if text := o.run(0, "org", "show", org); !strings.Contains(text, "bob@example.com") || !strings.Contains(text, "owner") {
		t.Errorf("show: %s", text)
	}
	token := o.value("token", "org", "token", "issue", "--org", org, "--expires", "30d", "--member", member)
	if !regexp.MustCompile(`^svco_[0-9a-z]{12}_[A-Za-z0-9_-]{43}_[A-Za-z0-9_-]{6}$`).MatchString(token) {
		t.Errorf("token %q", token)
	}
	if text := o.run(0, "org", "token", "list", "--org", org); !strings.Contains(text, "active") || strings.Contains(text, token) {
		t.Errorf("list: %s", text)
	}
	o.run(0, "org", "token", "issue", "--org", org, "--rotate", token[5:17])
	if text := o.run(0, "org", "token", "list", "--org", org); !strings.Contains(text, "rotating") {
		t.Errorf("list: %s", text)
	}
	o.run(0, "org", "token", "revoke", "--org", org, token[5:17], "--reason", "leaked")
	if text := o.run(0, "org", "token", "list", "--org", org); !strings.Contains(text, "revoked") {
		t.Errorf("list: %s", text)
	}
	o.run(0, "org", "member", "remove", "--org", org, member)
	o.run(2, "org", "member", "remove", "--org", org, member)
	o.run(0, "org", "update", "--org", org, "--state", "suspended", "--reason", "abuse")
	if text := o.run(0, "org", "list"); !strings.Contains(text, "suspended") || !strings.Contains(text, org) {
		t.Errorf("list: %s", text)
	}
	o.run(2, "org", "show", "org_01JD3Z8W5T0000000000000000")
	o.run(2, "org", "create", "--name", "Acme", "--plan", "free", "--owner", "ada@example.com")
	o.run(2, "org", "token", "issue", "--org", org, "--expires", "soon")
	o.run(2, "org", "token", "issue", "--org", org, "--expires", "400d")
	if text := o.run(0, "verify"); !strings.Contains(text, "VALID") {
		t.Errorf("verify: %s", text)
	}
}

// If an export cannot be made or its file cannot be written, the command prints the reason, and
// the ledger records no export. If the file is a symbolic link, its target is written.
func TestAnExportThatCannotBeIsNotRecorded(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	org := o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	folder := t.TempDir()
	out := filepath.Join(folder, "export.tar.gz")
	for _, c := range []struct {
		words string
		args  []string
	}{
		{"write /nonexist/x: no such file or directory", []string{"--org", org, "--out", "/nonexist/x"}},
		{"the path is a folder", []string{"--org", org, "--out", folder}},
		{"not both", []string{"--org", org, "--out", out, "--period", "2026", "--from", "2027-01-01"}},
		{"--from must be a time such as", []string{"--org", org, "--out", out, "--from", "yesterday"}},
		{"--to must be a time such as", []string{"--org", org, "--out", out, "--from", "2026-01-01", "--to", "2026-13-01"}},
		{"organization not found", []string{"--org", "org_none", "--out", out}},
		{"--to must be later than --from", []string{"--org", org, "--out", out, "--from", "2090-01-01", "--to", "2089-01-01"}},
	} {
		var said bytes.Buffer
		if code := run(append(append([]string{"export"}, c.args...), o.base...), io.Discard, &said); code != 2 || !strings.Contains(said.String(), c.words) || strings.Contains(said.String(), "write "+out) {
			t.Errorf("%v: exit %d: %s, want %s", c.args, code, said.String(), c.words)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if text := o.run(0, "--json", "tail", "--once"); strings.Contains(text, "export.created") {
		t.Error("a refused export is recorded")
	}
	link := filepath.Join(folder, "newest")
	if err := os.Symlink(out, link); err != nil {
		t.Fatal(err)
	}
	o.run(0, "export", "--org", org, "--out", link)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if packed, err := os.ReadFile(out); err != nil || !bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		t.Errorf("no export came through the link: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	if text := o.run(0, "--json", "tail", "--once"); !strings.Contains(text, "export.created") {
		t.Error("the export is not recorded")
	}
}

func TestPolicyOnTheCommandLine(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	org := o.value("orgId", "org", "create", "--name", "Acme", "--plan", "business", "--owner", "ada@example.com")
	good := o.file(`{"policyId":"default","maxUsdPerTransaction":5,"allowedHosts":["api.example.com"]}`)
	bad := o.file(`{"policyId":"default","allowedHosts":["https://api.example.com"]}`)
	lint := func(code int, file string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := run([]string{"policy", "lint", file}, &stdout, &stderr); got != code {
			t.Errorf("lint: exit %d, want %d: %s", got, code, stderr.String())
		}
		return stdout.String()
	}
	if text := lint(0, good); !strings.Contains(text, "policy.no_allowed_pay_to") {
		t.Errorf("lint: %s", text)
	}
	if text := lint(1, bad); !strings.Contains(text, "refused: ") {
		t.Errorf("lint: %s", text)
	}
	lint(2, filepath.Join(t.TempDir(), "none.json"))
	o.run(2, "policy", "draft", "--org", org, "--file", bad)
	draft := o.value("draftId", "policy", "draft", "--org", org, "--file", good)
	if text := o.run(0, "policy", "show", "--org", org); !strings.Contains(text, draft) || !strings.Contains(text, "no policy is active") {
		t.Errorf("show: %s", text)
	}
	o.run(0, "policy", "preview", "--org", org, "--draft", draft)
	o.run(2, "policy", "activate", "--org", org, "--reason", "neither file nor draft")
	o.run(2, "policy", "activate", "--org", org, "--draft", draft)
	if text := o.run(0, "policy", "activate", "--org", org, "--draft", draft, "--reason", "first"); !strings.Contains(text, "version 1 ") {
		t.Errorf("activate: %s", text)
	}
	o.run(2, "policy", "activate", "--org", org, "--draft", draft, "--reason", "again")
	if text := o.run(0, "policy", "activate", "--org", org, "--file", good, "--reason", "the same"); !strings.Contains(text, "version 2 ") || !strings.Contains(text, "changed: nothing") {
		t.Errorf("activate: %s", text)
	}
	if text := o.run(0, "policy", "freeze", "--org", org, "--reason", "leak"); !strings.Contains(text, "version 3 ") {
		t.Errorf("freeze: %s", text)
	}
	if text := o.run(0, "policy", "show", "--org", org); !strings.Contains(text, `"allowedHosts":[],"allowedMcpServers":[]`) {
		t.Errorf("show: %s", text)
	}
	o.run(2, "policy", "explain", "--org", org, "asd_01JD3Z8W5T0000000000000000")
}

// Only the result of a command goes to standard output, so that TOKEN=$(countersign org token
// issue) works. Advice goes to standard error, and --quiet suppresses it.
func TestAScriptTakesWhatACommandMakes(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	org := strings.TrimSpace(o.run(0, "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com"))
	policy, folder := o.file(`{"policyId":"p","allowedMcpServers":["files"]}`), t.TempDir()
	for command, form := range map[string]string{
		"org member add --role auditor --email eve@example.com --org " + org: `^cus_\w+\n$`,
		"export --org " + org + " --out " + folder + "/export.tar.gz":        `^\S+/export.tar.gz\n$`,
		"backup --without-keys " + folder + "/backup":                        `^\S+/backup\n$`,
		"org token issue --org " + org:                                       `^svco_[\w-]+\n$`, "key issue --email ada@example.com": `^svck_[\w-]+\n$`,
		"policy draft --org " + org + " --file " + policy:                               `^\w+\n$`,
		"webhooks create --org " + org + " --url https://hooks.example.com/countersign": `^whsec_\S+\n$`,
	} {
		if printed := o.run(0, strings.Fields(command)...); !regexp.MustCompile(form).MatchString(printed) {
			t.Errorf("%s prints %q", command, printed)
		}
	}
	var stdout, stderr bytes.Buffer
	for _, command := range []string{"org token issue --org " + org, "export --org " + org + " --out " + folder + "/quiet.tar.gz"} {
		if code := run(slices.Concat([]string{"--quiet"}, strings.Fields(command), o.base), &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %q on standard error", command, code, stderr.String())
		}
	}
	if code := run(append([]string{"org", "token", "issue", "--org", org}, o.base...), &stdout, &stderr); code != 0 || !strings.Contains(stderr.String(), "shown only now") {
		t.Errorf("exit %d, %q on standard error", code, stderr.String())
	}
}
