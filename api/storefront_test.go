package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/events"
)

const day = 24 * time.Hour

// entitled requests access to a product, and compares the status and, after a refusal, the code.
func (b *browser) entitled(slug, state string) {
	b.t.Helper()
	got := b.get("/api/entitlements/" + slug)
	if state == "active" {
		b.want(got, 200, `"product":"`+slug+`"`)
		b.want(got, 200, `"status":"active"`)
		return
	}
	if want := `{"code":"` + state + `","error":"no active entitlement"}`; got.status != 403 || api.Plain(got.body) != want {
		b.t.Errorf("got %d %s, want 403 %s", got.status, got.body, want)
	}
}

// signedIn returns the browser of a customer who is signed in.
func (s *site) signedIn(t *testing.T, email string) *browser {
	t.Helper()
	b := s.browser(t)
	b.signIn(email)
	return b
}

func (s *site) eventCount(t *testing.T) int64 {
	t.Helper()
	return api.Total(t, s.app)
}

func TestCatalogListsEveryProduct(t *testing.T) {
	t.Parallel()
	s, _ := newStorefront(t)
	b := s.browser(t)
	got := b.get("/api/catalog")
	if got.status != 200 || got.header.Get("Cache-Control") != "public, max-age=300" || got.header.Get("ETag") == "" {
		t.Fatalf("%d %v", got.status, got.header)
	}
	var list struct{ Products []map[string]any }
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || len(list.Products) != len(s.app.Products) {
		t.Fatalf("%v in %s", err, got.body)
	}
	for i, p := range s.app.Products {
		shown := list.Products[i]
		var interval any
		if p.Kind == "subscription" {
			interval = "month"
		}
		if shown["slug"] != p.Slug || shown["kind"] != p.Kind || shown["priceCents"] != float64(p.PriceCents) || shown["checkout"] != true ||
			shown["currency"] != "USD" || shown["interval"] != interval || shown["deliverable"] != p.Deliverable || shown["url"] != s.app.BaseURL+"/pricing#"+p.Slug {
			t.Errorf("%s is shown as %v", p.Slug, shown)
		}
	}
	if again := b.get("/api/catalog", "If-None-Match", got.header.Get("ETag")); again.status != 304 || again.body != "" {
		t.Errorf("not modified: %d", again.status)
	}
}

// TestStorefrontErrors checks the specification's errors for the storefront.
func TestStorefrontErrors(t *testing.T) {
	t.Parallel()
	s, _ := newStorefront(t)
	none := newSite(t, api.Databases.New(t))
	none.app.Products = s.app.Products
	ada, alone := s.signedIn(t, "ada@example.com"), none.signedIn(t, "ada@example.com")
	for _, c := range []struct {
		name   string
		b      *browser
		method string
		path   string
		body   string
		status int
		says   string
	}{
		{"checkout: missing slug", s.browser(t), "POST", "/api/checkout", `{}`, 400, "slug"},
		{"checkout: invalid slug", s.browser(t), "POST", "/api/checkout", `{"slug":"Monthly Pass"}`, 400, "slug"},
		{"checkout: slug too long", s.browser(t), "POST", "/api/checkout", `{"slug":"` + strings.Repeat("a", 65) + `"}`, 400, "slug"},
		{"checkout: slug of another type", s.browser(t), "POST", "/api/checkout", `{"slug":7}`, 400, "slug"},
		{"checkout: unknown member", s.browser(t), "POST", "/api/checkout", `{"slug":"team","email":"a@example.com"}`, 400, "unknown"},
		{"checkout: product not found", s.browser(t), "POST", "/api/checkout", `{"slug":"nothing"}`, 404, "product not found"},
		{"checkout: product not found, nothing configured", none.browser(t), "POST", "/api/checkout", `{"slug":"nothing"}`, 404, "product not found"},
		{"checkout: provider not configured", none.browser(t), "POST", "/api/checkout", `{"slug":"team"}`, 503, "checkout provider not configured"},
		{"billing portal: nobody", s.browser(t), "POST", "/api/billing-portal", ``, 401, "authentication required"},
		{"billing portal: nobody, nothing configured", none.browser(t), "POST", "/api/billing-portal", ``, 401, "authentication required"},
		{"billing portal: an e-mail address is not accepted", ada, "POST", "/api/billing-portal", `{"email":"ada@example.com"}`, 400, "unknown member"},
		{"billing portal: provider not configured", alone, "POST", "/api/billing-portal", ``, 503, "checkout provider not configured"},
		{"billing portal: no active subscription", ada, "POST", "/api/billing-portal", ``, 404, "no active subscription"},
		{"billing portal: no active subscription, body {}", ada, "POST", "/api/billing-portal", `{}`, 404, "no active subscription"},
		{"entitlements: nobody", s.browser(t), "GET", "/api/entitlements/team", ``, 401, "authentication required"},
		{"entitlements: never bought", ada, "GET", "/api/entitlements/team", ``, 403, `"code":"none"`},
		{"entitlements: unknown product", ada, "GET", "/api/entitlements/nothing", ``, 403, `"code":"none"`},
		{"support: a session is not enough", ada, "GET", "/api/support/entitlements?email=ada@example.com", ``, 401, "authentication required"},
		{"webhook: provider not configured", none.browser(t), "POST", "/api/webhooks/stripe", `{}`, 503, "checkout provider not configured"},
		{"webhook: not a POST", s.browser(t), "GET", "/api/webhooks/stripe", ``, 405, "method not allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := *c.b
			b.t = t
			media := ""
			if c.body != "" {
				media = "application/json"
			}
			b.want(b.do(c.method, c.path, media, c.body), c.status, c.says)
		})
	}
	if got := s.browser(t).get("/api/checkout"); got.status != 200 || !strings.Contains(got.body, `"policies":{"privacy":"`+s.app.BaseURL+`/privacy"`) {
		t.Errorf("GET checkout: %d %s", got.status, got.body)
	}
	if got := s.browser(t).get("/api/billing-portal"); got.status != 200 || !strings.Contains(got.body, `"requiresAuth":true,"scope":"billing:manage"`) {
		t.Errorf("GET billing portal: %d %s", got.status, got.body)
	}
}

