// Package store implements the commands for products: the catalogue, purchases, downloads,
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

// Store implements the commands for purchases, downloads, entitlements, subscriptions and refunds.
type Store struct {
	*ground.Ground
	*accounts.Accounts
	*organizations.Organizations
	*payments.Payments

	Products []Product // the catalogue of products
}

// The kinds of products.
const (
	OneTime      = "one_time"
	Subscription = "subscription"
)

// Product is one entry of the catalogue. It is sold by card and, if it is a one-time product, over
// x402. Its price is defined nowhere else.
type Product struct {
	Slug        string
	Name        string
	Description string
	Kind        string // OneTime or Subscription, which is paid monthly
	PriceCents  int64
	Deliverable string // description of what the buyer gets

	Plan        string // plan of the organization that a subscriber gets; empty if none
	CreditCents int64  // US cents of calls that each paid period includes; if positive, the product is a pass

	FileName string // name of the file that a buyer of a one-time product downloads
	Content  []byte
}

// FileHash returns the SHA-256 of the product's file in hex.
func (p Product) FileHash() string {
	sum := sha256.Sum256(p.Content)
	return hex.EncodeToString(sum[:])
}

// Product returns the catalogue's entry with a slug, and whether there is one.
func (a *Store) Product(slug string) (Product, bool) {
	for _, p := range a.Products {
		if p.Slug == slug {
			return p, true
		}
	}
	return Product{}, false
}
