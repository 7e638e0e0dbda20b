package commands

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// purchaseOperation names every purchase over x402, however it was asked for: a
// payment sent again by GET is the same request.
const purchaseOperation = "purchase_product"

// Fulfilment is a product that was paid for over x402, with a link to its file.
type Fulfilment struct {
	PurchaseID, Product string
	Link                DownloadLink
	Payment             Receipt
}

var errSignIn = policy.Refuse(CodeConflict, "", "sign in with the e-mail of the order")

// PurchaseProduct sells a one-time product for a payment. With an e-mail address
// the purchase belongs to its customer, who is made one if need be: that is safe,
// since only whoever receives mail there can sign in. Errors: those of Pay, and
// of a payment sent again by who may not be its buyer CodeConflict.
func (a *App) PurchaseProduct(ctx context.Context, product Product, email string, p Payment) (Fulfilment, error) {
	address := ""
	if email != "" {
		var err error
		if address, err = checkEmail(email); err != nil {
			return Fulfilment{}, err
		}
	}
	body, err := canon.Marshal(map[string]string{"slug": product.Slug})
	if err != nil {
		return Fulfilment{}, err
	}
	receipt, err := a.Pay(ctx, p, Paid{Operation: purchaseOperation, RequestHash: RequestHash(purchaseOperation, body), PriceCents: int(product.PriceCents), VerifyFirst: true,
		Prepare: func(ctx context.Context) (Promise, error) { return a.promiseProduct(ctx, product, address, p) }})
	if err != nil {
		return Fulfilment{}, err
	}
	var bought events.PurchaseFulfilled
	if len(receipt.Events) == 0 || receipt.Events[0].Type != events.TypePurchaseFulfilled {
		return Fulfilment{}, ledger.ErrTampered
	}
	if err := canon.Decode(receipt.Events[0].Payload, &bought); err != nil {
		return Fulfilment{}, err
	}
	if receipt.Replayed {
		if err := a.mayFetchAgain(ctx, bought, p); err != nil {
			return Fulfilment{}, err
		}
	}
	link, err := a.mintDownload(ctx, bought.PurchaseID, bought.Product)
	return Fulfilment{bought.PurchaseID, bought.Product, link, receipt}, err
}

// promiseProduct is what a purchase records when its payment has settled.
func (a *App) promiseProduct(ctx context.Context, product Product, address string, p Payment) (Promise, error) {
	bought := events.PurchaseFulfilled{PurchaseID: a.NewID("pur_"), Product: product.Slug, Source: SourceX402,
		PriceCents: product.PriceCents, PaymentID: p.ID, IdentifierHash: identifierHash(p)}
	output, err := canon.Marshal(map[string]string{"status": "fulfilled", "product": product.Slug, "fileHash": product.FileHash()})
	if err != nil {
		return Promise{}, err
	}
	promise := Promise{OutputHash: canon.Hash(output), EngineVersion: policy.Version}
	if address != "" {
		if bought.CustomerID, err = a.EnsureCustomer(ctx, address); err != nil {
			return Promise{}, err
		}
	}
	prepare := func(stream, eventType string, joins bool, stored any) error {
		payload, err := canon.Marshal(stored)
		promise.Events = append(promise.Events, events.PreparedEvent{Stream: stream, Joins: joins, ID: a.NewID("evt_"), Type: eventType,
			SchemaVersion: 1, Actor: p.Payer, Payload: payload})
		return err
	}
	if err := prepare("purchase/"+bought.PurchaseID, events.TypePurchaseFulfilled, false, bought); err != nil || address == "" {
		return promise, err
	}
	return promise, prepare("customer/"+bought.CustomerID, events.TypeEntitlementGranted, true,
		events.EntitlementGranted{Product: product.Slug, Source: SourceX402, PurchaseID: bought.PurchaseID})
}

// identifierHash is the payment identifier as a purchase keeps it; empty without
// one.
func identifierHash(p Payment) string {
	if p.Identifier == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Identifier))
	return hex.EncodeToString(sum[:])
}

// mayFetchAgain says whether a payment sent again gets a link. Once settled, its
// authorization and signature are on the chain for everybody to copy; the payment
// identifier is not. Who sent one must send it again. Where none was sent, a link
// is given until the first download, since its answer may have been lost, and for
// 15 minutes from then.
func (a *App) mayFetchAgain(ctx context.Context, bought events.PurchaseFulfilled, p Payment) error {
	if bought.IdentifierHash != "" {
		if subtle.ConstantTimeCompare([]byte(identifierHash(p)), []byte(bought.IdentifierHash)) != 1 {
			return errSignIn
		}
		return nil
	}
	history, err := a.Ledger.Read(ctx, ledger.ServiceTenant, downloadStream(bought.PurchaseID))
	if err != nil {
		return refusal(err)
	}
	if len(history.Events) > 0 && a.now().Sub(history.Events[0].Occurred()) >= fetchAgain {
		return errSignIn
	}
	return nil
}
