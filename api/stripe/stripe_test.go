package stripe_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/stripe"
)

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		config stripe.Config
		says   string
	}{
		"no webhook secret": {stripe.Config{SecretKey: "sk"}, "STRIPE_WEBHOOK_SECRET"},
		"no key":            {stripe.Config{WebhookSecrets: "whsec"}, "STRIPE_SECRET_KEY"},
		"only commas":       {stripe.Config{SecretKey: "sk", WebhookSecrets: " , "}, "STRIPE_WEBHOOK_SECRET"},
		"another base":      {stripe.Config{SecretKey: "sk", WebhookSecrets: "whsec", APIBase: "https://api.example.com"}, "STRIPE_API_BASE"},
		"base with user":    {stripe.Config{SecretKey: "sk", WebhookSecrets: "whsec", APIBase: "http://u@127.0.0.1"}, "STRIPE_API_BASE"},
		"base of no scheme": {stripe.Config{SecretKey: "sk", WebhookSecrets: "whsec", APIBase: "127.0.0.1:1"}, "STRIPE_API_BASE"},
	} {
		c.config.Clock = time.Now
		if _, err := stripe.New(c.config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzSignature checks that no header makes the check panic or succeed.
func FuzzSignature(f *testing.F) {
	provider, err := stripe.New(stripe.Config{SecretKey: "sk", WebhookSecrets: "whsec", Clock: func() time.Time { return time.Unix(1000, 0) }})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "t=1000,v1=00", "t=1000", "t=,v1=", "v1=00,t=1000,t=1000", "=,=,=", "t=1000,v0=00,v1=zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if _, err := provider.Notice([]byte(`{}`), http.Header{"Stripe-Signature": {header}}); err == nil {
			t.Errorf("%q passes", header)
		}
	})
}
