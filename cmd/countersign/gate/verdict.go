package gate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/actionrisk"
)

// verdictFlags has the flags that describe where a command runs.
type verdictFlags struct {
	Cwd         string `help:"Working directory, which selects the exceptions that apply. Default: the current one." placeholder:"DIR"`
	Branch      string `help:"Checked-out branch."`
	Environment string `help:"Environment that the command reaches, such as production." name:"environment"`
	Target      string `help:"Resource that the command reaches."`
	FailClosed  bool   `help:"Require review of a command that no rule matches and that is not proven read-only." name:"fail-closed"`
}

func (f verdictFlags) action(command string) actionrisk.Action {
	return actionrisk.Action{Command: command, Cwd: f.Cwd, Branch: f.Branch, Environment: f.Environment, Target: f.Target, FailClosedOnUnmatched: f.FailClosed}
}

// Verdict judges one command, or each line of a file.
type Verdict struct {
	verdictFlags
	Batch string   `help:"Instead of a command: a file with one command, or one action as JSON, per line, such as a shell history; - for standard input." placeholder:"FILE" type:"path"`
	CSV   bool     `help:"With --batch: one line of CSV per command." name:"csv"`
	Words []string `arg:"" optional:"" name:"command" help:"The command, after the flags, as one argument or as separate words; - for standard input."`
}

const maxCommand = 1 << 20 // bytes read from standard input; the service accepts only 2,000 characters

// Run prints the verdict. The exit code is 1 if a command needs approval.
func (c *Verdict) Run(o *Output) error {
	switch {
	case c.Batch != "" && len(c.Words) > 0:
		return errors.New("give --batch or a command, not both")
	case c.Batch != "":
		return c.batch(o)
	case c.CSV:
		return errors.New("--csv needs --batch")
	}
	v, err := judge(o, c.Words, c.verdictFlags)
	if err != nil {
		return err
	}
	if err := o.Result(v, v.screen(o)); err != nil || !v.stopped() {
		return err
	}
	return screen.ErrNo
}

// judgedCommand is the verdict on a command, before and after the user's exceptions.
type judgedCommand struct {
	actionrisk.ScoreOutput
	Exceptions *appliedExceptions `json:"exceptions,omitempty"`

	action actionrisk.Action
	left   actionrisk.ScoreOutput // the verdict without the findings that exceptions allow
}

// appliedExceptions has the exceptions for a command from the settings of the user and the
// project.
type appliedExceptions struct {
	Files    []string        `json:"files"`
	Ignored  []string        `json:"ignored,omitempty"` // requests of the project's settings that were not applied, with the reason
	Decision agents.Decision `json:"decision"`          // pass, ask or deny: the answer that the guard would give
	Note     string          `json:"note,omitempty"`
}

// judge evaluates a command and applies the exceptions for the folder.
func judge(o *Output, words []string, f verdictFlags) (judgedCommand, error) {
	command, err := commandOf(words)
	if err != nil {
		return judgedCommand{}, err
	}
	action := f.action(command)
	if err := actionrisk.Check(action); err != nil {
		return judgedCommand{}, err
	}
	v := judgedCommand{action: action}
	var trace actionrisk.Trace
	v.ScoreOutput, trace = actionrisk.ScoreIn(action, actionrisk.Surroundings{})
	v.left = v.ScoreOutput
	where := f.Cwd
	if where == "" {
		where, _ = os.Getwd() // if there is no folder, only the user's settings apply
	}
	rules, err := o.Account().RulesFor(trace, where, where)
	if err != nil || len(rules.Files) == 0 {
		return v, err
	}
	v.Exceptions = &appliedExceptions{Files: rules.Files, Ignored: rules.Ignored()}
	v.left, v.Exceptions.Decision, v.Exceptions.Note = rules.Apply(v.ScoreOutput, time.Now())
	return v, nil
}

// commandOf returns the command to judge. A single argument is a complete command; several
// arguments are its words.
func commandOf(words []string) (string, error) {
	switch {
	case len(words) == 0:
		return "", fmt.Errorf(`name a command: %s gate ls -la, %[1]s gate "ls -la", or - for standard input`, launch.Name)
	case len(words) == 1 && words[0] == "-":
		text, err := files.ReadAtMost(os.Stdin, maxCommand)
		return strings.TrimSpace(string(text)), err
	case len(words) == 1:
		return words[0], nil
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = agents.ShellWord(word)
	}
	return strings.Join(quoted, " "), nil
}

