package api_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/cmd/countersign/serve/settling"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/projections"
)

// site is one node behind a real listener.
type site struct {
	*httptest.Server
	app    *commands.App
	server *api.Server
	clock  *ledgertest.Clock // does not advance by itself
	outbox *mail.Outbox
	logs   *lockedBuffer
}

// newSite starts a node on a database. Its log is kept, so that a test can search it for secrets.
func newSite(t *testing.T, db *ledgertest.DB) *site {
	t.Helper()
	return newSiteAt(t, db, "")
}

// newSiteAt starts a node with another base URL than the listener's.
func newSiteAt(t *testing.T, db *ledgertest.DB, baseURL string) *site {
	t.Helper()
	return newSiteWith(t, db, baseURL, mail.NewOutbox(slog.New(slog.DiscardHandler)))
}

func newSiteWith(t *testing.T, db *ledgertest.DB, baseURL string, outbox *mail.Outbox, changes ...func(*api.Config)) *site {
	t.Helper()
	s := &site{clock: ledgertest.NewClock(ledgertest.Present()), logs: &lockedBuffer{}, outbox: outbox}
	log := slog.New(slog.NewJSONHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t.Cleanup(func() {
		if found := api.SecretsIn(s.logs.String()); found != nil {
			t.Errorf("the log holds a secret:\n%s", strings.Join(found, ""))
		}
	})
	l, err := ledger.Open(t.Context(), db.URL, ledger.Options{Clock: s.clock.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	signer, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	s.app = commands.New(&ground.Ground{Ledger: l, Signer: signer, Clock: s.clock.Now})
	s.app.TokenKeys = []ed25519.PrivateKey{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32))}
	s.app.PaymentWait = 30 * time.Second
	if err := l.Activate(t.Context(), signer, s.app.NewID("evt_")); err != nil {
		t.Fatal(err)
	}
	if s.app.Vault, err = vault.Open(t.Context(), l, bytes.Repeat([]byte{3}, 32)); err != nil {
		t.Fatal(err)
	}
	views, err := projections.Start(t.Context(), l, log)
	if err != nil {
		t.Fatal(err)
	}
	views.Patience = time.Minute // enough on a busy machine
	t.Cleanup(views.Close)
	s.Server = httptest.NewUnstartedServer(nil)
	if s.app.BaseURL = baseURL; baseURL == "" {
		s.app.BaseURL = "http://" + s.Listener.Addr().String()
	}
	config := api.Config{App: s.app, Projections: views, Log: log}
	if outbox != nil {
		config.Mail, config.Outbox = outbox, outbox
	}
	for _, change := range changes {
		change(&config)
	}
	server, err := api.New(config)
	if err != nil {
		t.Fatal(err)
	}
	reconciler := settling.New(settling.Config{App: s.app, Projections: views, Log: log, Service: server.Service, Watch: server})
	if s.app.Settler != nil {
		s.app.Settling = reconciler.Take
	}
	t.Cleanup(func() { server.Close(context.Background()); reconciler.Close(context.Background()) })
	s.server, s.Config.Handler = server, server.Handler()
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// keepCheckpoints starts to sign checkpoints, like a node with a key for checkpoints. An export
// waits for a checkpoint that covers it.
func (s *site) keepCheckpoints(t *testing.T) {
	t.Helper()
	signer, err := seal.NewSigner(bytes.Repeat([]byte{0xc4}, 32))
	if err != nil {
		t.Fatal(err)
	}
	err = keeper.Start(t.Context(), s.app.Ledger, keeper.Options{Signer: signer, Folder: checkpoint.Folder{Path: t.TempDir()}}, func() string { return s.app.NewID("evt_") })
	if err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer is a log that can be written and read concurrently.
type lockedBuffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was logged.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// browser is a visitor with cookies. It does not follow redirects.
type browser struct {
	t    *testing.T
	site *site
	http *http.Client
}

// in returns the browser for a step of a test, so that a failure names the step.
func (b *browser) in(t *testing.T) *browser { return &browser{t, b.site, b.http} }

func (s *site) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b *browser) do(method, path, media, body string, header ...string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, b.site.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

func (b *browser) get(path string, header ...string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, "", "", header...)
}

func (b *browser) post(path, body string, header ...string) answer {
	b.t.Helper()
	return b.do(http.MethodPost, path, "application/json", body, header...)
}

// actsFor returns the id of the organization that the next page will show, or "".
func (b *browser) actsFor() string {
	b.t.Helper()
	got := b.get("/api/auth/session")
	if got.status != http.StatusOK {
		return ""
	}
	var as struct {
		OrgID         string `json:"orgId"`
		Organizations []struct {
			OrgID string `json:"orgId"`
		} `json:"organizations"`
	}
	if err := json.Unmarshal([]byte(got.body), &as); err != nil {
		b.t.Fatal(err)
	}
	if as.OrgID == "" && len(as.Organizations) == 1 {
		return as.Organizations[0].OrgID
	}
	return as.OrgID
}

// form sends a form as if from a page of the organization that the visitor has chosen.
func (b *browser) form(path string, fields url.Values, header ...string) answer {
	b.t.Helper()
	if !fields.Has("org") {
		fields = maps.Clone(fields)
		if fields == nil {
			fields = url.Values{}
		}
		fields.Set("org", b.actsFor())
	}
	return b.do(http.MethodPost, path, "application/x-www-form-urlencoded", fields.Encode(), header...)
}

// follow opens the page to which a form redirects.
func (b *browser) follow(got answer) answer {
	b.t.Helper()
	if got.status != http.StatusSeeOther {
		b.t.Errorf("the form leads nowhere: %d %s", got.status, got.body)
	}
	return b.get(got.header.Get("Location"))
}

func (b *browser) want(got answer, status int, body string) {
	b.t.Helper()
	if got.status != status || !strings.Contains(got.body, body) && !strings.Contains(api.Plain(got.body), body) {
		b.t.Errorf("got %d %s, want %d %s", got.status, got.body, status, body)
	}
}

var linkPattern = regexp.MustCompile(`token=([A-Za-z0-9_-]{43})`)

// link requests a sign-in link and returns the secret from the e-mail.
func (b *browser) link(email, next string) string {
	b.t.Helper()
	b.want(b.post("/api/auth/sign-in", `{"email":"`+email+`","next":"`+next+`"}`), http.StatusAccepted, "sign-in link was sent")
	for _, message := range b.site.outbox.Messages() {
		if token := linkPattern.FindStringSubmatch(message.Text); message.To == email && token != nil {
			return token[1]
		}
	}
	b.t.Fatalf("no e-mail to %s", email)
	return ""
}

// signIn does all steps of a sign-in.
func (b *browser) signIn(email string) {
	b.t.Helper()
	if got := b.form("/sign-in/confirm", url.Values{"token": {b.link(email, "")}}); got.status != http.StatusSeeOther {
		b.t.Fatalf("sign in: %d %s", got.status, got.body)
	}
}

func TestSignInMakesASession(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	b.want(b.get("/api/auth/session"), 401, `"code":"unauthorized"`)
	b.signIn("ada@example.com")
	b.want(b.get("/api/auth/session"), 200, `"organizations":[]`)
	b.want(b.get("/account"), 200, "You are not a member of an organization")
	b.want(b.post("/api/auth/sign-out", `{}`), 200, "signed out")
	b.want(b.get("/api/auth/session"), 401, "authentication required")
	if got := b.get("/account"); got.status != http.StatusSeeOther || got.header.Get("Location") != "/sign-in?next=%2Faccount" {
		t.Errorf("account without a session: %d %s", got.status, got.header.Get("Location"))
	}
}

func TestLinkWorksOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	token := b.link("ada@example.com", "")
	// Opening the link does not use it, because scanners open links, too, and HEAD is possible.
	for range 3 {
		b.want(b.get("/sign-in/confirm?token="+token), 200, `value="`+token+`"`)
		b.want(b.do(http.MethodHead, "/sign-in/confirm?token="+token, "", ""), 200, "")
	}
	confirm := url.Values{"token": {token}}
	if got := b.form("/sign-in/confirm", confirm); got.status != http.StatusSeeOther {
		t.Fatalf("%d %s", got.status, got.body)
	}
	other := s.browser(t)
	used := other.form("/sign-in/confirm", confirm)
	other.want(used, 410, "was used or has expired: request a new one")
	if strings.Contains(used.body, "Back to the page") {
		t.Error("the page of a used link leads back to the link")
	}
	if got := other.get("/sign-in/confirm"); got.header.Get("Location") != "/sign-in" {
		t.Errorf("a link without a token: %d to %s", got.status, got.header.Get("Location"))
	}
	other.want(other.get("/api/auth/session"), 401, "authentication required")
	// The sign-in reads the secret only from the form, not from the query.
	fresh := other.link("ada@example.com", "")
	other.want(other.form("/sign-in/confirm?token="+fresh, url.Values{}), 410, "was used")
	if got := other.form("/sign-in/confirm", url.Values{"token": {fresh}}); got.status != http.StatusSeeOther {
		t.Errorf("after a try by the query: %d", got.status)
	}
}

func TestLinkRace(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	token := s.browser(t).link("ada@example.com", "")
	statuses := make(chan int, 8)
	for range cap(statuses) {
		b := s.browser(t)
		go func() { statuses <- b.form("/sign-in/confirm", url.Values{"token": {token}}).status }()
	}
	count := map[int]int{}
	for range cap(statuses) {
		count[<-statuses]++
	}
	if count[http.StatusSeeOther] != 1 || count[http.StatusGone] != cap(statuses)-1 {
		t.Errorf("one link, eight browsers: %v", count)
	}
}

func TestOldAndNewerLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	first := b.link("ada@example.com", "")
	second := b.link("ada@example.com", "")
	if a := b.form("/sign-in/confirm", url.Values{"token": {first}}); a.status != http.StatusSeeOther {
		t.Errorf("whoever asks for another link keeps a member out: %v", a)
	}
	s.clock.Add(10 * time.Minute)
	b.want(b.form("/sign-in/confirm", url.Values{"token": {second}}), 410, "was used or has expired")
	for _, bad := range []string{"", "x", strings.Repeat("A", 43), strings.Repeat("a", 42) + "!", strings.Repeat("A", 5000)} {
		b.want(b.form("/sign-in/confirm", url.Values{"token": {bad}}), 410, "was used or has expired")
	}
	b.want(b.form("/sign-in/confirm", url.Values{"token": {"a\x00b"}}), 400, "must be UTF-8 without NUL")
}