func TestCheckoutProviderFails(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	f.down = true
	b := s.browser(t)
	b.want(b.post("/api/checkout", `{"slug":"team"}`), 503, `{"code":"checkout_unavailable","error":"checkout provider unavailable"}`)
	if !strings.Contains(s.logs.String(), "checkout provider") {
		t.Error("the failure is not logged")
	}
}

// TestCheckoutForms checks which fields the service sends to the payment provider to start a
// checkout.
func TestCheckoutForms(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	guest, ada := s.browser(t), s.signedIn(t, "ada@example.com")
	base := s.app.BaseURL
	shared := map[string]string{"line_items[0][quantity]": "1", "line_items[0][price_data][currency]": "usd", "success_url": base + "/account", "cancel_url": base + "/pricing"}
	for _, c := range []struct {
		b     *browser
		slug  string
		want  map[string]string
		never []string
	}{
		{guest, "verification-kit", map[string]string{"mode": "payment", "line_items[0][price_data][unit_amount]": "100", "customer_creation": "always",
			"metadata[slug]": "verification-kit", "payment_intent_data[metadata][slug]": "verification-kit"},
			[]string{"customer", "customer_email", "client_reference_id", "line_items[0][price_data][recurring][interval]"}},
		{guest, "team", map[string]string{"mode": "subscription", "line_items[0][price_data][recurring][interval]": "month",
			"line_items[0][price_data][unit_amount]": "9900", "subscription_data[metadata][slug]": "team"},
			[]string{"customer_creation", "customer", "client_reference_id"}},
		{ada, "monthly-pass", map[string]string{"mode": "subscription", "customer_email": "ada@example.com", "line_items[0][price_data][unit_amount]": "2900"},
			[]string{"customer"}},
	} {
		form := f.checkout(c.b, c.slug)
		for name, want := range shared {
			c.want[name] = want
		}
		for name, want := range c.want {
			if got := form.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", c.slug, name, got, want)
			}
		}
		for _, name := range c.never {
			if form.Has(name) {
				t.Errorf("%s: %s is sent: %q", c.slug, name, form.Get(name))
			}
		}
	}
	form := f.checkout(ada, "verification-kit")
	if !strings.HasPrefix(form.Get("client_reference_id"), "cus_") {
		t.Errorf("client_reference_id %q", form.Get("client_reference_id"))
	}
	// If the provider knows the buyer, the request names that customer.
	f.deliver(f.notice("checkout.session.completed", s.app.Clock(), f.paid("cus_provider", "other@example.com", nil)))
	form = f.checkout(ada, "policy-starter-pack")
	if form.Get("customer") != "cus_provider" || form.Has("customer_email") || form.Has("customer_creation") {
		t.Errorf("a known customer: %v", form)
	}
}

// TestGuestBuysByCard checks that a guest who types an address at the provider can sign in with
// it, and has access until the money is refunded.
func TestGuestBuysByCard(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	f.checkout(s.browser(t), "verification-kit")
	f.deliver(f.notice("checkout.session.completed", now, f.paid("cus_guest", "Bob@Example.com", fields{"payment_status": "unpaid"})))
	bob := s.signedIn(t, "bob@example.com")
	bob.entitled("verification-kit", "none")
	f.deliver(f.notice("checkout.session.async_payment_succeeded", now, f.paid("cus_guest", "Bob@Example.com", nil)))
	bob.entitled("verification-kit", "active")
	bob.want(bob.get("/api/entitlements/verification-kit"), 200, `{"product":"verification-kit","source":"card","status":"active","validUntil":null}`)
	s.signedIn(t, "eve@example.com").entitled("verification-kit", "none")

	charge := fields{"id": "ch_1", "payment_intent": "pi_cs_test_1", "refunded": false, "amount": 100, "amount_refunded": 40}
	f.deliver(f.notice("charge.refunded", now.Add(time.Second), charge))
	bob.entitled("verification-kit", "active")
	charge["refunded"], charge["amount_refunded"] = true, 100
	f.deliver(f.notice("charge.refunded", now.Add(2*time.Second), charge))
	bob.entitled("verification-kit", "refunded")
	f.deliver(f.notice("refund.failed", now.Add(3*time.Second), fields{"id": "re_2", "payment_intent": "pi_cs_test_1", "status": "failed", "amount": 60}))
	bob.entitled("verification-kit", "active")
	dispute := fields{"id": "du_1", "payment_intent": "pi_cs_test_1", "status": "needs_response", "amount": 100}
	f.deliver(f.notice("charge.dispute.created", now.Add(4*time.Second), dispute))
	bob.entitled("verification-kit", "disputed")
	dispute["status"] = "won"
	f.deliver(f.notice("charge.dispute.closed", now.Add(5*time.Second), dispute))
	bob.entitled("verification-kit", "active")
	dispute["id"], dispute["status"] = "du_2", "warning_needs_response" // an inquiry, not a dispute
	f.deliver(f.notice("charge.dispute.created", now.Add(6*time.Second), dispute))
	bob.entitled("verification-kit", "disputed")
	dispute["status"] = "warning_closed"
	f.deliver(f.notice("charge.dispute.closed", now.Add(7*time.Second), dispute))
	bob.entitled("verification-kit", "active")
	dispute["id"], dispute["status"] = "du_3", "lost"
	f.deliver(f.notice("charge.dispute.closed", now.Add(8*time.Second), dispute))
	bob.entitled("verification-kit", "disputed")
}

