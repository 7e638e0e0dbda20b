package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
)

// copied buys a product without an address or an identifier, and sends the same payment again,
// like an attacker who copied it from the chain. It returns the first answer, and the path of the
// page in the second.
func (s *shop) copied(nonce string) (first fulfilled, page string) {
	s.t.Helper()
	order := s.order("verification-kit", nonce)
	first = s.buy(order, "verification-kit", `{}`)
	second := s.buy(order, "verification-kit", `{}`)
	return first, strings.TrimPrefix(second.DownloadURL, s.site.app.BaseURL)
}

// asked returns the challenge for the payer's proof on a page.
func (s *shop) asked(page string) x402.SignIn {
	s.t.Helper()
	got := s.site.browser(s.t).get(page)
	required, err := x402.ReadRequired(got.header.Get("PAYMENT-REQUIRED"))
	if err != nil || got.status != 402 || len(required.Accepts) != 0 {
		s.t.Fatalf("%d %s, %v", got.status, got.body, err)
	}
	var extension struct {
		Info            x402.SignIn
		SupportedChains []struct{ ChainID, Type string }
	}
	if err := json.Unmarshal(required.Extensions[x402.ExtensionSignIn], &extension); err != nil || len(extension.SupportedChains) != 1 ||
		extension.SupportedChains[0].ChainID != x402.DevNetwork || extension.SupportedChains[0].Type != "eip191" {
		s.t.Fatalf("%s, %v", got.body, err)
	}
	return extension.Info
}

// signIn returns the header SIGN-IN-WITH-X of a wallet, in the form of the extension's
// specification.
func signIn(w *x402test.Wallet, asked x402.SignIn, chainID int) string {
	text := fmt.Sprintf("%s wants you to sign in with your Ethereum account:\n%s\n\n%s\n\nURI: %s\nVersion: 1\nChain ID: %d\nNonce: %s\nIssued At: %s\nExpiration Time: %s",
		asked.Domain, w.Address, asked.Statement, asked.URI, chainID, asked.Nonce, asked.IssuedAt, asked.ExpirationTime)
	proof, err := json.Marshal(map[string]any{"domain": asked.Domain, "address": w.Address.String(), "statement": asked.Statement, "uri": asked.URI, "version": "1",
		"chainId": fmt.Sprint("eip155:", chainID), "type": "eip191", "nonce": asked.Nonce, "issuedAt": asked.IssuedAt, "expirationTime": asked.ExpirationTime,
		"signatureScheme": "eip191", "signature": w.SignText(text)})
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(proof)
}

// TestACopiedSettlementGivesNoFile checks that a party that copies a settlement from the chain
// gets nothing, and that the payer gets the file.
func TestACopiedSettlementGivesNoFile(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first, page := s.copied("copied")
	stranger := s.site.browser(t)
	html := []string{"Accept", "text/html"}
	before := s.site.eventCount(t)
	for name, got := range map[string]answer{
		"nothing":             stranger.get(page),
		"HEAD":                stranger.do(http.MethodHead, page, "", ""),
		"no secret":           stranger.post(page, `{}`),
		"a wrong secret":      stranger.post(page, `{"claimSecret":"svcc_AAAA"}`),
		"an empty secret":     stranger.post(page, `{"claimSecret":""}`),
		"another wallet":      stranger.get(page, "SIGN-IN-WITH-X", signIn(x402test.NewWallet("thief"), s.asked(page), 84532)),
		"another chain":       stranger.get(page, "SIGN-IN-WITH-X", signIn(s.wallet, s.asked(page), 1)),
		"no proof":            stranger.get(page, "SIGN-IN-WITH-X", "e30="),
		"a purchase unknown":  stranger.get("/api/downloads/pur_01JD3Z8W5T0000000000000009"),
		"a page of a browser": stranger.get(page, html...),
	} {
		if got.status == 200 && name != "a page of a browser" || strings.HasPrefix(got.body, "PK") || strings.Contains(got.body, "svcc_") {
			t.Errorf("%s: %d %.100s", name, got.status, got.body)
		}
	}
	// A challenge that was changed, or that belongs to another purchase or time, is refused.
	_, other := s.copied("other")
	foreign := s.asked(other)
	old := s.asked(page)
	s.site.clock.Add(5 * time.Minute)
	forged := s.asked(page)
	forged.IssuedAt = old.IssuedAt
	for name, asked := range map[string]x402.SignIn{"of another purchase": foreign, "expired": old, "with another time": forged} {
		if got := stranger.get(page, "SIGN-IN-WITH-X", signIn(s.wallet, asked, 84532)); got.status != 402 {
			t.Errorf("a challenge %s: %d %.100s", name, got.status, got.body)
		}
	}
	if n := s.site.eventCount(t) - before - 3; n != 0 { // three events of the other purchase
		t.Errorf("%d events were appended", n)
	}
	// The payer can prove the purchase by a signature or by the secret, in a program and on the
	// page.
	payer := s.site.browser(t)
	s.want(payer.get(page, "SIGN-IN-WITH-X", signIn(s.wallet, s.asked(page), 84532)), 200, "PK")
	s.want(payer.post(page, `{"claimSecret":"`+first.ClaimSecret+`"}`), 200, "PK")
	s.want(payer.get(page, html...), 200, `name="claimSecret"`)
	s.want(payer.do(http.MethodPost, page, "application/x-www-form-urlencoded", "claimSecret="+first.ClaimSecret), 200, "PK")
}