func TestSignInTellsNobodyWhoIsKnown(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	if _, err := s.app.CreateOrganization(t.Context(), "operator", "Acme", "team", "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	known := b.post("/api/auth/sign-in", `{"email":"ada@example.com"}`)
	unknown := b.post("/api/auth/sign-in", `{"email":"eve@example.com"}`)
	if known.status != 202 || known.body != unknown.body || known.status != unknown.status {
		t.Errorf("known %d %s, unknown %d %s", known.status, known.body, unknown.status, unknown.body)
	}
	head := api.Total(t, s.app)
	b.link("nobody@example.com", "")
	if after := api.Total(t, s.app); after != head {
		t.Errorf("asking for a link appended %d events", after-head)
	}
}

func TestAddressesWithMoreThanOneLine(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	for _, bad := range []string{
		`ada@example.com\r\nBcc: eve@example.com`, `ada@example.com\nX: y`, `ada@example.com\u0000`, `Ada <ada@example.com>`,
		`ada@example.com, eve@example.com`, `ada`, `@`, `ada@`, ` ada@example.com`, `ada@example.com `, `ada\u202e@example.com`, `ada\u200b@example.com`,
	} {
		b.want(b.post("/api/auth/sign-in", `{"email":"`+bad+`"}`), 400, `"error":"`)
	}
	b.want(b.form("/sign-in", url.Values{"email": {"ada@example.com\r\nBcc: eve@example.com"}}), 400, "email must be one e-mail address")
	if n := len(s.outbox.Messages()); n != 0 {
		t.Errorf("%d e-mails were sent", n)
	}
	for _, l := range []mail.Message{{To: "a@example.com\r\nBcc: b@example.com", Subject: "x"}, {To: "a@example.com", Subject: "x\r\nBcc: b@example.com"}, {To: "A <a@example.com>"}} {
		if err := s.outbox.Send(t.Context(), l); err == nil {
			t.Errorf("%q was sent", l)
		}
	}
}

func TestNextStaysHere(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	for next, want := range map[string]string{
		"/reviews":                     "/reviews",
		"/reviews?limit=5":             "/reviews?limit=5",
		"":                             "/account",
		"/":                            "/account",
		"//evil.example":               "/account",
		"https://evil.example":         "/account",
		"javascript:alert(1)":          "/account",
		`/\\evil.example`:              "/account",
		`/\t/evil.example`:             "/account",
		`/reviews\r\nSet-Cookie: a=b`:  "/account",
		"evil.example":                 "/account",
		"/" + strings.Repeat("a", 499): "/" + strings.Repeat("a", 499),
	} {
		b := s.browser(t)
		got := b.form("/sign-in/confirm", url.Values{"token": {b.link("ada@example.com", next)}})
		if where := got.header.Get("Location"); where != want || got.status != http.StatusSeeOther || len(got.header["Set-Cookie"]) != 1 {
			t.Errorf("next %q leads to %q, want %q", next, where, want)
		}
	}
	b := s.browser(t)
	b.want(b.get("/sign-in?next=%22%3E%3Cscript%3E"), 200, `value="/account"`)
}

func TestSessionFixation(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	planted := strings.Repeat("A", 43)
	b := s.browser(t)
	home, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	b.http.Jar.SetCookies(home, []*http.Cookie{{Name: "countersign_session", Value: planted, Path: "/"}})
	b.signIn("ada@example.com")
	first := b.cookie()
	if first == planted || len(first) != 43 {
		t.Fatalf("signed in under the cookie that was there before: %q", first)
	}
	// Another sign-in creates a new token and ends the old session.
	b.signIn("bob@example.com")
	second := b.cookie()
	if second == first {
		t.Error("signing in again kept the token")
	}
	for _, old := range []string{planted, first} {
		thief := s.browser(t)
		thief.want(thief.get("/api/auth/session", "Cookie", "countersign_session="+old), 401, "authentication required")
	}
	b.want(b.get("/api/auth/session"), 200, "customerId")
}

// cookie returns the secret of the session in the browser's cookie.
func (b *browser) cookie() string {
	b.t.Helper()
	home, err := url.Parse(b.site.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.http.Jar.Cookies(home) {
		if c.Name == "countersign_session" {
			return c.Value
		}
	}
	return ""
}

func TestCookieAndTableHoldWhatTheyShould(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	got := b.form("/sign-in/confirm", url.Values{"token": {b.link("ada@example.com", "")}})
	cookie := got.header.Get("Set-Cookie")
	for _, part := range []string{"countersign_session=", "Path=/", "HttpOnly", "SameSite=Lax"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("cookie %q lacks %s", cookie, part)
		}
	}
	if strings.Contains(cookie, "Secure") || strings.Contains(cookie, "Domain") || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("cookie %q on plain loopback, cache %q", cookie, got.header.Get("Cache-Control"))
	}
	var stored string
	if err := s.app.Ledger.Pool().QueryRow(t.Context(), `select string_agg(row_to_json(r)::text, ' ') from sessions r`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stored, b.cookie()) {
		t.Error("the table holds the session's secret")
	}
	// No log line contains the secrets of link and session, or the e-mail address.
	if text := s.logs.String(); strings.Contains(text, b.cookie()) || strings.Contains(text, "ada@example.com") ||
		linkPattern.MatchString(text) || !strings.Contains(text, "/sign-in/confirm") {
		t.Errorf("log: %s", text)
	}
}

