package guard

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/policy/actionrisk"
)

var offeredCode = regexp.MustCompile(`gate allow --once ([A-Z2-7]{8})`)

// guarded answers an event and logs it, as the installed hook does.
func (m *machine) guarded(command, folder string, now time.Time) (agents.Decision, string) {
	m.t.Helper()
	g := Guard{Agent: agents.Claude, Ask: "auto", Judge: actionrisk.ScoreIn, Account: m.Account, Log: m.Account.Log(), Now: now}
	r := g.Answer(bytes.NewReader(bytes.Replace(inFolder(m.t, agents.Claude, command, folder), []byte(agents.DoctorSession), []byte("session"), 1)))
	d, _ := agents.Claude.Understands(0, []byte(r.Stdout), "")
	return d, r.Stdout
}

// An answer that blocks an action contains a code. With it the user can allow exactly this action
// once.
func TestAllowOnce(t *testing.T) {
	m := newMachine(t)
	_, answer := m.guarded(forcedBranch, m.web, testNow)
	code := offeredCode.FindStringSubmatch(answer)
	if code == nil {
		t.Fatal(answer)
	}
	b, err := m.BlockedBy(code[1])
	if err != nil || b.Cwd != m.web || b.Session != "session" {
		t.Fatalf("%+v, %v", b, err)
	}
	if last, err := m.BlockedBy(""); err != nil || last.Code != b.Code {
		t.Errorf("%+v, %v", last, err)
	}
	if _, err := m.Allow(Exception{Action: b.Action, Once: true, Until: testNow.Add(time.Hour).Format(time.RFC3339), Reason: "code"}); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		command, folder string
		want            agents.Decision
	}{{forcedBranch + "2", m.web, agents.Ask}, {forcedBranch, m.prod, agents.Ask}, {forcedBranch, m.web, agents.Pass}, {forcedBranch, m.web, agents.Ask}} {
		if got, answer := m.guarded(c.command, c.folder, testNow); got != c.want {
			t.Errorf("call %d: %s, want %s: %s", i+1, got, c.want, answer)
		}
	}
	if _, err := m.BlockedBy("AAAAAAAA"); err == nil {
		t.Error("a code that was never given")
	}
}

// Critical rules have no exceptions unless the operator's file allows them, and rules that protect
// the guard have none: the answer has no code, and "gate allow" returns an error.
func TestAllowNeverCritical(t *testing.T) {
	m := newMachine(t)
	for _, command := range []string{"rm -rf /", "rm ~/.claude/settings.json", "countersign gate trust"} {
		if _, answer := m.guarded(command, m.web, testNow); offeredCode.MatchString(answer) {
			t.Errorf("%s: %s", command, answer)
		}
	}
	_, err := m.Allow(Exception{Rule: "shell.rm.recursive-root", Reason: "x"})
	if err == nil || !strings.Contains(err.Error(), "allowUpTo") {
		t.Error(err)
	}
	if _, err := m.Allow(Exception{Rule: "hook.guard-settings", Reason: "x"}); err == nil {
		t.Error("the guard's own rule")
	}
	m.operator(`{"allowUpTo":"critical"}`)
	if _, err := m.Allow(Exception{Rule: "shell.rm.recursive-root", Reason: "x"}); err != nil {
		t.Error(err)
	}
	if _, answer := m.guarded("rm -rf /", m.prod, testNow); strings.Contains(answer, "deny") {
		t.Error(answer)
	}
}

// With "observe" in the user's settings, nothing is blocked; the log records what would have been.
func TestObserve(t *testing.T) {
	m := newMachine(t)
	m.user(`{"observe":true}`)
	for _, command := range []string{"rm -rf /", forcedBranch, "ls"} {
		if d, answer := m.guarded(command, m.web, testNow); d != agents.Pass {
			t.Errorf("%s: %s", command, answer)
		}
	}
	lines, _, err := m.Account.Log().Read()
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v, %v", lines, err)
	}
	s := Count(lines, testNow.Add(-time.Hour))
	if lines[0].Decision != string(Observed) || lines[0].Note != "observed: would be deny" || s.Observed != 2 || s.Passed != 1 || len(s.Rules) == 0 {
		t.Errorf("%+v %+v", lines[0], s)
	}
}

// The events with which doctor tests the hook do not count as calls of an agent.
func TestStatsLeaveDoctorOut(t *testing.T) {
	m := newMachine(t)
	g := Guard{Agent: agents.Claude, Judge: actionrisk.ScoreIn, Account: m.Account, Log: m.Account.Log(), Now: testNow}
	g.Answer(bytes.NewReader(agents.Claude.Canary(agents.CanaryCommand)))
	lines, _, err := m.Account.Log().Read()
	if err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	if s := Count(lines, testNow.Add(-time.Hour)); s.Calls != 0 || s.Denied != 0 || len(s.Rules) > 0 {
		t.Errorf("%+v", s)
	}
}