func TestWhoseACheckoutIs(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	ada := s.signedIn(t, "ada@example.com")
	// Ada is signed in, so she owns the purchase even if she types another address.
	f.checkout(ada, "verification-kit")
	f.deliver(f.notice("checkout.session.completed", now, f.paid("cus_p", "typed@example.com", nil)))
	ada.entitled("verification-kit", "active")
	s.signedIn(t, "typed@example.com").entitled("verification-kit", "none")
	// The provider's customer belongs to Ada, so she owns the purchase without a reference.
	f.checkout(s.browser(t), "policy-starter-pack")
	f.deliver(f.notice("checkout.session.completed", now, f.paid("cus_p", "typed@example.com", nil)))
	ada.entitled("policy-starter-pack", "active")
	// A reference that names no customer is ignored.
	f.checkout(s.browser(t), "verification-kit")
	f.deliver(f.notice("checkout.session.completed", now, f.paid("cus_q", "cleo@example.com", fields{"client_reference_id": "cus_01JD3Z8W5T0000000000000009"})))
	s.signedIn(t, "cleo@example.com").entitled("verification-kit", "active")
	// A checkout without customer and address is refused, so that an operator investigates it.
	f.checkout(s.browser(t), "verification-kit")
	body := f.notice("checkout.session.completed", now, f.paid("cus_r", "", nil))
	if got := f.send(body, sign(body, testWebhookSecret, now)); got.status != 400 {
		t.Errorf("a checkout of nobody: %d %s", got.status, got.body)
	}
}

func TestSubscription(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	ada := s.signedIn(t, "ada@example.com")
	f.checkout(ada, "monthly-pass")
	end := now.Add(30 * day)
	// The notice of the subscription arrives before the notice of the checkout.
	f.deliver(f.notice("customer.subscription.created", now, f.subscription("cus_p", "incomplete", now, end, false)))
	ada.entitled("monthly-pass", "none")
	f.deliver(f.notice("customer.subscription.updated", now, f.subscription("cus_p", "active", now, end, true)))
	f.deliver(f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil)))
	ada.entitled("monthly-pass", "active")
	ada.want(ada.get("/api/entitlements/monthly-pass"), 200, `"validUntil":"`+end.UTC().Truncate(time.Second).Format("2006-01-02T15:04:05.000Z")+`"`)
	ada.want(ada.post("/api/billing-portal", ``), 200, `{"url":"https://billing.stripe.com/p/session/cus_p"}`)
	for i, c := range []struct{ kind, status, want string }{
		{"updated", "past_due", "past_due"}, {"paused", "paused", "past_due"}, {"resumed", "active", "active"},
		{"updated", "unpaid", "past_due"}, {"updated", "trialing", "active"}, {"deleted", "canceled", "canceled"}, {"updated", "active", "canceled"},
	} {
		f.deliver(f.notice("customer.subscription."+c.kind, now.Add(time.Duration(i+1)*time.Second), f.subscription("cus_p", c.status, now, end, i%2 == 0)))
		ada.entitled("monthly-pass", c.want)
	}
	ada.want(ada.post("/api/billing-portal", `{}`), 404, "no active subscription")
	// Our metadata was removed at the provider, but the subscription still counts as ours.
	f.checkout(ada, "team")
	f.deliver(f.notice("customer.subscription.created", now, f.subscription("cus_p", "active", now, end, false)),
		f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil)))
	ada.entitled("team", "active")
	unmarked := f.subscription("cus_p", "canceled", now, end, false)
	unmarked["metadata"] = fields{}
	f.deliver(f.notice("customer.subscription.deleted", now.Add(time.Second), unmarked))
	ada.entitled("team", "canceled")
}

// TestPeriodEndsWithoutNews checks that the service reads a subscription from the provider if its
// paid period ends without a notice.
func TestPeriodEndsWithoutNews(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	ada := s.signedIn(t, "ada@example.com")
	f.checkout(ada, "monthly-pass")
	f.deliver(f.notice("customer.subscription.created", now, f.subscription("cus_p", "active", now, now.Add(time.Hour), false)),
		f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil)))
	ada.entitled("monthly-pass", "active")
	s.clock.Add(time.Hour)
	asked := len(f.asked)
	ada.entitled("monthly-pass", "expired")
	if got := f.asked[asked:]; len(got) != 1 || got[0] != "GET /v1/subscriptions/sub_cs_test_1" {
		t.Errorf("the provider was asked %v", got)
	}
	ada.entitled("monthly-pass", "expired") // the provider is not asked again at once
	if len(f.asked) != asked+1 {
		t.Errorf("the provider was asked %v", f.asked[asked:])
	}
	s.clock.Add(time.Hour)
	f.subscription("cus_p", "active", now.Add(time.Hour), now.Add(31*day), false)
	ada.entitled("monthly-pass", "active")
	f.down = true
	s.clock.Add(31 * day)
	// The session has expired by now.
	ada.signIn("ada@example.com")
	ada.entitled("monthly-pass", "expired")
}