func TestSecureCookieUnderTLS(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, api.Databases.New(t), "https://countersign.example")
	b := s.browser(t)
	got := b.form("/sign-in/confirm", url.Values{"token": {b.link("ada@example.com", "")}})
	cookie := got.header.Get("Set-Cookie")
	if !strings.HasPrefix(cookie, "__Host-countersign_session=") || !strings.Contains(cookie, "; Secure") || strings.Contains(cookie, "Domain") {
		t.Errorf("cookie %q", cookie)
	}
	if got := b.get("/sign-in"); got.header.Get("Strict-Transport-Security") == "" {
		t.Error("no HSTS under https")
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	idle, busy := s.browser(t), s.browser(t)
	idle.signIn("ada@example.com")
	busy.signIn("bob@example.com")
	// A session ends after 12 hours without a request. A session in use ends after 7 days.
	for range 13 {
		s.clock.Add(11 * time.Hour)
		busy.want(busy.get("/api/auth/session"), 200, "customerId")
		s.clock.Add(time.Minute)
	}
	idle.want(idle.get("/api/auth/session"), 401, "authentication required")
	for range 2 {
		s.clock.Add(11 * time.Hour)
		busy.want(busy.get("/api/auth/session"), 200, "customerId")
	}
	s.clock.Add(3 * time.Hour) // 168 hours and 13 minutes in total
	busy.want(busy.get("/api/auth/session"), 401, "authentication required")
}