// stopped reports whether the command needs approval. The user's settings decide if any apply,
// otherwise the verdict.
func (v judgedCommand) stopped() bool {
	if v.Exceptions != nil {
		return v.Exceptions.Decision != agents.Pass
	}
	return v.RequiresApproval
}

// levelStyles has the colour of each risk level.
var levelStyles = map[string]string{"low": screen.Green, "medium": screen.Yellow, "high": screen.Red, "critical": screen.Bold + ";" + screen.Red}

// screen returns the verdict as text: the risk level, the command with the matched parts marked,
// the rules, the reason and a safer way.
func (v judgedCommand) screen(o *Output) string {
	var b strings.Builder
	title := v.nothingFound()
	if len(v.MatchedRules) > 0 {
		title = v.MatchedRules[0].Title
	}
	fmt.Fprintf(&b, "%s  %s\n\n", o.Styled(levelStyles[v.Risk], strings.ToUpper(v.Risk)), title)
	b.WriteString(v.marked(o))
	b.WriteByte('\n')
	lines := [][2]string{}
	for i, r := range v.MatchedRules {
		if i == shownRules {
			lines = append(lines, [2]string{"", fmt.Sprintf("and %d more: %s gate explain", len(v.MatchedRules)-i, launch.Name)})
			break
		}
		lines = append(lines, v.ruleLines(r, i > 0)...)
	}
	if x := v.Exceptions; x != nil {
		said := string(x.Decision) + " by " + strings.Join(x.Files, ", ")
		if x.Note != "" {
			said = string(x.Decision) + ", " + x.Note
		}
		lines = append(lines, [2]string{"here", said})
		for _, ignored := range x.Ignored {
			lines = append(lines, [2]string{"", ignored})
		}
	}
	for _, line := range lines {
		fmt.Fprintf(&b, "  %s  %s\n", o.Styled(screen.Faint, fmt.Sprintf("%-7s", line[0])), screen.Printable(line[1]))
	}
	fmt.Fprintf(&b, "  %s\n", o.Styled(screen.Faint, fmt.Sprintf("score %d, action %s, rules %s", v.RiskScore, v.ActionHash[:16], v.RulesetVersion)))
	return b.String()
}

// shownRules is the number of rules that a verdict shows, so that it fits on one screen.
const shownRules = 4

// nothingFound describes a verdict without a matched rule.
func (v judgedCommand) nothingFound() string {
	switch {
	case v.Coverage.Unmatched:
		return "No rule matched, and the command is not proven read-only"
	case v.Coverage.ReadOnly:
		return "Proven read-only"
	}
	return "No rule matched"
}

// ruleLines describes one rule. further is true for rules after the first; they get a shorter
// text.
func (v judgedCommand) ruleLines(r actionrisk.MatchedRule, further bool) (lines [][2]string) {
	if further {
		lines = append(lines, [2]string{"also", fmt.Sprintf("%s (%s, %s) in %q", r.Title, r.ID, r.Severity, r.Evidence.Excerpt)})
	} else {
		if r.Decoded != "" {
			lines = append(lines, [2]string{"runs", r.Decoded})
		}
		if len(r.Via) > 0 {
			lines = append(lines, [2]string{"through", strings.Join(r.Via, " > ")})
		}
		back := map[string]string{"yes": "reversible", "hard": "reversible with effort", "no": "cannot be undone"}[r.Reversible]
		why := r.Effect + "; " + back
		if strings.EqualFold(r.Effect, r.Title) {
			why = back
		}
		lines = append(lines, [2]string{"why", fmt.Sprintf("%s (%s)", why, r.ID)})
	}
	if r.Remediation != "" {
		lines = append(lines, [2]string{"instead", r.Remediation})
	}
	return lines
}

// marked returns the command with its matched parts underlined, by styles if the terminal has
// them, otherwise by ^ on the line below.
func (v judgedCommand) marked(o *Output) string {
	var b strings.Builder
	at := 0
	for line := range strings.Lines(v.action.Command) {
		text := strings.TrimRight(line, "\n")
		shown, below := o.underlined(text, v.spans(at, len(text)))
		fmt.Fprintf(&b, "    %s\n", shown)
		if below != "" {
			fmt.Fprintf(&b, "    %s\n", below)
		}
		at += len(line)
	}
	return b.String()
}

