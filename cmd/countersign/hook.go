package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/policy/actionrisk"
)

// hookCmd is the guard of a coding agent: the agent's pre-tool event comes on
// standard input, the answer in the agent's own format goes to standard output.
// It needs no network, database or key, and whatever goes wrong is a block:
//
//	low, medium   no interference: the agent's own permissions decide
//	high          ask the user, or deny where nobody would be asked
//	critical      deny
//
// An answer is exit code 0. A failure (no JSON, an unknown shape, a panic, the
// time limit) is exit code 2 with the reason on standard error, which each of
// the four agents takes for a block, and beside it the agent's own denial. A
// crash of the Go runtime and a wrong flag are exit code 2 as well.
type hookCmd struct {
	Agent       string `help:"Whose format to answer in: ${enum}. auto looks at the event, and then never asks." enum:"auto,claude,codex,cursor,gemini" default:"auto"`
	Install     string `help:"Print the configuration for an agent (claude, codex, cursor, gemini) and where it goes; write nothing." placeholder:"AGENT" enum:",claude,codex,cursor,gemini" default:""`
	Ask         string `help:"Whether high risk may be asked about: auto (where the agent is known to stop and ask), always (wherever its format has a word for it), never (deny)." enum:"auto,always,never" default:"auto"`
	Strict      bool   `help:"One step stricter: ask about medium risk, deny high."`
	FailClosed  bool   `help:"Treat a command that no rule knows and that is not proven read-only as high. Off by default: builds and tests are such commands, and a guard that asks about each of them gets switched off." name:"fail-closed"`
	Environment string `help:"Environment the agent's commands reach." name:"environment"`
	AllowProven bool   `help:"Answer allow where every part of a command is proven read-only, so that the agent does not ask either." name:"allow-proven"`
	NoLog       bool   `help:"Keep no log of the verdicts." name:"no-log"`
	Write       bool   `help:"With --install: merge the entry into the agent's settings, keep a copy of what was there, and try it."`
	Uninstall   bool   `help:"With --install: take the entry out again."`
	Project     bool   `help:"With --write or --uninstall: the settings of this folder's project, not the user's own."`
}

// Run answers one event.
func (c *hookCmd) Run(ctx context.Context, o *output) error {
	switch {
	case c.Install == "" && (c.Write || c.Uninstall || c.Project):
		return errors.New("--write, --uninstall and --project need --install AGENT")
	case c.Write || c.Uninstall:
		return c.change(ctx, o)
	case c.Install != "":
		_, err := io.WriteString(o.stdout, agent(c.Install).install(ownPath()))
		return err
	}
	r := c.guard().answer(os.Stdin)
	if _, err := io.WriteString(o.stdout, r.stdout); err != nil {
		return fmt.Errorf("blocked: write the answer: %w", err)
	}
	return r.failure
}

func (c *hookCmd) guard() guard {
	g := guard{ask: c.Ask, strict: c.Strict, failClosed: c.FailClosed, environment: c.Environment,
		limit: hookLimit, judge: actionrisk.ScoreAction, proven: c.AllowProven, exceptions: readExceptions, clock: time.Now}
	if folder, err := stateFolder(); err == nil && !c.NoLog {
		g.log = folder
	}
	if c.Agent != "auto" {
		g.agent = agent(c.Agent)
	}
	return g
}

// guard is the policy of one hook.
type guard struct {
	agent       agent // empty: told from the event
	ask         string
	strict      bool
	failClosed  bool
	environment string
	limit       time.Duration
	judge       func(actionrisk.Action) actionrisk.ScoreOutput

	proven     bool                             // answer allow to what is proven read-only
	exceptions func(string) (exceptions, error) // the user's, for a folder; nil: none
	log        string                           // folder of the log; empty: nothing is logged
	clock      func() time.Time
}

// reply is what the hook says: standard output, and why it failed if it did.
type reply struct {
	stdout  string
	failure error
}

// decision is what becomes of an agent's action.
type decision string