// TestSubscriptionCarriesTheOrganization checks that a Team or Business subscription creates the
// organization and pays for it.
func TestSubscriptionCarriesTheOrganization(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	ada := s.signedIn(t, "ada@example.com")
	f.checkout(ada, "team")
	bought := f.paid("cus_p", "ada@example.com", nil)
	team := func(kind, status string, after time.Duration) string {
		o := f.subscription("cus_p", status, now, now.Add(30*day), false)
		o["id"], o["metadata"] = "sub_team", fields{"slug": "team"}
		return f.notice("customer.subscription."+kind, now.Add(after), o)
	}
	bought["subscription"] = "sub_team"
	f.deliver(team("created", "incomplete", 0))
	f.deliver(f.notice("checkout.session.completed", now, bought))
	ada.want(ada.get("/api/auth/session"), 200, `"organizations":[]`)
	f.deliver(team("updated", "active", time.Second))
	ada.want(ada.get("/api/auth/session"), 200, `"name":"Team organization"`)
	ada.want(ada.get("/api/auth/session"), 200, `"role":"owner"`)
	ada.want(ada.get("/api/assurance/organization"), 200, `"plan":"team"`)

	f.checkout(ada, "business")
	upgrade := f.paid("cus_p", "ada@example.com", nil)
	upgrade["subscription"] = "sub_business"
	o := f.subscription("cus_p", "active", now, now.Add(30*day), false)
	o["id"] = "sub_business"
	f.deliver(f.notice("checkout.session.completed", now, upgrade), f.notice("customer.subscription.created", now, o))
	ada.want(ada.get("/api/assurance/organization"), 200, `"plan":"business"`)
	ada.want(ada.get("/api/assurance/organization"), 200, `"members":1`)

	f.deliver(f.notice("customer.subscription.deleted", now.Add(2*time.Second), fields{"id": "sub_business", "customer": "cus_p", "status": "canceled",
		"metadata": fields{"slug": "business"}, "current_period_end": now.Unix()}))
	ada.want(ada.get("/api/assurance/organization"), 200, `"plan":"team","planEndedAt":null,"state":"active"`)
	f.deliver(team("deleted", "canceled", 3*time.Second))
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"lapsed"`)
	f.deliver(team("updated", "active", 4*time.Second)) // a deletion is final
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"lapsed"`)
	before := s.eventCount(t)
	f.checkout(ada, "team")
	again := f.paid("cus_p", "ada@example.com", nil)
	f.deliver(f.notice("customer.subscription.created", now, f.subscription("cus_p", "active", now, now.Add(30*day), false)), f.notice("checkout.session.completed", now, again))
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"active"`)
	if n := s.eventCount(t) - before; n != 3 {
		t.Errorf("%d events: want the subscription, its binding and the organization's", n)
	}
}

// TestARefundedSubscriptionIsNotLive checks that a fully refunded period counts as unpaid: the
// organization lapses until a dispute about the payment is won, and the pass has no credit while
// the refunded period lasts, even if the next one is paid.
func TestARefundedSubscriptionIsNotLive(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	ada := s.signedIn(t, "ada@example.com")
	for i, slug := range []string{"team", "monthly-pass"} {
		f.checkout(ada, slug)
		f.deliver(f.notice("customer.subscription.created", now, f.subscription("cus_p", "active", now, now.Add(30*day), false)),
			f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil)),
			f.notice("invoice.paid", now, fields{"id": fmt.Sprint("in_", i), "customer": "cus_p", "subscription": "sub_" + f.last,
				"lines": fields{"data": []any{fields{"period": fields{"end": now.Add(30 * day).Unix()}}}}}),
			f.notice("invoice_payment.paid", now, fields{"id": fmt.Sprint("inpay_", i), "invoice": fmt.Sprint("in_", i), "payment": fields{"payment_intent": fmt.Sprint("pi_", i)}}))
	}
	customer, err := s.app.CustomerByEmail(t.Context(), "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	pass := func(cents int) {
		t.Helper()
		b, err := s.app.Pass(t.Context(), customer)
		if err != nil || (b == nil) != (cents == 0) || b != nil && b.TotalCents != cents {
			t.Errorf("the pass holds %+v, %v, want %d", b, err, cents)
		}
	}
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"active"`)
	pass(3500)
	refunds := func(after time.Duration, full bool) {
		t.Helper()
		for i := range 2 {
			f.deliver(f.notice("charge.refunded", now.Add(after), fields{"id": fmt.Sprint("ch_", i), "payment_intent": fmt.Sprint("pi_", i), "refunded": full, "amount_refunded": 100, "amount": 2900}))
		}
	}
	refunds(time.Second, false)
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"active"`)
	pass(3500)
	refunds(2*time.Second, true)
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"lapsed"`)
	ada.entitled("team", "refunded")
	ada.entitled("monthly-pass", "refunded")
	pass(0)
	for i, kind := range []string{"charge.dispute.created", "charge.dispute.closed"} {
		f.deliver(f.notice("refund.failed", now.Add(3*time.Second), fields{"id": "re_1", "payment_intent": "pi_0", "status": "failed", "amount": 2900}),
			f.notice(kind, now.Add(time.Duration(4+i)*time.Second), fields{"id": "du_1", "payment_intent": "pi_0", "status": "won", "amount": 2900}))
		ada.want(ada.get("/api/assurance/organization"), 200, []string{`"state":"lapsed"`, `"state":"active"`}[i])
	}
	// The next period has another payment.
	f.deliver(f.notice("invoice.paid", now.Add(6*time.Second), fields{"id": "in_2", "customer": "cus_p", "subscription": "sub_" + f.last, "payment_intent": "pi_2",
		"lines": fields{"data": []any{fields{"period": fields{"end": now.Add(60 * day).Unix()}}}}}))
	pass(0) // the refunded period has not ended
}

// TestNoticesThatAreNotOurs checks that an event of the other mode (test or live) or of a
// connected account does not count as a payment to us.
func TestNoticesThatAreNotOurs(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	f.checkout(s.browser(t), "verification-kit")
	bought := f.notice("checkout.session.completed", s.app.Clock(), f.paid("cus_p", "ada@example.com", nil))
	before := s.eventCount(t)
	for _, change := range []string{`"livemode":true`, `"livemode":false,"account":"acct_1"`} {
		f.deliver(strings.Replace(bought, `"livemode":false`, change, 1))
	}
	if n := s.eventCount(t) - before; n != 0 {
		t.Errorf("%d events were appended", n)
	}
	f.deliver(strings.Replace(bought, `"livemode":false`, `"livemode":false,"account":null`, 1))
	s.signedIn(t, "ada@example.com").entitled("verification-kit", "active")
}

