package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// DownloadLink is the secret of a download link. It is shown once and not stored.
type DownloadLink struct {
	Token     string // 32 bytes, base64url
	ExpiresAt time.Time
}

func downloadStream(purchaseID string) string { return "download/" + purchaseID }

// purchaseOf returns the id of the purchase to which a group of download links belongs. The name
// of a group is this id, with or without the suffix sentAgain.
func purchaseOf(links string) string { return strings.TrimSuffix(links, sentAgain) }

var (
	errLinkUsed    = policy.Refuse(accounts.CodeGone, "", "the download link was used or has expired: request a new one on the page /account, or in the same way as this one")
	errNoLink      = policy.Refuse(ground.CodeNotFound, "", "download not found")
	errNoFile      = policy.Refuse(ground.CodeNotFound, "", "the product has no file")
	errNoDownloads = policy.Refuse(ground.CodeDownloadsUsed, "", "this purchase has no downloads left")
)

// CustomerDownload makes a link to the file of a product for a customer with an active
// entitlement. If the customer has none, it returns the refusal of Entitlement.
func (a *Store) CustomerDownload(ctx context.Context, customerID, product string) (DownloadLink, error) {
	e, err := a.Entitlement(ctx, customerID, product)
	if err != nil {
		return DownloadLink{}, err
	}
	return a.mintDownload(ctx, e.reference, product)
}

// mintDownload makes a link to a product's file for one purchase. If the purchase has five unused
// links already, the new link replaces the oldest.
func (a *Store) mintDownload(ctx context.Context, purchaseID, product string) (DownloadLink, error) {
	if p, known := a.Product(product); !known || p.FileName == "" {
		return DownloadLink{}, errNoFile
	}
	used, err := a.Ledger.Version(ctx, a.ServiceOf(purchaseOf(purchaseID)), downloadStream(purchaseID))
	if err != nil {
		return DownloadLink{}, ground.Refusal(err)
	}
	if used >= maxDownloads {
		return DownloadLink{}, errNoDownloads
	}
	secret, hash := a.newLinkSecret(purchaseOf(purchaseID))
	now := a.Now()
	link := DownloadLink{base64.RawURLEncoding.EncodeToString(secret), now.Add(downloadLives)}
	pool := a.Ledger.Pool()
	// Delete a link only if it has expired by both clocks, the node's and the database's: a node
	// whose clock is ahead must not delete links that other nodes have made.
	if _, err := pool.Exec(ctx, `delete from download_links where p = 0 and expires_at < least($1, now()) - $2::interval`, now, forgetLinks); err != nil {
		return DownloadLink{}, ground.Refusal(&ground.Unavailable{Cause: err})
	}
	_, err = pool.Exec(ctx, `insert into download_links (p, purchase_id, slot, token_hash, product, expires_at)
		select 0, $1, coalesce(
			(select s from generate_series(0, 4) s where not exists (select from download_links d
				where d.p = 0 and d.purchase_id = $1 and d.slot = s) order by s limit 1),
			(select d.slot from download_links d where d.p = 0 and d.purchase_id = $1 order by d.expires_at limit 1)), $2, $3, $4
		on conflict (p, purchase_id, slot) do update
			set token_hash = excluded.token_hash, product = excluded.product, expires_at = excluded.expires_at`,
		purchaseID, hash[:], product, link.ExpiresAt)
	if err != nil {
		return DownloadLink{}, ground.Refusal(&ground.Unavailable{Cause: err})
	}
	return link, nil
}

// newLinkSecret returns a link's secret and its hash. It draws secrets until the hash belongs to
// the partition of the purchase, where the download is recorded.
func (a *Store) newLinkSecret(home string) (secret []byte, hash [32]byte) {
	secret = make([]byte, 32)
	for {
		rand.Read(secret)
		if hash = sha256.Sum256(secret); a.Together(hex.EncodeToString(hash[:]), home) {
			return secret, hash
		}
	}
}

// linkedFile is the file that a link gives access to.
type linkedFile struct {
	hash       [32]byte
	purchaseID string
	product    Product
}

// LookUpDownload returns the product of a link and does not use up the link. It returns the
// refusal CodeGone if the link was used or has expired, and CodeNotFound if it never existed.
func (a *Store) LookUpDownload(ctx context.Context, token string) (Product, error) {
	l, err := a.linked(ctx, token)
	return l.product, err
}

func (a *Store) linked(ctx context.Context, token string) (linkedFile, error) {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(secret) != 32 {
		return linkedFile{}, errNoLink
	}
	l := linkedFile{hash: sha256.Sum256(secret)}
	var slug string
	var expires time.Time
	err = a.Ledger.Reading(ctx, func() error {
		return a.Ledger.Pool().QueryRow(ctx, `select purchase_id, product, expires_at from download_links where p = 0 and token_hash = $1`,
			l.hash[:]).Scan(&l.purchaseID, &slug, &expires)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return l, a.usedOrUnknown(ctx, l)
	}
	if err != nil {
		return l, ground.Refusal(err)
	}
	if !a.Now().Before(expires) {
		return l, errLinkUsed
	}
	var known bool
	if l.product, known = a.Product(slug); !known || l.product.FileName == "" {
		return l, errNoFile
	}
	return l, nil
}

// name returns the name of the link in the ledger, which is its hash.
func (l linkedFile) name() string { return hex.EncodeToString(l.hash[:]) }

// key returns the idempotency key of the append that uses up the link, so that only one can.
func (l linkedFile) key() ledger.Hash { return ledger.IdemKey("download", l.name()) }

func (a *Store) usedOrUnknown(ctx context.Context, l linkedFile) error {
	stored, err := a.Ledger.ByKey(ctx, a.ServiceOf(l.name()), l.key(), ledger.Hash{})
	switch {
	case err != nil:
		return ground.Refusal(err)
	case stored != nil:
		return errLinkUsed
	}
	return errNoLink
}

// ConsumeDownload uses up a link and returns the product whose file must be sent now. It succeeds
// once for each link, even if several nodes get requests at the same time.
func (a *Store) ConsumeDownload(ctx context.Context, token string) (Product, error) {
	l, err := a.linked(ctx, token)
	if err != nil {
		return Product{}, err
	}
	purchase := purchaseOf(l.purchaseID)
	payload, err := canon.Marshal(events.DownloadConsumed{PurchaseID: purchase, Product: l.product.Slug, FileHash: l.product.FileHash()})
	if err != nil {
		return Product{}, err
	}
	result, err := ground.Retry(ctx, a.Ground, ground.Tries{}, func(ctx context.Context) (ledger.Result, error) {
		preconditions, err := a.undelivered(ctx, purchase)
		if err != nil {
			return ledger.Result{}, err
		}
		return a.Ledger.Append(ctx, ledger.Append{Tenant: a.ServiceOf(purchase), IdemKey: l.key(), Preconditions: preconditions, Events: []ledger.Pending{{
			Stream: downloadStream(l.purchaseID), Expect: ledger.Any(maxDownloads), ID: a.NewID("evt_"), Type: events.TypeDownloadConsumed,
			SchemaVersion: 1, Actor: purchase, Payload: payload}}})
	})
	switch {
	case errors.Is(err, ledger.ErrLimit):
		return Product{}, errNoDownloads
	case err != nil:
		return Product{}, err
	case result.Replayed:
		return Product{}, errLinkUsed
	}
	// The event has used up the link. Without its row, the link does not count as one of the
	// purchase's five links.
	_, _ = a.Ledger.Pool().Exec(ctx, `delete from download_links where p = 0 and token_hash = $1`, l.hash[:])
	return l.product, nil
}
