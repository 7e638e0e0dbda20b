package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// A command in the guard's log steers no terminal and makes no line of its own.
func TestLogShowsCommandsOnTheirOwnLine(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	if err := appendLog(filepath.Join(state, "countersign"), logged{At: "2026-11-22T10:00:00Z", Agent: "claude", Decision: "deny", Command: "rm -rf /\n2026-11-22T10:00:01Z\x1b[2K"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := run([]string{"gate", "log"}, &out, &out); code != 0 || strings.Count(out.String(), "\n") != 2 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%d: %q", code, out.String())
	}
}
