package commands

import (
	"context"

	"github.com/countersign/countersign/ledger"
)

// party is the agent as the one a call is recorded of.
func (g Agent) party() party {
	return party{actor: g.ClientID, dataKey: g.agent.dataKey, subject: "agent:" + g.ClientID, guards: []ledger.Guard{g.agent.guard}}
}

// currentAgent is the agent as its stream is now, after it has moved.
func (a *App) currentAgent(ctx context.Context, g Agent) (Agent, error) {
	now, err := a.agentOf(ctx, g.ClientID)
	if err == nil && (now.revoked || now.ended[g.claims.ID]) {
		err = errToken
	}
	g.agent, g.CustomerID = now, now.customer
	return g, err
}

// chargeCredit is the fund that a call of this price may draw from an agent's
// credit; false if there is none, or too little is left.
func (a *App) chargeCredit(context.Context, Agent, int) (fund, bool, error) {
	return fund{}, false, nil
}
