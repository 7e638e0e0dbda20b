// Package manage implements the commands for organizations, policies, webhooks, keys, payments,
// refunds and entitlements.
package manage

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
)

// Org has the commands for organizations. Events have the actor "operator".
type Org struct {
	Create orgCreateCmd `cmd:"" help:"Create an organization with its first owner."`
	Update orgUpdateCmd `cmd:"" help:"Rename an organization, change its plan, or set its state: active, suspended or lapsed."`
	List   orgListCmd   `cmd:"" help:"List all organizations."`
	Show   orgShowCmd   `cmd:"" help:"Show an organization with its members."`
	Use    orgUseCmd    `cmd:"" help:"Set the organization that commands use without --org."`
	Member orgMemberCmd `cmd:"" help:"Add and remove members."`
	Token  orgTokenCmd  `cmd:"" help:"Issue, list and revoke tokens of an organization."`
}

type orgCreateCmd struct {
	Name  string `required:"" help:"Name of the organization."`
	Plan  string `required:"" enum:"team,business" placeholder:"team|business" help:"Plan: team or business."`
	Owner string `required:"" help:"E-mail address of the first owner." placeholder:"EMAIL"`
	setting.Ledger
}

// Run creates an organization and prints its id.
func (c *orgCreateCmd) Run(ctx context.Context, o *screen.Output) error {
	c.Begins = true
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	org, err := n.App.CreateOrganization(ctx, "operator", c.Name, c.Plan, c.Owner)
	if err != nil {
		return err
	}
	return o.Made(org, org.OrgID, fmt.Sprintf("next: countersign org token issue --org %[1]s; countersign policy init --for mcp --out policy.json; countersign policy activate --org %[1]s --file policy.json --reason TEXT", org.OrgID))
}

type orgUpdateCmd struct {
	Name  string `help:"New name."`
	Plan  string `help:"New plan: team or business."`
	State string `help:"New state: active, suspended or lapsed."`

	Arguments string `help:"Which decisions store the arguments of tools, encrypted and erasable, for reviewers: off, reviews (the default) or always."`

	Reason string `required:"" help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	ofOrganization
}

// Run changes the organization and prints it.
func (c *orgUpdateCmd) Run(ctx context.Context, o *screen.Output) error {
	n, err := node.Open(ctx, &c.ofOrganization.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	id, err := n.Organization(ctx, c.Org)
	if err != nil {
		return err
	}
	org, err := n.App.UpdateOrganization(ctx, "operator", id,
		organizations.OrganizationChange{Name: c.Name, Plan: c.Plan, State: c.State, Arguments: c.Arguments, Reason: c.Reason})
	if err != nil {
		return err
	}
	return o.Result(org, organizationRows(o, org))
}

// organizationRows returns organizations as a table.
func organizationRows(o *screen.Output, list ...organizations.OrganizationInfo) string {
	rows := screen.Table{Heads: []string{"organization", "plan", "state", "members", "name"}}
	for _, org := range list {
		rows.Add(org.OrgID, org.Plan, org.State, strconv.Itoa(org.Members), org.Name)
	}
	return o.Table(rows)
}

type orgListCmd struct{ setting.Ledger }

// Run prints a line for each organization.
func (c *orgListCmd) Run(ctx context.Context, o *screen.Output) error {
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil {
		return err
	}
	defer n.Close()
	list, err := n.App.ListOrganizations(ctx)
	if err != nil {
		return err
	}
	return o.Result(list, organizationRows(o, list...))
}

type orgShowCmd struct {
	Named string `arg:"" optional:"" name:"organization" help:"Id or name of the organization; the same as --org."`
	ofOrganization
}

// shownOrganization is the result of org show.
type shownOrganization struct {
	organizations.OrganizationInfo
	MemberList []organizations.MemberInfo `json:"memberList"`
}

// Run prints the organization and its members.
func (c *orgShowCmd) Run(ctx context.Context, o *screen.Output) error {
	c.Org = cmp.Or(c.Named, c.Org)
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		org, err := app.Organization(ctx, p.OrgID)
		if err != nil {
			return err
		}
		members, err := app.Members(ctx, p)
		if err != nil {
			return err
		}
		rows := screen.Table{Heads: []string{"member", "role", "e-mail"}}
		for _, m := range members {
			rows.Add(m.MemberID, m.Role, m.Email)
		}
		return o.Result(shownOrganization{org, members}, organizationRows(o, org)+o.Table(rows))
	})
}

type orgMemberCmd struct {
	Add    memberAddCmd    `cmd:"" help:"Add a member, or change the role of a member."`
	Remove memberRemoveCmd `cmd:"" help:"Remove a member and revoke the member's tokens, at once."`
}

type memberAddCmd struct {
	Email string `required:"" help:"E-mail address of the member."`
	Role  string `required:"" enum:"owner,admin,developer,auditor" placeholder:"owner|admin|developer|auditor" help:"Role: owner, admin, developer or auditor."`
	ofOrganization
}

// Run adds the member and prints it.
func (c *memberAddCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		m, err := app.AddMember(ctx, p, c.Email, c.Role)
		if err != nil {
			return err
		}
		return o.Made(m, m.MemberID, "the role is "+m.Role)
	})
}

type memberRemoveCmd struct {
	Member string `arg:"" help:"Id of the member."`
	Reason string `help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	ofOrganization
}

