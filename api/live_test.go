package api_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestOpenPagesFollowTheReviews checks that the stream of an open page sends the number of pending
// reviews, at once and after a change; that a person has at most four streams; that a person who may
// give no verdict gets none; and that all streams end before the server stops.
func TestOpenPagesFollowTheReviews(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	admin := c.people["admin"]
	for _, role := range []string{"admin", "auditor"} { // the first page chooses the only organization of the person
		c.people[role].get("/overview")
	}
	next := func(lines *bufio.Scanner) string {
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				return data
			}
		}
		return "end"
	}
	var open []*bufio.Scanner
	for range 4 {
		r, err := admin.http.Get(s.URL + "/live")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d %v", r.StatusCode, r.Header)
		}
		lines := bufio.NewScanner(r.Body)
		if got := next(lines); got != `{"reviews":0,"more":false}` {
			t.Fatal(got)
		}
		open = append(open, lines)
	}
	if got := admin.get("/live"); got.status != http.StatusTooManyRequests {
		t.Errorf("a fifth stream: %d", got.status)
	}
	for who, b := range map[string]*browser{"an auditor": c.people["auditor"], "a visitor who is not signed in": s.browser(t)} {
		if got := b.get("/live"); got.status != http.StatusNoContent {
			t.Errorf("%s: %d", who, got.status)
		}
	}
	c.asks(t, "k1", "agent-7")
	for _, lines := range open {
		if got := next(lines); got != `{"reviews":1,"more":false}` {
			t.Error(got)
		}
	}
	s.server.Drain()
	for _, lines := range open {
		if got := next(lines); got != "end" {
			t.Errorf("after the server drains: %s", got)
		}
	}
	if got := admin.get("/live"); got.status != http.StatusTooManyRequests {
		t.Errorf("a stream of a server that stops: %d", got.status)
	}
	clean(t, s)
}

// TestWalkLive checks that an open page updates the number of pending reviews without a reload, and
// offers a link to the new list instead of changing the list that the person reads.
func TestWalkLive(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	w := s.openWindow(t)
	failures := w.failures()
	w.as(c.people["admin"])
	w.open("/reviews")
	w.see("No decision waits for a review.")
	c.asks(t, "k1", "agent-7")
	w.see("The pending reviews have changed.")
	w.do(chromedp.WaitVisible(`//nav[@class="places"]//a[@href="/reviews"]/span[@class="number" and text()="1"]`, chromedp.BySearch))
	w.press("Show the new list")
	w.see("agent-7")
	for _, said := range failures() {
		t.Errorf("the browser's console says: %s", said)
	}
}
