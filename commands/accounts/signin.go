package accounts

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// CodeGone is the code for a sign-in link that was used, has expired, or was replaced by newer
// links.
const CodeGone = "gone"

var errLink = policy.Refuse(CodeGone, "", "the link was used or has expired: request a new one on the page /sign-in")

// errAgentLink refuses a link that vouches for an agent.
var errAgentLink = policy.Refuse(CodeGone, "", "the link was used or has expired: if the agent is not on the page /account, let it register again")

// SignInLink is a link's secret and the e-mail address to send it to. The secret is not stored.
type SignInLink struct {
	Address string
	Token   string // 32 bytes, base64url
}

// linked is the content of a link. It is stored encrypted with a key that is derived from the
// link's secret. A link with an Agent vouches for that agent and cannot be used to sign in.
type linked struct {
	Address string `json:"address"`
	Next    string `json:"next,omitempty"`
	Agent   string `json:"agent,omitempty"` // id (agt_…) of the agent to vouch for; empty for a sign-in link
}

// RequestSignIn makes a sign-in link for an address, even if no customer has it. The last
// liveLinks links of an address are valid. If only the newest were valid, a stranger could keep a
// customer from signing in by requesting links for the address.
func (a *Accounts) RequestSignIn(ctx context.Context, email, next string) (SignInLink, error) {
	address, err := CheckEmail(email)
	if err != nil {
		return SignInLink{}, err
	}
	if a.Vault == nil {
		return SignInLink{}, a.NoVault()
	}
	return a.makeLink(ctx, "email:"+address, linked{Address: address, Next: LocalPath(next)})
}

// makeLink stores a link of a subject. If the subject has liveLinks links already, the new link
// replaces the oldest.
func (a *Accounts) makeLink(ctx context.Context, subject string, l linked) (SignInLink, error) {
	secret := make([]byte, 32)
	rand.Read(secret)
	hash := sha256.Sum256(secret)
	box, err := boxOf(secret, l)
	if err != nil {
		return SignInLink{}, err
	}
	var places [][]byte // primary keys of the rows that hold the subject's links
	for i := range liveLinks {
		place := a.Vault.Reference(ledger.ServiceTenant, subject+" "+strconv.Itoa(i))
		places = append(places, place[:])
	}
	_, err = a.Ledger.Pool().Exec(ctx, `insert into signin_links (p, subject_ref, token_hash, box, expires_at)
		select 0, place, $2, $3, $4 from unnest($1::bytea[]) place left join signin_links l on l.p = 0 and l.subject_ref = place
		order by l.expires_at nulls first limit 1
		on conflict (p, subject_ref) do update set token_hash = excluded.token_hash, box = excluded.box, expires_at = excluded.expires_at`,
		places, hash[:], box, a.Now().Add(linkLives))
	if err != nil {
		return SignInLink{}, ground.Refusal(&ground.Unavailable{Cause: err})
	}
	return SignInLink{l.Address, base64.RawURLEncoding.EncodeToString(secret)}, nil
}

// SignedIn is the customer who has opened a sign-in link, and the path to open next.
type SignedIn struct {
	CustomerID, Address, Next string
}

// ConfirmSignIn signs a customer in with a link and deletes the link. It creates the customer if
// the address has none.
func (a *Accounts) ConfirmSignIn(ctx context.Context, token string) (SignedIn, error) {
	l, hash, err := a.openLink(ctx, token)
	if err != nil {
		return SignedIn{}, err
	}
	if l.Agent != "" {
		return SignedIn{}, errLink
	}
	if err := a.dropLink(ctx, hash); err != nil {
		return SignedIn{}, err
	}
	customer, err := a.EnsureCustomer(ctx, l.Address)
	if err != nil {
		return SignedIn{}, err
	}
	return SignedIn{customer, l.Address, l.Next}, a.sweepSignIn(ctx)
}

// openLink reads and decrypts a valid link, and leaves it valid.
func (a *Accounts) openLink(ctx context.Context, token string) (linked, ledger.Hash, error) {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(secret) != 32 {
		return linked{}, ledger.Hash{}, errLink
	}
	hash := ledger.Hash(sha256.Sum256(secret))
	var box []byte
	err = a.Ledger.Pool().QueryRow(ctx, `select box from signin_links where p = 0 and token_hash = $1 and expires_at > $2`,
		hash[:], a.Now()).Scan(&box)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return linked{}, hash, errLink
	case err != nil:
		return linked{}, hash, ground.Refusal(&ground.Unavailable{Cause: err})
	}
	l, err := openBox(secret, box)
	return l, hash, err
}

// dropLink deletes a link. If two requests delete the same link at the same time, one of the
// requests is refused.
func (a *Accounts) dropLink(ctx context.Context, hash ledger.Hash) error {
	dropped, err := a.Ledger.Pool().Exec(ctx, `delete from signin_links where p = 0 and token_hash = $1`, hash[:])
	switch {
	case err != nil:
		return ground.Refusal(&ground.Unavailable{Cause: err})
	case dropped.RowsAffected() == 0:
		return errLink
	}
	return nil
}

// sweepSignIn deletes the links and sessions that have expired by this node's clock and by the
// database's: a node whose clock is ahead must not sign everybody out. Every sign-in calls it, so
// the tables stay small.
func (a *Accounts) sweepSignIn(ctx context.Context) error {
	for _, statement := range []string{`delete from signin_links where p = 0 and expires_at < least($1, now())`,
		`delete from sessions where p = 0 and expires_at < least($1, now())`} {
		if _, err := a.Ledger.Pool().Exec(ctx, statement, a.Now()); err != nil {
			return ground.Refusal(&ground.Unavailable{Cause: err})
		}
	}
	return nil
}

// LocalPath returns next if it is a path of this service, with or without a query. Otherwise, for
// example if a browser could read it as an address of another host, it returns "/account".
func LocalPath(next string) string {
	const fallback = "/account"
	if len(next) < 2 || len(next) > maxNext || next[0] != '/' || next[1] == '/' ||
		strings.ContainsFunc(next, func(r rune) bool { return r <= 0x20 || r >= 0x7f || r == '\\' }) {
		return fallback
	}
	return next
}

// linkCipher returns AES-256-GCM with a key that is derived from a link's secret. Each key
// encrypts one text, so a nonce of zeros is safe.
func linkCipher(secret []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "svc-signin-v1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func boxOf(secret []byte, l linked) ([]byte, error) {
	aead, err := linkCipher(secret)
	if err != nil {
		return nil, err
	}
	text, err := canon.Marshal(l)
	return aead.Seal(nil, make([]byte, aead.NonceSize()), text, nil), err
}

func openBox(secret, box []byte) (linked, error) {
	aead, err := linkCipher(secret)
	if err != nil {
		return linked{}, err
	}
	text, err := aead.Open(nil, make([]byte, aead.NonceSize()), box, nil)
	if err != nil {
		return linked{}, errLink // the row is not what this service wrote
	}
	var l linked
	err = json.Unmarshal(text, &l)
	return l, err
}
