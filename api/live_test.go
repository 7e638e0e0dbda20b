package api_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestOpenPagesFollowTheReviews holds that the stream of an open page says how many decisions wait and
// says it again when another one does, that a person has at most four of them, that only who gives
// verdicts gets one, and that all of them end before the server stops.
func TestOpenPagesFollowTheReviews(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	admin := c.people["admin"]
	for _, role := range []string{"admin", "auditor"} { // a page chooses their only organization
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
	for who, b := range map[string]*browser{"an auditor": c.people["auditor"], "a stranger": s.browser(t)} {
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

// TestWalkLive holds that an open page shows the number of pending reviews without a reload, and offers
// the new list instead of moving what is read.
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
