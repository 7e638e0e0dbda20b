package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEntitlementsOfTheOperator(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run(0, "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	ada := []string{"--email", "ada@example.com"}
	id := o.value("customerId", append([]string{"entitlements", "list"}, ada...)...)
	grant := append([]string{"entitlements", "grant", "--product", "verification-kit", "--reason", "a gift"}, ada...)
	if got := o.run(0, grant...); !strings.Contains(got, "verification-kit") || !strings.Contains(got, "active") || !strings.Contains(got, "operator") {
		t.Errorf("granted: %s", got)
	}
	if got := o.run(0, "entitlements", "list", "--customer", id); !strings.Contains(got, id) || !strings.Contains(got, "verification-kit\tactive\toperator") {
		t.Errorf("listed: %s", got)
	}
	if got := o.value("status", "entitlements", "revoke", "--product", "verification-kit", "--reason", "a mistake", "--customer", id); got != "revoked" {
		t.Errorf("revoked: %s", got)
	}
	if got := o.value("validUntil", append(grant, "--until", "2999-01-31")...); got != "2999-01-31T00:00:00.000Z" {
		t.Errorf("granted until: %s", got)
	}
	for _, args := range [][]string{
		{"entitlements", "list", "--email", "nobody@example.com"},
		{"entitlements", "list", "--customer", "cus_01JD3Z8W5T0000000000000009"},
		{"entitlements", "list"},
		{"entitlements", "list", "--customer", id, "--email", "ada@example.com"},
		append([]string{"entitlements", "grant", "--product", "nothing", "--reason", "r"}, ada...),
		append(append([]string{}, grant...), "--until", "tomorrow"),
		append(append([]string{}, grant...), "--until", "2020-01-01"),
	} {
		o.run(2, args...)
	}
}

// Serve checks the settings of the storefront at the start, and names a wrong one.
func TestStorefrontSettingsAreCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	path := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(path, []byte(`{"products":[{"slug":"a","name":"A","description":"d","kind":"rental","priceCents":100,"deliverable":"x"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--catalog-file", path}, []string{"CATALOG_FILE", `/products/0 ("a")`, "kind"}},
		{[]string{"--catalog-file", path + ".missing"}, []string{"CATALOG_FILE"}},
		{[]string{"--stripe-secret-key", "sk_test_hidden"}, []string{"STRIPE_WEBHOOK_SECRET"}},
		{[]string{"--stripe-webhook-secret", "whsec_hidden"}, []string{"STRIPE_SECRET_KEY"}},
		{[]string{"--stripe-secret-key", "sk_test_hidden", "--stripe-webhook-secret", "whsec_hidden", "--stripe-api-base", "https://stripe.example"}, []string{"STRIPE_API_BASE"}},
	} {
		var stdout, stderr bytes.Buffer
		args := append(append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...), o.base...)
		if code := run(args, &stdout, &stderr); code != 2 {
			t.Errorf("%v: exit %d, %s", c.args, code, stderr.String())
		}
		for _, part := range c.says {
			if !strings.Contains(stderr.String(), part) {
				t.Errorf("%v: %q does not say %s", c.args, stderr.String(), part)
			}
		}
		if strings.Contains(stderr.String(), "hidden") {
			t.Errorf("a secret is printed: %s", stderr.String())
		}
	}
}
