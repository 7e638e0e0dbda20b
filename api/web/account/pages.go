// Package account has the pages of a person, of whichever organization: signing in and out, the
// account with its keys, agents and purchases, the choice of an organization, and the outbox of
// e-mails on the machine's own service.
package account

import (
	"context"
	"net/http"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/projections"
)

// Room is what the pages of a person work with.
type Room struct {
	Commands    *store.Store
	Projections *projections.Projections
	Credentials credential.Reader
	Outbox      *mail.Outbox // nil: there is no such page
	SignIn      SignIn
	Purchases   Purchases
}

// SignIn is what the server does for a sign-in.
type SignIn struct {
	SendLink     func(r *http.Request, email, next string) error
	MayEnterCode func() bool // whether another code may be tried at the outbox
}

// Purchases is what the server does for a customer who has bought something.
type Purchases struct {
	CardCheckout bool                                                       // there is a payment provider for cards
	Portal       func(ctx context.Context, customer string) (string, error) // returns the address of the provider's page
	Resync       func(ctx context.Context, customer string) bool            // asks the provider about subscriptions
	DownloadURL  func(store.DownloadLink) string
}

// ConfirmAgentPath is where the link leads that verifies an agent.
const ConfirmAgentPath = "/agents/confirm"

// Pages is the table of pages.
func (r *Room) Pages() []web.Page {
	list := []web.Page{
		web.Get("/sign-in", web.Open, r.showSignIn),
		web.Post("/sign-in", web.Open, r.postSignIn),
		web.Get("/sign-in/confirm", web.Open, r.showConfirm),
		web.Post("/sign-in/confirm", web.Open, r.postConfirm),
		web.Get(ConfirmAgentPath, web.Open, r.showConfirmAgent),
		web.Post(ConfirmAgentPath, web.Open, r.postConfirmAgent),
		web.Post("/sign-out", web.Open, r.postSignOut),
		web.Get("/account", web.SignedIn, r.showAccount),
		web.Post("/account/organization", web.SignedIn, r.postOrganization),
		web.Post("/account/keys", web.SignedIn, r.postKey),
		web.Post("/account/keys/revoke", web.SignedIn, r.postRevokeKey),
		web.Post("/account/agents/revoke", web.SignedIn, r.postRevokeAgent),
		web.Post("/account/download", web.SignedIn, r.postDownload),
		web.Post("/account/billing", web.SignedIn, r.postBilling),
	}
	if r.Outbox != nil {
		list = append(list, web.Get("/outbox", web.Open, r.showOutbox), web.Post("/outbox", web.Open, r.openOutbox))
	}
	return list
}
