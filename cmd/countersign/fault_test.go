package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/localpg"
)

// served is a countersign serve in a process of its own.
type served struct {
	cmd  *exec.Cmd
	base string
}

// serveIn starts the service on a data folder, with NAME=value settings, and waits for its address.
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

// dataDir is a folder that PostgreSQL's user reaches, also when root tests.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "countersign-fault-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	server, err := localpg.Start(t.Context(), localpg.Options{DataDir: data})
	if errors.Is(err, localpg.ErrNoPostgres) && os.Getenv("REQUIRE_DB") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	return data
}

// journal is what the clients were told, kept outside the service.
type journal struct {
	mu     sync.Mutex
	bodies map[string]string // answer per idempotency key
}

// acknowledge notes an answer; a second one for the same key must be equal.
func (j *journal) acknowledge(key, body string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if before, known := j.bodies[key]; known && before != body {
		return fmt.Errorf("%s was answered in two ways", key)
	}
	j.bodies[key] = body
	return nil
}

func post(base, path, key, idempotencyKey, body string) (status int, answer string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", key)
	if idempotencyKey != "" {
		r.Header.Set("Idempotency-Key", idempotencyKey)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

const (
	quickPath = "/api/agent-services/action-safety/quick"
	runPath   = "/api/agent-services/action-safety/run"
)

// TestFaultKillNine kills the service and its PostgreSQL without warning, again
// and again, while clients call. Each acknowledged answer is there exactly once
// afterwards, octet for octet, and the chain verifies.
func TestFaultKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := dataDir(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	j := &journal{bodies: map[string]string{}}
	var keys []string
	for round := range 4 {
		s := serveIn(t, dir)
		if round == 0 {
			keys = issueKeys(t, s.base, 3)
		}
		var clients sync.WaitGroup
		for c := range 6 {
			clients.Go(func() { callUntilItDies(t, s.base, keys[c%3], fmt.Sprintf("%d/%d", round, c), j) })
		}
		time.Sleep(time.Duration(150+r.IntN(250)) * time.Millisecond) // a load to kill, not a wait for something
		kill(t, s, dir, round)
		clients.Wait()
	}
	s := serveIn(t, dir)
	for key, body := range j.bodies {
		name := strings.Split(key, "/")
		c, _ := strconv.Atoi(name[1])
		path := runPath
		if c%2 == 0 {
			path = quickPath
		}
		status, again, err := post(s.base, path, keys[c%3], key, bodyOf(key))
		if err != nil || status != http.StatusOK || again != body {
			t.Errorf("%s: %d %v\n got %s\nwant %s", key, status, err, again, body)
		}
	}
	t.Logf("%d answers acknowledged", len(j.bodies))
	if len(j.bodies) == 0 {
		t.Error("nothing was acknowledged: the test tested nothing")
	}
	sound(t, dir)
}

func issueKeys(t *testing.T, base string, n int) []string {
	t.Helper()
	var keys []string
	for i := range n {
		status, answer, err := post(base, "/api/keys/free", "", "", fmt.Sprintf(`{"email":"fault-%d@example.com"}`, i))
		if err != nil || status != http.StatusCreated {
			t.Fatalf("issue a key: %d %s %v", status, answer, err)
		}
		_, rest, _ := strings.Cut(answer, `"apiKey":"`)
		key, _, _ := strings.Cut(rest, `"`)
		keys = append(keys, key)
	}
	return keys
}

func bodyOf(key string) string { return fmt.Sprintf(`{"command":"rm -rf /srv/%s"}`, key) }

// callUntilItDies calls until the service is gone. Even clients ask the quick
// gate, odd ones run the workflow.
func callUntilItDies(t *testing.T, base, key, name string, j *journal) {
	c, _ := strconv.Atoi(strings.Split(name, "/")[1])
	path := runPath
	if c%2 == 0 {
		path = quickPath
	}
	for n := range 40 { // 4 rounds of 2 clients of a key stay within its 250 calls
		idempotencyKey := fmt.Sprintf("%s/%d", name, n)
		for {
			status, answer, err := post(base, path, key, idempotencyKey, bodyOf(idempotencyKey))
			if err != nil {
				return
			}
			if status == http.StatusServiceUnavailable {
				continue // the database is gone or coming back: ask again
			}
			if status == http.StatusTooManyRequests {
				return
			}
			if status != http.StatusOK {
				t.Errorf("%s: %d %s", idempotencyKey, status, answer)
				return
			}
			if err := j.acknowledge(idempotencyKey, answer); err != nil {
				t.Error(err)
			}
			break
		}
	}
}

// kill ends the service's process, its PostgreSQL's, or both; when only the
// database went, the service must come back by itself before it is killed, too.
func kill(t *testing.T, s *served, dir string, round int) {
	t.Helper()
	postgres := postmaster(t, dir)
	switch round % 3 {
	case 0:
		_ = s.cmd.Process.Kill()
	case 1:
		_ = syscall.Kill(postgres, syscall.SIGKILL)
		waitFor(t, "the service to come back", func() bool {
			answer, err := http.Get(s.base + "/readyz")
			if err != nil {
				return false
			}
			_ = answer.Body.Close()
			return answer.StatusCode == http.StatusOK && postmaster(t, dir) != postgres
		})
		_ = s.cmd.Process.Kill()
	case 2:
		_ = syscall.Kill(postgres, syscall.SIGKILL)
		_ = s.cmd.Process.Kill()
	}
	_ = s.cmd.Wait()
}

func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pg", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited 30 s for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Two processes serve one data folder: the second joins the PostgreSQL of the
// first, and when the first goes, it starts one for itself and goes on.
func TestSecondProcessJoinsAndTakesOver(t *testing.T) {
	dir := dataDir(t)
	first := serveIn(t, dir)
	second := serveIn(t, dir)
	key := issueKeys(t, first.base, 1)[0]
	for i, s := range []*served{first, second, first, second} {
		if status, answer, err := post(s.base, quickPath, key, "", `{"command":"ls"}`); err != nil || status != http.StatusOK {
			t.Fatalf("call %d: %d %s %v", i, status, answer, err)
		}
	}
	_ = first.cmd.Process.Signal(syscall.SIGTERM)
	if err := first.cmd.Wait(); err != nil {
		t.Errorf("the first ended with %v", err)
	}
	waitFor(t, "the second to have a database again", func() bool {
		status, _, err := post(second.base, quickPath, key, "after", `{"command":"ls"}`)
		return err == nil && status == http.StatusOK
	})
	sound(t, dir)
}

// A signing key of another environment is no key of this ledger: no start.
func TestForeignSigningKeyDoesNotStart(t *testing.T) {
	dir := dataDir(t)
	s := serveIn(t, dir)
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	cmd := program("serve", "--listen", "127.0.0.1:0", "--data", dir)
	cmd.Env = append(cmd.Env, "SIGNING_KEY="+strings.Repeat("ab", 32))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "another environment") {
		t.Errorf("%v: %s", err, out)
	}
}
