// Package guard is the guard of a coding agent: it reads the event that the agent sends
// before a tool, has the engine judge what the tool would do, and answers in the agent's
// own format. It needs no network, database or key, and whatever goes wrong is a block:
//
//	low, medium   no interference: the agent's own permissions decide
//	high          ask the user, or deny where nobody would be asked
//	critical      deny
//
// Beside the answer stand the user's own exceptions, the log of what was decided, and
// the agents' settings: the entry that starts the guard, and whether one that is there
// does guard.
package guard

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/guardlog"
)

// Guard is the policy of one hook, and what it works with.
type Guard struct {
	Agent       Agent  // whose format to answer in; empty: told from the event, which is then never asked about
	Ask         string // whether high risk may be asked about: auto (where the agent is known to stop and ask), always (wherever its format has a word for it), never
	Strict      bool   // one step stricter: ask about medium risk, deny high
	FailClosed  bool   // what no rule knows and is not proven read-only is high
	Environment string // which the agent's commands reach
	AllowProven bool   // answer allow to what is proven read-only

	Judge func(actionrisk.Action) actionrisk.ScoreOutput // the engine
	Log   Log
	Now   time.Time
}

// Reply is what the hook says: its standard output, and why it failed if it did. An
// answer is exit code 0. A failure (no JSON, an unknown shape, a panic, the time limit)
// is exit code 2 with the reason on standard error, which each of the agents takes for a
// block, and beside it the agent's own denial.
type Reply struct {
	Stdout  string
	Failure error
}

// Decision is what becomes of an agent's action.
type Decision string

// What a guard answers.
const (
	Pass Decision = "pass" // no interference
	Ask  Decision = "ask"
	Deny Decision = "deny"
	// Proven is a pass of what is proven to change nothing, said so that the agent
	// does not ask either.
	Proven Decision = "proven"
)

// What stands in the log beside the answers.
const (
	Canary Decision = "canary" // the guard tried itself at the beginning of a session
	Unseen Decision = "unseen" // a tool ran without a verdict
)

// Answer reads one event and answers it within the limits: of processor time, so
// that many guards at once on a busy machine deny nothing for their own slowness,
// and of time as such, below that of the host. The goroutine ends
// with its reply or with the process: nothing waits for it after the limit.
func (g Guard) Answer(stdin io.Reader) Reply {
	done := make(chan Reply, 1)
	go func() {
		by := g.Agent
		defer func() {
			if recover() != nil { // the value may repeat the event, so it is not shown
				done <- refuse(by, errors.New("the guard failed"))
			}
		}()
		done <- g.respond(stdin, &by)
	}()
	begun := processorTime()
	timer, look := time.NewTimer(answerWithin), time.NewTicker(lookEvery)
	defer timer.Stop()
	defer look.Stop()
	for {
		select {
		case r := <-done:
			return r
		case <-timer.C:
			return refuse(g.Agent, fmt.Errorf("no verdict within %s", answerWithin))
		case <-look.C:
			if processorTime()-begun > processorWithin {
				return refuse(g.Agent, fmt.Errorf("no verdict within %s of processor time", processorWithin))
			}
		}
	}
}

// respond is Answer without limit and recovery; by becomes the agent as soon as
// it is known.
func (g Guard) respond(stdin io.Reader, by *Agent) Reply {
	text, err := io.ReadAll(io.LimitReader(stdin, maxEvent+1))
	switch {
	case err != nil:
		return refuse(*by, errors.New("the event cannot be read"))
	case len(text) > maxEvent:
		return refuse(*by, errors.New("the event is longer than 1 MiB"))
	}
	got, err := readEvent(text, g.Agent)
	*by = got.by
	if err != nil {
		return refuse(*by, err)
	}
	switch got.moment {
	case atStart:
		return g.start(got)
	case afterTool:
		g.after(got)
		return Reply{Stdout: got.by.answer(Pass, "")}
	}
	x, err := ReadExceptions(got.cwd)
	if err != nil {
		return refuse(*by, err)
	}
	d, reason, line := g.decide(got, x)
	g.note(got, line)
	return Reply{Stdout: got.by.answer(d, reason)}
}

// start fires the canary at the beginning of a session: a guard that would let it
// pass says so before the first tool runs.
func (g Guard) start(got asked) Reply {
	got.steps = []step{{command: canaryCommand, shell: true}}
	d, _, line := g.decide(got, Exceptions{})
	line.Decision = string(Canary)
	if d != Deny {
		line.Note = "the canary was not denied"
	}
	g.note(got, line)
	if d != Deny {
		return refuse(got.by, errors.New("the guard does not stop its own canary"))
	}
	return Reply{Stdout: got.by.answer(Pass, "")}
}

// after looks, behind a tool, whether it ran under a verdict of this guard.
func (g Guard) after(got asked) {
	if g.Log == "" || got.callID == "" || g.Log.saw(got.callID) {
		return
	}
	g.note(got, guardlog.Line{Decision: string(Unseen), Level: "unknown", Note: "ALARM: a tool ran without a verdict"})
}

// note writes a line into the log. What fails there stops nothing.
func (g Guard) note(got asked, line guardlog.Line) {
	if g.Log == "" {
		return
	}
	line.At, line.Agent, line.Session, line.Call, line.Cwd = g.Now.UTC().Format(time.RFC3339), string(got.by), got.session, got.callID, got.cwd
	_ = g.Log.Append(line)
}

// refuse blocks because the guard could not do its work.
func refuse(by Agent, cause error) Reply {
	err := fmt.Errorf("blocked: %w; countersign doctor --hook looks into it", cause)
	return Reply{Stdout: by.answer(Deny, "countersign: "+err.Error()), Failure: err}
}

