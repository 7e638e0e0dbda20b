// Package store has the commands about what is sold: the catalogue, purchases, downloads,
// entitlements, subscriptions and refunds.
package store

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
)

// Store has the commands about what is sold: purchases, downloads, entitlements,
// subscriptions and refunds.
type Store struct {
	*ground.Ground
	*accounts.Accounts
	*organizations.Organizations
	*payments.Payments

	Products []Product // the catalogue
}

// Kinds of products.
const (
	OneTime      = "one_time"
	Subscription = "subscription"
)

// Product is one line of the catalogue: what is sold by card or, if it is a
// one-time product, over x402. The catalogue is the only list of these prices.
type Product struct {
	Slug        string
	Name        string
	Description string
	Kind        string // OneTime or Subscription; subscriptions are paid monthly
	PriceCents  int64
	Deliverable string // in words: what the buyer gets

	Plan        string // of the organization that the subscription carries; else empty
	CreditCents int64  // what a paid period adds to the customer's calls: it is a pass

	FileName string // of what a one-time product's buyer downloads
	Content  []byte
}

// FileHash is the SHA-256 of the product's file, in hex.
func (p Product) FileHash() string {
	sum := sha256.Sum256(p.Content)
	return hex.EncodeToString(sum[:])
}

// Product finds a line of the catalogue.
func (a *Store) Product(slug string) (Product, bool) {
	for _, p := range a.Products {
		if p.Slug == slug {
			return p, true
		}
	}
	return Product{}, false
}
