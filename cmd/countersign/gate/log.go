package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/guardlog"
)

// LogShow prints the guard's log.
type LogShow struct {
	Blocked bool `help:"Show only the calls that were denied, or for which the agent had to ask."`
	Last    int  `help:"Show this many of the newest lines; 0: all." default:"50" placeholder:"N"`
}

// Run prints the log. The exit code is 1 if the log was truncated or edited.
func (c *LogShow) Run(o *Output) error {
	lines, wrong, err := readLog(o)
	if err != nil {
		return err
	}
	shown := []guardlog.Line{}
	for _, l := range lines {
		if !c.Blocked || slices.Contains([]agents.Decision{agents.Deny, agents.Ask, guard.Unseen}, agents.Decision(l.Decision)) {
			shown = append(shown, l)
		}
	}
	if c.Last > 0 && len(shown) > c.Last {
		shown = shown[len(shown)-c.Last:]
	}
	var b strings.Builder
	for _, l := range shown {
		fmt.Fprintf(&b, "%s  %-6s  %-8s  %-8s  %s", l.At, l.Agent, l.Decision, l.Level, screen.Printable(l.Command))
		if len(l.Rules) > 0 {
			fmt.Fprintf(&b, "  (%s)", strings.Join(l.Rules, ", "))
		}
		if l.Note != "" {
			fmt.Fprintf(&b, "  %s", screen.Printable(l.Note))
		}
		b.WriteByte('\n')
	}
	if len(lines) == 0 {
		fmt.Fprintln(o.Stderr, "nothing is logged yet: "+launch.Name+" gate hook --install claude --write installs a guard")
	}
	if wrong == "" {
		fmt.Fprintf(o.Stderr, "%d lines, verified\n", len(lines))
	} else {
		fmt.Fprintf(o.Stderr, "NOT VERIFIED: %s\n", wrong)
	}
	if err := o.Result(map[string]any{"lines": shown, "whole": wrong == "", "wrong": wrong}, b.String()); err != nil {
		return err
	}
	if wrong != "" {
		return screen.ErrNo
	}
	return nil
}

// readLog reads the user's log. If the log does not verify, wrong is the reason, otherwise it is
// empty.
func readLog(o *Output) (lines []guardlog.Line, wrong string, err error) {
	return o.Account().Log().Read()
}

// Stats counts the decisions in the log.
type Stats struct {
	Since time.Duration `help:"The period to count, such as 7d." default:"168h" type:"days"`
}

// Run prints the counts.
func (c *Stats) Run(o *Output) error {
	lines, wrong, err := readLog(o)
	if err != nil {
		return err
	}
	s := guard.Count(lines, time.Now().Add(-c.Since))
	s.Whole = wrong == ""
	var b strings.Builder
	fmt.Fprintf(&b, "since %s: %d calls, %d passed, %d proven read-only (prompts saved), %d asked about, %d denied\n", s.Since, s.Calls, s.Passed, s.Proven, s.Asked, s.Denied)
	if s.Unseen > 0 {
		fmt.Fprintf(&b, "ALARM: %d tools ran without a verdict\n", s.Unseen)
	}
	for _, rule := range sortedByCount(s.Rules) {
		fmt.Fprintf(&b, "  %4d  %s\n", s.Rules[rule], rule)
	}
	if s.Observed > 0 {
		fmt.Fprintf(&b, "%d would have been asked about or denied (observe)\n", s.Observed)
	}
	if wrong != "" {
		fmt.Fprintf(o.Stderr, "NOT VERIFIED: %s\n", wrong)
	}
	return o.Result(s, b.String())
}
