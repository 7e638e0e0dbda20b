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

// Once a payment has settled, its authorization and signature are public on the blockchain, so
// anyone can send it again. If a purchase was made without an e-mail address and without a payment
// identifier, nothing else identifies its buyer. The first answer contains the download link. A
// caller who sends the payment again gets the address of a page, which gives the file only to the
// payer. The payer proves it with the claim secret of the first answer, or with a message signed
// with the paying address (sign-in-with-x). As long as nothing was downloaded, anyone can request
// on that page that the money be sent back to the paying address. So a buyer who has lost the
// answer and can prove nothing still gets the money back.

// UnboundPurchase is a purchase whose buyer is known only by the paying address.
type UnboundPurchase struct {
	PurchaseID string
	Product    Product
	Network    string
	Payer      string           // paying address; empty if it was erased
	Refund     *payments.Refund // nil if no refund was requested
	Refundable bool             // true if nothing was downloaded and no refund was requested

	payment payments.Progress
}

// isUnbound reports whether a purchase over x402 was made without an e-mail address and without a
// payment identifier.
func isUnbound(bought events.PurchaseFulfilled) bool {
	return bought.PaymentID != "" && bought.CustomerID == "" && bought.IdentifierHash == ""
}

var errNoPurchase = policy.Refuse(ground.CodeNotFound, "", "purchase not found")

// purchaseOverX402 returns a purchase over x402 and its payment. found is false if there is no
// such purchase.
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

// FindUnboundPurchase returns an unbound purchase, and refuses any other id with not_found.
func (a *Store) FindUnboundPurchase(ctx context.Context, purchaseID string) (UnboundPurchase, error) {
	u, _, err := a.unboundPurchase(ctx, purchaseID)
	return u, ground.Refusal(err)
}

// unboundPurchase also returns the streams of the purchase's downloads, as preconditions.
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

// SignInNonce returns the nonce of the message that the payer is asked to sign. It is computed
// from the purchase and the time, so it need not be stored.
func (a *Store) SignInNonce(purchaseID, issuedAt string) (string, error) {
	if a.Vault == nil {
		return "", a.NoVault()
	}
	return a.Vault.Reference(ledger.ServiceTenant, "sign_in_with_x:"+purchaseID+":"+issuedAt).String()[:32], nil
}

// DownloadUnbound uses up one download of an unbound purchase and returns the product whose file
// must be sent now. The caller must have verified the payer.
func (a *Store) DownloadUnbound(ctx context.Context, u UnboundPurchase) (Product, error) {
	link, err := a.mintDownload(ctx, u.PurchaseID, u.Product.Slug)
	if err != nil {
		return Product{}, err
	}
	return a.ConsumeDownload(ctx, link.Token)
}

var (
	errDownloaded = policy.Refuse(organizations.CodeConflict, "", "the file was downloaded, so only the operator can refund the purchase")
	errRefunded   = policy.Refuse(accounts.CodeGone, "", "a refund of the purchase was requested, so its file cannot be downloaded")
)

// RefundUnbound requests a refund of an unbound purchase to its paying address. It refuses if the
// file was downloaded. After the refund was requested, the file cannot be downloaded any more. If
// a download and a refund are requested at the same time, the one that is appended first succeeds.
// If a refund was requested before, RefundUnbound returns its state.
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

// undelivered returns the preconditions for sending the file of a purchase. It refuses if a refund
// was requested for its x402 payment.
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