// TestOrganizationAfterACrash checks that the next delivery of a notice corrects the organization
// if a crash left it unchanged after the fact was recorded.
func TestOrganizationAfterACrash(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	ada := s.signedIn(t, "ada@example.com")
	f.checkout(ada, "team")
	bought := f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil))
	products := s.app.Products
	s.app.Products = nil // simulates the crash: the organization is not changed
	f.deliver(f.notice("customer.subscription.created", now, f.subscription("cus_p", "active", now, now.Add(30*day), false)), bought)
	ada.want(ada.get("/api/auth/session"), 200, `"organizations":[]`)
	s.app.Products = products
	before := s.eventCount(t)
	f.deliver(bought)
	ada.want(ada.get("/api/auth/session"), 200, `"name":"Team organization"`)
	if n := s.eventCount(t) - before; n != 2 {
		t.Errorf("%d events: want the organization and its owner", n)
	}
	// An operator's statement counts, too.
	customer, err := s.app.CustomerByEmail(t.Context(), "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.app.RevokeEntitlement(t.Context(), customer, "team", "abuse"); err != nil {
		t.Fatal(err)
	}
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"lapsed"`)
	if _, err := s.app.GrantEntitlement(t.Context(), customer, "team", time.Time{}, "a mistake"); err != nil {
		t.Fatal(err)
	}
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"active"`)
	// A suspended organization stays suspended after any payment.
	org := "org_" + strings.TrimPrefix(customer, "cus_")
	if _, err := s.app.UpdateOrganization(t.Context(), "operator", org, organizations.OrganizationChange{State: "suspended", Reason: "abuse"}); err != nil {
		t.Fatal(err)
	}
	f.deliver(f.notice("customer.subscription.updated", now.Add(time.Second), f.subscription("cus_p", "active", now, now.Add(60*day), false)))
	ada.want(ada.get("/api/assurance/organization"), 403, "organization is suspended")
}

// TestOrganizationUnderARace checks that contradicting concurrent notices leave the organization
// in the state that the final facts require.
func TestOrganizationUnderARace(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	ada := s.signedIn(t, "ada@example.com")
	f.checkout(ada, "team")
	f.deliver(f.notice("customer.subscription.created", now, f.subscription("cus_p", "active", now, now.Add(30*day), false)),
		f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil)))
	var bodies []string
	for i, status := range []string{"past_due", "active", "past_due", "active", "unpaid", "past_due"} {
		bodies = append(bodies, f.notice("customer.subscription.updated", now.Add(time.Duration(i+1)*time.Second), f.subscription("cus_p", status, now, now.Add(30*day), false)))
	}
	var all sync.WaitGroup
	for _, body := range bodies {
		all.Go(func() {
			for { // retry after 503, like the provider
				got := f.send(body, sign(body, testWebhookSecret, s.app.Clock()))
				if got.status == 200 {
					return
				}
				if got.status != 503 {
					t.Errorf("a notice was not taken: %d %s", got.status, got.body)
					return
				}
			}
		})
	}
	all.Wait()
	ada.entitled("team", "past_due")
	ada.want(ada.get("/api/assurance/organization"), 200, `"state":"lapsed"`)
}

