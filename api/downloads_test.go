package api_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// newOwner returns a customer who has bought the verification kit by card, the site, and the
// payment provider.
func newOwner(t *testing.T) (*browser, *site, *stripeFake) {
	t.Helper()
	return newOwnerOn(t, api.Databases.New(t))
}

func newOwnerOn(t *testing.T, db *ledgertest.DB) (*browser, *site, *stripeFake) {
	t.Helper()
	s, f := newStorefrontOn(t, db)
	ada := s.signedIn(t, "ada@example.com")
	f.checkout(ada, "verification-kit")
	f.deliver(f.notice("checkout.session.completed", s.app.Clock(), f.paid("cus_p", "ada@example.com", nil)))
	return ada, s, f
}

// newLink creates a download link and returns its path.
func (b *browser) newLink(slug string) string {
	b.t.Helper()
	got := b.post("/api/entitlements/"+slug+"/downloads", ``)
	b.want(got, 201, `"expiresAt":"`)
	var link struct{ DownloadURL string }
	if err := json.Unmarshal([]byte(got.body), &link); err != nil {
		b.t.Fatal(err)
	}
	path, ours := strings.CutPrefix(link.DownloadURL, b.site.app.BaseURL)
	if !ours || len(path) != len("/api/downloads/")+43 {
		b.t.Fatalf("link %s", link.DownloadURL)
	}
	return path
}

func TestDownloadWorksOnce(t *testing.T) {
	t.Parallel()
	ada, s, _ := newOwner(t)
	path := ada.newLink("verification-kit")
	// A HEAD, or a GET by a browser, does not use the link.
	for range 2 {
		got := s.browser(t).do(http.MethodHead, path, "", "")
		if got.status != 200 || got.header.Get("Content-Length") == "" || got.body != "" {
			t.Errorf("HEAD: %d %v", got.status, got.header)
		}
		page := s.browser(t).get(path, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		if page.status != 200 || !strings.Contains(page.body, `<form method="post"><button>Download</button></form>`) ||
			!strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || page.header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("page: %d %s", page.status, page.body)
		}
	}
	before := s.eventCount(t)
	got := s.browser(t).get(path)
	if got.status != 200 || got.header.Get("Content-Type") != "application/zip" || got.header.Get("Cache-Control") != "no-store" ||
		got.header.Get("Content-Disposition") != "attachment; filename=verification-kit.zip" || got.header.Get("Referrer-Policy") != "no-referrer" ||
		got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", got.status, got.header)
	}
	if _, err := zip.NewReader(bytes.NewReader([]byte(got.body)), int64(len(got.body))); err != nil {
		t.Error(err)
	}
	if n := s.eventCount(t) - before; n != 1 {
		t.Errorf("%d events", n)
	}
	s.browser(t).want(s.browser(t).get(path), 410, `"code":"gone"`)
	s.browser(t).want(s.browser(t).get(path, "Accept", "text/html"), 410, "was used or has expired")
	s.browser(t).want(s.browser(t).do(http.MethodHead, path, "", ""), 410, "")
	s.browser(t).want(s.browser(t).get("/api/downloads/"+strings.Repeat("A", 43)), 404, "download not found")
	s.browser(t).want(s.browser(t).get("/api/downloads/x"), 404, "download not found")
	s.browser(t).want(s.browser(t).do(http.MethodPut, path, "", ""), 405, "method not allowed")
}

func TestDownloadFromABrowser(t *testing.T) {
	t.Parallel()
	ada, s, _ := newOwner(t)
	ada.want(ada.get("/account"), 200, `>Download Auditor&#39;s verification kit</button>`)
	got := ada.form("/account/download", url.Values{"slug": {"verification-kit"}})
	path, ours := strings.CutPrefix(got.header.Get("Location"), s.app.BaseURL)
	if got.status != http.StatusSeeOther || !ours {
		t.Fatalf("%d %v", got.status, got.header)
	}
	ada.want(ada.do(http.MethodPost, path, "application/x-www-form-urlencoded", "", "Origin", "https://evil.example", "Accept", "text/html"), 403, "cross-origin")
	file := ada.do(http.MethodPost, path, "application/x-www-form-urlencoded", "", "Sec-Fetch-Site", "same-origin", "Accept", "text/html")
	if file.status != 200 || file.header.Get("Content-Type") != "application/zip" {
		t.Errorf("%d %v", file.status, file.header)
	}
	ada.want(ada.form("/account/download", url.Values{"slug": {"policy-starter-pack"}}), 403, "no active entitlement")
	s.browser(t).want(s.browser(t).form("/account/download", url.Values{"slug": {"verification-kit"}}), 401, "nothing recorded")
}

// TestOneLinkAtOnce checks that concurrent requests with one link return the file once.
func TestOneLinkAtOnce(t *testing.T) {
	t.Parallel()
	ada, s, _ := newOwner(t)
	path := ada.newLink("verification-kit")
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := map[int]int{}
	for range 8 {
		all.Go(func() {
			got := s.browser(t).get(path)
			mu.Lock()
			defer mu.Unlock()
			statuses[got.status]++
		})
	}
	all.Wait()
	if statuses[200] != 1 || statuses[410] != 7 {
		t.Errorf("%v", statuses)
	}
}

