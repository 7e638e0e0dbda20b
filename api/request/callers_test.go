package request

import (
	"net/http/httptest"
	"testing"
)

func TestAnIPv6NetworkIsOneCaller(t *testing.T) {
	t.Parallel()
	var s Callers
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
		if got := s.Network(r); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