// TestAnUnclaimedPurchaseIsRefundedToThePayer checks that until the first download every caller
// may request that the money is sent back to the payer. This ends the download.
func TestAnUnclaimedPurchaseIsRefundedToThePayer(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first, page := s.copied("refunded")
	stranger := s.site.browser(t)
	s.want(stranger.get(page, "Accept", "text/html"), 200, "Request a refund")
	want := `{"refund":{"amount":"1000000","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","network":"eip155:84532","state":"requested","to":"` + s.wallet.Address.String() + `"}}`
	for range 2 {
		if got := stranger.post(page, `{"refund":true}`); got.status != 200 || got.body != want {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	s.want(stranger.get(page, "Accept", "text/html"), 200, "A refund was requested")
	s.want(s.site.browser(t).get(strings.TrimPrefix(first.DownloadURL, s.site.app.BaseURL)), 410, "a refund of the purchase was requested")
	s.want(stranger.post(page, `{"claimSecret":"`+first.ClaimSecret+`"}`), 410, "a refund of the purchase was requested")

	first, page = s.copied("fetched")
	s.fetch(first)
	s.want(stranger.post(page, `{"refund":true}`), 409, "the file was downloaded")
	if got := stranger.get(page, "Accept", "text/html"); got.status != 200 || strings.Contains(got.body, "Request a refund") {
		t.Errorf("%d %s", got.status, got.body)
	}

	// A purchase with an e-mail address or an identifier has no such page.
	for body, order := range map[string]x402test.Order{`{"email":"ada@example.com"}`: s.order("verification-kit", "bound"), `{}`: s.order("verification-kit", "named").Named("0123456789abcdef")} {
		bought := s.buy(order, "verification-kit", body)
		s.want(stranger.post("/api/downloads/"+bought.PurchaseID, `{"refund":true}`), 404, "purchase not found")
	}
}

// TestADownloadAndARefundAtOnce checks that only one of a concurrent download and refund succeeds.
func TestADownloadAndARefundAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for i := range 8 {
		first, page := s.copied(fmt.Sprint("race", i))
		var all sync.WaitGroup
		var file, back answer
		one, other := s.site.browser(t), s.site.browser(t)
		all.Go(func() { file = one.get(strings.TrimPrefix(first.DownloadURL, s.site.app.BaseURL)) })
		all.Go(func() { back = other.post(page, `{"refund":true}`) })
		all.Wait()
		if (file.status == 200) == (back.status == 200) {
			t.Errorf("the file %d, the refund %d %s", file.status, back.status, back.body)
		}
	}
}

// TestTheKeyOfAPurchaseShowsItsBuyer checks that an Idempotency-Key that cannot be guessed
// identifies the buyer, like a payment identifier.
func TestTheKeyOfAPurchaseShowsItsBuyer(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const path = "/api/purchase/verification-kit"
	order := s.order("verification-kit", "keyed")
	key := []string{"PAYMENT-SIGNATURE", order.Header(), "Idempotency-Key", "8f14e45f-ceea-467f-9575-0242ac120002"}
	s.fulfilled(s.post(path, `{}`, key...), "verification-kit")
	s.fetch(s.fulfilled(s.post(path, `{}`, key...), "verification-kit"))
	fresh := s.order("verification-kit", "fresh")
	s.fetch(s.fulfilled(s.post(path, `{}`, "PAYMENT-SIGNATURE", fresh.Header(), "Idempotency-Key", key[3]), "verification-kit"))
	for _, headers := range [][]string{key[:2], {"PAYMENT-SIGNATURE", order.Header(), "Idempotency-Key", "8f14e45f-ceea-467f-9575-0242ac120003"}} {
		if got := s.fulfilled(s.post(path, `{}`, headers...), "verification-kit"); !strings.HasSuffix(got.DownloadURL, got.PurchaseID) {
			t.Errorf("%v: %+v", headers[2:], got)
		}
	}
	weak := s.order("verification-kit", "weak")
	short := []string{"PAYMENT-SIGNATURE", weak.Header(), "Idempotency-Key", "1"}
	s.fulfilled(s.post(path, `{}`, short...), "verification-kit")
	if got := s.fulfilled(s.post(path, `{}`, short...), "verification-kit"); !strings.HasSuffix(got.DownloadURL, got.PurchaseID) {
		t.Errorf("a short key: %+v", got)
	}
}
