package serve

import (
	"log/slog"
	"strings"
	"testing"
)

// Some defaults are safe only if no other machine can reach the service. They apply only with the
// private database, a loopback listener and a loopback base URL.
func TestPrivateMeansThisMachineOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listen, base, key, contact, database, rates string
		refused                                     string // setting that the error names; empty if the service starts
	}{
		"all on this machine":             {"127.0.0.1:8080", "http://localhost:8080", "", "", "", "off", ""},
		"IPv6":                            {"[::1]:8080", "http://[::1]:8080", "", "", "", "off", ""},
		"a proxy beside it":               {"127.0.0.1:8080", "https://gate.example.com", "", "ops@example.com", "", "on", "SIGNING_KEY"},
		"a proxy, nothing set":            {"127.0.0.1:8080", "https://gate.example.com", "", "", "", "on", "SIGNING_KEY and CONTACT_EMAIL"},
		"every address":                   {"0.0.0.0:8080", "http://localhost:8080", "", "", "", "on", "SIGNING_KEY"},
		"public with its settings":        {"0.0.0.0:8080", "https://gate.example.com", "seed", "ops@example.com", "", "on", ""},
		"public without rates":            {"127.0.0.1:8080", "https://gate.example.com", "seed", "ops@example.com", "", "off", "RATE_LIMIT"},
		"database without contact":        {"0.0.0.0:8080", "https://gate.example.com", "seed", "", "postgres://db", "on", "CONTACT_EMAIL"},
		"database, no key":                {"0.0.0.0:8080", "https://gate.example.com", "", "ops@example.com", "postgres://db", "on", ""},
		"a name that only begins like it": {"127.0.0.1:8080", "http://localhost.example.com", "", "ops@example.com", "", "on", "SIGNING_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			serve := Command{}
			serve.Listen, serve.BaseURL, serve.SigningKey, serve.ContactEmail = c.listen, c.base, c.key, c.contact
			serve.DatabaseURL, serve.RateLimit = c.database, c.rates
			err := serve.mayServe(false, slog.New(slog.DiscardHandler))
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v, want %q", err, c.refused)
			}
		})
	}
}
