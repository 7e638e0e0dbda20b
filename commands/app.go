// Package commands decides and appends. Its rooms are packages, one for each subject, and
// App has the commands of all of them. A command reads the streams that its decision depends
// on, asks package policy, signs what must be signed and appends the result, all or nothing.
// A command never reads a projection and starts no goroutine.
//
// A caller's key makes a command safe to repeat: the same key and content give
// the stored answer, byte for byte, before any check of present state.
package commands

import (
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/commands/webhooks"
)

// New makes the commands on one ground. What else a room needs is set afterwards.
func New(g *ground.Ground) *App {
	accounts := &accounts.Accounts{Ground: g}
	organizations := &organizations.Organizations{Ground: g, Accounts: accounts}
	payments := &payments.Payments{Ground: g, Accounts: accounts}
	store := &store.Store{Ground: g, Accounts: accounts, Organizations: organizations, Payments: payments}
	services := &services.Services{Ground: g, Accounts: accounts, Payments: payments, Store: store}
	decisions := &decisions.Decisions{Ground: g, Organizations: organizations}
	organizations.Forgotten = decisions.ForgetPolicy
	return &App{
		Ground: g, Accounts: accounts, Organizations: organizations, Payments: payments, Store: store, Services: services, Decisions: decisions,
		Evidence: &evidence.Evidence{Ground: g, Organizations: organizations, Services: services, Decisions: decisions},
		Webhooks: &webhooks.Webhooks{Ground: g, Organizations: organizations},
	}
}

// App is every command. Its rooms share one ground.
type App struct {
	*ground.Ground
	*accounts.Accounts
	*organizations.Organizations
	*payments.Payments
	*store.Store
	*services.Services
	*decisions.Decisions
	*evidence.Evidence
	*webhooks.Webhooks
}
