package manage

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
)

// ofOrganization has the flag that selects the organization of a command.
type ofOrganization struct {
	Org string `help:"Id or name of the organization. Default: the one that you set with countersign org use, or the only one." env:"COUNTERSIGN_ORG" placeholder:"ORG"`
	setting.Ledger
}

// asOperator opens the ledger and calls the function step with the organization's operator as the
// principal.
func (c *ofOrganization) asOperator(ctx context.Context, step func(*commands.App, organizations.Principal) error) error {
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	id, err := n.Organization(ctx, c.Org)
	if err != nil {
		return err
	}
	p, err := n.App.Operator(ctx, id)
	if err != nil {
		return err
	}
	return step(n.App, p)
}

// orgUseCmd sets the user's default organization.
type orgUseCmd struct {
	Named  string `arg:"" optional:"" name:"organization" help:"Id or name of the organization."`
	Forget bool   `help:"Remove the default."`
	setting.Ledger
}

// Run stores the default in the user's configuration folder under the ledger's name, because an
// organization's id is valid for one ledger only.
func (c *orgUseCmd) Run(ctx context.Context, o *screen.Output) error {
	if (c.Named == "") != c.Forget {
		return errors.New("name an organization, or give --forget")
	}
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	places, err := node.ReadRemembered()
	if err != nil {
		return err
	}
	delete(places, n.Ledger.Origin())
	id, text := "", "forgotten\n"
	if !c.Forget {
		if id, err = n.Organization(ctx, c.Named); err != nil {
			return err
		}
		org, err := n.App.Organization(ctx, id)
		if err != nil {
			return err
		}
		places[n.Ledger.Origin()], text = id, fmt.Sprintf("commands now use the organization %s (%s)\n", org.OrgID, screen.Printable(org.Name))
	}
	if err := node.WriteRemembered(places); err != nil {
		return err
	}
	return o.Result(map[string]string{"orgId": id}, text)
}
