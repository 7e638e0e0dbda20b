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
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/policy"
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

	Judge   Judge
	Account Account
	Log     Log
	Now     time.Time
}

// Judge is the engine: a verdict, and what the action does to the machine.
type Judge func(actionrisk.Action, actionrisk.Surroundings) (actionrisk.ScoreOutput, actionrisk.Trace)

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
	// Observed is what would have been asked about or denied, where settings say that
	// nothing is stopped.
	Observed Decision = "observed"
)

// Answer reads one event and answers it within the limits: of processor time, so
// that many guards at once on a busy machine deny nothing for their own slowness,
// and of time as such, below that of the host. The goroutine ends
// with its reply or with the process: nothing waits for it after the limit.
func (g Guard) Answer(stdin io.Reader) Reply {
	done := make(chan Reply, 1)
	go func() {
		growStack(false)
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
	d, reason, line, err := g.decide(got)
	if err != nil {
		return refuse(*by, err)
	}
	reason += g.offer(got, d, line)
	g.note(got, line)
	if got.request {
		return Reply{Stdout: requestAnswer(d, reason)}
	}
	if got.by.blocksByCode() && d == Deny {
		return Reply{Failure: errors.New(reason)}
	}
	return Reply{Stdout: got.by.answer(d, reason)}
}

// offer tells the user how to let exactly this action pass once, where that is possible.
func (g Guard) offer(got asked, d Decision, line guardlog.Line) string {
	own := slices.ContainsFunc(line.Rules, func(rule string) bool { return strings.HasPrefix(rule, "hook.") })
	if d != Ask && d != Deny || g.Log == "" || own || len(got.steps) != 1 || line.Action == "" || g.Account.MayAllow(line.Level) != nil {
		return ""
	}
	code := g.Account.block(Blocked{At: g.Now.UTC().Format(time.RFC3339), Agent: string(got.by), Session: got.session.id, Cwd: got.session.cwd,
		Command: line.Command, Action: line.Action, Level: line.Level, Rules: line.Rules})
	if code == "" {
		return ""
	}
	return " The user can let exactly this pass once, in a terminal: " + Name + " gate allow --once " + code
}

// start fires the canary at the beginning of a session: a guard that would let it
// pass says so before the first tool runs.
func (g Guard) start(got asked) Reply {
	got.steps = []step{{command: canaryCommand, shell: true}}
	g.Account = Account{} // no settings count
	d, _, line, err := g.decide(got)
	line.Decision = string(Canary)
	if d != Deny || err != nil {
		line.Note = "the canary was not denied"
	}
	g.note(got, line)
	if d != Deny || err != nil {
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
	line.At, line.Agent, line.Session, line.Call, line.Cwd = g.Now.UTC().Format(time.RFC3339), string(got.by), got.session.id, got.callID, got.cwd
	_ = g.Log.Append(line)
}

// refuse blocks because the guard could not do its work.
func refuse(by Agent, cause error) Reply {
	if errors.Is(cause, errShape) {
		name := cmp.Or(string(by), "an agent that is not named")
		cause = fmt.Errorf("%w (%s, guard %s)", cause, name, policy.Version)
	}
	err := fmt.Errorf("blocked: %w; %s doctor --hook looks into it", cause, Name)
	return Reply{Stdout: by.answer(Deny, "countersign: "+err.Error()), Failure: err}
}

// decide judges every step of an event; the worst one decides. line is what the log
// says of it.
func (g Guard) decide(got asked) (d Decision, reason string, line guardlog.Line, err error) {
	d = Pass
	worst, observed := actionrisk.Low, false
	var reasons, ignored []string
	readOnly := len(got.steps) > 0
	fence := newFence(g.Account)
	for _, s := range got.steps {
		j, err := g.step(got, s, fence)
		if err != nil {
			return Deny, "", line, err
		}
		if j.level > worst {
			worst, reasons = j.level, nil
		}
		if j.level == worst {
			reasons = append(reasons, j.why...)
		}
		if rank(j.decision) > rank(d) {
			d = j.decision
		}
		readOnly, observed = readOnly && j.readOnly, observed || j.observed
		ignored = append(ignored, j.ignored...)
		line.Rules = append(line.Rules, j.rules...)
		if line.Command == "" || j.level == worst {
			line.Command, line.Action = shownPath(s.command), j.action
		}
		if j.note != "" {
			line.Note = j.note
		}
	}
	if d == Ask && !g.mayAsk(got) {
		d = Deny
	}
	if d == Pass && g.AllowProven && readOnly {
		d = Proven
	}
	line.Decision, line.Level = string(d), worst.String()
	if observed && (d == Ask || d == Deny) {
		line.Decision, line.Note = string(Observed), "observed: would be "+string(d)
		return Pass, "", line, nil
	}
	reason = wording(worst, d, reasons)
	if d != Pass && d != Proven {
		slices.Sort(ignored)
		for _, text := range slices.Compact(ignored) {
			reason += " " + text + "."
		}
	}
	return d, reason, line, nil
}

// stepVerdict is one step, judged.
type stepVerdict struct {
	level    actionrisk.Level
	why      []string // in words
	rules    []string // ids
	action   string   // hash
	note     string
	decision Decision
	readOnly bool     // the agent's own command, and proven to change nothing
	observed bool     // nothing is stopped here
	ignored  []string // what settings ask for that does not count
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

// step judges one step by the settings that count for what it is about, and names the
// rules behind its level.
func (g Guard) step(got asked, s step, fence fence) (stepVerdict, error) {
	action := actionrisk.Action{Command: s.command, Cwd: got.cwd,
		Environment: g.Environment, FailClosedOnUnmatched: g.FailClosed && s.shell}
	whole, trace := g.Judge(action, actionrisk.Surroundings{})
	if s.shell {
		whole, trace = g.withFiles(action, whole, trace)
	}
	whole, trace = g.withRealPaths(s, action, whole, trace)
	rules, err := g.Account.RulesFor(trace, got.session.cwd, got.cwd)
	if err != nil {
		return stepVerdict{}, err
	}
	score, used := rules.lower(whole, got.session.id, g.Now)
	for _, e := range used {
		if e.Once && !g.Account.useUp(e, g.Now) { // another call used it
			score, used = whole, nil
			break
		}
	}
	level := levelOf(score.Risk)
	v := stepVerdict{level: level, action: whole.ActionHash, note: noteOf(used), readOnly: s.shell && whole.Coverage.ReadOnly,
		observed: rules.observes(), ignored: rules.Ignored()}
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
	own := fence.ownRules(trace, s.command, got.cwd)
	if got.by == Codex && s.shell && len(own) == 0 && level < actionrisk.High && g.takesInput(action) {
		own = append(own, ruleUnseen)
	}
	for _, r := range own {
		v = v.raised(r, s.shown)
	}
	v.decision = rules.verdict(v.level, g.Strict)
	return v, nil
}

// raised is the verdict with one of the guard's own rules, which nothing excepts.
func (v stepVerdict) raised(r ownRule, where string) stepVerdict {
	if v.readOnly = false; r.level < v.level {
		return v
	}
	if r.level > v.level {
		v.rules, v.why = nil, nil
	}
	v.level, v.rules, v.why = r.level, append(v.rules, r.id), append(v.why, ruleText(r.title, r.id, where, r.instead))
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

// growStack makes the stack of its goroutine large enough for a verdict. Go looks at the
// size of a function's frame before the function begins, so one step does it; otherwise the
// stack would be copied at each doubling, and a start pays for that.
//
//go:noinline
func growStack(use bool) byte {
	if !use {
		return 0
	}
	var room [64 << 10]byte
	for i := range room {
		room[i] = byte(i)
	}
	return room[len(os.Args)]
}

// pattern is a regular expression that is compiled when it is first asked for: a guard
// starts at every tool call, and most calls ask for few of them.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
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