func TestWebhookSignatures(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	f.checkout(s.browser(t), "verification-kit")
	good := f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil))
	v1 := func(body, secret string, at time.Time) string {
		return strings.SplitN(sign(body, secret, at), ",", 2)[1]
	}
	stamp := fmt.Sprintf("t=%d", now.Unix())
	at := func(d time.Duration) string { return sign(good, testWebhookSecret, now.Add(d)) }
	before := s.eventCount(t)
	for name, headers := range map[string][]string{
		"missing":                       nil,
		"empty":                         {""},
		"of another secret":             {sign(good, "whsec_other", now)},
		"of another body":               {sign(good+" ", testWebhookSecret, now)},
		"of another time":               {stamp + "9," + v1(good, testWebhookSecret, now)},
		"stale":                         {at(-301 * time.Second)},
		"of the future":                 {at(301 * time.Second)},
		"of 1970":                       {sign(good, testWebhookSecret, time.Unix(0, 0))},
		"v0 alone":                      {stamp + "," + strings.Replace(v1(good, testWebhookSecret, now), "v1", "v0", 1)},
		"without time":                  {v1(good, testWebhookSecret, now)},
		"with two times":                {stamp + "," + at(0)},
		"with a time that is no number": {"t=now," + v1(good, testWebhookSecret, now)},
		"not hex":                       {stamp + ",v1=zz"},
		"cut":                           {strings.TrimSuffix(at(0), "0")[:60]},
		"of no form":                    {"hello"},
		"with a part of two =":          {at(0) + ",a=b=c"},
		"twice":                         {at(0), at(0)},
		"very long":                     {at(0) + strings.Repeat(",v1=00", 1000)},
	} {
		if got := f.send(good, headers...); got.status != 400 || !strings.Contains(got.body, "Stripe-Signature") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := f.send(strings.Replace(good, "ada@", "eve@", 1), at(0)); got.status != 400 {
		t.Errorf("tampered: %d %s", got.status, got.body)
	}
	if n := s.eventCount(t) - before; n != 0 {
		t.Fatalf("%d events were appended", n)
	}
	for name, header := range map[string]string{
		"299 seconds old":      at(-299 * time.Second),
		"299 seconds ahead":    at(299 * time.Second),
		"by the next secret":   sign(good, nextWebhookSecret, now),
		"several, one is good": stamp + ",v0=00," + v1(good, "whsec_other", now) + "," + v1(good, testWebhookSecret, now),
	} {
		if got := f.send(good, header); got.status != 200 || got.body != `{"received":true}` {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

func TestWebhookBodies(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	f.checkout(s.browser(t), "verification-kit")
	good := f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil))
	before := s.eventCount(t)
	replace := func(old, text string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %s in %s", old, good)
		}
		return strings.Replace(good, old, text, 1)
	}
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"empty":                    {"", 400},
		"not JSON":                 {"{", 400},
		"a duplicate member":       {replace(`"id":`, `"id":"evt_x","id":`), 400},
		"trailing data":            {good + "{}", 400},
		"invalid UTF-8":            {replace("ada@", "\xff@"), 400},
		"no id":                    {replace(`"id":"evt_test_1"`, `"no":1`), 400},
		"id of another form":       {replace(`evt_test_1`, `evt 1`), 400},
		"no type":                  {replace(`"type":"checkout.session.completed"`, `"type":""`), 400},
		"no created":               {replace(`"created":`, `"made":`), 400},
		"no object":                {replace(`"data":{"object":{`, `"data":{"thing":{`), 400},
		"object is no object":      {`{"id":"evt_1","type":"charge.refunded","created":1,"data":{"object":[]}}`, 400},
		"a member of another type": {replace(`"mode":"payment"`, `"mode":7`), 400},
		"NUL in what is recorded":  {replace("ada@", `\u0000@`), 400},
		"half a pair in it":        {replace("ada@", `\ud83d@`), 400},
		"an amount beyond 2^53-1":  {replace(`"amount_total":100`, `"amount_total":9007199254740993`), 400},
		"session of another form":  {replace(`"id":"cs_test_1"`, `"id":"../cs"`), 400},
		"an unknown type":          {f.notice("invoice.paid", now, fields{"id": "in_1"}), 200},
		"a type to come":           {f.notice("thing.happened", now, fields{}), 200},
		"not ours: no slug":        {f.notice("checkout.session.completed", now, f.paid("cus_x", "x@example.com", fields{"metadata": nil})), 200},
		"not paid":                 {f.notice("checkout.session.completed", now, f.paid("cus_x", "x@example.com", fields{"payment_status": "unpaid"})), 200},
		"async payment failed":     {f.notice("checkout.session.async_payment_failed", now, f.paid("cus_x", "x@example.com", nil)), 200},
		"expired":                  {f.notice("checkout.session.expired", now, f.paid("cus_x", "x@example.com", nil)), 200},
		"subscription not ours":    {f.notice("customer.subscription.updated", now, fields{"id": "sub_x", "customer": "cus_x", "status": "active", "metadata": fields{}}), 200},
		"charge without intent":    {f.notice("charge.refunded", now, fields{"id": "ch_x", "payment_intent": nil, "refunded": true}), 200},
		"refund under way":         {f.notice("refund.updated", now, fields{"id": "re_x", "payment_intent": "pi_x", "status": "pending"}), 200},
	} {
		if got := f.send(c.body, sign(c.body, testWebhookSecret, now)); got.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, c.status)
		}
	}
	large := good + strings.Repeat(" ", 262_144)
	if got := f.send(large, sign(large, testWebhookSecret, now)); got.status != 413 {
		t.Errorf("too large: %d %s", got.status, got.body)
	}
	if n := s.eventCount(t) - before; n != 0 {
		t.Errorf("%d events were appended", n)
	}
}

// TestAGenuineEventIsFulfilledWithAnyUnusedMembers checks that members that are
// not used may contain anything, because the signature proves the sender.
func TestAGenuineEventIsFulfilledWithAnyUnusedMembers(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	for name, value := range map[string]string{
		"half of an emoji": `"Ada \ud83d"`, "NUL": `"Ada \u0000"`, "a large integer": `1308129394817110129`, "invalid UTF-8": "\"\xff\"",
		"deep": strings.Repeat("[", 70) + strings.Repeat("]", 70), "a long number": strings.Repeat("1", 60),
	} {
		f.checkout(s.browser(t), "verification-kit")
		email := fmt.Sprintf("buyer%d@example.com", f.notices)
		body := strings.Replace(f.notice("checkout.session.completed", s.app.Clock(), f.paid(fmt.Sprint("cus_", f.notices), email, nil)), `"name":null`, `"name":`+value, 1)
		if !strings.Contains(body, value) {
			t.Fatal(body)
		}
		f.deliver(body)
		s.signedIn(t, email).entitled("verification-kit", "active")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestACheckoutThatPaidSomethingElseGivesNothing checks that the amount of a checkout is compared
// with the price of its product, although the provider signed it. A smaller amount or another
// currency buys nothing. The amount may be larger because of tax.
func TestACheckoutThatPaidSomethingElseGivesNothing(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	f.checkout(s.browser(t), "verification-kit") // its price is 1 dollar
	bob := s.signedIn(t, "bob@example.com")
	before := s.eventCount(t)
	for name, change := range map[string]fields{
		"less":                 {"amount_total": 99},
		"nothing":              {"amount_total": 0},
		"no amount":            {"amount_total": nil},
		"below zero":           {"amount_total": -100},
		"another currency":     {"amount_total": 100, "currency": "jpy"},
		"more of a weak one":   {"amount_total": 5000, "currency": "idr"},
		"the name in capitals": {"amount_total": 100, "currency": "USDT"},
	} {
		f.deliver(f.notice("checkout.session.completed", now, f.paid("cus_guest", "bob@example.com", change)))
		if n := s.eventCount(t) - before; n != 0 {
			t.Fatalf("%s: %d events were appended", name, n)
		}
		bob.entitled("verification-kit", "none")
	}
	f.deliver(f.notice("checkout.session.completed", now, f.paid("cus_guest", "bob@example.com", fields{"amount_total": 119, "currency": "usd"})))
	bob.entitled("verification-kit", "active")
}

// TestDuplicateNotices checks that ten equal concurrent notices, and more later, have the effect
// of one. A repeated delivery differs in the number of pending deliveries.
func TestDuplicateNotices(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	f.checkout(s.browser(t), "verification-kit")
	object := f.paid("cus_p", "ada@example.com", nil)
	good := f.notice("checkout.session.completed", now, object)
	s.signedIn(t, "ada@example.com") // makes sure that the customer exists
	before := s.eventCount(t)
	var all sync.WaitGroup
	answers := make([]answer, 10)
	for i := range answers {
		all.Go(func() {
			body := strings.Replace(good, `"pending_webhooks":1`, fmt.Sprintf(`"pending_webhooks":%d`, i), 1)
			answers[i] = f.send(body, sign(body, testWebhookSecret, now))
		})
	}
	all.Wait()
	for i, got := range answers {
		if got.status != 200 {
			t.Errorf("%d: %d %s", i, got.status, got.body)
		}
	}
	if n := s.eventCount(t) - before; n != 3 {
		t.Errorf("%d events: want the purchase and two bindings", n)
	}
	// Another notice of the same checkout adds nothing.
	f.deliver(good, f.notice("checkout.session.async_payment_succeeded", now, object))
	if n := s.eventCount(t) - before; n != 3 {
		t.Errorf("%d events", n)
	}
}

// TestNoticeThatCannotBeRecorded checks that a notice that cannot be recorded is answered with
// 503, so that the provider sends it again, and that it then takes effect.
func TestNoticeThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	f.checkout(s.browser(t), "verification-kit")
	good := f.notice("checkout.session.completed", now, f.paid("cus_p", "ada@example.com", nil))
	vault := s.app.Vault
	s.app.Vault = nil
	if got := f.send(good, sign(good, testWebhookSecret, now)); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("without a vault: %d %s", got.status, got.body)
	}
	s.app.Vault = vault
	f.deliver(good)
	s.signedIn(t, "ada@example.com").entitled("verification-kit", "active")
}