func TestSignOutEndsTheSessionForEverybody(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	b.signIn("ada@example.com")
	secret := b.cookie()
	if got := b.form("/sign-out", url.Values{}); got.status != http.StatusSeeOther || b.cookie() != "" {
		t.Errorf("sign out: %d, cookie %q", got.status, b.cookie())
	}
	thief := s.browser(t)
	thief.want(thief.get("/api/auth/session", "Cookie", "countersign_session="+secret), 401, "authentication required")
}

// TestSignOutEverywhere checks, over the API and on the page, that signing out everywhere ends
// every session of the customer in every browser, and no session of another customer.
func TestSignOutEverywhere(t *testing.T) {
	t.Parallel()
	for name, signOut := range map[string]func(*browser) answer{
		"API":  func(b *browser) answer { return b.post("/api/auth/sign-out", `{"everywhere":true}`) },
		"page": func(b *browser) answer { return b.form("/sign-out", url.Values{"everywhere": {"1"}}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, api.Databases.New(t))
			lost, own, other := s.browser(t), s.browser(t), s.browser(t)
			lost.signIn("ada@example.com")
			own.signIn("ada@example.com")
			other.signIn("eve@example.com")
			for _, b := range []*browser{lost, own, other} {
				b.want(b.get("/api/auth/session"), 200, "customerId")
			}
			if got := signOut(own); got.status != http.StatusOK && got.status != http.StatusSeeOther {
				t.Fatalf("sign out: %d %s", got.status, got.body)
			}
			for _, b := range []*browser{lost, own} {
				b.want(b.get("/api/auth/session"), 401, "authentication required")
			}
			other.want(other.get("/api/auth/session"), 200, "customerId")
			lost.signIn("ada@example.com")
			lost.want(lost.get("/api/auth/session"), 200, "customerId")
		})
	}
}

func TestCrossOriginRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	b.signIn("ada@example.com")
	for name, header := range map[string][]string{
		"fetch metadata":  {"Sec-Fetch-Site", "cross-site"},
		"same site":       {"Sec-Fetch-Site", "same-site"},
		"another origin":  {"Origin", "https://evil.example"},
		"the null origin": {"Origin", "null"},
	} {
		b.want(b.post("/api/auth/sign-out", `{}`, header...), 403, `"error":"cross-origin request refused"`)
		b.want(b.form("/sign-out", url.Values{}, header...), 403, "cross-origin request refused")
		b.want(b.form("/sign-in/confirm", url.Values{"token": {"x"}}, header...), 403, "cross-origin request refused")
		if got := b.get("/api/auth/session", header...); got.status != 200 {
			t.Errorf("%s: a GET was refused: %d", name, got.status)
		}
	}
	b.want(b.post("/api/auth/sign-out", `{}`, "Origin", s.URL, "Sec-Fetch-Site", "same-origin"), 200, "signed out")
}

// TestFormsAreNotTakenForTheAPI checks that the API refuses the content types that a form of
// another site can send without a preflight.
func TestFormsAreNotTakenForTheAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	b.signIn("ada@example.com")
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""} {
		b.want(b.do(http.MethodPost, "/api/auth/sign-out", media, `{}`), 400, "ontent")
	}
	b.want(b.do(http.MethodPost, "/sign-out", "application/json", `{}`), 400, "content type")
	b.want(b.get("/api/auth/session"), 200, "customerId")
}

