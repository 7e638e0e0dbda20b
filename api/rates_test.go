package api

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"
)

func TestAnIPv6NetworkIsOneCaller(t *testing.T) {
	var s Server
	for address, want := range map[string]string{
		"[2001:db8:1:2:3:4:5:6]:1234":    "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:99":      "2001:db8:1:2::/64",
		"192.0.2.7:80":                   "192.0.2.7",
		"[::ffff:192.0.2.7]:80":          "192.0.2.7",
		"[fe80::1%eth0]:80":              "fe80::/64",
		"something that is no address:1": "something that is no address:1",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = address
		if got := s.network(r); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// A flood from many networks makes room for itself; it does not set everybody free.
func TestAFloodDoesNotFreeWhoIsLimited(t *testing.T) {
	clock := newClock(time.Now())
	r := newRates(true, clock.Now)
	once := limit{"do it", time.Hour, 1}
	if !r.allow(once, "ada") || r.allow(once, "ada") {
		t.Fatal("once is not once")
	}
	for i := range rateLimitEntries - 1 {
		r.allow(once, fmt.Sprint(i))
	}
	if r.allow(once, "ada") {
		t.Error("the flood freed who was seen just now")
	}
	r.allow(once, "one more")
	if r.allow(once, "ada") {
		t.Error("the flood freed who was seen just now")
	}
	if len(r.limiters) > rateLimitEntries {
		t.Errorf("%d are remembered", len(r.limiters))
	}
}

func TestRecomputingIsLimitedForANetwork(t *testing.T) {
	n := startNode(t, setup{rateLimit: true})
	body := `{"paymentId":"pay_00000000000000000000000000000000","operation":"action_safety_quick_gate","request":{"command":"ls"}}`
	for range refundsPerMinute {
		n.refused(n.post("/api/refunds", "", body), 404, "not_found", "")
	}
	a := n.post("/api/refunds", "", body)
	n.refused(a, 429, codeRateLimited, "")
	if a.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
}