func TestDownloadLinksExpireAndAreFew(t *testing.T) {
	t.Parallel()
	ada, s, f := newOwner(t)
	old := ada.newLink("verification-kit")
	s.clock.Add(15*time.Minute - time.Second)
	s.browser(t).want(s.browser(t).do(http.MethodHead, old, "", ""), 200, "")
	s.clock.Add(time.Second)
	s.browser(t).want(s.browser(t).get(old), 410, "has expired")
	// At most five unused links exist. A new one replaces the oldest.
	links := make([]string, 6)
	for i := range links {
		links[i] = ada.newLink("verification-kit")
		s.clock.Add(time.Second)
	}
	s.browser(t).want(s.browser(t).do(http.MethodHead, links[0], "", ""), 404, "")
	for _, link := range links[1:] {
		s.browser(t).want(s.browser(t).do(http.MethodHead, link, "", ""), 200, "")
	}
	// A purchase allows twenty downloads.
	for i := range 20 {
		if got := s.browser(t).get(ada.newLink("verification-kit")); got.status != 200 {
			t.Fatalf("download %d: %d %s", i, got.status, got.body)
		}
	}
	ada.want(ada.post("/api/entitlements/verification-kit/downloads", `{}`), 409, "this purchase has no downloads left")
	// There is no link without a current entitlement, or for a product without a file.
	ada.want(ada.post("/api/entitlements/policy-starter-pack/downloads", ``), 403, `"code":"none"`)
	f.deliver(f.notice("charge.refunded", s.app.Clock(), fields{"id": "ch_1", "payment_intent": "pi_cs_test_1", "refunded": true, "amount_refunded": 100}))
	ada.want(ada.post("/api/entitlements/verification-kit/downloads", ``), 403, `"code":"refunded"`)
	s.browser(t).want(s.browser(t).post("/api/entitlements/verification-kit/downloads", ``), 401, "authentication required")
}

// TestDownloadThatCannotBeRecorded checks that the event is appended before the first byte is
// sent. If the append fails, no file is sent, and the link still works later.
func TestDownloadThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	ada, s, _ := newOwnerOn(t, db)
	path := ada.newLink("verification-kit")
	conn, err := pgx.Connect(t.Context(), db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(`revoke insert on events from countersign_app`)
	if got := s.browser(t).get(path); got.status != 503 && got.status != 500 || strings.Contains(got.body, "PK\x03\x04") { // longer than "PK", which a request id may contain
		t.Errorf("%d %.80s", got.status, got.body)
	}
	run(`grant insert on events to countersign_app`)
	got := s.browser(t).get(path)
	for got.status == 503 && t.Context().Err() == nil { // the ledger is reconnecting, and asks the caller to retry
		got = s.browser(t).get(path)
	}
	s.browser(t).want(got, 200, "PK")
	s.browser(t).want(s.browser(t).get(path), 410, "was used")
}

// TestDownloadAfterACrashBehindTheEvent checks that a link counts as used if the event of its
// download was appended but the link's row still exists, as after a crash before the row is
// deleted.
func TestDownloadAfterACrashBehindTheEvent(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	ada, s, _ := newOwnerOn(t, db)
	path := ada.newLink("verification-kit")
	conn, err := pgx.Connect(t.Context(), db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `create table kept as select * from download_links`); err != nil {
		t.Fatal(err)
	}
	s.browser(t).want(s.browser(t).get(path), 200, "PK")
	if _, err := conn.Exec(t.Context(), `insert into download_links select * from kept`); err != nil {
		t.Fatal(err)
	}
	s.browser(t).want(s.browser(t).get(path), 410, "was used")
}

func TestTheTwentiethDownloadIsTheLast(t *testing.T) {
	t.Parallel()
	ada, s, _ := newOwner(t)
	kept := ada.newLink("verification-kit")
	for i := range 20 {
		if got := s.browser(t).get(ada.newLink("verification-kit")); got.status != 200 {
			t.Fatalf("download %d: %d %s", i, got.status, got.body)
		}
	}
	s.browser(t).want(s.browser(t).get(kept), 409, "this purchase has no downloads left")
}

// TestDownloadSecretIsNowhere checks that the tables of events and of download links do not
// contain the secret of a link.
func TestDownloadSecretIsNowhere(t *testing.T) {
	t.Parallel()
	db := api.Databases.New(t)
	ada, _, _ := newOwnerOn(t, db)
	used, unused := ada.newLink("verification-kit"), ada.newLink("verification-kit")
	ada.want(ada.get(used), 200, "")
	conn, err := pgx.Connect(t.Context(), db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, table := range []string{"events", "download_links"} {
		for _, path := range []string{used, unused} {
			var n int
			token := strings.TrimPrefix(path, "/api/downloads/")
			if err := conn.QueryRow(t.Context(), fmt.Sprintf(`select count(*) from %s t where t::text like '%%' || $1 || '%%'
				or t::text like '%%' || encode(convert_to($1, 'UTF8'), 'hex') || '%%'`, table), token).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s holds the secret (%d, %v)", table, n, err)
			}
		}
	}
}