const (
	pass  decision = "pass" // no interference
	query decision = "ask"
	deny  decision = "deny"
	// proven is a pass of what is proven to change nothing, said so that the agent
	// does not ask either.
	proven decision = "proven"
)

// answer reads one event and answers it within the limits: of processor time, so
// that many guards at once on a busy machine deny nothing for their own slowness,
// and of time as such, below that of the host. The goroutine ends
// with its reply or with the process: nothing waits for it after the limit.
func (g guard) answer(stdin io.Reader) reply {
	done := make(chan reply, 1)
	go func() {
		by := g.agent
		defer func() {
			if recover() != nil { // the value may repeat the event, so it is not shown
				done <- refuse(by, errors.New("the guard failed"))
			}
		}()
		done <- g.respond(stdin, &by)
	}()
	begun := processorTime()
	timer, look := time.NewTimer(g.limit), time.NewTicker(hookLook)
	defer timer.Stop()
	defer look.Stop()
	for {
		select {
		case r := <-done:
			return r
		case <-timer.C:
			return refuse(g.agent, fmt.Errorf("no verdict within %s", g.limit))
		case <-look.C:
			if processorTime()-begun > hookProcessor {
				return refuse(g.agent, fmt.Errorf("no verdict within %s of processor time", hookProcessor))
			}
		}
	}
}

// respond is answer without limit and recovery; by becomes the agent as soon as
// it is known.
func (g guard) respond(stdin io.Reader, by *agent) reply {
	text, err := io.ReadAll(io.LimitReader(stdin, maxEvent+1))
	switch {
	case err != nil:
		return refuse(*by, errors.New("the event cannot be read"))
	case len(text) > maxEvent:
		return refuse(*by, errors.New("the event is longer than 1 MiB"))
	}
	got, err := readEvent(text, g.agent)
	*by = got.by
	if err != nil {
		return refuse(*by, err)
	}
	switch got.moment {
	case atStart:
		return g.start(got)
	case afterTool:
		g.after(got)
		return reply{stdout: got.by.answer(pass, "")}
	}
	x := exceptions{most: actionrisk.High}
	if g.exceptions != nil {
		if x, err = g.exceptions(got.cwd); err != nil {
			return refuse(*by, err)
		}
	}
	d, reason, line := g.decide(got, x)
	g.note(got, line)
	return reply{stdout: got.by.answer(d, reason)}
}

// start fires the canary at the beginning of a session: a guard that would let it
// pass says so before the first tool runs.
func (g guard) start(got asked) reply {
	got.steps = []step{{command: canaryCommand, shell: true}}
	d, _, line := g.decide(got, exceptions{most: actionrisk.High})
	line.Decision = "canary"
	if d != deny {
		line.Note = "the canary was not denied"
	}
	g.note(got, line)
	if d != deny {
		return refuse(got.by, errors.New("the guard does not stop its own canary"))
	}
	return reply{stdout: got.by.answer(pass, "")}
}

// after looks, behind a tool, whether it ran under a verdict of this guard.
func (g guard) after(got asked) {
	if g.log == "" || got.callID == "" || sawCall(g.log, got.callID) {
		return
	}
	g.note(got, logged{Decision: "unseen", Level: "unknown", Note: "ALARM: a tool ran without a verdict"})
}

// note writes a line into the log. What fails there stops nothing.
func (g guard) note(got asked, line logged) {
	if g.log == "" {
		return
	}
	line.At, line.Agent, line.Session, line.Call, line.Cwd = g.now().UTC().Format(time.RFC3339), string(got.by), got.session, got.callID, got.cwd
	_ = appendLog(g.log, line)
}

func (g guard) now() time.Time {
	if g.clock == nil {
		return time.Time{}
	}
	return g.clock()
}

// refuse blocks because the guard could not do its work.
func refuse(by agent, cause error) reply {
	err := fmt.Errorf("blocked: %w; countersign doctor --hook looks into it", cause)
	return reply{stdout: by.answer(deny, "countersign: "+err.Error()), failure: err}
}

