package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
)

// sessions keeps people signed in: 256 random bits in a cookie, their hash and
// what belongs to them in the table sessions.
type sessions struct {
	manager *scs.SessionManager
	pool    *pgxpool.Pool
	origin  *http.CrossOriginProtection
	cookie  http.Cookie // without value
	clock   func() time.Time
}

func newSessions(pool *pgxpool.Pool, baseURL string, clock func() time.Time) (*sessions, error) {
	// Not scs.New: it starts a goroutine for a store in memory, which never ends.
	manager := &scs.SessionManager{Store: sessionStore{pool}, HashTokenInStore: true, Lifetime: sessionLifetime, IdleTimeout: sessionIdle,
		Codec: scs.GobCodec{}}
	s := &sessions{manager: manager, pool: pool, origin: http.NewCrossOriginProtection(), clock: clock}
	if err := s.origin.AddTrustedOrigin(baseURL); err != nil {
		return nil, err
	}
	s.cookie = http.Cookie{Name: "countersign_session", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if strings.HasPrefix(baseURL, "https://") {
		// Browsers take this name only from the host itself, over TLS, for all paths.
		s.cookie.Name, s.cookie.Secure = "__Host-countersign_session", true
	}
	return s, nil
}

// Members of a session's data.
const (
	sessionCustomer = "customer" // cus_…
	sessionOrg      = "org"      // the chosen organization
	sessionRole     = "role"     // there, as of the last request
	sessionSignedIn = "signedIn" // Unix milliseconds
	sessionSeen     = "seen"     // of the last request that was written down
)

// session is one person's, during one request.
type session struct {
	customer, org, role string
	signedIn, seen      time.Time

	manager   *scs.SessionManager
	data      context.Context // holds the library's copy
	changed   bool
	begun     bool // under a token that the table does not have yet
	destroyed bool
}

// load returns the session of a request, nil if it has none that is good.
func (s *sessions) load(r *http.Request) (*session, error) {
	cookie, err := r.Cookie(s.cookie.Name)
	if err != nil || len(cookie.Value) != sessionTokenLength {
		return nil, nil
	}
	data, err := s.manager.Load(context.WithoutCancel(r.Context()), cookie.Value)
	if err != nil {
		return nil, unavailable(err)
	}
	stored := &session{manager: s.manager, data: data, customer: s.manager.GetString(data, sessionCustomer),
		org: s.manager.GetString(data, sessionOrg), role: s.manager.GetString(data, sessionRole),
		signedIn: time.UnixMilli(s.manager.GetInt64(data, sessionSignedIn)), seen: time.UnixMilli(s.manager.GetInt64(data, sessionSeen))}
	now := s.clock()
	if stored.customer == "" || now.Sub(stored.signedIn) >= sessionLifetime || now.Sub(stored.seen) >= sessionIdle {
		return nil, nil
	}
	if now.Sub(stored.seen) >= sessionSeenEvery {
		stored.put(sessionSeen, now.UnixMilli())
	}
	return stored, nil
}

func (s *session) put(name string, value any) {
	s.manager.Put(s.data, name, value)
	s.changed = true
}

// choose sets the organization the session acts for.
func (s *session) choose(orgID string) {
	s.org = orgID
	s.put(sessionOrg, orgID)
}

// as notes the role; another one than before renews the token, but not the day
// on which the session ends.
func (s *session) as(role string) error {
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

// begin signs a customer in, under a new token whatever the request's cookie
// says, and ends the session that the browser had.
func (s *sessions) begin(r *http.Request, customer string) (*session, error) {
	ctx := context.WithoutCancel(r.Context())
	var old string
	if cookie, err := r.Cookie(s.cookie.Name); err == nil && len(cookie.Value) == sessionTokenLength {
		old = cookie.Value
	}
	data, err := s.manager.Load(ctx, old)
	if err != nil {
		return nil, unavailable(err)
	}
	if err := errors.Join(s.manager.Clear(data), s.manager.RenewToken(data)); err != nil {
		return nil, unavailable(err)
	}
	now := s.clock()
	started := &session{manager: s.manager, data: data, customer: customer, signedIn: now, seen: now, begun: true}
	started.put(sessionCustomer, customer)
	started.put(sessionSignedIn, now.UnixMilli())
	started.put(sessionSeen, now.UnixMilli())
	return started, nil
}

// end forgets a session, here and in the table.
func (s *session) end() error {
	s.destroyed, s.changed = true, true
	return s.manager.Destroy(s.data)
}

// endAll ends every session of a customer. Whose a session is stands in its data
// alone, so all are read: it is asked for once in a long time.
func (s *sessions) endAll(ctx context.Context, customer string) error {
	all, err := sessionStore{s.pool}.ofAll(ctx)
	if err != nil {
		return err
	}
	for hash, data := range all {
		_, values, err := s.manager.Codec.Decode(data)
		if err != nil || values[sessionCustomer] != customer {
			continue
		}
		if err := (sessionStore{s.pool}).DeleteCtx(ctx, hash); err != nil {
			return err
		}
	}
	return nil
}

// count is how many sessions of a customer there are, as endAll would end them.
func (s *sessions) count(ctx context.Context, customer string) (n int, err error) {
	all, err := sessionStore{s.pool}.ofAll(ctx)
	for _, data := range all {
		if _, values, err := s.manager.Codec.Decode(data); err == nil && values[sessionCustomer] == customer {
			n++
		}
	}
	return n, err
}

// keep writes a session that has changed, and its cookie, before the answer.
func (s *sessions) keep(w http.ResponseWriter, changed *session) error {
	if changed == nil || !changed.changed {
		return nil
	}
	cookie := s.cookie
	if changed.destroyed {
		cookie.MaxAge = -1
	} else {
		token, expires, err := s.manager.Commit(context.WithValue(changed.data, onlyIfThere, !changed.begun))
		if err != nil {
			return unavailable(err)
		}
		cookie.Value, cookie.Expires = token, expires
	}
	http.SetCookie(w, &cookie)
	return nil
}

// onlyIfThere marks the context of a commit that must not bring a session back
// which ended during the request.
const onlyIfThere contextKey = 1

// sessionStore is the library's store over the table sessions. The library gives
// it the token's hash.
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

// ofAll returns the data of every session by its token's hash.
func (s sessionStore) ofAll(ctx context.Context) (map[string][]byte, error) {
	rows, err := s.pool.Query(ctx, `select token_hash, data from sessions where p = 0`)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	var hash string
	var data []byte
	_, err = pgx.ForEachRow(rows, []any{&hash, &data}, func() error {
		all[hash] = slices.Clone(data)
		return nil
	})
	return all, err
}

// CommitCtx writes a session.
func (s sessionStore) CommitCtx(ctx context.Context, hash string, data []byte, expires time.Time) error {
	if only, _ := ctx.Value(onlyIfThere).(bool); only {
		_, err := s.pool.Exec(ctx, `update sessions set data = $2, expires_at = $3 where p = 0 and token_hash = $1`, hash, data, expires)
		return err
	}
	_, err := s.pool.Exec(ctx, `insert into sessions (p, token_hash, data, expires_at) values (0, $1, $2, $3)
		on conflict (p, token_hash) do update set data = excluded.data, expires_at = excluded.expires_at`, hash, data, expires)
	return err
}

// DeleteCtx forgets a session.
func (s sessionStore) DeleteCtx(ctx context.Context, hash string) error {
	_, err := s.pool.Exec(ctx, `delete from sessions where p = 0 and token_hash = $1`, hash)
	return err
}

// Find is FindCtx for the library's interface.
func (s sessionStore) Find(hash string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), hash)
}

