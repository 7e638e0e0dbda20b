package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// withX402 returns a setup that accepts payments and settles them only in the ledger.
func withX402(t *testing.T) func(*api.Config) {
	return func(c *api.Config) {
		terms, err := x402.NewTerms(x402.Settings{Dev: true})
		if err != nil {
			t.Fatal(err)
		}
		c.Terms, c.App.Settler = terms, x402.Dev{}
	}
}

// shop is a storefront that accepts payments, with a wallet.
type shop struct {
	*browser
	site   *site
	wallet *x402test.Wallet
}

func newShop(t *testing.T, changes ...func(*api.Config)) *shop {
	t.Helper()
	s, _ := newStorefront(t, append([]func(*api.Config){withX402(t)}, changes...)...)
	return &shop{s.browser(t), s, x402test.NewWallet("payer")}
}

// order returns a payment for a product. It does not send the payment.
func (s *shop) order(slug, nonce string) x402test.Order {
	s.t.Helper()
	got := s.post("/api/purchase/"+slug, ``)
	required, err := x402.ReadRequired(got.header.Get("PAYMENT-REQUIRED"))
	if got.status != 402 || err != nil {
		s.t.Fatalf("%d %s, %v", got.status, got.body, err)
	}
	return s.wallet.Order(required, nonce, s.site.app.Clock())
}

// fulfilled is the answer to a successful purchase.
type fulfilled struct {
	ClaimSecret                                         string `json:"claimSecret"`
	Status, Product, DownloadURL, ExpiresAt, PurchaseID string
}

func (s *shop) buy(o x402test.Order, slug, body string) fulfilled {
	s.t.Helper()
	got := s.post("/api/purchase/"+slug, body, "PAYMENT-SIGNATURE", o.Header())
	return s.fulfilled(got, slug)
}

func (s *shop) fulfilled(got answer, slug string) fulfilled {
	s.t.Helper()
	var f fulfilled
	if err := json.Unmarshal([]byte(got.body), &f); err != nil || got.status != 200 || f.Status != "fulfilled" || f.Product != slug ||
		!strings.HasPrefix(f.PurchaseID, "pur_") || !strings.HasPrefix(f.DownloadURL, s.site.app.BaseURL+"/api/downloads/") ||
		got.header.Get("PAYMENT-RESPONSE") == "" || got.header.Get("Cache-Control") != "no-store" {
		s.t.Fatalf("%d %s %v", got.status, got.body, got.header)
	}
	return f
}

// fetch downloads a fulfilled purchase.
func (s *shop) fetch(f fulfilled) {
	s.t.Helper()
	got := s.site.browser(s.t).get(strings.TrimPrefix(f.DownloadURL, s.site.app.BaseURL))
	s.want(got, 200, "PK")
}

func TestPurchase(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	probe := s.get("/api/purchase/verification-kit")
	required, err := x402.ReadRequired(probe.header.Get("PAYMENT-REQUIRED"))
	if err != nil || probe.status != 402 || required.Accepts[0].Amount != "1000000" || required.Resource.URL != s.site.app.BaseURL+"/api/purchase/verification-kit" {
		t.Fatalf("%d %s %v", probe.status, probe.body, err)
	}
	if got := s.order("policy-starter-pack", "price").Accepted.Amount; got != "19000000" {
		t.Errorf("the pack costs %s", got)
	}
	order := s.order("verification-kit", "one")
	bought := s.buy(order, "verification-kit", `{"email":"Cleo@example.com"}`)
	if bought.ExpiresAt == "" {
		t.Error("no expiresAt")
	}
	s.fetch(bought)
	// After signing in with the address of the order, the customer owns the purchase.
	cleo := s.site.signedIn(t, "cleo@example.com")
	cleo.want(cleo.get("/api/entitlements/verification-kit"), 200, `{"product":"verification-kit","source":"x402","status":"active","validUntil":null}`)
	path := cleo.newLink("verification-kit")
	cleo.want(cleo.get(path), 200, "PK")
	// The ledger has a stream for the purchase, with the count of its downloads.
	history, err := s.site.app.Ledger.Read(t.Context(), s.site.app.Ledger.Service(bought.PurchaseID), "purchase/"+bought.PurchaseID)
	if err != nil || len(history.Events) != 1 || history.Events[0].Type != events.TypePurchaseFulfilled {
		t.Errorf("%+v, %v", history.Events, err)
	}
	if n, err := s.site.app.Ledger.Version(t.Context(), s.site.app.Ledger.Service(bought.PurchaseID), "download/"+bought.PurchaseID); n != 2 || err != nil {
		t.Errorf("%d downloads, %v", n, err)
	}
	// The catalogue states where to buy and the price, and marks prices that default clients
	// refuse.
	if got := s.get("/api/catalog"); strings.Count(got.body, "above $1") != 1 {
		t.Errorf("the catalogue warns %d times", strings.Count(got.body, "above $1"))
	}
	s.want(s.get("/api/catalog"), 200, `"x402":{"amount":"1000000","network":"`+required.Accepts[0].Network+`","url":"`+s.site.app.BaseURL+`/api/purchase/verification-kit"}`)
}

