package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/actionrisk"
)

// HookFindings are those about the guards of coding agents on this machine, and the rules
// that this program has.
func HookFindings(ctx context.Context, o *Output, agent string, command []string) (found []screen.Finding) {
	for _, f := range o.Account().Try(ctx, guard.Agent(agent), command) {
		found = append(found, screen.Finding{Name: "hook", State: f.State, Detail: f.Detail})
	}
	version, hash := actionrisk.Ruleset()
	return append(found, screen.OK("rules", fmt.Sprintf("rule set %s, %s", version, hash)))
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