// TestEveryOrderOfDelivery checks that every order in which a history is delivered leads to the
// same state: the same entitlement for every product.
func TestEveryOrderOfDelivery(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	ada := s.signedIn(t, "ada@example.com")
	var session struct{ CustomerID string }
	if err := json.Unmarshal([]byte(ada.get("/api/auth/session").body), &session); err != nil {
		t.Fatal(err)
	}
	type told struct {
		noticeType string
		after      int
		object     func(run string) fields
	}
	purchase := func(run string) fields {
		return fields{"id": "cs_" + run, "mode": "payment", "payment_status": "paid", "customer": "cus_" + run, "payment_intent": "pi_" + run,
			"metadata": fields{"slug": "verification-kit"}, "customer_details": fields{"email": run + "@example.com"}, "amount_total": 100}
	}
	charge := func(full bool) func(string) fields {
		return func(run string) fields {
			return fields{"id": "ch_" + run, "payment_intent": "pi_" + run, "refunded": full, "amount_refunded": 50, "amount": 100}
		}
	}
	dispute := func(status string) func(string) fields {
		return func(run string) fields {
			return fields{"id": "du_" + run, "payment_intent": "pi_" + run, "status": status, "amount": 100}
		}
	}
	subscription := func(status string, end time.Duration) func(string) fields {
		return func(run string) fields {
			return fields{"id": "sub_" + run, "customer": "cus_" + run, "status": status, "metadata": fields{"slug": "monthly-pass"},
				"items": fields{"data": []any{fields{"current_period_start": now.Unix(), "current_period_end": now.Add(end).Unix()}}}}
		}
	}
	subscribed := func(run string) fields {
		return fields{"id": "cs_" + run, "mode": "subscription", "payment_status": "paid", "customer": "cus_" + run, "subscription": "sub_" + run,
			"metadata": fields{"slug": "monthly-pass"}, "customer_details": fields{"email": run + "@example.com"}, "amount_total": 2900}
	}
	// The invoice names the subscription, and its payment names the payment intent.
	invoice := func(end time.Duration) func(string) fields {
		return func(run string) fields {
			return fields{"id": "in_" + run, "customer": "cus_" + run, "parent": fields{"type": "subscription_details", "subscription_details": fields{"subscription": "sub_" + run}},
				"period_end": now.Unix(), "lines": fields{"data": []any{fields{"period": fields{"start": now.Add(end - day).Unix(), "end": now.Add(end).Unix()}}}}}
		}
	}
	invoicePayment := func(run string) fields {
		return fields{"id": "inpay_" + run, "invoice": "in_" + run, "payment": fields{"type": "payment_intent", "payment_intent": "pi_" + run}, "status": "paid"}
	}
	whole := func(end time.Duration) func(string) fields {
		return func(run string) fields {
			o := invoice(end)(run)
			o["payments"] = fields{"data": []any{fields{"payment": fields{"payment_intent": "pi_" + run}}}}
			return o
		}
	}
	// In older versions, the invoice names both, or the charge names the invoice.
	oldInvoice := func(run string) fields {
		return fields{"id": "in_" + run, "customer": "cus_" + run, "subscription": "sub_" + run, "payment_intent": "pi_" + run}
	}
	oldCharge := func(run string) fields {
		o := charge(true)(run)
		o["invoice"] = "in_" + run
		return o
	}
	paused := func(run string) fields {
		o := subscription("active", day)(run)
		o["pause_collection"] = fields{"behavior": "void", "resumes_at": nil}
		return o
	}
	for name, c := range map[string]struct {
		history []told
		product string
		want    string
	}{
		"refunded in full": {[]told{{"checkout.session.completed", 0, purchase}, {"charge.refunded", 1, charge(false)}, {"charge.refunded", 2, charge(true)},
			{"charge.dispute.created", 3, dispute("needs_response")}}, "verification-kit", "refunded"},
		"refund failed, dispute won": {[]told{{"checkout.session.completed", 0, purchase}, {"charge.refunded", 1, charge(true)},
			{"refund.failed", 2, func(run string) fields {
				return fields{"id": "re_" + run, "payment_intent": "pi_" + run, "status": "failed", "amount": 100}
			}},
			{"charge.dispute.created", 3, dispute("needs_response")}, {"charge.dispute.closed", 4, dispute("won")}}, "verification-kit", "active"},
		"subscription refunded in full": {[]told{{"customer.subscription.created", 0, subscription("active", day)}, {"checkout.session.completed", 0, subscribed},
			{"invoice.paid", 0, invoice(day)}, {"invoice_payment.paid", 0, invoicePayment}, {"charge.refunded", 5, charge(true)}}, "monthly-pass", "refunded"},
		"subscription refunded in part": {[]told{{"customer.subscription.created", 0, subscription("active", day)}, {"checkout.session.completed", 0, subscribed},
			{"invoice.paid", 0, whole(day)}, {"charge.refunded", 5, charge(false)}}, "monthly-pass", "active"},
		"subscription refunded, of no known period": {[]told{{"customer.subscription.created", 0, subscription("active", day)}, {"checkout.session.completed", 0, subscribed},
			{"invoice.paid", 0, oldInvoice}, {"charge.refunded", 5, charge(true)}}, "monthly-pass", "refunded"},
		"subscription refunded, the charge names the invoice": {[]told{{"customer.subscription.created", 0, subscription("active", day)}, {"checkout.session.completed", 0, subscribed},
			{"invoice.paid", 0, invoice(day)}, {"charge.refunded", 5, oldCharge}}, "monthly-pass", "refunded"},
		"refund of a period that is over": {[]told{{"customer.subscription.created", 0, subscription("active", day)}, {"checkout.session.completed", 0, subscribed},
			{"invoice.paid", 0, whole(-day)}, {"charge.refunded", 5, charge(true)}}, "monthly-pass", "active"},
		"subscription disputed": {[]told{{"checkout.session.completed", 0, subscribed}, {"customer.subscription.updated", 0, subscription("active", day)},
			{"invoice.paid", 0, whole(day)}, {"charge.dispute.created", 5, dispute("needs_response")}}, "monthly-pass", "disputed"},
		"subscription disputed, and won": {[]told{{"checkout.session.completed", 0, subscribed}, {"customer.subscription.updated", 0, subscription("active", day)}, {"invoice.paid", 0, oldInvoice},
			{"charge.dispute.created", 5, dispute("needs_response")}, {"charge.dispute.closed", 6, dispute("won")}}, "monthly-pass", "active"},
		"collection paused": {[]told{{"customer.subscription.created", 0, subscription("active", day)}, {"checkout.session.completed", 0, subscribed},
			{"customer.subscription.updated", 5, paused}}, "monthly-pass", "past_due"},
		"collection paused and resumed": {[]told{{"customer.subscription.created", 0, subscription("active", day)}, {"checkout.session.completed", 0, subscribed},
			{"customer.subscription.updated", 5, paused}, {"customer.subscription.updated", 6, subscription("active", day)}}, "monthly-pass", "active"},
		"subscription past due": {[]told{{"customer.subscription.created", 0, subscription("incomplete", day)}, {"customer.subscription.updated", 0, subscription("active", day)},
			{"checkout.session.completed", 0, subscribed}, {"customer.subscription.updated", 9, subscription("past_due", day)}}, "monthly-pass", "past_due"},
		"subscription renewed": {[]told{{"customer.subscription.created", 0, subscription("incomplete", -day)}, {"checkout.session.completed", 0, subscribed},
			{"customer.subscription.updated", 1, subscription("active", -day)}, {"customer.subscription.updated", 9, subscription("active", day)}}, "monthly-pass", "active"},
		"subscription deleted": {[]told{{"customer.subscription.created", 0, subscription("active", day)}, {"checkout.session.completed", 0, subscribed},
			{"customer.subscription.deleted", 5, subscription("canceled", day)}, {"customer.subscription.updated", 6, subscription("active", day)}}, "monthly-pass", "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			for i, order := range permutations(len(c.history)) {
				run := fmt.Sprintf("%s%d", strings.NewReplacer(" ", "", ",", "").Replace(name), i)
				for _, n := range order {
					h := c.history[n]
					f.deliver(f.noticeWith(fmt.Sprintf("evt_%s_%d", run, n), h.noticeType, now.Add(time.Duration(h.after)*time.Second), h.object(run)))
				}
				customer, err := s.app.CustomerByEmail(t.Context(), run+"@example.com")
				if err != nil {
					t.Fatal(err)
				}
				list, err := s.app.Entitlements(t.Context(), customer)
				if err != nil || len(list) != 1 || list[0].Product != c.product || list[0].Status != c.want {
					t.Errorf("%v: %+v, %v, want %s %s", order, list, err, c.product, c.want)
				}
			}
		})
	}
}

