// Package guard guards a coding agent. Before a tool runs, the agent sends an event. The guard
// lets the engine judge what the tool would do, and answers in the agent's format. It needs no
// network, database or key. If it fails, the tool is blocked.
//
//	low, medium   no answer: the agent's own permissions decide
//	high          ask the user, or deny if nobody can be asked
//	critical      deny
//
// The package also contains the user's exceptions and the log of decisions. Package agents
// contains the differences between agents: events, answers and settings.
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

// Guard has the settings of a hook, and the engine, account, log and time that it uses.
type Guard struct {
	Agent       agents.Agent // the agent whose format the answer has; if empty, the event shows the agent, and high risk is denied
	Ask         string       // whether the agent asks the user about high risk: auto (if the agent is known to stop and ask), always (if its format has such an answer) or never
	Strict      bool         // one level stricter: ask about medium risk, deny high risk
	FailClosed  bool         // a command counts as high risk if no rule matches and it is not proven read-only
	Environment string       // name of the environment that the agent's commands can change, such as production
	AllowProven bool         // answer "allow" for an action that is proven read-only

	Judge   Judge
	Account Account
	Log     Log
	Now     time.Time
}

// Judge is the function of the engine. It returns a verdict, and a trace of what the action does.
type Judge func(actionrisk.Action, actionrisk.Surroundings) (actionrisk.ScoreOutput, actionrisk.Trace)

// Reply is the output of the hook. If the guard has answered, Stdout is the answer, and the exit
// code is 0. If it has failed (invalid JSON, unknown event, panic, time limit), Failure is the
// reason. The exit code is then 2, which every agent treats as a block, and Stdout also has the
// agent's form of a denial.
type Reply struct {
	Stdout  string
	Failure error
}

// Decisions that occur only in the log.
const (
	Canary agents.Decision = "canary" // the guard has tested itself at the start of a session
	Unseen agents.Decision = "unseen" // a tool ran without a verdict
	// Observed marks an action that would have been asked about or denied, but the settings say to
	// block nothing.
	Observed agents.Decision = "observed"
)

