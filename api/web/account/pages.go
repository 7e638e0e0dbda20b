// Package account contains the pages of a person that do not depend on an organization: sign-in
// and sign-out, the account with its keys, agents and purchases, the choice of an organization,
// and the outbox of e-mails when the service runs on the person's own machine.
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

// Room contains the dependencies of the account pages.
type Room struct {
	Commands    *store.Store
	Projections *projections.Projections
	Credentials credential.Reader
	Outbox      *mail.Outbox // nil if the outbox page does not exist
	SignIn      SignIn
	Purchases   Purchases
}

// SignIn contains the functions of the server that sign-in pages call.
type SignIn struct {
	SendLink     func(r *http.Request, email, next string) error
	MayEnterCode func() bool // returns false if too many codes were tried at the outbox
}

// Purchases contains what the server offers to a customer who has bought something.
type Purchases struct {
	CardCheckout bool                                                       // a payment provider for cards is configured
	Portal       func(ctx context.Context, customer string) (string, error) // returns the address of the provider's billing page
	Resync       func(ctx context.Context, customer string) bool            // reads the customer's subscriptions from the provider again
	DownloadURL  func(store.DownloadLink) string
}

// ConfirmAgentPath is the path of the link that verifies an agent.
const ConfirmAgentPath = "/agents/confirm"

// Pages returns the table of the account pages.
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
