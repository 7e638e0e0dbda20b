package credential

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/projections"
)

// Sessions stores the sessions of signed-in people. The cookie contains a random token of 256
// bits. The table sessions contains the token's hash and the session's data.
type Sessions struct {
	manager *scs.SessionManager
	pool    *pgxpool.Pool
	origin  *http.CrossOriginProtection
	cookie  http.Cookie // attributes of the cookie, without a value
	clock   func() time.Time
}

// NewSessions returns the sessions of the service at a base URL, stored in a database.
func NewSessions(pool *pgxpool.Pool, baseURL string, clock func() time.Time) (*Sessions, error) {
	// scs.New is not used, because it starts a goroutine that never ends.
	manager := &scs.SessionManager{Store: sessionStore{pool}, HashTokenInStore: true, Lifetime: lifetime, IdleTimeout: idle,
		Codec: scs.GobCodec{}}
	s := &Sessions{manager: manager, pool: pool, origin: http.NewCrossOriginProtection(), clock: clock}
	if err := s.origin.AddTrustedOrigin(baseURL); err != nil {
		return nil, err
	}
	s.cookie = http.Cookie{Name: "countersign_session", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if strings.HasPrefix(baseURL, "https://") {
		// Browsers accept a cookie with this prefix only from the host itself, over TLS, for all
		// paths.
		s.cookie.Name, s.cookie.Secure = "__Host-countersign_session", true
	}
	return s, nil
}

// Keys of the session's data.
const (
	sessionCustomer = "customer" // cus_…
	sessionOrg      = "org"      // id of the chosen organization
	sessionRole     = "role"     // member's role in that organization at the last request
	sessionSignedIn = "signedIn" // Unix milliseconds
	sessionSeen     = "seen"     // time of the last request that was stored, in Unix milliseconds
)

// Session is the session of one person during one request.
type Session struct {
	Customer string // customer id (cus_…)
	Org      string // id of the chosen organization; empty if none is chosen
	SignedIn time.Time

	role string // member's role in that organization at the last request
	seen time.Time

	manager   *scs.SessionManager
	data      context.Context // contains the library's copy of the data
	changed   bool
	begun     bool // the session has a new token that is not stored yet
	destroyed bool
}

// Cookie returns the name of the session cookie.
func (s *Sessions) Cookie() string { return s.cookie.Name }

// SameOrigin reports whether a request was sent by a page of this service or not by a browser. It
// returns false if a page of another origin sent it.
func (s *Sessions) SameOrigin(r *http.Request) bool { return s.origin.Check(r) == nil }

// Load returns the session of a request, or nil if the request has no valid session.
func (s *Sessions) Load(r *http.Request) (*Session, error) {
	cookie, err := r.Cookie(s.cookie.Name)
	if err != nil || len(cookie.Value) != tokenLength {
		return nil, nil
	}
	data, err := s.manager.Load(context.WithoutCancel(r.Context()), cookie.Value)
	if err != nil {
		return nil, &ground.Unavailable{Cause: err}
	}
	stored := &Session{manager: s.manager, data: data, Customer: s.manager.GetString(data, sessionCustomer),
		Org: s.manager.GetString(data, sessionOrg), role: s.manager.GetString(data, sessionRole),
		SignedIn: time.UnixMilli(s.manager.GetInt64(data, sessionSignedIn)), seen: time.UnixMilli(s.manager.GetInt64(data, sessionSeen))}
	now := s.clock()
	if stored.Customer == "" || now.Sub(stored.SignedIn) >= lifetime || now.Sub(stored.seen) >= idle {
		return nil, nil
	}
	if now.Sub(stored.seen) >= seenEvery {
		stored.put(sessionSeen, now.UnixMilli())
	}
	return stored, nil
}

func (s *Session) put(name string, value any) {
	s.manager.Put(s.data, name, value)
	s.changed = true
}

// Choose sets the organization for which the session acts.
func (s *Session) Choose(orgID string) {
	s.Org = orgID
	s.put(sessionOrg, orgID)
}

// as stores the role. If the role changes, the session gets a new token, but its expiry stays the
// same.
func (s *Session) as(role string) error {
	if role == s.role {
		return nil
	}
	renew := s.role != ""
	s.role = role
	s.put(sessionRole, role)
	if !renew {
		return nil
	}
	ends := s.manager.Deadline(s.data)
	if err := s.manager.RenewToken(s.data); err != nil {
		return err
	}
	s.manager.SetDeadline(s.data, ends)
	s.begun = true
	return nil
}

// Begin starts a session for a customer under a new token. It ends the previous session of the
// browser.
func (s *Sessions) Begin(r *http.Request, customer string) (*Session, error) {
	ctx := context.WithoutCancel(r.Context())
	var old string
	if cookie, err := r.Cookie(s.cookie.Name); err == nil && len(cookie.Value) == tokenLength {
		old = cookie.Value
	}
	data, err := s.manager.Load(ctx, old)
	if err != nil {
		return nil, &ground.Unavailable{Cause: err}
	}
	if err := errors.Join(s.manager.Clear(data), s.manager.RenewToken(data)); err != nil {
		return nil, &ground.Unavailable{Cause: err}
	}
	now := s.clock()
	started := &Session{manager: s.manager, data: data, Customer: customer, SignedIn: now, seen: now, begun: true}
	started.put(sessionCustomer, customer)
	started.put(sessionSignedIn, now.UnixMilli())
	started.put(sessionSeen, now.UnixMilli())
	return started, nil
}

// End deletes a session from the table, and marks it as ended for this request.
func (s *Session) End() error {
	s.destroyed, s.changed = true, true
	return s.manager.Destroy(s.data)
}

// EndAll deletes all sessions of a customer.
func (s *Sessions) EndAll(ctx context.Context, customer string) error {
	_, err := s.pool.Exec(ctx, `delete from sessions where p = 0 and customer = $1`, customer)
	return err
}

// Count returns the number of a customer's sessions that have not expired.
func (s *Sessions) Count(ctx context.Context, customer string) (count int, err error) {
	err = s.pool.QueryRow(ctx, `select count(*) from sessions where p = 0 and customer = $1 and expires_at > now()`, customer).Scan(&count)
	return count, err
}

// Keep stores a changed session and sets its cookie. Call it before the answer is written.
func (s *Sessions) Keep(w http.ResponseWriter, changed *Session) error {
	if changed == nil || !changed.changed {
		return nil
	}
	cookie := s.cookie
	if changed.destroyed {
		cookie.MaxAge = -1
	} else {
		token, expires, err := s.manager.Commit(context.WithValue(changed.data, writtenKey{}, written{changed.Customer, !changed.begun}))
		if err != nil {
			return &ground.Unavailable{Cause: err}
		}
		cookie.Value, cookie.Expires = token, expires
	}
	http.SetCookie(w, &cookie)
	return nil
}

// written passes two values through the context to CommitCtx: the customer of the session, and
// whether only an existing row may be updated, so that a session that ended during the request is
// not restored.
type written struct {
	customer    string
	onlyIfThere bool
}

type writtenKey struct{}

// sessionStore implements the library's store with the table sessions. It receives the hash of the
// token.
type sessionStore struct{ pool *pgxpool.Pool }

// FindCtx returns the data of a session that has not expired.
func (s sessionStore) FindCtx(ctx context.Context, hash string) ([]byte, bool, error) {
	var data []byte
	err := s.pool.QueryRow(ctx, `select data from sessions where p = 0 and token_hash = $1 and expires_at > now()`, hash).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// CommitCtx stores a session. If written.onlyIfThere is set, it only updates an existing row.
func (s sessionStore) CommitCtx(ctx context.Context, hash string, data []byte, expires time.Time) error {
	w, _ := ctx.Value(writtenKey{}).(written)
	if w.onlyIfThere {
		_, err := s.pool.Exec(ctx, `update sessions set data = $2, expires_at = $3 where p = 0 and token_hash = $1`, hash, data, expires)
		return err
	}
	_, err := s.pool.Exec(ctx, `insert into sessions (p, token_hash, data, expires_at, customer) values (0, $1, $2, $3, $4)
		on conflict (p, token_hash) do update set data = excluded.data, expires_at = excluded.expires_at, customer = excluded.customer`,
		hash, data, expires, w.customer)
	return err
}

// DeleteCtx deletes a session. It returns no error if there is none.
func (s sessionStore) DeleteCtx(ctx context.Context, hash string) error {
	_, err := s.pool.Exec(ctx, `delete from sessions where p = 0 and token_hash = $1`, hash)
	return err
}

// Find implements the library's interface. It calls FindCtx.
func (s sessionStore) Find(hash string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), hash)
}