// TestPurchaseWhoseMoneyWasSentBack checks that a payment that the operator has refunded gives no
// access any more.
func TestPurchaseWhoseMoneyWasSentBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	bought := s.buy(s.order("verification-kit", "back"), "verification-kit", `{"email":"gus@example.com"}`)
	gus := s.site.signedIn(t, "gus@example.com")
	gus.entitled("verification-kit", "active")
	history, err := s.site.app.Ledger.Read(t.Context(), s.site.app.Ledger.Service(bought.PurchaseID), "purchase/"+bought.PurchaseID)
	if err != nil {
		t.Fatal(err)
	}
	var stored events.PurchaseFulfilled
	if err := json.Unmarshal(history.Events[0].Payload, &stored); err != nil {
		t.Fatal(err)
	}
	payload, err := canon.Marshal(events.RefundSent{PaymentID: stored.PaymentID, Transaction: "0x1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.site.app.Ledger.Append(t.Context(), ledger.Append{Tenant: history.Tenant, Events: []ledger.Pending{{Stream: "payment/" + stored.PaymentID,
		Expect: ledger.Any(100), ID: s.site.app.NewID("evt_"), Type: events.TypeRefundSent, SchemaVersion: 1, Actor: "operator", Payload: payload}}}); err != nil {
		t.Fatal(err)
	}
	gus.entitled("verification-kit", "refunded")
}

// TestPurchaseErrors checks the specification's errors for a purchase.
func TestPurchaseErrors(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	off, _ := newStorefront(t)
	key, err := s.site.app.IssueFreeKey(t.Context(), "key@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	org, err := s.site.app.CreateOrganization(t.Context(), "operator", "Acme", "team", "owner@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if org.OrgID == "" {
		t.Fatal("no organization")
	}
	order := s.order("verification-kit", "errors")
	before := s.site.eventCount(t)
	for _, c := range []struct {
		name   string
		b      *browser
		method string
		path   string
		body   string
		header []string
		status int
		says   string
	}{
		{"unknown product", s.browser, "POST", "nothing", ``, nil, 404, "product not found"},
		{"unknown product, x402 off", off.browser(t), "POST", "nothing", ``, nil, 404, "product not found"},
		{"unknown product, paid", s.browser, "POST", "nothing", ``, []string{"PAYMENT-SIGNATURE", order.Header()}, 404, "product not found"},
		{"subscription product", s.browser, "POST", "monthly-pass", ``, nil, 400, "subscription"},
		{"subscription product, x402 off", off.browser(t), "GET", "monthly-pass", ``, nil, 400, "subscription"},
		{"not configured", off.browser(t), "POST", "verification-kit", ``, nil, 503, "x402 not configured"},
		{"not configured, probe", off.browser(t), "GET", "verification-kit", ``, nil, 503, "x402 not configured"},
		{"not configured, with a payment", off.browser(t), "POST", "verification-kit", ``, []string{"PAYMENT-SIGNATURE", order.Header()}, 503, "x402 not configured"},
		{"nothing to pay with, and an invalid body", s.browser, "POST", "verification-kit", `{`, nil, 402, "Payment required"},
		{"a key cannot pay here", s.browser, "POST", "verification-kit", ``, []string{"X-API-Key", key.APIKey}, 402, "Payment required"},
		{"a bad key", s.browser, "POST", "verification-kit", ``, []string{"X-API-Key", "svck_bad"}, 401, "API key is not valid"},
		{"a payment that is no payment", s.browser, "POST", "verification-kit", ``, []string{"PAYMENT-SIGNATURE", "bm8="}, 402, "invalid_payload"},
		{"a payment twice", s.browser, "POST", "verification-kit", ``, []string{"PAYMENT-SIGNATURE", order.Header(), "PAYMENT-SIGNATURE", order.Header()}, 402, "invalid_payload"},
		{"a payment for another product", s.browser, "POST", "policy-starter-pack", ``, []string{"PAYMENT-SIGNATURE", order.Header()}, 402, "No matching payment requirements"},
		{"paid, bad body", s.browser, "POST", "verification-kit", `{"mail":"a@example.com"}`, []string{"PAYMENT-SIGNATURE", order.Header()}, 400, "unknown member"},
		{"paid, bad address", s.browser, "POST", "verification-kit", `{"email":"a b@example.com"}`, []string{"PAYMENT-SIGNATURE", order.Header()}, 400, "email must be an e-mail address"},
		{"paid, address with a line break", s.browser, "POST", "verification-kit", `{"email":"a@example.com\r\nBcc: b@example.com"}`, []string{"PAYMENT-SIGNATURE", order.Header()}, 400, "email"},
		{"paid, too large", s.browser, "POST", "verification-kit", `{"email":"` + strings.Repeat("a", 20_000) + `"}`, []string{"PAYMENT-SIGNATURE", order.Header()}, 413, "larger"},
		{"another method", s.browser, "DELETE", "verification-kit", ``, nil, 405, "method not allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := *c.b
			b.t = t
			media := ""
			if c.body != "" {
				media = "application/json"
			}
			b.want(b.do(c.method, "/api/purchase/"+c.path, media, c.body, c.header...), c.status, c.says)
		})
	}
	if n := s.site.eventCount(t) - before; n != 0 {
		t.Errorf("%d events were appended", n)
	}
	s.buy(order, "verification-kit", ``) // nothing was charged, so the payment can still be used
}