// Answer reads one event and answers it. It has two limits. A limit of processor time, and not of
// real time, stops slow verdicts, so that many guards on a busy machine do not deny actions. A
// limit of real time is shorter than the agent's own limit. The goroutine that computes the reply
// ends with this reply or with the process; after a limit nothing waits for it.
func (g Guard) Answer(stdin io.Reader) Reply {
	done := make(chan Reply, 1)
	go func() {
		growStack(false)
		by := g.Agent
		defer func() {
			if recover() != nil { // the panic value is not shown, because it may contain parts of the event
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

// respond reads and answers one event, without limits. As soon as the agent is known, it stores
// the agent in by, for the answer after a panic.
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

// offer stores a blocked action and returns a text that tells the user how to allow it once. The
// text is empty if that is not possible.
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

// start judges a dangerous command (the canary) at the start of a session. If the guard would not
// deny it, this is reported before the first tool runs.
func (g Guard) start(got agents.Request) Reply {
	got.Steps = []agents.Step{{Command: agents.CanaryCommand, Shell: true}}
	g.Account = Account{} // without any settings
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

// after is called after a tool call. If the log has no verdict on that call, it logs an alarm.
func (g Guard) after(got agents.Request) {
	if g.Log == "" || got.CallID == "" || g.Log.saw(got.CallID) {
		return
	}
	g.note(got, guardlog.Line{Decision: string(Unseen), Level: "unknown", Note: "ALARM: a tool ran without a verdict"})
}

// note writes a line to the log. An error is ignored, so that it does not block the tool.
func (g Guard) note(got agents.Request, line guardlog.Line) {
	if g.Log == "" {
		return
	}
	line.At, line.Agent, line.Session, line.Call, line.Cwd = g.Now.UTC().Format(time.RFC3339), string(got.By), got.Session.ID, got.CallID, got.Cwd
	_ = g.Log.Append(line)
}

// refuse returns the reply that blocks the tool because the guard has failed.
func refuse(by agents.Agent, cause error) Reply {
	if errors.Is(cause, agents.ErrShape) {
		name := cmp.Or(string(by), "an agent that is not named")
		cause = fmt.Errorf("%w (%s, guard %s)", cause, name, policy.Version)
	}
	err := fmt.Errorf("blocked: %w; to find the cause run %s doctor --hook", cause, launch.Name)
	return Reply{Stdout: by.Answer(agents.Deny, "countersign: "+err.Error()), Failure: err}
}

// decide judges all steps of an event; the strictest decision applies. line is the entry for the
// log.
func (g Guard) decide(got agents.Request) (d agents.Decision, reason string, line guardlog.Line, err error) {
	d = agents.Pass
	worst, observed := actionrisk.Low, false
	var reasons, ignored []string
	readOnly := len(got.Steps) > 0
	fence := newFence(g.Account)
	// Judge each step. The strictest decision counts, and the reasons of the highest level.
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
	// Deny if the agent cannot ask its user. Report proven only if every step is read-only.
	if d == agents.Ask && !g.mayAsk(got) {
		d = agents.Deny
	}
	if d == agents.Pass && g.AllowProven && readOnly {
		d = agents.Proven
	}
	// Write the line of the log. A guard that only observes passes every call.
	line.Decision, line.Level = string(d), worst.String()
	if observed && (d == agents.Ask || d == agents.Deny) {
		line.Decision, line.Note = string(Observed), "observed: would be "+string(d)
		return agents.Pass, "", line, nil
	}
	// Write the reason for the agent, with the exceptions that were ignored.
	reason = wording(worst, d, reasons)
	if d != agents.Pass && d != agents.Proven {
		slices.Sort(ignored)
		for _, text := range slices.Compact(ignored) {
			reason += " " + text + "."
		}
	}
	return d, reason, line, nil
}

// stepVerdict is the verdict on one step of an event.
type stepVerdict struct {
	level    actionrisk.Level
	why      []string // the reasons as text
	rules    []string // ids of the rules
	action   string   // hash of the action
	note     string
	decision agents.Decision
	readOnly bool     // a shell command that is proven to change nothing
	observed bool     // the settings say to block nothing
	ignored  []string // requests of settings files that are ignored
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

// step judges one step under the settings for the folders that it affects. The result names the
// rules with the highest level.
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
		if e.Once && !g.Account.useUp(e, g.Now) { // another call has used the exception
			score, used = whole, nil
			break
		}
	}
	level := levelOf(score.Risk)
	v := stepVerdict{level: level, action: whole.ActionHash, note: noteOf(used), readOnly: s.Shell && whole.Coverage.ReadOnly,
		observed: rules.observes(), ignored: rules.Ignored()}
	for _, r := range score.MatchedRules {
		if levelOf(r.Severity) != level || len(v.why) == maxReasons {
			break // rules are ordered by level, the highest first
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

// raised returns the verdict after one of the guard's own rules has matched. Such a rule has no
// exceptions.
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

// levelOf returns the risk level with a name. For an unknown name it returns the highest level.
func levelOf(name string) actionrisk.Level {
	for l := actionrisk.Low; l < actionrisk.Critical; l++ {
		if l.String() == name {
			return l
		}
	}
	return actionrisk.Critical
}

func isLevel(name string) bool { return levelOf(name).String() == name }

// ruleText describes a matched rule. The argument where must have its secrets masked; quoting
// removes control characters.
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

// wording returns the text that explains the decision to the user or the model.
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

// growStack makes the goroutine's stack as large as a verdict needs. Go checks the size of a
// function's frame before the function begins, so one call is enough. Otherwise Go would copy the
// stack each time it doubles, at every start of the guard.
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
	// maxEvent is the size in bytes of the largest event that is read. It is much more than a
	// command needs, because events of edits contain complete files.
	maxEvent = 1 << 20
	// processorWithin is the processor time for a verdict. The largest event needs a thousandth of
	// it.
	processorWithin = 2 * time.Second
	lookEvery       = 50 * time.Millisecond // time between two checks of the processor time
	// answerWithin is the real time for an answer. It is less than the limit of every agent (60 s
	// or more) and of the installed configurations (10 s), because an agent runs the tool when its
	// own limit is reached.
	answerWithin = 8 * time.Second
	// maxReasons is the number of reasons in an answer.
	maxReasons = 3
)
