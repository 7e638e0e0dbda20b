package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/policy/guardlog"
)

// TestLogPush checks that new lines are sent once, in parts that the service accepts, that a part
// is sent again if the answer was lost, and that an edited log is not sent.
func TestLogPush(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	folder := ownAccount().State()
	var taken []int64
	fails := false
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var report guardlog.Report
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil || report.Check() != nil || r.Header.Get("Authorization") != "Bearer svco_x" {
			t.Errorf("%v, %v, %v", err, report.Check(), r.Header)
		}
		if fails {
			w.WriteHeader(503)
			return
		}
		for _, l := range report.Lines {
			taken = append(taken, l.Number)
		}
	}))
	defer service.Close()
	push := func(code int, says string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := run([]string{"gate", "log", "push", "--url", service.URL, "--token", "svco_x"}, &stdout, &stderr); got != code || !strings.Contains(stdout.String()+stderr.String(), says) {
			t.Errorf("exit %d: %s%s", got, &stdout, &stderr)
		}
	}
	add := func(n int) {
		t.Helper()
		for range n {
			if err := guard.Log(folder).Append(guardlog.Line{At: "2026-11-22T10:00:00Z", Agent: "claude", Decision: "deny", Level: "high", Command: "x"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(guardlog.MostLines + 1)
	fails = true
	push(2, "the service answered 503")
	fails = false
	push(0, "501 lines sent")
	push(0, "0 lines sent")
	add(2)
	push(0, "2 lines sent")
	if len(taken) != 503 || taken[502] != 503 {
		t.Errorf("%d lines", len(taken))
	}
	if info, err := os.Stat(filepath.Join(folder, guard.KeyName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "gate.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "gate.log"), bytes.Replace(text, []byte(`"deny"`), []byte(`"pass"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	push(2, "does not verify")
}
