package manage

import (
	"context"
	"errors"
	"time"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands/store"
)

// Entitlements shows and changes customers' access to products. Events have the actor "operator".
type Entitlements struct {
	List   entitlementsListCmd   `cmd:"" help:"List a customer's access to products, in every state."`
	Grant  entitlementsGrantCmd  `cmd:"" help:"Grant a customer access to a product, also after a revocation."`
	Revoke entitlementsRevokeCmd `cmd:"" help:"Revoke a customer's access to a product, however the access was acquired. It stays revoked until it is granted again."`
}

// ofCustomer has the arguments that select a customer, by id or e-mail address.
type ofCustomer struct {
	Customer string `help:"Id of the customer." xor:"who" required:"" placeholder:"ID"`
	Email    string `help:"E-mail address of the customer." xor:"who" required:""`
	setting.Ledger
}

// open opens the ledger and returns it with the customer's id.
func (c *ofCustomer) open(ctx context.Context) (*node.Node, string, error) {
	n, err := node.Open(ctx, &c.Ledger)
	if err != nil || c.Customer != "" {
		return n, c.Customer, err
	}
	id, err := n.App.CustomerByEmail(ctx, c.Email)
	if err != nil {
		n.Close()
		return nil, "", err
	}
	return n, id, nil
}

// listedEntitlements is the result of entitlements list.
type listedEntitlements struct {
	CustomerID   string              `json:"customerId"`
	Entitlements []store.Entitlement `json:"entitlements"`
}

func entitlementRows(o *screen.Output, list ...store.Entitlement) string {
	rows := screen.Table{Heads: []string{"product", "state", "from", "until"}}
	for _, e := range list {
		until := ""
		if e.ValidUntil != nil {
			until = *e.ValidUntil
		}
		rows.Add(e.Product, e.Status, e.Source, until)
	}
	return o.Table(rows)
}

type entitlementsListCmd struct{ ofCustomer }

// Run prints a line for each product.
func (c *entitlementsListCmd) Run(ctx context.Context, o *screen.Output) error {
	n, id, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer n.Close()
	list, err := n.App.Entitlements(ctx, id)
	if err != nil {
		return err
	}
	return o.Result(listedEntitlements{id, list}, id+"\n"+entitlementRows(o, list...))
}

type entitlementsGrantCmd struct {
	Product string `required:"" help:"Slug of the product." placeholder:"SLUG"`
	Until   string `help:"When the access ends, such as 2027-01-31 or an RFC 3339 time. Default: never." placeholder:"TIME"`
	Reason  string `required:"" help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	ofCustomer
}

// Run grants the access and prints its new state.
func (c *entitlementsGrantCmd) Run(ctx context.Context, o *screen.Output) error {
	until, err := parseUntil(c.Until)
	if err != nil {
		return err
	}
	n, id, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer n.Close()
	e, err := n.App.GrantEntitlement(ctx, id, c.Product, until, c.Reason)
	if err != nil {
		return err
	}
	return o.Result(e, entitlementRows(o, e))
}

// parseUntil parses a time, or a day, which means its beginning in UTC. It returns the zero time
// for an empty text.
func parseUntil(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("--until must be a day such as 2027-01-31, or an RFC 3339 time")
}

type entitlementsRevokeCmd struct {
	Product string `required:"" help:"Slug of the product." placeholder:"SLUG"`
	Reason  string `required:"" help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	ofCustomer
}

// Run revokes the access and prints its new state.
func (c *entitlementsRevokeCmd) Run(ctx context.Context, o *screen.Output) error {
	n, id, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer n.Close()
	e, err := n.App.RevokeEntitlement(ctx, id, c.Product, c.Reason)
	if err != nil {
		return err
	}
	return o.Result(e, entitlementRows(o, e))
}
