package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/localpg"
)

// served is a running process "countersign serve".
type served struct {
	cmd  *exec.Cmd
	base string
}

// serveIn starts the service on a data folder with settings NAME=value, and waits until it
// listens.
func serveIn(t *testing.T, dir string, settings ...string) *served {
	t.Helper()
	cmd := program("serve", "--listen", "127.0.0.1:0", "--data", dir)
	cmd.Env = append(cmd.Env, settings...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if base, ok := strings.CutPrefix(lines.Text(), "countersign answers at "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return &served{cmd, base}
		}
	}
	_ = cmd.Wait()
	t.Fatalf("serve ended: %s", stderr.String())
	return nil
}

// reachable creates an empty folder that PostgreSQL's user can access, even if root runs the
// tests. If there is enough memory, the folder is in memory: a killed process loses no files
// there.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := reachableFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func reachableFolder() (string, error) {
	dir, err := os.MkdirTemp(ledgertest.Base(), "countersign-fault-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// dataDir returns a data folder with an initialized PostgreSQL cluster. It copies a cluster,
// because creating one takes as long as most of these tests.
func dataDir(t *testing.T) string {
	t.Helper()
	needCluster(t)
	data := filepath.Join(reachable(t), "data")
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", model.data, data).CombinedOutput(); err != nil {
		t.Fatalf("copy a cluster: %v: %s", err, out)
	}
	return data
}

// needCluster skips the test if PostgreSQL is not installed.
func needCluster(t *testing.T) {
	t.Helper()
	model.once.Do(func() { model.err = makeCluster() })
	if errors.Is(model.err, localpg.ErrNoPostgres) && os.Getenv("REQUIRE_DB") != "1" {
		t.Skip(model.err)
	}
	if model.err != nil {
		t.Fatal(model.err)
	}
}

// model is the cluster that dataDir copies. TestMain removes it.
var model struct {
	once   sync.Once
	folder string // parent folder of the data folder
	data   string
	err    error
}

func makeCluster() (err error) {
	if model.folder, err = reachableFolder(); err != nil {
		return err
	}
	model.data = filepath.Join(model.folder, "data")
	server, err := localpg.Start(context.Background(), localpg.Options{DataDir: model.data})
	if err != nil {
		return err
	}
	return server.Stop()
}

// post sends JSON with a bearer token, which may be an API key; empty means none.
func post(url, token, body string) (status int, answer string, err error) {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func issueKeys(t *testing.T, base string, n int) []string {
	t.Helper()
	var keys []string
	for i := range n {
		status, answer, err := post(base+"/api/keys/free", "", fmt.Sprintf(`{"email":"fault-%d@example.com"}`, i))
		if err != nil || status != http.StatusCreated {
			t.Fatalf("issue a key: %d %s %v", status, answer, err)
		}
		_, rest, _ := strings.Cut(answer, `"apiKey":"`)
		key, _, _ := strings.Cut(rest, `"`)
		keys = append(keys, key)
	}
	return keys
}

const (
	quickPath     = "/api/agent-services/action-safety/quick"
	runPath       = "/api/agent-services/action-safety/run"
	decisionsPath = "/api/assurance/decisions"
	receiptsPath  = "/api/assurance/receipts"
)

// sound checks the invariants that must hold after every fault: the ledger verifies, each read
// model equals the events, and each decision can be reproduced.
func sound(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"verify"}, {"replay", "diff"}, {"replay", "decisions"}} {
		if out, err := program(append(args, "--data", dir)...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// organizationToken creates an organization with an active policy by commands, and returns a
// token.
func organizationToken(t *testing.T, dir string) string {
	t.Helper()
	policyFile := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policyFile, []byte(`{"policyId":"default","maxUsdPerTransaction":1,"allowedHosts":["api.example"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var made struct {
		OrgID string `json:"orgId"`
		Token string `json:"token"`
	}
	for _, args := range [][]string{
		{"org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com"},
		{"policy", "activate", "--org", "ORG", "--file", policyFile, "--reason", "test"},
		{"org", "token", "issue", "--org", "ORG"},
	} {
		for i := range args {
			if args[i] == "ORG" {
				args[i] = made.OrgID
			}
		}
		out, err := program(append(args, "--data", dir, "--json")...).Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		if err := json.Unmarshal(out, &made); err != nil {
			t.Fatalf("%v: %s", args, out)
		}
	}
	return made.Token
}

func purchase(key string) string {
	return fmt.Sprintf(`{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":"run","agentId":"agent"},"intent":{"resourceUrl":"https://api.example/","method":"GET","amountUsd":0.5}}`, key)
}

// fetched returns the body of an answer, or an error if the status is not 200.
func fetched(url string) ([]byte, error) {
	r, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, r.Status)
	}
	return io.ReadAll(r.Body)
}

// read returns the content of a file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// untar unpacks a .tar.gz file into a folder.
func untar(t *testing.T, path, folder string) {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), "tar", "-xzf", path, "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("%s%v", said, err)
	}
}
