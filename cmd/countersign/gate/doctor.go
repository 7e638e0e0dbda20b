package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Finding is one thing that doctor looked at.
type Finding struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warning or bad
	Detail string `json:"detail"`
}

// HookFindings are those about the guards of coding agents on this machine, and the rules
// that this program has.
func HookFindings(ctx context.Context, o *Output, agent string, command []string) (found []Finding) {
	for _, f := range o.Account().Try(ctx, guard.Agent(agent), command) {
		found = append(found, Finding{"hook", f.State, f.Detail})
	}
	version, hash := actionrisk.Ruleset()
	return append(found, Finding{"rules", "ok", fmt.Sprintf("rule set %s, %s", version, hash)})
}

// Findings shows findings; a bad one is the answer no.
func (o *Output) Findings(list []Finding) error {
	rows, bad := screen.Table{Heads: []string{"state", "what", "found"}}, false
	for _, f := range list {
		rows.Add(f.State, f.Name, strings.ReplaceAll(strings.TrimSpace(f.Detail), "\n", "; "))
		bad = bad || f.State == "bad"
	}
	if err := o.Result(list, o.Table(rows)); err != nil {
		return err
	}
	if bad {
		return ErrNo
	}
	return nil
}

// Doctor looks at the guards of coding agents, which is all that the guard's own program
// looks at.
type Doctor struct {
	Hook  bool   `help:"Start each hook as its agent would and check that it blocks a canary." default:"true"`
	Agent string `help:"Only this agent (claude, codex, cursor, gemini, opencode, qwen, copilot)." enum:",claude,codex,cursor,gemini,opencode,qwen,copilot" default:""`

	HookCommand []string `arg:"" optional:"" name:"hook-command" help:"After --: the hook's command, instead of what the settings name."`
}

// Run prints the findings; a bad one is exit code 1.
func (c *Doctor) Run(ctx context.Context, o *Output) error {
	if !c.Hook {
		return errors.New("this program looks at hooks only; countersign doctor looks at a service")
	}
	return o.Findings(HookFindings(ctx, o, c.Agent, c.HookCommand))
}
