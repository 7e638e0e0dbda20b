package store

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// purchaseOperation is the operation of all purchases over x402. It does not depend on the HTTP
// method, so a payment that is sent again with GET is the same request.
const purchaseOperation = "purchase_product"

// Fulfilment is a product that was bought over x402, with a link to its file.
type Fulfilment struct {
	PurchaseID, Product string
	Link                DownloadLink // has no token if the buyer must first prove to be the payer (payerproof.go)
	ClaimSecret         string       // identifies the buyer if the payment is sent again; empty unless the caller is known to be the buyer
	Payment             payments.Receipt
}

var errSignIn = policy.Refuse(ground.CodeNotTheBuyer, "", "sign in with the e-mail address of the order, or send the claimSecret of the first answer")

// Order is the request of a buyer.
type Order struct {
	Product        Product
	Email          string // address of the customer who gets the purchase; may be empty
	ClaimSecret    string // the claim secret of the first answer, if the payment is sent again; may be empty
	IdempotencyKey string // may be empty
}

// PurchaseProduct sells a one-time product for an x402 payment. If the order has an e-mail
// address, the purchase belongs to the customer with that address, who is created if necessary. An
// address may be a stranger's, but only a person who receives mail there can sign in. Besides the
// errors of Pay, it returns CodeNotTheBuyer if a payment is sent again and the caller does not
// prove to be the buyer.
func (a *Store) PurchaseProduct(ctx context.Context, o Order, p payments.Payment) (Fulfilment, error) {
	product, claimSecret := o.Product, o.ClaimSecret
	address, asked := "", map[string]string{"slug": product.Slug}
	body, err := canon.Marshal(asked) // without the address, so that the payment can be sent again without it
	if err != nil {
		return Fulfilment{}, err
	}
	if a.Vault == nil {
		return Fulfilment{}, a.NoVault()
	}
	if o.Email != "" {
		if address, err = accounts.CheckEmail(o.Email); err != nil {
			return Fulfilment{}, err
		}
		asked["buyerRef"] = a.buyerRef(address)
	}
	keyed, err := canon.Marshal(asked)
	if err != nil {
		return Fulfilment{}, err
	}
	// Pay, or find the purchase that this payment has paid for before.
	paid := payments.Paid{Operation: purchaseOperation, RequestHash: payments.RequestHash(purchaseOperation, body), PriceCents: int(product.PriceCents), VerifyFirst: true,
		IdempotencyKey: o.IdempotencyKey, Content: payments.RequestHash(purchaseOperation, keyed),
		Prepare: func(ctx context.Context) (payments.Promise, error) { return a.promiseProduct(ctx, product, address, p) }}
	receipt, err := a.Pay(ctx, p, paid)
	if err != nil {
		return Fulfilment{}, err
	}
	if len(receipt.Events) == 0 || receipt.Events[0].Type != events.TypePurchaseFulfilled {
		return Fulfilment{}, ledger.ErrTampered
	}
	bought, err := events.As[events.PurchaseFulfilled](receipt.Events[0])
	if err != nil {
		return Fulfilment{}, err
	}
	// Decide whether the caller is the buyer, and which links the caller may get.
	done := Fulfilment{PurchaseID: bought.PurchaseID, Product: bought.Product, Payment: receipt}
	links := bought.PurchaseID
	buyer := !receipt.Replayed || receipt.ByKey || a.isBuyer(bought, claimSecret, p)
	if !buyer {
		if buyer, err = a.HasKey(ctx, p, paid); err != nil {
			return Fulfilment{}, err
		}
	}
	switch {
	case buyer:
		done.ClaimSecret = a.claimSecret(bought.PurchaseID)
	case isUnbound(bought) && address == "":
		done.Link.ExpiresAt = a.Now().Add(downloadLives)
		return done, nil
	default:
		if err := a.mayFetchAgain(ctx, bought, address); err != nil {
			return Fulfilment{}, err
		}
		links += sentAgain
	}
	done.Link, err = a.mintDownload(ctx, links, bought.Product)
	return done, err
}

// sentAgain is the suffix in the names of download links for callers who have sent a payment again
// without proving to be the buyer. Their downloads are counted separately, so that they cannot use
// up the buyer's downloads.
const sentAgain = "/again"