// TestRepeatedPurchasePayment checks that a payment that is sent again returns the same purchase,
// and the link only to its buyer.
func TestRepeatedPurchasePayment(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	refused := `"error":"sign in with the e-mail address of the order, or send the claimSecret of the first answer"`
	again := func(o x402test.Order) answer {
		return s.do(http.MethodGet, "/api/purchase/verification-kit", "", "", "PAYMENT-SIGNATURE", o.Header())
	}
	t.Run("without an identifier", func(t *testing.T) {
		order := s.order("verification-kit", "plain")
		first := s.buy(order, "verification-kit", ``)
		// The buyer, or a party that rebuilt the payment from the chain, sends it again. The
		// answer has all members, and a link to a page that asks for the payer's proof.
		second := s.fulfilled(again(order), "verification-kit")
		if second.PurchaseID != first.PurchaseID || second.DownloadURL != s.site.app.BaseURL+"/api/downloads/"+first.PurchaseID || second.ClaimSecret != "" || second.ExpiresAt == "" {
			t.Errorf("%+v after %+v", second, first)
		}
		s.want(s.post("/api/purchase/verification-kit", `{"email":"eve@example.com"}`, "PAYMENT-SIGNATURE", order.Header()), 409, refused)
		s.fetch(first)
		s.site.clock.Add(day)
		s.fulfilled(again(order), "verification-kit")
		s.fetch(s.buy(order, "verification-kit", `{"claimSecret":"`+first.ClaimSecret+`"}`))
	})
	t.Run("with an identifier", func(t *testing.T) {
		plain := s.order("verification-kit", "named")
		order := plain.Named("order-4711-0000001")
		first := s.buy(order, "verification-kit", ``)
		s.fetch(first)
		s.site.clock.Add(30 * day)
		if got := s.fulfilled(again(order), "verification-kit"); got.PurchaseID != first.PurchaseID {
			t.Errorf("%+v", got)
		}
		// A copy from the chain has no payment identifier, or another one.
		s.want(again(plain), 409, refused)
		s.want(again(plain.Named("order-4711-0000002")), 409, refused)
	})
	t.Run("for another product or with another body", func(t *testing.T) {
		order := s.order("verification-kit", "other")
		first := s.buy(order, "verification-kit", `{"email":"dora@example.com"}`)
		takeover := func(body string) answer {
			return s.post("/api/purchase/verification-kit", body, "PAYMENT-SIGNATURE", order.Header())
		}
		s.want(takeover(`{"email":"eve@example.com"}`), 409, refused)
		s.want(takeover(``), 409, refused)
		s.want(takeover(`{"email":"eve@example.com","claimSecret":"svcc_AAAA"}`), 409, refused)
		if got := s.fulfilled(takeover(`{"email":"Dora@example.com"}`), "verification-kit"); got.PurchaseID != first.PurchaseID || got.ClaimSecret != "" {
			t.Errorf("%+v", got)
		}
		s.site.signedIn(t, "eve@example.com").entitled("verification-kit", "none")
		s.site.signedIn(t, "dora@example.com").entitled("verification-kit", "active")
		s.want(s.post("/api/purchase/policy-starter-pack", ``, "PAYMENT-SIGNATURE", order.Header()), 409, "another request")
	})
	t.Run("until its downloads are used up", func(t *testing.T) {
		order := s.order("verification-kit", "drained")
		with := func(body string) answer {
			return s.post("/api/purchase/verification-kit", body, "PAYMENT-SIGNATURE", order.Header())
		}
		const email = `{"email":"gil@example.com"}`
		first := s.buy(order, "verification-kit", email)
		for range 20 {
			s.fetch(s.fulfilled(with(email), "verification-kit"))
		}
		s.want(with(email), 409, "this purchase has no downloads left")
		s.fetch(first)
		s.site.clock.Add(30 * day)
		body := `{"claimSecret":"` + first.ClaimSecret + `"}`
		for range 19 {
			got := s.buy(order, "verification-kit", body)
			if got.ClaimSecret != first.ClaimSecret {
				t.Errorf("%+v after %+v", got, first)
			}
			s.fetch(got)
		}
		s.want(with(email), 409, refused)
	})
	t.Run("eight at once", func(t *testing.T) {
		order := s.order("verification-kit", "race")
		before := api.Heads(t, s.site.app)
		answers := make([]answer, 8)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = again(order) })
		}
		all.Wait()
		ids := map[string]bool{}
		for _, got := range answers {
			ids[s.fulfilled(got, "verification-kit").PurchaseID] = true
		}
		var types []string
		for _, e := range api.Since(t, s.site.app, before) {
			types = append(types, e.Type)
		}
		if diff := cmp.Diff([]string{"payment.claimed", "payment.settled", "purchase.fulfilled"}, types); diff != "" || len(ids) != 1 {
			t.Errorf("%d purchases\n%s", len(ids), diff)
		}
	})
}

