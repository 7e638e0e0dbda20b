package manage

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// Webhooks has the commands for an organization's webhooks. They send no messages; the service
// does.
type Webhooks struct {
	Create     webhookCreateCmd     `cmd:"" help:"Create a webhook. Its secret is shown once."`
	List       webhookListCmd       `cmd:"" help:"List the webhooks of an organization."`
	Rotate     webhookRotateCmd     `cmd:"" help:"Give a webhook a new secret, shown once. For 24 hours messages are signed with both secrets."`
	Remove     webhookRemoveCmd     `cmd:"" help:"Remove a webhook. Its queued messages are dropped."`
	Deliveries webhookDeliveriesCmd `cmd:"" help:"List messages to a webhook and their states."`
	Resend     webhookResendCmd     `cmd:"" help:"Send the dead messages of a webhook again (those whose delivery was given up), or one message."`
}

type webhookCreateCmd struct {
	URL         string   `required:"" name:"url" help:"https address that receives the messages by POST." placeholder:"URL"`
	Topics      []string `help:"Topics to send: checkpoints, decisions, reviews, violations. Default: all except checkpoints." placeholder:"TOPIC"`
	Name        string   `help:"Purpose of the webhook, for people who read the list."`
	WebhookNets []string `help:"Private networks that webhooks may reach; the same as for serve." env:"WEBHOOK_NETWORKS" name:"webhook-networks" placeholder:"CIDR"`
	ofOrganization
}

// Run creates the webhook and prints it with its secret.
func (c *webhookCreateCmd) Run(ctx context.Context, o *screen.Output) error {
	private, err := setting.Networks("WEBHOOK_NETWORKS", c.WebhookNets)
	if err != nil {
		return err
	}
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		app.WebhookNetworks = private
		created, err := app.CreateWebhook(ctx, p, webhooks.WebhookOrder{URL: c.URL, Topics: c.Topics, Name: c.Name})
		if err != nil {
			return err
		}
		return o.Made(created, created.Secret, fmt.Sprintf("%s  %s to %s; the secret is shown only now",
			created.WebhookID, strings.Join(created.Topics, " "), created.Origin))
	})
}

type webhookListCmd struct{ ofOrganization }

// Run prints a line for each webhook.
func (c *webhookListCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		list, err := app.ListWebhooks(ctx, p)
		if err != nil {
			return err
		}
		rows := screen.Table{Heads: []string{"webhook", "to", "topics", "name"}}
		for _, hook := range list {
			rows.Add(hook.WebhookID, hook.Origin, strings.Join(hook.Topics, " "), hook.Name)
		}
		return o.Result(list, o.Table(rows))
	})
}

type webhookRotateCmd struct {
	Webhook string `arg:"" help:"Id of the webhook."`
	ofOrganization
}

// Run prints the webhook's new secret.
func (c *webhookRotateCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		rotated, err := app.RotateWebhook(ctx, p, c.Webhook)
		if err != nil {
			return err
		}
		return o.Made(rotated, rotated.Secret, fmt.Sprintf("shown only now; messages are signed with both secrets until %s", rotated.RotatesUntil))
	})
}

type webhookRemoveCmd struct {
	Webhook string `arg:"" help:"Id of the webhook."`
	Reason  string `help:"The reason, recorded in the ledger." placeholder:"TEXT"`
	ofOrganization
}

// Run removes the webhook.
func (c *webhookRemoveCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		if err := app.RemoveWebhook(ctx, p, c.Webhook, c.Reason); err != nil {
			return err
		}
		return o.Result(map[string]string{"webhookId": c.Webhook, "state": "removed"}, "removed\n")
	})
}

// asSender opens the ledger and calls the function step, which works on the message queue of a
// webhook.
func (c *ofOrganization) asSender(ctx context.Context, webhookID string, step func(orgID string, _ *projections.Projections) error) error {
	return c.asOperator(ctx, func(app *commands.App, p organizations.Principal) error {
		if err := app.HasWebhook(ctx, p, webhookID); err != nil {
			return err
		}
		views, err := node.ReadModels(ctx, app.Ledger, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer views.Close()
		return step(p.OrgID, views)
	})
}

type webhookDeliveriesCmd struct {
	Webhook string `arg:"" help:"Id of the webhook."`
	State   string `help:"Only messages in this state: due, sent or dead." enum:",due,sent,dead" default:""`
	Limit   int    `help:"Maximum number of messages, newest first." default:"100"`
	ofOrganization
}

// Run prints a line for each message, the newest first.
func (c *webhookDeliveriesCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asSender(ctx, c.Webhook, func(orgID string, views *projections.Projections) error {
		list, err := views.Deliveries(ctx, orgID, c.Webhook, c.State, c.Limit)
		if err != nil {
			return err
		}
		rows := screen.Table{Heads: []string{"message", "state", "attempts", "due", "status", "error"}}
		for _, d := range list {
			rows.Add(d.MessageID, d.State, fmt.Sprint(d.Attempts), d.DueAt, fmt.Sprint(d.Status), d.Error)
		}
		return o.Result(list, o.Table(rows))
	})
}

type webhookResendCmd struct {
	Webhook string `arg:"" help:"Id of the webhook."`
	Message string `help:"Id of one sent or dead message. Default: every dead one." placeholder:"ID"`
	ofOrganization
}

// Run queues messages again and prints their number. The running service sends them.
func (c *webhookResendCmd) Run(ctx context.Context, o *screen.Output) error {
	return c.asSender(ctx, c.Webhook, func(orgID string, views *projections.Projections) error {
		n, err := views.SendAgain(ctx, orgID, c.Webhook, c.Message)
		if err != nil {
			return err
		}
		if n == 0 && c.Message != "" {
			return policy.Refuse(ground.CodeNotFound, "", "message not found")
		}
		return o.Result(map[string]int{"due": n}, fmt.Sprintf("%d will be sent again\n", n))
	})
}