func TestPagesAreClosed(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	for _, path := range []string{"/sign-in", "/sign-in/confirm?token=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/outbox"} {
		got := b.get(path)
		csp := got.header.Get("Content-Security-Policy")
		if got.status != 200 || !strings.Contains(csp, "default-src 'none'; script-src 'self'; ") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") ||
			got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Referrer-Policy") != "no-referrer" ||
			got.header.Get("Cache-Control") != "no-store" || strings.Contains(got.body, "<script>") {
			t.Errorf("%s: %d %v %s", path, got.status, got.header, got.body)
		}
	}
	if got := b.do(http.MethodDelete, "/sign-in", "", ""); got.status != 405 || got.header.Get("Allow") == "" {
		t.Errorf("DELETE /sign-in: %d, Allow %q", got.status, got.header.Get("Allow"))
	}
}

// TestOutboxAnswersToThisMachineOnly checks that the outbox shows e-mails only to a person who
// knows its code, and refuses requests that came through a proxy or name a host other than this
// machine.
func TestOutboxAnswersToThisMachineOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	token := b.link("ada@example.com", "")
	if got := b.get("/outbox"); got.status != 200 || strings.Contains(got.body, token) {
		t.Errorf("a program on this machine reads the e-mails: %v", got)
	}
	b.want(b.form("/outbox", url.Values{"code": {"WRONG"}}), 403, "This code is wrong")
	b.want(b.form("/outbox", url.Values{"code": {" " + strings.ToLower(s.outbox.Code())}}), 200, token)
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "Via", "X-Real-IP"} {
		b.want(b.do(http.MethodGet, "/outbox", "", "", header, "127.0.0.1"), 404, "not found")
	}
	for host, want := range map[string]int{"evil.example": 404, "evil.example:8080": 404, "10.0.0.1": 404, "localhost:1": 200, "[::1]:1": 200, "127.0.0.1": 200} {
		r, err := http.NewRequest(http.MethodGet, s.URL+"/outbox", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("host %s: %d, want %d", host, response.StatusCode, want)
		}
	}
}

// TestEmailsAreWritten checks that the outbox writes each e-mail completely to its writer.
func TestEmailsAreWritten(t *testing.T) {
	t.Parallel()
	var written strings.Builder
	outbox := mail.NewOutbox(slog.New(slog.DiscardHandler), &written)
	message := mail.Message{To: "ada@example.com", Subject: "Sign in", Text: "Open this link"}
	if err := outbox.Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"To: ada@example.com\n", "Subject: Sign in\n", "Open this link"} {
		if !strings.Contains(written.String(), part) {
			t.Errorf("%q is not in %s", part, written.String())
		}
	}
}

func TestNoMailIsSaid(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, api.Databases.New(t), "", nil)
	b := s.browser(t)
	b.want(b.post("/api/auth/sign-in", `{"email":"ada@example.com"}`), 503, `"error":"mail is not configured: the operator must set SMTP_URL"`)
	b.want(b.get("/outbox"), 404, "not found")
}