// claimSecret returns the secret that the first answer gives to the buyer. It is computed from the
// purchase with a key of the vault, and not stored.
func (a *Store) claimSecret(purchaseID string) string {
	if a.Vault == nil {
		return ""
	}
	secret := a.Vault.Reference(ledger.ServiceTenant, "claim:"+purchaseID)
	return "svcc_" + base64.RawURLEncoding.EncodeToString(secret[:])
}

// buyerRef returns the keyed hash of an e-mail address that a purchase stores to recognize the
// address later.
func (a *Store) buyerRef(address string) string {
	return a.Vault.Reference(ledger.ServiceTenant, "buyer:"+address).String()
}

// isBuyer reports whether the sender of a repeated payment is the buyer. Anyone can copy a settled
// payment's authorization and signature from the blockchain, but not the claim secret and the
// payment identifier.
func (a *Store) isBuyer(bought events.PurchaseFulfilled, claimSecret string, p payments.Payment) bool {
	same := func(got, want string) bool {
		return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
	}
	return same(claimSecret, a.claimSecret(bought.PurchaseID)) || same(identifierHash(p), bought.IdentifierHash)
}

// promiseProduct returns the events that a purchase appends when its payment has settled.
func (a *Store) promiseProduct(ctx context.Context, product Product, address string, p payments.Payment) (payments.Promise, error) {
	bought := events.PurchaseFulfilled{PurchaseID: a.NewIDAt(p.ID, "pur_"), Product: product.Slug, Source: SourceX402,
		PriceCents: product.PriceCents, PaymentID: p.ID, IdentifierHash: identifierHash(p)}
	output, err := canon.Marshal(map[string]string{"status": "fulfilled", "product": product.Slug, "fileHash": product.FileHash()})
	if err != nil {
		return payments.Promise{}, err
	}
	by, err := a.Payer(ctx, a.ServiceOf(p.ID), p.Network, p.Payer)
	if err != nil {
		return payments.Promise{}, err
	}
	promise := payments.Promise{OutputHash: canon.Hash(output), EngineVersion: policy.Version}
	if address != "" {
		if bought.CustomerID, err = a.EnsureCustomer(ctx, address); err != nil {
			return payments.Promise{}, err
		}
		bought.BuyerRef = a.buyerRef(address)
	}
	prepare := func(stream, eventType string, joins bool, stored any) error {
		payload, err := canon.Marshal(stored)
		promise.Events = append(promise.Events, events.PreparedEvent{Stream: stream, Joins: joins, ID: a.NewID("evt_"), Type: eventType,
			SchemaVersion: 1, Actor: by.Actor, Payload: payload})
		return err
	}
	if err := prepare("purchase/"+bought.PurchaseID, events.TypePurchaseFulfilled, false, bought); err != nil || address == "" {
		return promise, err
	}
	return promise, prepare("customer/"+bought.CustomerID, events.TypeEntitlementGranted, true,
		events.EntitlementGranted{Product: product.Slug, Source: SourceX402, PurchaseID: bought.PurchaseID})
}

// identifierHash returns the SHA-256 of the payment identifier in hex, as a purchase stores it, or
// "" if there is none.
func identifierHash(p payments.Payment) string {
	if p.Identifier == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Identifier))
	return hex.EncodeToString(sum[:])
}

// mayFetchAgain returns nil if a caller who repeats a payment and has not proved to be the buyer
// may get a link, and a refusal otherwise. The caller must send the e-mail address of the first
// request, which is not on the blockchain. If the purchase has a payment identifier, the address
// is not enough. A link is given until fetchAgain after the first download, because the first
// answer may have been lost or the download may have broken off.
func (a *Store) mayFetchAgain(ctx context.Context, bought events.PurchaseFulfilled, address string) error {
	ref := ""
	if address != "" && a.Vault != nil {
		ref = a.buyerRef(address)
	}
	if bought.IdentifierHash != "" || ref == "" || ref != bought.BuyerRef {
		return errSignIn
	}
	for _, links := range []string{bought.PurchaseID, bought.PurchaseID + sentAgain} {
		history, err := a.Ledger.Read(ctx, a.ServiceOf(bought.PurchaseID), downloadStream(links))
		if err != nil {
			return ground.Refusal(err)
		}
		if len(history.Events) > 0 && a.Clock().Sub(history.Events[0].Occurred()) >= fetchAgain {
			return errSignIn
		}
	}
	return nil
}
