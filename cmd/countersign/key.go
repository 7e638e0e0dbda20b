package main

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands"
)

// keyCmd issues and revokes API keys.
type keyCmd struct {
	Issue  keyIssueCmd  `cmd:"" help:"Issue a free key. It is shown once."`
	Revoke keyRevokeCmd `cmd:"" help:"End a key, or an agent with all its tokens, at once."`
}

type keyIssueCmd struct {
	Email string `required:"" help:"Whose key it is."`
	data
}

// Run prints the key.
func (c *keyIssueCmd) Run(ctx context.Context, o *screen.Output) error {
	c.begins = true
	n, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer n.close()
	issued, err := n.app.IssueFreeKey(ctx, c.Email, "")
	if err != nil {
		return err
	}
	return o.Result(map[string]any{"apiKey": issued.APIKey, "keyId": issued.KeyID, "plan": "free",
		"callsPerMonth": commands.FreeCallsPerMonth, "resetsAt": commands.Stamp(issued.ResetsAt)},
		fmt.Sprintf("%s\n%d calls a month; shown this once\n", issued.APIKey, commands.FreeCallsPerMonth))
}

type keyRevokeCmd struct {
	ID     string `arg:"" help:"The 12 characters after svck_, or an agent's client id (agt_...)."`
	Reason string `required:"" help:"Why; it is recorded."`
	data
}

// Run revokes the key or the agent.
func (c *keyRevokeCmd) Run(ctx context.Context, o *screen.Output) error {
	n, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer n.close()
	revoke := n.app.RevokeKey
	if commands.IsAgentID(c.ID) {
		revoke = n.app.RevokeAgent
	}
	if err := revoke(ctx, c.ID, c.Reason); err != nil {
		return err
	}
	return o.Result(map[string]string{"id": c.ID, "state": "revoked"}, "revoked\n")
}
