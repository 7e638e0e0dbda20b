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

// purchaseOperation names every purchase over x402, by whatever method it was requested: a
// payment that is sent again by GET is the same request.
const purchaseOperation = "purchase_product"

// Fulfilment is a product that was paid for over x402, with a link to its file.
type Fulfilment struct {
	PurchaseID, Product string
	Link                DownloadLink // without a token if the buyer must first prove to be the payer (payerproof.go)
	ClaimSecret         string       // proves the buyer when the payment is sent again; empty if the caller has not proved to be the buyer
	Payment             payments.Receipt
}

var errSignIn = policy.Refuse(ground.CodeNotTheBuyer, "", "sign in with the e-mail of the order, or send the claimSecret of the first answer")

// Order holds the request that a buyer pays for.
type Order struct {
	Product        Product
	Email          string // of the customer whom the purchase belongs to; may be empty
	ClaimSecret    string // that of the first answer; may be empty
	IdempotencyKey string // may be empty
}

// PurchaseProduct sells a one-time product for a payment. With an e-mail address the purchase
// belongs to the customer with that address, who is created if necessary. That is safe, since
// only a person who receives mail there can sign in. The claim secret is that of the first
// answer, or empty. Errors: those of Pay, and CodeNotTheBuyer if a payment is sent again by a
// caller who has not proved to be the buyer.
func (a *Store) PurchaseProduct(ctx context.Context, o Order, p payments.Payment) (Fulfilment, error) {
	product, claimSecret := o.Product, o.ClaimSecret
	address, asked := "", map[string]string{"slug": product.Slug}
	body, err := canon.Marshal(asked) // without the address: a payment that is sent again need not contain it
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

// sentAgain is at the end of the name of links that were made for a payment sent again. Their
// downloads are counted apart from those of the buyer's links, so that nobody else can use
// those up.
const sentAgain = "/again"

// claimSecret is a secret in the first answer to the buyer. It is computed from the purchase
// with a key of the vault, and not stored.
func (a *Store) claimSecret(purchaseID string) string {
	if a.Vault == nil {
		return ""
	}
	secret := a.Vault.Reference(ledger.ServiceTenant, "claim:"+purchaseID)
	return "svcc_" + base64.RawURLEncoding.EncodeToString(secret[:])
}

// buyerRef returns the form in which a purchase stores an e-mail address, to recognize it
// later.
func (a *Store) buyerRef(address string) string {
	return a.Vault.Reference(ledger.ServiceTenant, "buyer:"+address).String()
}

// isBuyer reports whether a payment that was sent again comes from its first sender. Once a
// payment is settled, everybody can copy its authorization and signature from the chain, but
// not the claim secret and the payment identifier.
func (a *Store) isBuyer(bought events.PurchaseFulfilled, claimSecret string, p payments.Payment) bool {
	same := func(got, want string) bool {
		return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
	}
	return same(claimSecret, a.claimSecret(bought.PurchaseID)) || same(identifierHash(p), bought.IdentifierHash)
}

// promiseProduct prepares what a purchase records when its payment has settled.
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

// identifierHash returns the form in which a purchase stores the payment identifier; empty if
// there is none.
func identifierHash(p payments.Payment) string {
	if p.Identifier == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Identifier))
	return hex.EncodeToString(sum[:])
}

// mayFetchAgain reports whether a caller who sends a payment again and has not proved to be its
// buyer gets a link. If the first request had a payment identifier or an e-mail address, the
// caller must send it, too: neither is on the chain. With the address a link is given until the
// first download, since the first answer may have been lost, and for 15 minutes after it.
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
