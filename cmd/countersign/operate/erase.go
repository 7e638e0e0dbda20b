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
	"github.com/countersign/countersign/ledger/vault"
)

// Erase destroys the data key of a person or an agent. This cannot be undone.
type Erase struct {
	setting.Ledger
	Org         string `help:"Id of the organization. Default: the service's own tenant." placeholder:"ID"`
	Agent       string `help:"Agent id, as in subject.agentId." placeholder:"ID"`
	RunID       string `help:"Id of the run to erase, if its decisions name no agent." name:"run" placeholder:"ID"`
	Email       string `help:"E-mail address of the holder of a key or account." placeholder:"EMAIL"`
	Payer       string `help:"Address of an x402 payer, with its network." placeholder:"NETWORK:ADDRESS"`
	DataKey     string `help:"Instead of naming the person or agent: id of the data key to destroy." name:"data-key" placeholder:"ID"`
	Reason      string `help:"The reason, recorded in the event." required:""`
	RequestedBy string `help:"The person who requested the erasure." name:"requested-by" required:""`
	Vacuum      bool   `help:"After the erasure, rewrite the table of data keys, so that none of its pages has the destroyed key. Requests wait meanwhile. The role of DATABASE_URL must own the table."`
	ApprovedBy  string `help:"The person who approved the erasure; a different person than --requested-by." name:"approved-by" required:""`
}

// Run destroys the data key and prints what may still contain personal data.
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
		return errors.New("name the subject to erase: --agent, --run, --email, --payer or --data-key")
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
	done, left := "", "in a page of the table subject_keys until the table is vacuumed (--vacuum), "
	if c.Vacuum {
		if err := vault.Vacuum(ctx, n.OwnerURL(&c.Ledger)); err != nil {
			return fmt.Errorf("%s was destroyed, but its table was not rewritten: %w", keyID, err)
		}
		done, left = " and its table was rewritten", ""
	}
	text := fmt.Sprintf("%s was destroyed%s; other nodes drop it within a minute. The wrapped key is still %sin the write-ahead log until its segments are recycled, and in replicas and backups until they are deleted\n", keyID, done, left)
	if letters := filepath.Join(c.Dir(), setting.LettersFile); c.Private() {
		if _, err := os.Stat(letters); err == nil {
			text += fmt.Sprintf("NOT erased: e-mail stored in %s, and printed by serve, may name the subject; remove the file while serve does not run\n", letters)
		}
	}
	return o.Result(map[string]string{"keyId": keyID}, text)
}