// spans returns the parts of one line that rules matched, in order, with overlapping parts merged.
func (v judgedCommand) spans(at, length int) (spans [][2]int) {
	for _, r := range v.MatchedRules {
		from, to := max(r.Evidence.Start-at, 0), min(r.Evidence.End-at, length)
		if from < to {
			spans = append(spans, [2]int{from, to})
		}
	}
	slices.SortFunc(spans, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], b[1]-a[1]) })
	apart := spans[:0]
	for _, s := range spans {
		if n := len(apart); n > 0 && s[0] <= apart[n-1][1] {
			apart[n-1][1] = max(apart[n-1][1], s[1])
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

// underlined marks the spans, in the text itself or in a second line.
func (o *Output) underlined(text string, spans [][2]int) (shown, below string) {
	var line, marks strings.Builder
	at := 0
	for _, s := range append(spans, [2]int{len(text), len(text)}) {
		before, found := screen.Printable(text[at:s[0]]), screen.Printable(text[s[0]:s[1]])
		line.WriteString(before + o.Styled(screen.Underline, found))
		marks.WriteString(strings.Repeat(" ", screen.Columns(before)) + strings.Repeat("^", screen.Columns(found)))
		at = s[1]
	}
	if o.Colour {
		return line.String(), ""
	}
	return line.String(), strings.TrimRight(marks.String(), " ")
}

// Explain explains how a verdict was computed.
type Explain struct {
	verdictFlags
	Words []string `arg:"" optional:"" name:"command" help:"The command, after the flags, as one argument or as separate words; - for standard input."`
}

// Run prints each rule with the reasons for its level, and the parts that were not understood.
func (c *Explain) Run(o *Output) error {
	v, err := judge(o, c.Words, c.verdictFlags)
	if err != nil {
		return err
	}
	if err := o.Result(v, v.explained(o)); err != nil || !v.stopped() {
		return err
	}
	return screen.ErrNo
}

func (v judgedCommand) explained(o *Output) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, score %d\n\n%s\n", o.Styled(levelStyles[v.Risk], v.Risk), v.RiskScore, v.marked(o))
	fmt.Fprintf(&b, "read as %s, %s\n", v.Coverage.Route, map[bool]string{true: "parsed completely", false: "word by word, because a parser refused a part of it"}[v.Coverage.Parsed])
	if len(v.MatchedRules) == 0 {
		fmt.Fprintf(&b, "%s\n", v.nothingFound())
	}
	for _, r := range v.MatchedRules {
		fmt.Fprintf(&b, "\n%s  %s: %s in %q\n", o.Styled(levelStyles[r.Severity], fmt.Sprintf("%-8s", r.Severity)), r.ID, r.Title, r.Evidence.Excerpt)
		for _, line := range movements(r) {
			fmt.Fprintf(&b, "          %s\n", line)
		}
	}
	if len(v.Coverage.Uncertainties) > 0 {
		b.WriteString("\nuncertain:\n")
		for _, what := range v.Coverage.Uncertainties {
			fmt.Fprintf(&b, "  %s\n", what)
		}
	}
	if x := v.Exceptions; x != nil {
		fmt.Fprintf(&b, "\nhere: %s by %s", x.Decision, strings.Join(x.Files, ", "))
		if x.Note != "" {
			fmt.Fprintf(&b, " (%s; %s without the exception)", x.Note, v.left.Risk)
		}
		b.WriteByte('\n')
	}
	if n := len(v.MatchedRules); n > 0 {
		fmt.Fprintf(&b, "\nmore about a rule: countersign rules show %s\n", v.MatchedRules[0].ID)
	}
	return b.String()
}

// movements describes what has raised or lowered a rule's level.
func movements(r actionrisk.MatchedRule) (lines []string) {
	if len(r.Context) == 0 && r.BaseSeverity == r.Severity {
		return []string{"this is the rule's own level; nothing raised or lowered it"}
	}
	lines = append(lines, "the rule's own level is "+r.BaseSeverity)
	for _, a := range r.Context {
		verb := "raised"
		if a.Delta < 0 {
			verb = "lowered"
		}
		switch a.Delta {
		case 0:
			lines = append(lines, fmt.Sprintf("%s %s was considered and did not change the level", a.Field, a.Class))
		default:
			lines = append(lines, fmt.Sprintf("%s by %d, because the %s is of the class %s", verb, max(a.Delta, -a.Delta), a.Field, a.Class))
		}
	}
	return lines
}