// Commit is CommitCtx for the library's interface.
func (s sessionStore) Commit(hash string, data []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), hash, data, expires)
}

// Delete is DeleteCtx for the library's interface.
func (s sessionStore) Delete(hash string) error { return s.DeleteCtx(context.Background(), hash) }

// serveOrganization finds out who acts for which organization: a bearer token,
// or else a session. With a credential in a header the cookie does not count,
// and nothing in the query ever does.
func (s *Server) serveOrganization(c *call) error {
	bearer, present, err := organizationCredential(c.request.Header)
	switch {
	case err != nil:
		return err
	case present:
		return s.servePrincipal(c, bearer)
	}
	if c.session, err = s.sessions.load(c.request); err != nil {
		return err
	}
	if c.session == nil {
		return commands.ErrNoOrganizationCredential
	}
	if s.sessions.origin.Check(c.request) != nil {
		return policy.Refuse(commands.CodeForbidden, "", "cross-origin request refused")
	}
	if c.op.right == "" {
		return nil
	}
	c.principal, err = s.member(c.request.Context(), c.session, c.op.method == http.MethodGet)
	return err
}

// organizationCredential is what the headers hold: a bearer credential, or an
// API key, which is good for other things.
func organizationCredential(h http.Header) (bearer string, present bool, err error) {
	bad := policy.Refuse(commands.CodeUnauthorized, "", "invalid or expired token")
	switch values := h["Authorization"]; len(values) {
	case 0:
	case 1:
		scheme, token, _ := strings.Cut(values[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", true, bad
		}
		return token, true, nil
	default:
		return "", true, bad
	}
	keys := h["X-Api-Key"]
	if len(keys) > 1 || len(keys) == 1 && !strings.HasPrefix(keys[0], "svck_") {
		return "", true, bad
	}
	return strings.Join(keys, ""), len(keys) == 1, nil
}

// member is who a session acts as, and where. Whoever is no member of the chosen
// organization any more acts for the only one left.
func (s *Server) member(ctx context.Context, as *session, onlyReads bool) (commands.Principal, error) {
	chosen := as.org != ""
	if !chosen {
		if err := s.onlyOrganization(ctx, as); err != nil {
			return commands.Principal{}, err
		}
	}
	p, err := s.app.SessionPrincipal(ctx, as.org, as.customer, as.signedIn)
	if err == nil && onlyReads {
		p, err = s.app.Confirm(ctx, p)
	}
	var refused *policy.Error
	switch {
	case err == nil:
		return p, as.as(p.Role)
	case chosen && errors.As(err, &refused) && refused.Code == commands.CodeForbidden:
		as.choose("")
		return s.member(ctx, as, onlyReads)
	}
	return commands.Principal{}, err
}

func (s *Server) servePrincipal(c *call, bearer string) error {
	var err error
	c.principal, err = s.app.AuthenticateOrganization(c.request.Context(), bearer)
	switch { // no good credential helps where a person must have signed in
	case c.op.right == "" && (err == nil || isRefusal(err, commands.CodeInsufficientScope)):
		return policy.Refuse(commands.CodeForbidden, "", "a signed-in session is required")
	case err != nil:
		return err
	}
	if !c.principal.Allows(s.clientAddress(c.request)) {
		return policy.Refuse(commands.CodeForbidden, "", "token may not be used from this address")
	}
	// What appends guards the streams it rests on; what only reads looks again.
	if c.op.method == http.MethodGet {
		c.principal, err = s.app.Confirm(c.request.Context(), c.principal)
	}
	return err
}

// A member of no organization, and one of several who has chosen none.
var (
	errNoOrganization = policy.Refuse(commands.CodeForbidden, "", "organization credential required")
	errChooseFirst    = policy.Refuse(commands.CodeForbidden, "", "choose an organization first")
)

// onlyOrganization chooses for a member of one organization.
func (s *Server) onlyOrganization(ctx context.Context, as *session) error {
	list, err := s.projections.Memberships(ctx, as.customer)
	switch {
	case err != nil:
		return ofHistory(err)
	case len(list) == 0:
		return errNoOrganization
	case len(list) > 1:
		return errChooseFirst
	}
	as.choose(list[0].OrgID)
	return nil
}
