// Package guard guards a coding agent: it reads the event that the agent sends before a tool,
// lets the engine judge what the tool would do, and answers in the agent's own format. It needs
// no network, database or key. Any failure blocks the tool.
//
//	low, medium   no interference: the agent's own permissions decide
//	high          ask the user, or deny where nobody would be asked
//	critical      deny
//
// The package also has the user's exceptions and the log of decisions. What differs between
// agents (events, answers, settings) is in package agents.
package guard

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/guardlog"
)

// Guard has the settings of one hook, and what the guard needs to answer.
type Guard struct {
	Agent       agents.Agent // the format to answer in; empty: recognized by the event, and high risk is then denied
	Ask         string       // whether the agent asks the user about high risk: auto (if the agent is known to stop and ask), always (if its format can express it), never
	Strict      bool         // one step stricter: ask about medium risk, deny high risk
	FailClosed  bool         // a command that no rule matches and that is not proven read-only is high risk
	Environment string       // the environment that the agent's commands reach
	AllowProven bool         // answer allow if an action is proven read-only

	Judge   Judge
	Account Account
	Log     Log
	Now     time.Time
}

// Judge is the engine: it returns a verdict and a trace of what the action does.
type Judge func(actionrisk.Action, actionrisk.Surroundings) (actionrisk.ScoreOutput, actionrisk.Trace)

// Reply is the hook's output: its standard output, and the error if it failed. An answer has
// exit code 0. A failure (invalid JSON, an unknown form, a panic, the time limit) has exit code
// 2 with the reason on standard error, which every agent treats as a block, and also the
// agent's own denial on standard output.
type Reply struct {
	Stdout  string
	Failure error
}

// The decisions that occur only in the log.
const (
	Canary agents.Decision = "canary" // the guard tested itself at the start of a session
	Unseen agents.Decision = "unseen" // a tool ran without a verdict
	// Observed marks an action that would have been asked about or denied if the settings did
	// not say that nothing is stopped.
	Observed agents.Decision = "observed"
)