func TestMailServerAddress(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"smtp://localhost?from=a@example.com", "smtps://u:p@mail.example.com:465?from=a@example.com", "smtp://mail.example.com:2525?from=a@example.com"} {
		if _, err := mail.NewSMTP(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "mail.example.com", "http://mail.example.com?from=a@example.com", "smtp://h", "smtp://u:hunter2@h?from=a", "smtp://u:hunter2@h:x?from=a@example.com"} {
		if _, err := mail.NewSMTP(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestSessionOnTwoNodes checks that no node keeps a session in memory.
func TestSessionOnTwoNodes(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	one, two := newSite(t, db), newSite(t, db)
	b := one.browser(t)
	b.signIn("ada@example.com")
	there := &browser{t, two, b.http} // cookies ignore the port, so both nodes get them
	there.want(there.get("/api/auth/session"), 200, "customerId")
	there.want(there.post("/api/auth/sign-out", `{}`), 200, "signed out")
	b.want(b.get("/api/auth/session"), 401, "authentication required")
}

// TestWithoutSigner checks that without a signing key and a vault a session remains valid and
// pages can be read, and that operations that sign or encrypt answer 503.
func TestWithoutSigner(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	b := s.browser(t)
	b.signIn("ada@example.com")
	s.app.Signer, s.app.Vault = nil, nil
	b.want(b.get("/api/assurance/members"), 200, `"email":""`)
	b.want(b.get("/api/assurance/policies"), 200, "active")
	b.want(b.post("/api/assurance/members", `{"email":"bob@example.com","role":"admin"}`), 503, `{"error":"signing is unavailable`)
	program := s.browser(t)
	program.want(program.post("/api/assurance/policies", `{}`, "Authorization", "Bearer "+n.token), 403, "missing scope policy:draft")
	program.want(program.post("/api/auth/sign-in", `{"email":"ada@example.com"}`), 503, "signing is unavailable")
}

// brokenMail is a mail server that refuses everything.
type brokenMail struct{}

func (brokenMail) Send(context.Context, mail.Message) error {
	return errors.New("421 ada@example.com: try later")
}

func TestMailThatFailsIsSaid(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, api.Databases.New(t), "", nil, func(c *api.Config) { c.Mail = brokenMail{} })
	b := s.browser(t)
	b.want(b.post("/api/auth/sign-in", `{"email":"ada@example.com"}`), 503, `"error":"the e-mail could not be sent: try again"`)
	if strings.Contains(s.logs.String(), "ada@example.com") {
		t.Error("the log holds the address that the mail server repeated")
	}
}

// TestSignInIsSlowedDown checks that one network address may request ten links a minute, and that
// one mailbox gets three in 15 minutes, also with other network addresses and spellings.
func TestSignInIsSlowedDown(t *testing.T) {
	t.Parallel()
	outbox := mail.NewOutbox(slog.New(slog.DiscardHandler))
	s := newSiteWith(t, api.Databases.New(t), "", outbox, func(c *api.Config) {
		c.RateLimit, c.TrustedProxies = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	b := s.browser(t)
	ask := func(email, from string) answer {
		t.Helper()
		return b.post("/api/auth/sign-in", `{"email":"`+email+`"}`, "X-Forwarded-For", from)
	}
	for n := range 10 {
		b.want(ask(fmt.Sprintf("a%d@example.com", n), "192.0.2.1"), 202, "sign-in link was sent")
	}
	b.want(ask("b@example.com", "192.0.2.1"), 429, `"error":"too many links were mailed: open the link in the last e-mail or try again later"`)
	for n := range 3 {
		b.want(ask("Ada@example.com", fmt.Sprintf("198.51.100.%d", n)), 202, "sign-in link was sent")
	}
	b.want(ask("ada+tag@example.com", "198.51.100.99"), 429, "too many")
	s.clock.Add(5 * time.Minute)
	b.want(ask("ada@example.com", "192.0.2.1"), 202, "sign-in link was sent")
}
