package store

import (
	"context"
	"crypto/subtle"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// Once a payment has settled, its authorization and signature are on the chain, so that
// anybody can send it again. A purchase that was made with neither an e-mail address nor
// an identifier is known by nothing else. Its file is given with the first answer.
// A caller who sends the payment again is led to a page that gives the file only to the
// payer, who proves it by the claim secret of the first answer, or by a message that the paying address
// signs (sign-in-with-x). As long as nothing was downloaded, the page also takes a
// request to send the money back to that address, from anybody: so a buyer whose answer
// was lost, and who can prove nothing, is not charged for nothing.

// UnboundPurchase is a purchase that only its payer can claim.
type UnboundPurchase struct {
	PurchaseID string
	Product    Product
	Network    string
	Payer      string           // address; empty if it was erased
	Refund     *payments.Refund // nil: none was requested
	Refundable bool             // nothing was downloaded, and no refund requested

	payment payments.Progress
}

// isUnbound reports whether a purchase over x402 was made with neither an e-mail address
// nor an identifier.
func isUnbound(bought events.PurchaseFulfilled) bool {
	return bought.PaymentID != "" && bought.CustomerID == "" && bought.IdentifierHash == ""
}

var errNoPurchase = policy.Refuse(ground.CodeNotFound, "", "purchase not found")

// purchaseOverX402 reads a purchase and its payment. found is false for every other
// purchase.
func (a *Store) purchaseOverX402(ctx context.Context, purchaseID string) (bought events.PurchaseFulfilled, paid payments.Progress, found bool, err error) {
	history, err := a.Ledger.Read(ctx, a.ServiceOf(purchaseID), "purchase/"+purchaseID)
	if err != nil || len(history.Events) == 0 {
		return bought, paid, false, err
	}
	if bought, err = events.As[events.PurchaseFulfilled](history.Events[0]); err == nil {
		paid, err = a.ReadPayment(ctx, bought.PaymentID)
	}
	return bought, paid, true, err
}

// FindUnboundPurchase reads a purchase that only its payer can claim.
func (a *Store) FindUnboundPurchase(ctx context.Context, purchaseID string) (UnboundPurchase, error) {
	u, _, err := a.unboundPurchase(ctx, purchaseID)
	return u, ground.Refusal(err)
}

// unboundPurchase is FindUnboundPurchase with the streams of its downloads.
func (a *Store) unboundPurchase(ctx context.Context, purchaseID string) (u UnboundPurchase, downloads []ledger.Precondition, err error) {
	bought, paid, found, err := a.purchaseOverX402(ctx, purchaseID)
	switch {
	case err != nil:
		return u, nil, err
	case !found || !isUnbound(bought):
		return u, nil, errNoPurchase
	}
	product, known := a.Product(bought.Product)
	if !known {
		return u, nil, errNoPurchase
	}
	u = UnboundPurchase{PurchaseID: purchaseID, Product: product, Network: paid.Claim.Network, Payer: string(paid.Claim.Payer),
		Refund: paid.Refunding(), payment: paid}
	u.Refundable = u.Refund == nil && paid.State == payments.PaymentIsSettled
	for _, links := range []string{purchaseID, purchaseID + sentAgain} {
		history, err := a.Ledger.Read(ctx, a.ServiceOf(purchaseID), downloadStream(links))
		if err != nil {
			return u, nil, err
		}
		u.Refundable = u.Refundable && len(history.Events) == 0
		downloads = append(downloads, history.Precondition())
	}
	return u, downloads, nil
}

// IsClaimSecret reports whether a text is the claim secret of a purchase.
func (a *Store) IsClaimSecret(purchaseID, text string) bool {
	secret := a.claimSecret(purchaseID)
	return secret != "" && subtle.ConstantTimeCompare([]byte(text), []byte(secret)) == 1
}

// SignInNonce returns the nonce of a message that the payer of a purchase is asked to sign. It
// is computed from the purchase and the time, so nothing has to be stored for it.
func (a *Store) SignInNonce(purchaseID, issuedAt string) (string, error) {
	if a.Vault == nil {
		return "", a.NoVault()
	}
	return a.Vault.Reference(ledger.ServiceTenant, "sign_in_with_x:"+purchaseID+":"+issuedAt).String()[:32], nil
}

// DownloadUnbound uses up a download of a purchase whose payer has proved to be the payer, and
// returns the product whose file is to be sent now.
func (a *Store) DownloadUnbound(ctx context.Context, u UnboundPurchase) (Product, error) {
	link, err := a.mintDownload(ctx, u.PurchaseID, u.Product.Slug)
	if err != nil {
		return Product{}, err
	}
	return a.ConsumeDownload(ctx, link.Token)
}

var (
	errDownloaded = policy.Refuse(organizations.CodeConflict, "", "the file was downloaded, so only the operator can refund the purchase")
	errRefunded   = policy.Refuse(accounts.CodeGone, "", "a refund of the purchase was requested, so there is no download any more")
)

// RefundUnbound requests a refund to the paying address of a purchase of which nothing was
// downloaded. After that nothing can be downloaded: download and refund exclude each other, and
// the one that is recorded first counts. A repeated request returns the state of the refund.
func (a *Store) RefundUnbound(ctx context.Context, purchaseID string) (payments.Refund, error) {
	return ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (payments.Refund, error) {
		u, downloads, err := a.unboundPurchase(ctx, purchaseID)
		switch {
		case err != nil:
			return payments.Refund{}, err
		case u.Refund != nil:
			return *u.Refund, nil
		case !u.Refundable:
			return payments.Refund{}, errDownloaded
		}
		requested := refundOf(u.payment, events.CauseNotDownloaded)
		pending, err := a.PaymentEvent(ctx, u.payment, "system", events.TypeRefundRequested, requested)
		if err != nil {
			return payments.Refund{}, err
		}
		if _, err = a.Ledger.Append(ctx, ledger.Append{Tenant: u.payment.History.Tenant, Events: []ledger.Pending{pending}, Preconditions: downloads}); err != nil {
			return payments.Refund{}, err
		}
		s := u.payment
		s.Refund, s.Requested = payments.RefundRequested, &requested
		return *s.Refunding(), nil
	})
}

// undelivered returns the preconditions for sending the file of a purchase: no refund of an
// x402 payment was requested.
func (a *Store) undelivered(ctx context.Context, purchaseID string) ([]ledger.Precondition, error) {
	_, paid, found, err := a.purchaseOverX402(ctx, purchaseID)
	switch {
	case err != nil || !found:
		return nil, err
	case paid.Refund != "":
		return nil, errRefunded
	}
	return []ledger.Precondition{paid.History.Precondition()}, nil
}