// permutations returns all permutations of the numbers 0 to n-1.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for at := 0; at <= len(p); at++ {
			all = append(all, append(append(append([]int{}, p[:at]...), n-1), p[at:]...))
		}
	}
	return all
}

func TestPermutationsAreAll(t *testing.T) {
	t.Parallel()
	if all := permutations(4); len(all) != 24 || cmp.Equal(all[0], all[1]) {
		t.Errorf("%v", all)
	}
}

// TestNoticesLeaveNoAddress checks that no event contains the plain address of a buyer.
func TestNoticesLeaveNoAddress(t *testing.T) {
	t.Parallel()
	s, f := newStorefront(t)
	now := s.app.Clock()
	f.checkout(s.browser(t), "verification-kit")
	f.deliver(f.notice("checkout.session.completed", now, f.paid("cus_p", "canary-buyer@example.com", nil)))
	for _, e := range api.Since(t, s.app, nil) {
		if strings.Contains(string(e.Payload)+e.Stream, "canary-buyer") {
			t.Errorf("%s holds the address", e.Type)
		}
		if e.Type == events.TypePurchaseFulfilled && (e.Actor != "stripe" || e.Stream != "billing/cus_p") {
			t.Errorf("%s by %s in %s", e.Type, e.Actor, e.Stream)
		}
	}
}
