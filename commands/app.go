// Package commands joins the commands of all subjects; each subject is a package below this one. A
// command reads the streams that its decision depends on, asks package policy, signs the result if
// it is a record, and appends all its events or none. A command never reads a projection and
// starts no goroutine.
//
// A caller can repeat a command safely with an idempotency key: the same key and content return
// the stored answer, byte for byte, before the current state is checked.
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

// New creates the commands of all subjects, which share g. Afterwards the caller sets the fields
// that only one package needs.
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

// App has the commands of all subjects. They share one Ground.
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
