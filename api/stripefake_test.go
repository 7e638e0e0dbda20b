package api_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/catalog"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/stripe"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/ledgertest"
)

const (
	testSecretKey     = "sk_test_CANARYsecretkey"
	testWebhookSecret = "whsec_CANARYone"
	nextWebhookSecret = "whsec_CANARYtwo"
)

// stripeFake simulates the payment provider: it stores checkouts, customers and subscriptions, and
// creates the notices that the provider would send.
type stripeFake struct {
	t    *testing.T
	site *site
	*httptest.Server

	mu       sync.Mutex // protects the fields below
	sessions map[string]url.Values
	last     string // id of the newest checkout
	subs     map[string]map[string]any
	asked    []string // method and path of each request
	down     bool     // answer every request with 500
	count    int
	notices  int
}

// newStorefront returns a site with a catalogue and a payment provider.
func newStorefront(t *testing.T, changes ...func(*api.Config)) (*site, *stripeFake) {
	t.Helper()
	return newStorefrontOn(t, api.Databases.New(t), changes...)
}

func newStorefrontOn(t *testing.T, db *ledgertest.DB, changes ...func(*api.Config)) (*site, *stripeFake) {
	t.Helper()
	f := &stripeFake{t: t, sessions: map[string]url.Values{}, subs: map[string]map[string]any{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	f.site = newSiteWith(t, db, "", mail.NewOutbox(slog.New(slog.DiscardHandler)), append([]func(*api.Config){func(c *api.Config) {
		products, err := catalog.Default()
		if err != nil {
			t.Fatal(err)
		}
		c.App.Products = products
		if c.Checkout, err = stripe.New(stripe.Config{SecretKey: testSecretKey, WebhookSecrets: testWebhookSecret + ", " + nextWebhookSecret,
			APIBase: f.URL, Clock: c.App.Clock}); err != nil {
			t.Fatal(err)
		}
	}}, changes...)...)
	t.Cleanup(func() {
		if report, err := audit.Ledger(context.Background(), f.site.app.Ledger, nil); err != nil || len(report.Faults) > 0 {
			t.Errorf("verify: %v %v", err, report.Faults)
		}
		if strings.Contains(f.site.logs.String(), "CANARY") {
			t.Errorf("a secret was logged:\n%s", f.site.logs.String())
		}
	})
	return f.site, f
}

// ServeHTTP answers like the provider's API.
func (f *stripeFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	fail := func(status int, text string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"type":"invalid_request_error","message":%q}}`, text)
	}
	if err := r.ParseForm(); err != nil || r.Header.Get("Authorization") != "Bearer "+testSecretKey {
		fail(401, "Invalid API Key provided: "+testSecretKey)
		return
	}
	if f.down {
		fail(500, "CANARY down")
		return
	}
	switch id, isSubscription := strings.CutPrefix(r.URL.Path, "/v1/subscriptions/"); {
	case r.URL.Path == "/v1/checkout/sessions" && r.Method == http.MethodPost:
		f.count++
		f.last = fmt.Sprintf("cs_test_%d", f.count)
		f.sessions[f.last] = r.PostForm
		fmt.Fprintf(w, `{"id":%q,"url":"https://checkout.stripe.com/c/pay/%s"}`, f.last, f.last)
	case r.URL.Path == "/v1/billing_portal/sessions" && r.Method == http.MethodPost:
		fmt.Fprintf(w, `{"url":"https://billing.stripe.com/p/session/%s"}`, r.PostForm.Get("customer"))
	case isSubscription && f.subs[id] != nil:
		_ = json.NewEncoder(w).Encode(f.subs[id])
	default:
		fail(404, "no such path")
	}
}

type fields = map[string]any

// notice returns the body of a notice.
func (f *stripeFake) notice(noticeType string, at time.Time, object fields) string {
	f.t.Helper()
	f.notices++
	return f.noticeWith(fmt.Sprintf("evt_test_%d", f.notices), noticeType, at, object)
}

func (f *stripeFake) noticeWith(id, noticeType string, at time.Time, object fields) string {
	f.t.Helper()
	text, err := json.Marshal(fields{"id": id, "object": "event", "type": noticeType, "created": at.Unix(),
		"api_version": "2020-08-27", "livemode": false, "pending_webhooks": 1, "request": nil, "data": fields{"object": object}})
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// sign returns the signature header for a body.
func sign(body, secret string, at time.Time) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(webhook.ComputeSignature(at, []byte(body), secret)))
}

// deliver sends notices like the provider.
func (f *stripeFake) deliver(bodies ...string) {
	f.t.Helper()
	for _, body := range bodies {
		if got := f.send(body, sign(body, testWebhookSecret, f.site.app.Clock())); got.status != 200 {
			f.t.Fatalf("notice: %d %s", got.status, got.body)
		}
	}
}

func (f *stripeFake) send(body string, signatures ...string) answer {
	f.t.Helper()
	var header []string
	for _, s := range signatures {
		header = append(header, "Stripe-Signature", s)
	}
	return f.site.browser(f.t).do(http.MethodPost, "/api/webhooks/stripe", "application/json; charset=utf-8", body, header...)
}

// paid returns the newest checkout as completed by a buyer. extra changes members of the object.
func (f *stripeFake) paid(customer, email string, extra fields) fields {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	form := f.sessions[f.last]
	o := fields{"id": f.last, "object": "checkout.session", "mode": form.Get("mode"), "payment_status": "paid", "status": "complete",
		"customer": customer, "customer_details": fields{"email": email, "name": nil}, "customer_email": nil,
		"client_reference_id": nil, "amount_total": json.Number(form.Get("line_items[0][price_data][unit_amount]")),
		"metadata": fields{"slug": form.Get("metadata[slug]")}, "payment_intent": nil, "subscription": nil}
	if reference := form.Get("client_reference_id"); reference != "" {
		o["client_reference_id"] = reference
	}
	if form.Get("mode") == "payment" {
		o["payment_intent"] = "pi_" + f.last
	} else {
		o["subscription"] = "sub_" + f.last
	}
	for name, value := range extra {
		o[name] = value
	}
	return o
}

// subscription returns a subscription of the newest checkout. If legacy is set, its period is in
// the members that older versions of the provider's API use.
func (f *stripeFake) subscription(customer, status string, from, to time.Time, legacy bool) fields {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	o := fields{"id": "sub_" + f.last, "object": "subscription", "customer": customer, "status": status, "cancel_at_period_end": false, "cancel_at": nil,
		"metadata": fields{"slug": f.sessions[f.last].Get("metadata[slug]")}}
	period := fields{"current_period_start": from.Unix(), "current_period_end": to.Unix()}
	if legacy {
		for name, value := range period {
			o[name] = value
		}
		o["items"] = fields{"data": []any{fields{"id": "si_1"}}}
	} else {
		o["items"] = fields{"data": []any{period}}
	}
	f.subs["sub_"+f.last] = o
	return o
}

// checkout starts a checkout in a browser, and returns the form that the provider received.
func (f *stripeFake) checkout(b *browser, slug string) url.Values {
	f.t.Helper()
	got := b.post("/api/checkout", `{"slug":"`+slug+`"}`)
	if got.status != 200 || !strings.Contains(got.body, `"url":"https://checkout.stripe.com/c/pay/cs_test_`) {
		f.t.Fatalf("checkout: %d %s", got.status, got.body)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[f.last]
}
