package credential

import (
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// desk stores sessions in a test database and acts as the browser.
type desk struct {
	t *testing.T
	*Sessions
}

func newDesk(t *testing.T, clock func() time.Time) desk {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), ledgertest.New(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := NewSessions(pool, "http://127.0.0.1:8080", clock)
	if err != nil {
		t.Fatal(err)
	}
	return desk{t, s}
}

func request(cookie string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: "countersign_session", Value: cookie})
	}
	return r
}

// signIn returns the cookie of a new session.
func (d desk) signIn(customer string) string {
	d.t.Helper()
	s, err := d.Begin(request(""), customer)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.keepIn(s)
}

// keepIn stores a session and returns the value of the cookie that was set, or "" if none was.
func (d desk) keepIn(s *Session) string {
	d.t.Helper()
	w := httptest.NewRecorder()
	if err := d.Keep(w, s); err != nil {
		d.t.Fatal(err)
	}
	for _, c := range w.Result().Cookies() {
		return c.Value
	}
	return ""
}

func (d desk) open(cookie string) *Session {
	d.t.Helper()
	s, err := d.Load(request(cookie))
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// TestASessionThatEndedStaysEnded checks that a request that was running at the sign-out does not
// restore the session.
func TestASessionThatEndedStaysEnded(t *testing.T) {
	d := newDesk(t, time.Now)
	cookie := d.signIn("cus_1")
	late, out := d.open(cookie), d.open(cookie)
	if err := out.End(); err != nil {
		t.Fatal(err)
	}
	d.keepIn(out)
	late.Choose("org_1")
	d.keepIn(late)
	if d.open(cookie) != nil {
		t.Error("the session is back")
	}
	// The old token of a renewed session is not valid, either.
	cookie = d.signIn("cus_1")
	late, renewed := d.open(cookie), d.open(cookie)
	renewed.role = "developer"
	if err := renewed.as("admin"); err != nil {
		t.Fatal(err)
	}
	fresh := d.keepIn(renewed)
	late.Choose("org_2")
	d.keepIn(late)
	if d.open(cookie) != nil || d.open(fresh) == nil || fresh == cookie {
		t.Error("the old token is good, or the new one is not")
	}
}

func TestRenewingDoesNotPutTheEndOff(t *testing.T) {
	d := newDesk(t, time.Now)
	s := d.open(d.signIn("cus_1"))
	ends := s.manager.Deadline(s.data)
	s.role = "developer"
	if err := s.as("owner"); err != nil {
		t.Fatal(err)
	}
	renewed := d.open(d.keepIn(s))
	if got := renewed.manager.Deadline(renewed.data); !got.Equal(ends) {
		t.Errorf("the session ends at %v, want %v as before", got, ends)
	}
	if renewed.role != "owner" || renewed.Customer != "cus_1" {
		t.Errorf("%+v", renewed)
	}
}

// TestSessionsStartNoGoroutine checks that the constructor starts no goroutine. The library's own
// constructor starts one for a store that is not used.
func TestSessionsStartNoGoroutine(t *testing.T) {
	newDesk(t, time.Now)
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stacks.String(), "memstore") {
		t.Error("a store in memory has been started")
	}
}

func TestRequestsThatChangeNothingWriteNothing(t *testing.T) {
	now := time.Now()
	d := newDesk(t, func() time.Time { return now })
	cookie := d.signIn("cus_1")
	if got := d.keepIn(d.open(cookie)); got != "" {
		t.Error("a request within the minute wrote the session")
	}
	now = now.Add(seenEvery)
	if got := d.keepIn(d.open(cookie)); got != cookie {
		t.Errorf("a request a minute later set the cookie %q, want it prolonged", got)
	}
	for _, bad := range []string{"", "short", cookie + "x", cookie[:42] + "!", "cus_1"} {
		if d.open(bad) != nil {
			t.Errorf("cookie %q opens a session", bad)
		}
	}
}
