package api

import (
	"regexp"
	"strings"
	"testing"
)

// secretShapes matches secrets that no log may contain. Every test of this folder ends with a
// search through all logs of its nodes.
var secretShapes = regexp.MustCompile(strings.Join([]string{
	canary,
	`sv(ck|co|ca)_[0-9a-z]{12}_`, // API key, organization token, client secret
	`eyJ[A-Za-z0-9_-]{8,}\.eyJ`,  // access token
	`(token=|/downloads/|session=)[A-Za-z0-9_-]{20}`, // links in e-mails, downloads, sessions
	`[rs]k_(test|live)_`, `whsec_`,                   // secrets of the checkout provider
	`0x[0-9a-fA-F]{130}`, `eyJ4NDAyVmVyc2lvbiI`, // signature of a payment, the payment itself
	`(?i)(bearer|basic) [A-Za-z0-9+/=_.-]{16}`,
	`[A-Za-z0-9._+-]+@[a-z-]+\.(com|org|net)\b`, // e-mail addresses are personal data
}, "|"))

// SecretsIn returns the lines of a log that contain a secret.
func SecretsIn(log string) []string {
	var found []string
	for line := range strings.Lines(log) {
		if secretShapes.MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

// TestSecretsAreFound checks that the search of the other tests finds each kind of secret, and
// takes no harmless text for one.
func TestSecretsAreFound(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		canary,
		"svck_0123456789ab_" + strings.Repeat("a", 43), "svco_0123456789ab_", "svca_0123456789ab_",
		"eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJ4In0.sig",
		"/sign-in/confirm?token=" + strings.Repeat("x", 43), "/api/downloads/" + strings.Repeat("x", 43), "countersign_session=" + strings.Repeat("x", 43),
		"sk_test_1", "rk_live_1", "whsec_1",
		"0x" + strings.Repeat("aB", 65), "eyJ4NDAyVmVyc2lvbiI6Mn0=",
		"Bearer abcdefghijklmnopqrst", "basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
		"ada.lovelace+x@example.com",
	} {
		if len(SecretsIn(`{"msg":"ok"}`+"\n"+`{"msg":"`+secret+`"}`+"\n")) != 1 {
			t.Errorf("%s is not found", secret)
		}
	}
	for _, harmless := range []string{
		`{"msg":"request","requestId":"req_01M7ZDDVS3CZ7YA1WNGWM28TBZ","route":"/api/downloads/{token}","status":200}`,
		"pay_a4f8178d6d66aa8fb4c02fc8478cda78 cus_01M7ZDDVS3CZ7YA1WNGWM28TBZ 0x329EdA9C18561571bA257177847A993E354e81b7",
		"basic check of bearer tokens",
	} {
		if found := SecretsIn(harmless); found != nil {
			t.Errorf("%q is taken for a secret", found)
		}
	}
}