// Answer reads one event and answers it within two limits. The limit of processor time keeps
// many guards on a busy machine from denying actions because they are slow. The limit of real
// time is below the agent's own. The goroutine ends with its reply or with the process: nothing
// waits for it after a limit.
func (g Guard) Answer(stdin io.Reader) Reply {
	done := make(chan Reply, 1)
	go func() {
		growStack(false)
		by := g.Agent
		defer func() {
			if recover() != nil { // the panic value may contain parts of the event, so it is not shown
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

// respond is Answer without the limits and the recovery. It sets by as soon as the agent is
// known.
func (g Guard) respond(stdin io.Reader, by *agents.Agent) Reply {
	text, err := io.ReadAll(io.LimitReader(stdin, maxEvent+1))
	switch {
	case err != nil:
		return refuse(*by, errors.New("the event cannot be read"))
	case len(text) > maxEvent:
		return refuse(*by, errors.New("the event is longer than 1 MiB"))
	}
	got, err := agents.ReadEvent(text, g.Agent)
	*by = got.By
	if err != nil {
		return refuse(*by, err)
	}
	switch got.Moment {
	case agents.AtStart:
		return g.start(got)
	case agents.AfterTool:
		g.after(got)
		return Reply{Stdout: got.By.Answer(agents.Pass, "")}
	}
	d, reason, line, err := g.decide(got)
	if err != nil {
		return refuse(*by, err)
	}
	reason += g.offer(got, d, line)
	g.note(got, line)
	if got.AsksPerson {
		return Reply{Stdout: agents.AnswerPermission(d, reason)}
	}
	if got.By.BlocksByCode() && d == agents.Deny {
		return Reply{Failure: errors.New(reason)}
	}
	return Reply{Stdout: got.By.Answer(d, reason)}
}

// offer tells the user how to allow exactly this action once, if that is possible.
func (g Guard) offer(got agents.Request, d agents.Decision, line guardlog.Line) string {
	own := slices.ContainsFunc(line.Rules, func(rule string) bool { return strings.HasPrefix(rule, "hook.") })
	if d != agents.Ask && d != agents.Deny || g.Log == "" || own || len(got.Steps) != 1 || line.Action == "" || g.Account.MayAllow(line.Level) != nil {
		return ""
	}
	code := g.Account.block(Blocked{At: g.Now.UTC().Format(time.RFC3339), Agent: string(got.By), Session: got.Session.ID, Cwd: got.Session.Cwd,
		Command: line.Command, Action: line.Action, Level: line.Level, Rules: line.Rules})
	if code == "" {
		return ""
	}
	return " The user can allow exactly this action once, in a terminal: " + launch.Name + " gate allow --once " + code
}

// start judges the canary at the start of a session, so that a guard that would let it pass
// reports that before the first tool runs.
func (g Guard) start(got agents.Request) Reply {
	got.Steps = []agents.Step{{Command: agents.CanaryCommand, Shell: true}}
	g.Account = Account{} // no settings apply
	d, _, line, err := g.decide(got)
	line.Decision = string(Canary)
	if d != agents.Deny || err != nil {
		line.Note = "the canary was not denied"
	}
	g.note(got, line)
	if d != agents.Deny || err != nil {
		return refuse(got.By, errors.New("the guard does not stop its own canary"))
	}
	return Reply{Stdout: got.By.Answer(agents.Pass, "")}
}

// after checks after a tool call that this guard judged it before.
func (g Guard) after(got agents.Request) {
	if g.Log == "" || got.CallID == "" || g.Log.saw(got.CallID) {
		return
	}
	g.note(got, guardlog.Line{Decision: string(Unseen), Level: "unknown", Note: "ALARM: a tool ran without a verdict"})
}

// note writes a line to the log. An error does not stop the tool.
func (g Guard) note(got agents.Request, line guardlog.Line) {
	if g.Log == "" {
		return
	}
	line.At, line.Agent, line.Session, line.Call, line.Cwd = g.Now.UTC().Format(time.RFC3339), string(got.By), got.Session.ID, got.CallID, got.Cwd
	_ = g.Log.Append(line)
}

// refuse blocks the tool because the guard failed.
func refuse(by agents.Agent, cause error) Reply {
	if errors.Is(cause, agents.ErrShape) {
		name := cmp.Or(string(by), "an agent that is not named")
		cause = fmt.Errorf("%w (%s, guard %s)", cause, name, policy.Version)
	}
	err := fmt.Errorf("blocked: %w; to find the cause run %s doctor --hook", cause, launch.Name)
	return Reply{Stdout: by.Answer(agents.Deny, "countersign: "+err.Error()), Failure: err}
}

// decide judges every step of an event; the worst step decides. line is the entry for the log.
func (g Guard) decide(got agents.Request) (d agents.Decision, reason string, line guardlog.Line, err error) {
	d = agents.Pass
	worst, observed := actionrisk.Low, false
	var reasons, ignored []string
	readOnly := len(got.Steps) > 0
	fence := newFence(g.Account)
	for _, s := range got.Steps {
		j, err := g.step(got, s, fence)
		if err != nil {
			return agents.Deny, "", line, err
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
			line.Command, line.Action = agents.ShownPath(s.Command), j.action
		}
		if j.note != "" {
			line.Note = j.note
		}
	}
	if d == agents.Ask && !g.mayAsk(got) {
		d = agents.Deny
	}
	if d == agents.Pass && g.AllowProven && readOnly {
		d = agents.Proven
	}
	line.Decision, line.Level = string(d), worst.String()
	if observed && (d == agents.Ask || d == agents.Deny) {
		line.Decision, line.Note = string(Observed), "observed: would be "+string(d)
		return agents.Pass, "", line, nil
	}
	reason = wording(worst, d, reasons)
	if d != agents.Pass && d != agents.Proven {
		slices.Sort(ignored)
		for _, text := range slices.Compact(ignored) {
			reason += " " + text + "."
		}
	}
	return d, reason, line, nil
}

// stepVerdict is the verdict on one step.
type stepVerdict struct {
	level    actionrisk.Level
	why      []string // the reasons in words
	rules    []string // their ids
	action   string   // the hash of the action
	note     string
	decision agents.Decision
	readOnly bool     // the agent's own command, proven to change nothing
	observed bool     // the settings say that nothing is stopped
	ignored  []string // requests of settings that do not apply
}

func verdictOf(level actionrisk.Level, strict bool) agents.Decision {
	if strict && level >= actionrisk.Medium {
		level++
	}
	switch {
	case level < actionrisk.High:
		return agents.Pass
	case level == actionrisk.High:
		return agents.Ask
	}
	return agents.Deny
}

func (g Guard) mayAsk(got agents.Request) bool {
	switch g.Ask {
	case "always":
		return got.CanAsk
	case "auto":
		return got.CanAsk && got.AsksHold
	}
	return false
}

// step judges one step by the settings for the folders that it affects, and names the rules
// behind its level.
func (g Guard) step(got agents.Request, s agents.Step, fence fence) (stepVerdict, error) {
	action := actionrisk.Action{Command: s.Command, Cwd: got.Cwd,
		Environment: g.Environment, FailClosedOnUnmatched: g.FailClosed && s.Shell}
	whole, trace := g.Judge(action, actionrisk.Surroundings{})
	if s.Shell {
		whole, trace = g.withFiles(action, whole, trace)
	}
	whole, trace = g.withRealPaths(s, action, whole, trace)
	rules, err := g.Account.RulesFor(trace, got.Session.Cwd, got.Cwd)
	if err != nil {
		return stepVerdict{}, err
	}
	score, used := rules.lower(whole, got.Session.ID, g.Now)
	for _, e := range used {
		if e.Once && !g.Account.useUp(e, g.Now) { // another call used the exception first
			score, used = whole, nil
			break
		}
	}
	level := levelOf(score.Risk)
	v := stepVerdict{level: level, action: whole.ActionHash, note: noteOf(used), readOnly: s.Shell && whole.Coverage.ReadOnly,
		observed: rules.observes(), ignored: rules.Ignored()}
	for _, r := range score.MatchedRules {
		if levelOf(r.Severity) != level || len(v.why) == maxReasons {
			break // matched rules are in order of falling level
		}
		where := s.Shown
		if where == "" {
			where = r.Evidence.Excerpt
		}
		v.why = append(v.why, ruleText(r.Title, r.ID, where, r.Remediation))
		v.rules = append(v.rules, r.ID)
	}
	own := fence.ownRules(trace, s.Command, got.Cwd)
	if got.By == agents.Codex && s.Shell && len(own) == 0 && level < actionrisk.High && g.takesInput(action) {
		own = append(own, ruleUnseen)
	}
	for _, r := range own {
		v = v.raised(r, s.Shown)
	}
	v.decision = rules.verdict(v.level, g.Strict)
	return v, nil
}

// raised returns the verdict with one of the guard's own rules added, which have no exceptions.
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

// levelOf returns the level with a name; an unknown name is the highest level.
func levelOf(name string) actionrisk.Level {
	for l := actionrisk.Low; l < actionrisk.Critical; l++ {
		if l.String() == name {
			return l
		}
	}
	return actionrisk.Critical
}

func isLevel(name string) bool { return levelOf(name).String() == name }

// ruleText describes one rule. The excerpt is masked already; quoting keeps control characters
// away from a terminal.
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

// wording returns the reason for the user or the model.
func wording(level actionrisk.Level, d agents.Decision, reasons []string) string {
	if d == agents.Pass {
		return ""
	}
	if d == agents.Proven {
		return "countersign: proven read-only"
	}
	if len(reasons) > maxReasons {
		reasons = reasons[:maxReasons]
	}
	text := "countersign: " + level.String() + " risk: " + strings.Join(reasons, ". ") + "."
	if d == agents.Deny {
		text += " Do not try a variant of the command: use the safer way, or ask the user to run it."
	}
	return text
}

// growStack grows the stack of its goroutine to the size that a verdict needs. Go checks the
// size of a function's frame before the function begins, so one call does it. Otherwise Go
// would copy the stack at each doubling, at every start of the guard.
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

// Limits of the guard.
const (
	// maxEvent is the length of the longest event that is read. It is far above that of a
	// command, because edits contain complete files.
	maxEvent = 1 << 20
	// processorWithin is the limit of processor time for a verdict: a thousand times the time
	// of the longest event.
	processorWithin = 2 * time.Second
	lookEvery       = 50 * time.Millisecond // how often the processor time is checked
	// answerWithin is the limit of real time. It is below the default of every agent (60 s or
	// more) and below that of the installed configurations (10 s), because an agent lets the
	// tool run when its own limit is reached.
	answerWithin = 8 * time.Second
	// maxReasons keeps an answer short.
	maxReasons = 3
)
