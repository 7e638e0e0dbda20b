package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk"
)

// gateCmd is the engine behind every action-safety service, without network,
// database or key: one verdict, or the guard of a coding agent.
type gateCmd struct {
	Verdict verdictCmd   `cmd:"" default:"withargs" help:"The verdict on a command (the word verdict may be left out). Exit 1: it needs approval."`
	Hook    hookCmd      `cmd:"" help:"Guard a coding agent: read its pre-tool event, answer in its format, fail closed."`
	Allow   gateAllowCmd `cmd:"" help:"Let a rule, or one exact action, pass the guard, for a time and with a reason."`
	Log     gateLogCmd   `cmd:"" help:"What the guard decided on this machine. Exit 1: the log was cut or edited."`
	Stats   gateStatsCmd `cmd:"" help:"What the guard decided, in numbers."`
}

// verdictCmd asks the engine about one command.
type verdictCmd struct {
	Command     string `arg:"" help:"The command, or - to read it from standard input."`
	Cwd         string `help:"Working directory."`
	Branch      string `help:"Checked-out branch."`
	Environment string `help:"Environment the command reaches." name:"environment"`
	Target      string `help:"Resource the command reaches."`
	FailClosed  bool   `help:"Route a command that no rule knows and that is not proven read-only to review." name:"fail-closed"`
}

const maxCommand = 1 << 20 // octets from standard input, far above the contract's 2000 characters

// Run prints the verdict; a command that needs approval is exit code 1.
func (c *verdictCmd) Run(o *output) error {
	command := c.Command
	if command == "-" {
		text, err := io.ReadAll(io.LimitReader(os.Stdin, maxCommand))
		if err != nil {
			return fmt.Errorf("read the command: %w", err)
		}
		command = strings.TrimSpace(string(text))
	}
	action := actionrisk.Action{Command: command, Cwd: c.Cwd, Branch: c.Branch,
		Environment: c.Environment, Target: c.Target, FailClosedOnUnmatched: c.FailClosed}
	if err := actionrisk.Check(action); err != nil {
		return err
	}
	score := actionrisk.ScoreAction(action)
	if err := o.result(score, verdictText(score)); err != nil {
		return err
	}
	if score.RequiresApproval {
		return errNo
	}
	return nil
}

func verdictText(s actionrisk.ScoreOutput) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (score %d), %s\n", s.Risk, s.RiskScore, strings.ReplaceAll(s.Recommendation, "_", " "))
	for _, rule := range s.MatchedRules {
		fmt.Fprintf(&b, "  %-9s %s: %s\n", rule.Severity, rule.ID, rule.Title)
		fmt.Fprintf(&b, "            %q\n", rule.Evidence.Excerpt)
		if rule.Remediation != "" {
			fmt.Fprintf(&b, "            instead: %s\n", rule.Remediation)
		}
	}
	if s.Coverage.Unmatched {
		b.WriteString("  no rule knows this command, and it is not proven read-only\n")
	}
	fmt.Fprintf(&b, "  action %s, rules %s\n", s.ActionHash[:16], s.RulesetVersion)
	return b.String()
}
