package guard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// canaryCommand must be blocked by every guard. If it were run, it would do nothing, because
// the device does not exist. passCommand must pass.
const (
	canaryCommand = "mkfs.ext4 /dev/countersign-canary"
	passCommand   = "git status"
	// tryWithin is how long doctor waits for one answer, the same as the time-out in the
	// installed configurations.
	tryWithin = 10 * time.Second
)

// Finding is the result of one check of a hook.
type Finding struct {
	State  string // ok, warning or bad
	Detail string
}

// hook is a command in an agent's settings that starts a guard.
type hook struct {
	by      Agent
	place   string   // the settings file, or "the command line"
	argv    []string // the command line to start
	closed  bool     // the agent blocks the tool if the hook fails
	warning string   // what is missing in its entry
}

// found returns a finding about the settings in one file.
func (a Agent) found(place, state, format string, args ...any) Finding {
	return Finding{state, fmt.Sprintf("%s (%s): ", a, place) + fmt.Sprintf(format, args...)}
}

// Try tests the hooks of one agent, or of all agents: those in the settings, or a given
// command. Each is started as its agent would start it, with an event that runs nothing.
func (a Account) Try(ctx context.Context, only Agent, command []string) []Finding {
	var hooks []hook
	var found []Finding
	switch len(command) {
	case 0:
		hooks, found = installedHooks(only)
	case 1:
		command = []string{"sh", "-c", command[0]}
		fallthrough
	default:
		hooks = []hook{{by: cmp.Or(only, Claude), place: "the command line", argv: command}}
	}
	for _, h := range hooks {
		found = append(found, h.try(ctx)...)
	}
	found = append(found, a.rulesHere()...)
	if len(hooks) == 0 && Works(found) {
		found = append(found, Finding{"bad", fmt.Sprintf("no guard is installed here: %s gate hook --install %s prints the entry to add; or give the hook's command after --", Name, cmp.Or(only, "AGENT"))})
	}
	return found
}

// Works reports whether no finding is bad.
func Works(found []Finding) bool {
	return !slices.ContainsFunc(found, func(f Finding) bool { return f.State == "bad" })
}

// rulesHere lists the settings that apply in this folder, and their requests that are ignored.
func (a Account) rulesHere() (found []Finding) {
	here, err := os.Getwd()
	if err != nil {
		return nil
	}
	r, err := a.ReadRules(here, nil)
	if err != nil {
		return []Finding{{"bad", "blocks everything: " + err.Error()}}
	}
	if a.Home == "" {
		found = append(found, Finding{"warning", "the user database has no home folder for this user, so there is no log, and nothing can be trusted or allowed"})
	}
	if len(r.Files) > 0 {
		found = append(found, Finding{"ok", fmt.Sprintf("%s applies here: %d exceptions, up to %s risk", strings.Join(r.Files, ", "), len(r.exceptions()), r.most)})
	}
	if r.observes() {
		found = append(found, Finding{"warning", "OBSERVES ONLY: nothing is stopped here; the log records what would have been stopped"})
	}
	for _, text := range r.Ignored() {
		found = append(found, Finding{"warning", text})
	}
	return found
}

// try sends the canary, a harmless command and an invalid event to one hook.
func (h hook) try(ctx context.Context) []Finding {
	bad := func(format string, args ...any) []Finding {
		return []Finding{h.by.found(h.place, "bad", format, args...)}
	}
	got := h.fire(ctx, h.by.canary(canaryCommand))
	switch {
	case got.outcome == Pass && got.failed && h.closed:
		since := ""
		if h.by == Claude {
			since = " from version 2.1.295 on, and nothing in older versions"
		}
		return bad("blocks everything%s: the hook fails (%s). %s", since, got.detail, h.advice(got))
	case got.outcome != Deny:
		return bad("NOT GUARDED: the canary went through (%s). %s", got.detail, h.advice(got))
	}
	if got := h.fire(ctx, h.by.canary(passCommand)); got.outcome != Pass {
		return bad("blocks everything: %q was stopped too (%s). %s", passCommand, got.detail, h.advice(got))
	}
	found := []Finding{h.by.found(h.place, "ok", "blocks the canary, lets %q pass", passCommand)}
	whole := h.by.canary(canaryCommand)
	if got := h.fire(ctx, whole[:len(whole)-2]); got.outcome != Deny {
		found = append(found, h.by.found(h.place, "warning", "a truncated event is not blocked (%s)", got.detail))
	}
	if h.warning != "" {
		found = append(found, h.by.found(h.place, "warning", "%s", h.warning))
	}
	return found
}

func (h hook) advice(got fired) string {
	switch {
	case got.code == 126 || got.code == 127 || got.code < 0:
		return "Its command cannot be started: write the full path of countersign"
	case got.outcome == Deny:
		return "A guard that blocks everything will be switched off"
	case got.code > 2 || got.code == 1:
		return "The agent runs the tool after this exit code: only 0 with a denial, or 2, blocks it"
	}
	return Name + " gate hook --install " + string(h.by) + " prints the entry that blocks"
}

// fired is a hook's reaction to one event, as its agent reads it.
type fired struct {
	outcome Decision
	detail  string
	code    int  // -1: not started or killed
	failed  bool // no answer, which an agent can be configured to treat as a denial
}

// fire starts the hook with one event on standard input.
func (h hook) fire(ctx context.Context, event []byte) fired {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.argv[0], h.argv[1:]...)
	cmd.WaitDelay = time.Second // limits the wait for a child that keeps the pipes open
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
	d, detail := h.by.understands(code, stdout.Bytes(), stderr.String())
	return fired{d, detail, code, code != 0 || h.by == Cursor && len(bytes.TrimSpace(stdout.Bytes())) == 0}
}