// TestPurchaseWhenSettlingFails checks that a failed transfer buys nothing, and that a transfer
// with unknown outcome does not buy twice.
func TestPurchaseWhenSettlingFails(t *testing.T) {
	t.Parallel()
	var facilitator *x402test.Facilitator
	var chain *x402test.Chain
	s := newShop(t, func(c *api.Config) {
		chain = x402test.NewChain(t, c.App.Clock)
		facilitator = x402test.NewFacilitator(t, chain, c.App.Clock)
		settler, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: facilitator.URL, Network: c.Terms.Network, RPCURL: chain.URL, Log: c.Log})
		if err != nil {
			t.Fatal(err)
		}
		if err := settler.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.App.Settler = settler
	})
	facilitator.Next("settle", x402test.Fault{Kind: x402test.Refuse, Reason: "insufficient_funds"})
	refused := s.order("verification-kit", "refused")
	s.want(s.post("/api/purchase/verification-kit", `{"email":"fay@example.com"}`, "PAYMENT-SIGNATURE", refused.Header()), 402, "")
	s.site.signedIn(t, "fay@example.com").entitled("verification-kit", "none")
	facilitator.Next("settle", x402test.Fault{Kind: x402test.SettleThenDrop})
	lost := s.order("verification-kit", "lost")
	s.buy(lost, "verification-kit", `{"email":"fay@example.com"}`)
	s.site.signedIn(t, "fay@example.com").entitled("verification-kit", "active")
	if n := chain.Transfers(); n != 1 {
		t.Errorf("%d transfers", n)
	}
}

// TestPurchaseSealsTheAddress checks that the events of a purchase contain the buyer's address
// only encrypted.
func TestPurchaseSealsTheAddress(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.buy(s.order("verification-kit", "sealed"), "verification-kit", `{"email":"canary-buyer@example.com"}`)
	var types []string
	for _, e := range api.Since(t, s.site.app, nil) {
		if e.Type != events.TypeSigningKeyActivated { // one per partition
			types = append(types, e.Type)
		}
		if strings.Contains(string(e.Payload), "canary-buyer") {
			t.Errorf("%s holds the address", e.Type)
		}
	}
	slices.Sort(types)
	want := []string{"customer.created", "entitlement.granted", "payment.claimed", "payment.settled", "purchase.fulfilled"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
}

// TestAnOperatorRefundsADownloadedPurchase checks that an operator can refund a purchase with an
// e-mail address after its download, by a command. From then on the file is not sent any more.
func TestAnOperatorRefundsADownloadedPurchase(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	bought := s.buy(s.order("verification-kit", "one"), "verification-kit", `{"email":"cleo@example.com"}`)
	s.fetch(bought)
	cleo := s.site.signedIn(t, "cleo@example.com")
	path := cleo.newLink("verification-kit")
	history, err := s.site.app.Ledger.Read(t.Context(), s.site.app.Ledger.Service(bought.PurchaseID), "purchase/"+bought.PurchaseID)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := events.As[events.PurchaseFulfilled](history.Events[0])
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.site.app.RequestRefundAsOperator(t.Context(), stored.PaymentID); err != nil || r.State != "requested" || r.Amount != "1000000" {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := cleo.get(path); got.status < 400 {
		t.Errorf("a link to a purchase that is refunded: %d", got.status)
	}
	if r, err := s.site.app.ApproveRefund(t.Context(), stored.PaymentID, "asked for"); err != nil || r.State != "approved" {
		t.Errorf("%+v, %v", r, err)
	}
}