// decide judges every step of an event; the worst one decides. line is what the log
// says of it.
func (g Guard) decide(got asked, x Exceptions) (d Decision, reason string, line guardlog.Line) {
	worst := actionrisk.Low
	var reasons []string
	readOnly := len(got.steps) > 0
	for _, s := range got.steps {
		j := g.step(got, s, x)
		if j.level > worst {
			worst, reasons = j.level, nil
		}
		if j.level == worst {
			reasons = append(reasons, j.why...)
		}
		readOnly = readOnly && j.readOnly
		line.Rules = append(line.Rules, j.rules...)
		if line.Command == "" || j.level == worst {
			line.Command, line.Action = shownPath(s.command), j.action
		}
		if j.note != "" {
			line.Note = j.note
		}
	}
	if d = x.verdict(worst, g.Strict); d == Ask && !g.mayAsk(got) {
		d = Deny
	}
	if d == Pass && g.AllowProven && readOnly {
		d = Proven
	}
	line.Decision, line.Level = string(d), worst.String()
	return d, wording(worst, d, reasons), line
}

// stepVerdict is one step, judged.
type stepVerdict struct {
	level    actionrisk.Level
	why      []string // in words
	rules    []string // ids
	action   string   // hash
	note     string
	readOnly bool // the agent's own command, and proven to change nothing
}

func verdictOf(level actionrisk.Level, strict bool) Decision {
	if strict && level >= actionrisk.Medium {
		level++
	}
	switch {
	case level < actionrisk.High:
		return Pass
	case level == actionrisk.High:
		return Ask
	}
	return Deny
}

func (g Guard) mayAsk(got asked) bool {
	switch g.Ask {
	case "always":
		return got.canAsk
	case "auto":
		return got.canAsk && got.asksHold
	}
	return false
}

// step judges one step and names the rules behind its level.
func (g Guard) step(got asked, s step, x Exceptions) stepVerdict {
	action := actionrisk.Action{Command: s.command, Cwd: got.cwd,
		Environment: g.Environment, FailClosedOnUnmatched: g.FailClosed && s.shell}
	whole := g.Judge(action)
	score, note := x.lower(whole, got.cwd, g.Now)
	level := levelOf(score.Risk)
	v := stepVerdict{level: level, action: whole.ActionHash, note: note, readOnly: s.shell && whole.Coverage.ReadOnly}
	for _, r := range score.MatchedRules {
		if levelOf(r.Severity) != level || len(v.why) == maxReasons {
			break // matched rules come highest first
		}
		where := s.shown
		if where == "" {
			where = r.Evidence.Excerpt
		}
		v.why = append(v.why, ruleText(r.Title, r.ID, where, r.Remediation))
		v.rules = append(v.rules, r.ID)
	}
	switch {
	case level >= actionrisk.High:
	case s.changesGuard(whole):
		return v.high("Changes the settings that hold this guard", "hook.guard-settings", s.shown,
			"let the user edit the agent's settings")
	case got.by == Codex && s.shell && g.takesInput(action):
		return v.high("Opens a shell or console, and what is typed into it later is not shown to this guard",
			"hook.unseen-input", "", "give it the command to run, as in sh -c 'COMMAND'")
	}
	return v
}

// high is the verdict of the guard's own rules, which nothing excepts.
func (v stepVerdict) high(title, id, where, instead string) stepVerdict {
	v.level, v.rules, v.why, v.readOnly = actionrisk.High, []string{id}, []string{ruleText(title, id, where, instead)}, false
	return v
}

// levelOf reads a level's name; a name it does not know is the highest.
func levelOf(name string) actionrisk.Level {
	for l := actionrisk.Low; l < actionrisk.Critical; l++ {
		if l.String() == name {
			return l
		}
	}
	return actionrisk.Critical
}

func isLevel(name string) bool { return levelOf(name).String() == name }

// ruleText is one rule in words. The excerpt is masked already; quoting keeps
// control characters away from a terminal.
func ruleText(title, id, where, instead string) string {
	text := title + " (" + id + ")"
	if where != "" {
		text += " in " + strconv.Quote(where)
	}
	if instead != "" {
		text += "; instead: " + instead
	}
	return text
}

// wording is the reason the user or the model reads.
func wording(level actionrisk.Level, d Decision, reasons []string) string {
	if d == Pass {
		return ""
	}
	if d == Proven {
		return "countersign: proven read-only"
	}
	if len(reasons) > maxReasons {
		reasons = reasons[:maxReasons]
	}
	text := "countersign: " + level.String() + " risk: " + strings.Join(reasons, ". ") + "."
	if d == Deny {
		text += " Do not try another form of it: take the safer way, or ask the user to run it."
	}
	return text
}

// Limits of the guard.
const (
	// maxEvent is the longest event that is read. Edits carry whole files, so it
	// is far above a command; more is no honest event.
	maxEvent = 1 << 20
	// processorWithin is the processor time a verdict may take: a thousand times what
	// the longest event takes.
	processorWithin = 2 * time.Second
	lookEvery       = 50 * time.Millisecond // how often it is looked at
	// answerWithin is the guard's own time: below every agent's default (60 s and
	// more) and below what the installed configurations set (10 s). A host that
	// runs into its own limit lets the action through.
	answerWithin = 8 * time.Second
	// maxReasons keeps an answer short enough to be read.
	maxReasons = 3
	// maxShown is how much of a path an answer repeats, in code points.
	maxShown = 120
)