// decide judges every step of an event; the worst one decides. line is what the log
// says of it.
func (g guard) decide(got asked, x exceptions) (d decision, reason string, line logged) {
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
	if d = x.verdict(worst, g.strict); d == query && !g.mayAsk(got) {
		d = deny
	}
	if d == pass && g.proven && readOnly {
		d = proven
	}
	line.Decision, line.Level = string(d), worst.String()
	return d, wording(worst, d, reasons), line
}

// judged is one step with its verdict.
type stepVerdict struct {
	level    actionrisk.Level
	why      []string // in words
	rules    []string // ids
	action   string   // hash
	note     string
	readOnly bool // the agent's own command, and proven to change nothing
}

func verdictOf(level actionrisk.Level, strict bool) decision {
	if strict && level >= actionrisk.Medium {
		level++
	}
	switch {
	case level < actionrisk.High:
		return pass
	case level == actionrisk.High:
		return query
	}
	return deny
}

func (g guard) mayAsk(got asked) bool {
	switch g.ask {
	case "always":
		return got.canAsk
	case "auto":
		return got.canAsk && got.asksHold
	}
	return false
}

// step judges one step and names the rules behind its level.
func (g guard) step(got asked, s step, x exceptions) stepVerdict {
	action := actionrisk.Action{Command: s.command, Cwd: got.cwd,
		Environment: g.environment, FailClosedOnUnmatched: g.failClosed && s.shell}
	whole := g.judge(action)
	score, note := x.lower(whole, got.cwd, g.now())
	level := levelOf(score.Risk)
	v := stepVerdict{level: level, action: whole.ActionHash, note: note, readOnly: s.shell && whole.Coverage.ReadOnly}
	var why []string
	for _, r := range score.MatchedRules {
		if levelOf(r.Severity) != level || len(why) == maxReasons {
			break // matched rules come highest first
		}
		where := s.shown
		if where == "" {
			where = r.Evidence.Excerpt
		}
		why = append(why, ruleText(r.Title, r.ID, where, r.Remediation))
		v.rules = append(v.rules, r.ID)
	}
	v.why = why
	switch {
	case level >= actionrisk.High:
	case s.changesGuard(whole):
		return v.high("hook.guard-settings", ruleText("Changes the settings that hold this guard", "hook.guard-settings", s.shown,
			"let the user edit the agent's settings"))
	case got.by == codex && s.shell && g.takesInput(action):
		return v.high("hook.unseen-input", ruleText("Opens a shell or console, and what is typed into it later is not shown to this guard",
			"hook.unseen-input", "", "give it the command to run, as in sh -c 'COMMAND'"))
	}
	return v
}

// high is the verdict of the guard's own rules, which nothing excepts.
func (v stepVerdict) high(rule, why string) stepVerdict {
	v.level, v.rules, v.why, v.readOnly = actionrisk.High, []string{rule}, []string{why}, false
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
func wording(level actionrisk.Level, d decision, reasons []string) string {
	if d == pass {
		return ""
	}
	if d == proven {
		return "countersign: proven read-only"
	}
	if len(reasons) > maxReasons {
		reasons = reasons[:maxReasons]
	}
	text := "countersign: " + level.String() + " risk: " + strings.Join(reasons, ". ") + "."
	if d == deny {
		text += " Do not try another form of it: take the safer way, or ask the user to run it."
	}
	return text
}

// Limits of the hook.
const (
	// maxEvent is the longest event that is read. Edits carry whole files, so it
	// is far above a command; more is no honest event.
	maxEvent = 1 << 20
	// hookProcessor is the processor time a verdict may take: a thousand times what
	// the longest event takes.
	hookProcessor = 2 * time.Second
	hookLook      = 50 * time.Millisecond // how often it is looked at
	// hookLimit is the guard's own time: below every agent's default (60 s and
	// more) and below what the installed configurations set (10 s). A host that
	// runs into its own limit lets the action through.
	hookLimit = 8 * time.Second
	// maxReasons keeps an answer short enough to be read.
	maxReasons = 3
	// maxShown is how much of a path an answer repeats, in code points.
	maxShown = 120
)
