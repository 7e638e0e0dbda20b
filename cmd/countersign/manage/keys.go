package manage

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy/canon"
)

// Key has the commands that issue and revoke API keys.
type Key struct {
	Issue  keyIssueCmd  `cmd:"" help:"Issue a free key. It is shown once."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key, or an agent with all its tokens, at once."`
}

type keyIssueCmd struct {
	Email string `required:"" help:"E-mail address of the key's owner."`
	setting.Ledger
}

// Run issues a key and prints it.
func (c *keyIssueCmd) Run(ctx context.Context, o *screen.Output) error {
	c.Begins = true
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	issued, err := n.App.IssueFreeKey(ctx, c.Email, "")
	if err != nil {
		return err
	}
	return o.Made(map[string]any{"apiKey": issued.APIKey, "keyId": issued.KeyID, "plan": "free",
		"callsPerMonth": accounts.FreeCallsPerMonth, "resetsAt": canon.Stamp(issued.ResetsAt)},
		issued.APIKey, fmt.Sprintf("%d calls a month; shown only now", accounts.FreeCallsPerMonth))
}

type keyRevokeCmd struct {
	ID     string `arg:"" help:"The 12 characters after svck_ in the key, or the client id of an agent (agt_...)."`
	Reason string `required:"" help:"The reason, recorded in the ledger."`
	setting.Ledger
}

// Run revokes an API key, or an agent with all its tokens.
func (c *keyRevokeCmd) Run(ctx context.Context, o *screen.Output) error {
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	revoke := n.App.RevokeKey
	if accounts.IsAgentID(c.ID) {
		revoke = n.App.RevokeAgent
	}
	if err := revoke(ctx, c.ID, c.Reason); err != nil {
		return err
	}
	return o.Result(map[string]string{"id": c.ID, "state": "revoked"}, "revoked\n")
}
