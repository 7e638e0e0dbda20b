package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/web"
)

func render(t *testing.T, page string, v web.Framed) string {
	t.Helper()
	pages, err := web.NewTemplates(func() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) })
	if err != nil {
		t.Fatal(err)
	}
	body, err := pages.Render(page, v)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestTheFrameKnowsWhoReads checks that a signed-in person gets the header links and the sign-out
// button, and that other visitors get the link to sign in.
func TestTheFrameKnowsWhoReads(t *testing.T) {
	nobody := render(t, "sent.html", web.Framed{Data: false})
	if !strings.Contains(nobody, `href="/sign-in"`) || strings.Contains(nobody, "/sign-out") || strings.Contains(nobody, `aria-label="Places"`) {
		t.Error(nobody)
	}
	somebody := render(t, "sent.html", web.Framed{Data: false, Frame: web.Frame{Place: "/reviews", Person: &web.Person{
		Email: "ada@example.com", OrgID: "org_1", Reviews: 3,
		Organizations: []web.Organization{{ID: "org_1", Name: "Acme <b>", Plan: "team", Role: "owner"}},
	}}})
	for _, part := range []string{"ada@example.com", "Acme &lt;b&gt;", `action="/sign-out"`, `<a href="/reviews" aria-current="page">Reviews <span class="number">3</span>`} {
		if !strings.Contains(somebody, part) {
			t.Errorf("the frame lacks %s:\n%s", part, somebody)
		}
	}
}

// TestAssetsAreFetchedOnce checks that a browser that has the file gets no content again.
func TestAssetsAreFetchedOnce(t *testing.T) {
	assets, err := web.Assets()
	if err != nil || len(assets) < 3 {
		t.Fatal(assets, err)
	}
	for _, a := range assets {
		first := httptest.NewRecorder()
		a.ServeHTTP(first, httptest.NewRequest("GET", a.Path, nil))
		again := httptest.NewRequest("GET", a.Path, nil)
		again.Header.Set("If-None-Match", first.Header().Get("ETag"))
		second := httptest.NewRecorder()
		a.ServeHTTP(second, again)
		if first.Code != 200 || first.Body.Len() == 0 || second.Code != 304 || second.Body.Len() != 0 {
			t.Errorf("%s: %d, then %d with %d octets", a.Path, first.Code, second.Code, second.Body.Len())
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		before time.Duration
		want   string
	}{
		{0, "just now"}, {-5 * time.Second, "in 5 seconds"}, {time.Minute, "1 minute ago"}, {90 * time.Minute, "1 hour ago"},
		{-14 * time.Minute, "in 14 minutes"}, {49 * time.Hour, "2 days ago"}, {30 * 24 * time.Hour, "2 Feb 2026"},
	} {
		if got := web.Ago(now.Add(-c.before), now); got != c.want {
			t.Errorf("%s before: %q, want %q", c.before, got, c.want)
		}
	}
	if got := web.Ago(time.Time{}, now); got != "never" {
		t.Error(got)
	}
}

func TestShort(t *testing.T) {
	for id, want := range map[string]string{
		"asd_01JD3Z8W5T0000000000000000":   "asd_01JD…0000",
		"156f3bb8d855bc6e8a577bf11f148136": "156f…8136", "run-1": "run-1", "": "",
	} {
		if got := web.Short(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
