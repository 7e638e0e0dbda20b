package query

import (
	"context"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// Deliveries answers queries about messages to an organization's webhooks.
type Deliveries struct {
	Commands    *webhooks.Webhooks
	Projections *projections.Projections
}

// List lists the newest messages to a webhook of the principal's organization, in any state if
// state is empty.
func (s Deliveries) List(ctx context.Context, p organizations.Principal, webhookID, state string) ([]projections.Delivery, error) {
	if err := s.Commands.HasWebhook(ctx, p, webhookID); err != nil {
		return nil, err
	}
	list, err := s.Projections.Deliveries(ctx, p.OrgID, webhookID, state, MostDelivered)
	return list, Error(err)
}

// SendAgain makes dead messages of a webhook due again: all, or only the one with messageID. It
// returns their number.
func (s Deliveries) SendAgain(ctx context.Context, p organizations.Principal, webhookID, messageID string) (int, error) {
	if err := p.May(organizations.RightManage); err != nil {
		return 0, err
	}
	if err := s.Commands.HasWebhook(ctx, p, webhookID); err != nil {
		return 0, err
	}
	n, err := s.Projections.SendAgain(ctx, p.OrgID, webhookID, messageID)
	if err == nil && n == 0 && messageID != "" {
		return 0, policy.Refuse(ground.CodeNotFound, "", "message not found")
	}
	return n, Error(err)
}