// Commit implements the library's interface. It calls CommitCtx.
func (s sessionStore) Commit(hash string, data []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), hash, data, expires)
}

// Delete implements the library's interface. It calls DeleteCtx.
func (s sessionStore) Delete(hash string) error { return s.DeleteCtx(context.Background(), hash) }

// SignedIn describes the signed-in person of a session.
type SignedIn struct {
	CustomerID    string                   `json:"customerId"`
	OrgID         *string                  `json:"orgId" jsonschema:"nullable" jsonschema_description:"The organization that the session acts for; null before one is chosen."`
	SignedInAt    string                   `json:"signedInAt" jsonschema:"format=date-time"`
	Organizations []projections.Membership `json:"organizations"`
}

// Chosen reports whether the session acts for this organization.
func (a SignedIn) Chosen(orgID string) bool { return a.OrgID != nil && *a.OrgID == orgID }

// Describe returns the person of a session and the organizations for which they may act.
func (d *Reader) Describe(ctx context.Context, s *Session) (SignedIn, error) {
	list, err := d.Projections.Memberships(ctx, s.Customer)
	if err != nil {
		return SignedIn{}, err
	}
	as := SignedIn{CustomerID: s.Customer, SignedInAt: ground.Stamp(s.SignedIn), Organizations: list}
	if s.Org != "" {
		as.OrgID = &s.Org
	}
	return as, nil
}