// Run removes the member.
func (c *memberRemoveCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		if err := app.RemoveMember(ctx, p, c.Member, c.Reason); err != nil {
			return err
		}
		return o.Result(map[string]string{"memberId": c.Member, "state": "removed"}, "removed\n")
	})
}

type orgTokenCmd struct {
	Issue  tokenIssueCmd  `cmd:"" help:"Issue a token. It is shown once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens of an organization."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token at once."`
}

type tokenIssueCmd struct {
	Scopes  []string `help:"Scopes of the token. Default: assurance:decide, assurance:receipt and assurance:read." placeholder:"SCOPE"`
	Expires string   `help:"Days until the token expires, such as 90d (the default); at most 365d." placeholder:"DAYS"`
	Name    string   `help:"Purpose of the token, for people who read the list."`
	Member  string   `help:"Id of the member who owns the token." placeholder:"ID"`
	From    []string `help:"Networks from which the token may be used." placeholder:"CIDR"`
	Rotate  string   `help:"Id of the token to replace; it stays valid for 24 hours." placeholder:"ID"`
	ofOrganization
}

// Run issues the token and prints it.
func (c *tokenIssueCmd) Run(ctx context.Context, o *screen.Output) error {
	days, err := parseDays(c.Expires)
	if err != nil {
		return err
	}
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		issued, err := app.IssueToken(ctx, p, organizations.TokenOrder{Name: c.Name, Scopes: c.Scopes, Days: days,
			Addresses: c.From, Member: c.Member, Rotates: c.Rotate})
		if err != nil {
			return err
		}
		return o.Made(issued, issued.Token, fmt.Sprintf("%s until %s; shown only now", strings.Join(issued.Scopes, " "), issued.ExpiresAt))
	})
}

// parseDays parses a number of days: "90d", "90", or a duration of whole days. It returns 0 for an
// empty text.
func parseDays(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		text = days
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 && d%(24*time.Hour) == 0 {
		return int(d / (24 * time.Hour)), nil
	}
	var days int
	if _, err := fmt.Sscanf(text+"\n", "%d\n", &days); err != nil || days < 1 {
		return 0, fmt.Errorf("--expires must be a number of days, such as 90d")
	}
	return days, nil
}

type tokenListCmd struct{ ofOrganization }

// Run prints a line for each token.
func (c *tokenListCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		tokens, err := app.Tokens(ctx, p)
		if err != nil {
			return err
		}
		rows := screen.Table{Heads: []string{"token", "state", "expires", "scopes", "name"}}
		for _, t := range tokens {
			rows.Add(t.TokenID, t.State, t.ExpiresAt, strings.Join(t.Scopes, " "), t.Name)
		}
		return o.Result(tokens, o.Table(rows))
	})
}

type tokenRevokeCmd struct {
	ID     string `arg:"" help:"The 12 characters after svco_ in the token."`
	Reason string `help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	ofOrganization
}

// Run revokes the token.
func (c *tokenRevokeCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		if err := app.RevokeToken(ctx, p, strings.TrimPrefix(c.ID, "svco_"), c.Reason); err != nil {
			return err
		}
		return o.Result(map[string]string{"tokenId": c.ID, "state": "revoked"}, "revoked\n")
	})
}
