package commands

// New makes the commands on one ground. What else a room needs is set afterwards.
func New(g *Ground) *App {
	accounts := &Accounts{Ground: g}
	organizations := &Organizations{Ground: g, Accounts: accounts}
	payments := &Payments{Ground: g, Accounts: accounts}
	store := &Store{Ground: g, Accounts: accounts, Organizations: organizations, Payments: payments}
	services := &Services{Ground: g, Accounts: accounts, Payments: payments, Store: store}
	decisions := &Decisions{Ground: g, Organizations: organizations}
	organizations.Forgotten = decisions.ForgetPolicy
	return &App{
		Ground: g, Accounts: accounts, Organizations: organizations, Payments: payments, Store: store, Services: services, Decisions: decisions,
		Evidence: &Evidence{Ground: g, Organizations: organizations, Services: services, Decisions: decisions},
		Webhooks: &Webhooks{Ground: g, Organizations: organizations},
	}
}

// App is every command. Its rooms share one ground.
type App struct {
	*Ground
	*Accounts
	*Organizations
	*Payments
	*Store
	*Services
	*Decisions
	*Evidence
	*Webhooks
}
