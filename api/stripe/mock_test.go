package stripe_test

import (
	"os"
	"testing"
	"time"

	"github.com/countersign/countersign/api/catalog"
	"github.com/countersign/countersign/api/checkout"
	"github.com/countersign/countersign/api/stripe"
)

// TestCallsByTheProvidersOwnMock checks the parameters of the three calls with the provider's own
// mock, which refuses unknown parameters and wrong values. .ci/stripe/run downloads and starts it.
// The mock has no state.
func TestCallsByTheProvidersOwnMock(t *testing.T) {
	base := os.Getenv("STRIPE_MOCK_URL")
	if base == "" {
		t.Skip("STRIPE_MOCK_URL is not set: .ci/stripe/run fetches the mock and runs this")
	}
	provider, err := stripe.New(stripe.Config{SecretKey: "sk_test_123", WebhookSecrets: "whsec", APIBase: base, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	products, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range products {
		for name, order := range map[string]checkout.Order{
			"guest":         {},
			"signed in":     {CustomerID: "cus_01JD3Z8W5T0000000000000009", Email: "ada@example.com"},
			"known to them": {CustomerID: "cus_01JD3Z8W5T0000000000000009", ProviderCustomer: "cus_123"},
		} {
			order.Product, order.SuccessURL, order.CancelURL = p, "https://shop.example/account", "https://shop.example/pricing"
			if url, err := provider.Begin(t.Context(), order); err != nil || url == "" {
				t.Errorf("%s, %s: %q, %v", p.Slug, name, url, err)
			}
		}
	}
	if url, err := provider.Portal(t.Context(), "cus_123", "https://shop.example/account"); err != nil || url == "" {
		t.Errorf("portal: %q, %v", url, err)
	}
	customer, fact, err := provider.Subscription(t.Context(), "sub_123")
	if err != nil || customer == "" || fact.Status == "" || fact.PeriodEnd == 0 {
		t.Errorf("subscription: %q, %+v, %v", customer, fact, err)
	}
}
