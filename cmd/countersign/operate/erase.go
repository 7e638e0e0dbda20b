package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/ledger"
)

// Erase destroys the data key of a person or an agent, for ever.
type Erase struct {
	setting.Ledger
	Org         string `help:"Organization; without it, the service's own tenant." placeholder:"ID"`
	Agent       string `help:"Agent id as it stands in subject.agentId." placeholder:"ID"`
	RunID       string `help:"Run id of subjects without an agent." name:"run" placeholder:"ID"`
	Email       string `help:"E-mail address of a key's or account's holder." placeholder:"EMAIL"`
	Payer       string `help:"Address of who has paid with x402, with its network." placeholder:"NETWORK:ADDRESS"`
	DataKey     string `help:"The data key itself." name:"data-key" placeholder:"ID"`
	Reason      string `help:"Why, for the event." required:""`
	RequestedBy string `help:"Who asked." name:"requested-by" required:""`
	ApprovedBy  string `help:"Who agreed: somebody else." name:"approved-by" required:""`
}

// Run erases.
func (c *Erase) Run(ctx context.Context, o *screen.Output) error {
	e := evidence.Erasure{Tenant: ledger.ServiceTenant, KeyID: c.DataKey, Reason: c.Reason, RequestedBy: c.RequestedBy, ApprovedBy: c.ApprovedBy}
	if c.Org != "" {
		e.Tenant = c.Org
	}
	switch {
	case c.Agent != "":
		e.Subject = "agent:" + c.Agent
	case c.RunID != "":
		e.Subject = "run:" + c.RunID
	case c.Email != "":
		e.Subject = "email:" + c.Email
	case c.Payer != "":
		e.Subject = "payer:" + c.Payer
	case c.DataKey == "":
		return errors.New("say who is to be erased: --agent, --run, --email, --payer or --data-key")
	}
	n, err := node.Start(ctx, &c.Ledger, false, true, "", logs.New(slog.LevelWarn), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	keyID, err := n.App.EraseSubject(ctx, e)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s is destroyed; other nodes forget it within a minute. Backups of subject_keys hold it until they are gone\n", keyID)
	if letters := filepath.Join(c.Dir(), setting.LettersFile); c.Private() {
		if _, err := os.Stat(letters); err == nil {
			text += fmt.Sprintf("NOT erased: letters that were written before, in %s, may name whom they were about; remove the file while nothing serves\n", letters)
		}
	}
	return o.Result(map[string]string{"keyId": keyID}, text)
}
