package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard/launch"
)

// CanaryCommand is a test command that every guard must block. If it were run, it would do
// nothing, because the device does not exist. passCommand is one that every guard must let pass.
const (
	CanaryCommand = "mkfs.ext4 /dev/countersign-canary"
	passCommand   = "git status"
	// tryWithin is the time that doctor waits for an answer, the same as in the installed
	// configurations.
	tryWithin = 10 * time.Second
)

// Finding is the result of a check of a hook.
type Finding struct {
	State  string // "ok", "warning" or "bad"
	Detail string
}

// Hook is a command in an agent's settings that starts a guard.
type Hook struct {
	By      Agent
	Path    string   // settings file with the hook, or "the command line"
	Argv    []string // program and arguments to start
	closed  bool     // true: the agent blocks the tool if the hook fails
	warning string   // text about a missing setting of the entry; empty if nothing is missing
}

// found returns a finding that begins with the agent and the settings file.
func (a Agent) found(path, state, format string, args ...any) Finding {
	return Finding{state, fmt.Sprintf("%s (%s): ", a, path) + fmt.Sprintf(format, args...)}
}

// Try starts a hook with three events: the canary, a harmless command and invalid JSON.
func (h Hook) Try(ctx context.Context) []Finding {
	bad := func(format string, args ...any) []Finding {
		return []Finding{h.By.found(h.Path, "bad", format, args...)}
	}
	got := h.fire(ctx, h.By.Canary(CanaryCommand))
	switch {
	case got.outcome == Pass && got.failed && h.closed:
		since := ""
		if h.By == Claude {
			since = " from version 2.1.295 on, and nothing in older versions"
		}
		return bad("blocks everything%s: the hook fails (%s). %s", since, got.detail, h.advice(got))
	case got.outcome != Deny:
		return bad("NOT GUARDED: the canary went through (%s). %s", got.detail, h.advice(got))
	}
	if got := h.fire(ctx, h.By.Canary(passCommand)); got.outcome != Pass {
		return bad("blocks everything: %q was stopped too (%s). %s", passCommand, got.detail, h.advice(got))
	}
	found := []Finding{h.By.found(h.Path, "ok", "blocks the canary, lets %q pass", passCommand)}
	whole := h.By.Canary(CanaryCommand)
	if got := h.fire(ctx, whole[:len(whole)-2]); got.outcome != Deny {
		found = append(found, h.By.found(h.Path, "warning", "a truncated event is not blocked (%s)", got.detail))
	}
	if h.warning != "" {
		found = append(found, h.By.found(h.Path, "warning", "%s", h.warning))
	}
	return found
}

func (h Hook) advice(got fired) string {
	switch {
	case got.code == 126 || got.code == 127 || got.code < 0:
		return "Its command cannot be started: write the full path of countersign"
	case got.outcome == Deny:
		return "A guard that blocks everything will be switched off"
	case got.code > 2 || got.code == 1:
		return "The agent runs the tool after this exit code: only 0 with a denial, or 2, blocks it"
	}
	return launch.Name + " gate hook --install " + string(h.By) + " prints the entry that blocks"
}

// fired is the result of a hook for one event, as the agent reads it.
type fired struct {
	outcome Decision
	detail  string
	code    int  // exit code; -1 if the hook was not started or was killed
	failed  bool // the hook gave no answer; an agent may be configured to block then
}

// fire starts the hook with one event on standard input.
func (h Hook) fire(ctx context.Context, event []byte) fired {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.Argv[0], h.Argv[1:]...)
	cmd.WaitDelay = time.Second // do not wait longer for a child process that keeps the pipes open
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(event), &stdout, &stderr
	if cwd, err := os.Getwd(); err == nil {
		cmd.Env = append(os.Environ(), "CLAUDE_PROJECT_DIR="+cwd, "GEMINI_PROJECT_DIR="+cwd)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fired{Pass, fmt.Sprintf("no answer within %s", tryWithin), -1, true}
	case err != nil && !errors.As(err, &exit):
		return fired{Pass, "the hook cannot be started", -1, true}
	}
	code := cmd.ProcessState.ExitCode()
	d, detail := h.By.Understands(code, stdout.Bytes(), stderr.String())
	return fired{d, detail, code, code != 0 || h.By == Cursor && len(bytes.TrimSpace(stdout.Bytes())) == 0}
}

// Works reports whether no finding is bad.
func Works(found []Finding) bool {
	return !slices.ContainsFunc(found, func(f Finding) bool { return f.State == "bad" })
}
