package commands_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/canon"
)

const hookURL = "https://siem.example.com/in/T0KEN?k=S3CRET"

func newWebhook(t *testing.T, a *commands.App, p organizations.Principal) webhooks.CreatedWebhook {
	t.Helper()
	created, err := a.CreateWebhook(t.Context(), p, webhooks.WebhookOrder{URL: hookURL, Name: "siem"})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// secretBytes decodes a webhook secret as it is shown to the member.
func secretBytes(t *testing.T, secret string) []byte {
	t.Helper()
	text, ok := strings.CutPrefix(secret, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) != 32 {
		t.Fatalf("a secret of %d bytes, %v", len(raw), err)
	}
	return raw
}

func TestWebhookSecretRotatesWithOverlap(t *testing.T) {
	t.Parallel()
	c := newClock()
	a := openApp(t, ledgertest.New(t), c)
	orgID, p := newOrganization(t, a, "team")
	created := newWebhook(t, a, p)
	secrets := [][]byte{secretBytes(t, created.Secret)}
	wantSecrets := func(when string, want ...[]byte) {
		t.Helper()
		endpoint, err := a.WebhookEndpoint(t.Context(), orgID, created.WebhookID)
		if err != nil || endpoint.URL != hookURL {
			t.Fatalf("%s: %v, to %s", when, err, endpoint.URL)
		}
		if diff := cmp.Diff(want, endpoint.Secrets); diff != "" {
			t.Errorf("%s: secrets that sign (-want +got)\n%s", when, diff)
		}
	}
	wantSecrets("at first", secrets[0])
	for range 2 {
		rotated, err := a.RotateWebhook(t.Context(), p, created.WebhookID)
		if err != nil {
			t.Fatal(err)
		}
		if rotated.RotatesUntil != canon.Stamp(c.Now().Add(24*time.Hour)) || rotated.Origin != "https://siem.example.com" {
			t.Errorf("rotated: %+v", rotated.WebhookInfo)
		}
		secrets = append(secrets, secretBytes(t, rotated.Secret))
	}
	wantSecrets("while it rotates", secrets[2], secrets[1])
	c.Add(24 * time.Hour)
	wantSecrets("a day later", secrets[2])
}

func TestWebhookAddressAndSecretAreNowhereInTheClear(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	_, p := newOrganization(t, a, "team")
	created := newWebhook(t, a, p)
	if _, err := a.RotateWebhook(t.Context(), p, created.WebhookID); err != nil {
		t.Fatal(err)
	}
	for _, e := range everything(t, a) {
		for _, text := range []string{"T0KEN", "S3CRET", created.Secret[len("whsec_"):]} {
			if bytes.Contains(e.Payload, []byte(text)) {
				t.Errorf("%s holds %s in the clear", e.Type, text)
			}
		}
	}
	list, err := a.ListWebhooks(t.Context(), p)
	want := []webhooks.WebhookInfo{{WebhookID: created.WebhookID, Name: "siem", Origin: "https://siem.example.com",
		Topics: []string{"decisions", "reviews", "violations"}, CreatedAt: created.CreatedAt, RotatesUntil: "2026-11-21T15:00:00.000Z"}}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("list: %v (-want +got)\n%s", err, diff)
	}
}

func TestWebhookIsItsOrganizations(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	orgID, p := newOrganization(t, a, "team")
	other, err := a.CreateOrganization(t.Context(), "operator", "Other", "team", "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	foreign := operatorOf(t, a, other.OrgID)
	created := newWebhook(t, a, p)
	_, err = a.RotateWebhook(t.Context(), foreign, created.WebhookID)
	wantRefusal(t, err, "not_found", "webhook not found")
	wantRefusal(t, a.RemoveWebhook(t.Context(), foreign, created.WebhookID, ""), "not_found", "webhook not found")
	wantRefusal(t, a.HasWebhook(t.Context(), foreign, created.WebhookID), "not_found", "webhook not found")
	if err := a.RemoveWebhook(t.Context(), p, created.WebhookID, "moved"); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, a.RemoveWebhook(t.Context(), p, created.WebhookID, ""), "not_found", "webhook not found")
	_, err = a.WebhookEndpoint(t.Context(), orgID, created.WebhookID)
	wantRefusal(t, err, "not_found", "webhook not found")
	if list, err := a.ListWebhooks(t.Context(), p); err != nil || len(list) != 0 {
		t.Errorf("a removed webhook is listed: %v, %v", list, err)
	}
}

func TestWebhookAddressesAreOfThePublicInternet(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	_, p := newOrganization(t, a, "team")
	const form, plain = "url must be an https address without user name or fragment", "url must be an https address, except in a private network"
	const private = "url must not be a private address (the operator can allow networks with WEBHOOK_NETWORKS)"
	for _, bad := range []struct{ url, message string }{
		{"", form}, {"siem", form}, {"ftp://siem.example.com/", form}, {"https://u:p@siem.example.com/", form},
		{"https://siem.example.com/#f", form}, {"https://127.1/", form}, {"http://siem.example.com/", plain},
		{"https://127.0.0.1/", private}, {"https://[::1]/", private}, {"https://10.0.0.1/", private},
		{"https://169.254.169.254/latest/meta-data/", private}, {"https://localhost:8443/", private},
		{"https://metadata.internal/", private}, {"https://[::ffff:10.0.0.1]/", private}, {"https://[64:ff9b::a00:1]/", private},
	} {
		_, err := a.CreateWebhook(t.Context(), p, webhooks.WebhookOrder{URL: bad.url})
		t.Run(bad.url, func(t *testing.T) { wantRefusal(t, err, "out_of_range", bad.message) })
	}
	a.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	if _, err := a.CreateWebhook(t.Context(), p, webhooks.WebhookOrder{URL: "http://10.0.0.1/in"}); err != nil {
		t.Errorf("an allowed network: %v", err)
	}
	_, err := a.CreateWebhook(t.Context(), p, webhooks.WebhookOrder{URL: "https://192.168.0.1/"})
	wantRefusal(t, err, "out_of_range", private)
	_, err = a.CreateWebhook(t.Context(), p, webhooks.WebhookOrder{URL: hookURL, Topics: []string{"everything"}})
	wantRefusal(t, err, "invalid_enum", "topics must contain only checkpoints, decisions, reviews and violations")
}

// An organization has at most twenty webhooks, even if more are created at the same time.
func TestWebhooksAreBounded(t *testing.T) {
	t.Parallel()
	a := openApp(t, ledgertest.New(t), newClock())
	_, p := newOrganization(t, a, "team")
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for {
				_, err := a.CreateWebhook(t.Context(), p, webhooks.WebhookOrder{URL: fmt.Sprintf("https://siem.example.com/%d", i)})
				if err == nil || !strings.Contains(err.Error(), "unavailable") {
					return // the webhook exists, or the organization has too many
				}
			}
		})
	}
	wg.Wait()
	if list, err := a.ListWebhooks(t.Context(), p); err != nil || len(list) != 20 {
		t.Errorf("%d webhooks, %v", len(list), err)
	}
}
