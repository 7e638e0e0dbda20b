package x402_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/commands/payments"
)

// market connects our facilitator client with a buyer, a server and a chain of x402test.
type market struct {
	t           *testing.T
	chain       *x402test.Chain
	server      *x402test.Facilitator
	facilitator *x402.Facilitator
	log         *lines
}

// lines is a log that a test can read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// clock always returns the same time.
func clock() time.Time { return now }

// newMarket returns a market whose client does not ask the chain.
func newMarket(t *testing.T, change func(*x402.FacilitatorConfig)) *market {
	t.Helper()
	return openMarket(t, false, change)
}

// asking returns a market whose client asks the chain.
func asking(t *testing.T, change func(*x402.FacilitatorConfig)) *market {
	t.Helper()
	return openMarket(t, true, change)
}

func openMarket(t *testing.T, asks bool, change func(*x402.FacilitatorConfig)) *market {
	t.Helper()
	m := &market{t: t, chain: x402test.NewChain(t, clock), log: &lines{}}
	m.server = x402test.NewFacilitator(t, m.chain, clock)
	config := x402.FacilitatorConfig{URL: m.server.URL, Network: x402.DevNetwork, Log: slog.New(slog.NewTextHandler(m.log, nil))}
	if asks {
		config.RPCURL = m.chain.URL
	}
	if change != nil {
		change(&config)
	}
	var err error
	if m.facilitator, err = x402.NewFacilitator(config); err != nil {
		t.Fatal(err)
	}
	return m
}

// payment returns a valid payment that was claimed now.
func (m *market) payment(nonce string) (payments.Payment, x402test.Order) {
	m.t.Helper()
	order := x402test.NewWallet("payer").Order(challenge(m.t, x402.Settings{Dev: true}, 1), nonce, now)
	payment, err := x402.Decode(order.Header())
	if err != nil {
		m.t.Fatal(err)
	}
	payment.ClaimedAt, payment.HeadBlock = now, m.chain.Head()
	return payment.Payment, order
}

// wants checks the state of a settlement, its reason or evidence, and the number of transfers.
func (m *market) wants(s payments.Settlement, state payments.SettlementState, why string, transfers int) {
	m.t.Helper()
	if s.State != state || s.State == payments.Settled && s.Evidence != why || s.State != payments.Settled && s.Reason != why {
		m.t.Errorf("ended as %+v, want %s, %s", s, state, why)
	}
	if s.Transaction == "" && state == payments.Settled {
		m.t.Errorf("%s with transaction %q", s.State, s.Transaction)
	}
	if got := m.chain.Transfers(); got != transfers {
		m.t.Errorf("%d transfers, want %d", got, transfers)
	}
}

func TestSettledIsATransferOnTheChain(t *testing.T) {
	m := newMarket(t, nil)
	p, _ := m.payment("one")
	if err := m.facilitator.Verify(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	m.wants(m.facilitator.Settle(t.Context(), p, 1), payments.Settled, "facilitator", 1)
	m.wants(m.facilitator.Settle(t.Context(), p, 2), payments.Unknown, "invalid_exact_evm_nonce_already_used", 1)
}

// TestLostAndPendingAnswersAreUnknown checks that every answer that proves nothing leaves the
// payment unknown instead of refused.
func TestLostAndPendingAnswersAreUnknown(t *testing.T) {
	for _, tc := range []struct {
		fault     x402test.Fault
		reason    string
		transfers int
	}{
		{x402test.Fault{Kind: x402test.Status, Status: 500}, x402.ReasonSettleError, 0},
		{x402test.Fault{Kind: x402test.Status, Status: 404}, x402.ReasonSettleError, 0},
		{x402test.Fault{Kind: x402test.Status, Status: 200}, x402.ReasonSettleError, 0},
		{x402test.Fault{Kind: x402test.HTML}, x402.ReasonSettleError, 0},
		{x402test.Fault{Kind: x402test.Garbage}, x402.ReasonSettleError, 0},
		{x402test.Fault{Kind: x402test.Drop}, x402.ReasonSettleError, 0},
		{x402test.Fault{Kind: x402test.SettleThenDrop}, x402.ReasonSettleError, 1},
		{x402test.Fault{Kind: x402test.SettleThen500}, x402.ReasonSettleError, 1},
		{x402test.Fault{Kind: x402test.Pending}, x402.ReasonPending, 1},
	} {
		t.Run(tc.fault.Kind, func(t *testing.T) {
			m := newMarket(t, nil)
			m.server.Next("settle", tc.fault)
			p, _ := m.payment("one")
			m.wants(m.facilitator.Settle(t.Context(), p, 1), payments.Unknown, tc.reason, tc.transfers)
		})
	}
}

func TestARefusalIsProofOnlyBeforeABroadcast(t *testing.T) {
	for _, tc := range []struct {
		reason          string
		status, attempt int
		state           payments.SettlementState
		said            string
	}{
		{"insufficient_funds", 200, 1, payments.Refused, "insufficient_funds"},
		{"insufficient_funds", 400, 1, payments.Refused, "insufficient_funds"},
		{"invalid_exact_evm_insufficient_balance", 402, 1, payments.Refused, "invalid_exact_evm_insufficient_balance"},
		{"invalid_network", 412, 1, payments.Refused, "invalid_network"},
		{"unsupported_scheme", 200, 1, payments.Refused, "unsupported_scheme"},
		{"invalid Something with <b>", 200, 1, payments.Unknown, x402.ReasonSettleError},
		{"insufficient_funds", 500, 1, payments.Unknown, "insufficient_funds"},
		{"insufficient_funds", 200, 2, payments.Unknown, "insufficient_funds"},
		{"invalid_exact_evm_nonce_already_used", 200, 1, payments.Unknown, "invalid_exact_evm_nonce_already_used"},
		{"invalid_exact_evm_transaction_failed", 200, 1, payments.Unknown, "invalid_exact_evm_transaction_failed"},
		{"invalid_exact_evm_transaction_simulation_failed", 200, 1, payments.Unknown, "invalid_exact_evm_transaction_simulation_failed"},
		{"invalid_exact_evm_transfer_event_mismatch", 200, 1, payments.Unknown, "invalid_exact_evm_transfer_event_mismatch"},
		{"invalid_transaction_state", 200, 1, payments.Unknown, "invalid_transaction_state"},
		{"settlement_pending", 200, 1, payments.Unknown, x402.ReasonPending},
		{"unexpected_settle_error", 200, 1, payments.Unknown, x402.ReasonSettleError},
		{"", 200, 1, payments.Unknown, x402.ReasonSettleError},
		{"<script>", 200, 1, payments.Unknown, x402.ReasonSettleError},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newMarket(t, nil)
			m.server.Next("settle", x402test.Fault{Kind: x402test.Refuse, Reason: tc.reason, Status: tc.status})
			p, _ := m.payment("one")
			m.wants(m.facilitator.Settle(t.Context(), p, tc.attempt), tc.state, tc.said, 0)
		})
	}
}

// answering returns a market whose facilitator gives one fixed answer.
func answering(t *testing.T, answer http.HandlerFunc) *market {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return newMarket(t, func(c *x402.FacilitatorConfig) { c.URL = server.URL })
}

func TestSuccessNeedsATransactionOnOurNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		answer      string
		transaction string // kept, so that a person can look it up
	}{
		"no transaction":      {`{"success":true,"transaction":"","network":"eip155:84532"}`, ""},
		"another network":     {`{"success":true,"transaction":"0xabc","network":"eip155:8453"}`, "0xabc"},
		"another network, v1": {`{"success":true,"transaction":"0xabc","network":"base"}`, "0xabc"},
		"a network in number": {`{"success":true,"transaction":"0xabc","network":84532}`, "0xabc"},
		"another payer":       {`{"success":true,"transaction":"0xabc","network":"eip155:84532","payer":"0x036CbD53842c5426634e7929541eC2318f3dCF7e"}`, "0xabc"},
		"strange transaction": {`{"success":true,"transaction":"<b>\u000a</b>","network":"eip155:84532"}`, ""},
		"long transaction":    {`{"success":true,"transaction":"` + strings.Repeat("a", 201) + `","network":"eip155:84532"}`, ""},
		"a member twice":      {`{"success":false,"success":true,"transaction":"0xabc","network":"eip155:84532"}`, ""},
		"two transactions":    {`{"success":true,"transaction":"0xabc","transaction":"0xabd","network":"eip155:84532"}`, ""},
		"text for a bool":     {`{"success":"true","transaction":"0xabc","network":"eip155:84532"}`, "0xabc"},
		"capitals":            {`{"SUCCESS":true,"transaction":"0xabc","network":"eip155:84532"}`, "0xabc"},
		"refused, and yet":    {`{"success":false,"errorReason":"insufficient_funds","transaction":"0xabc","network":"eip155:84532"}`, "0xabc"},
		"pending":             {`{"success":false,"errorReason":"settlement_pending","transaction":"0xabc","network":"eip155:84532"}`, "0xabc"},
		"a list":              {`[]`, ""},
		"nothing":             {`null`, ""},
		"larger than 1 MiB":   {`{"success":true,"transaction":"0xabc","network":"eip155:84532","x":"` + strings.Repeat("x", 1<<20) + `"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.answer) })
			p, _ := m.payment("one")
			if s := m.facilitator.Settle(t.Context(), p, 1); s.State != payments.Unknown || s.Transaction != c.transaction {
				t.Errorf("ended as %+v", s)
			}
		})
	}
	for _, status := range []int{302, 400, 500} {
		m := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"success":true,"isValid":true,"transaction":"0xabc","network":"eip155:84532"}`)
		})
		p, _ := m.payment("one")
		if s := m.facilitator.Settle(t.Context(), p, 1); s.State != payments.Unknown {
			t.Errorf("success with status %d ended as %+v", status, s)
		}
		if err := m.facilitator.Verify(t.Context(), p); err == nil {
			t.Errorf("valid with status %d is valid", status)
		}
	}
}

// TestASettledAnswerIsReadTolerantly checks that an answer with a clear transaction and payer is
// accepted with any other members.
func TestASettledAnswerIsReadTolerantly(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
	}{
		"unknown members":      {200, `{"success":true,"transaction":"0xabc","network":"eip155:84532","payer":"0x0","later":{"a":1}}`},
		"the name of v1":       {200, `{"success":true,"transaction":"0xabc","network":"base-sepolia"}`},
		"no network":           {200, `{"success":true,"transaction":"0xabc"}`},
		"null for network":     {200, `{"success":true,"transaction":"0xabc","network":null,"payer":null}`},
		"an empty network":     {200, `{"success":true,"transaction":"0xabc","network":"","payer":""}`},
		"201":                  {201, `{"success":true,"transaction":"0xabc","network":"eip155:84532"}`},
		"202":                  {202, `{"success":true,"transaction":"0xabc","network":"eip155:84532"}`},
		"a large integer":      {200, `{"success":true,"transaction":"0xabc","network":"eip155:84532","gasPrice":123456789012345678901234567890}`},
		"half of an emoji":     {200, `{"success":true,"transaction":"0xabc","network":"eip155:84532","note":"\ud83d"}`},
		"another member twice": {200, `{"success":true,"transaction":"0xabc","network":"eip155:84532","note":1,"note":2}`},
		"the payer in lower":   {200, `{"success":true,"transaction":"0xabc","network":"eip155:84532","payer":"0x2595b01b6f646b1d5a5939fe555f7e6ac6d0bfe4"}`},
	} {
		t.Run(name, func(t *testing.T) {
			m := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			})
			p, _ := m.payment("one")
			if s := m.facilitator.Settle(t.Context(), p, 1); s.State != payments.Settled || s.Payer != p.Payer || s.Transaction != "0xabc" {
				t.Errorf("ended as %+v", s)
			}
		})
	}
}

// TestWhatTheFacilitatorExplainsIsLogged checks that the correlation id is logged, so that the
// facilitator's operator can find the call, that the header about extensions is returned, and that
// a rejection is logged.
func TestWhatTheFacilitatorExplainsIsLogged(t *testing.T) {
	payer := x402test.NewWallet("payer").Address.String()
	said := base64.StdEncoding.EncodeToString([]byte(`{"bazaar":{"status":"rejected","rejectedReason":"no example"}}`))
	m := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/settle" {
			w.Header().Set("EXTENSION-RESPONSES", said)
			_, _ = io.WriteString(w, `{"success":true,"transaction":"0xabc"}`)
			return
		}
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"errorType":"invalid_request","errorMessage":"the balance of `+payer+` is not known","correlationId":"9c1-IAD"}`)
	})
	p, _ := m.payment("one")
	if err := m.facilitator.Verify(t.Context(), p); err == nil || reason(err) != err.Error() {
		t.Errorf("verify says %v", err)
	}
	if s := m.facilitator.Settle(t.Context(), p, 1); s.State != payments.Settled || s.Extensions != said {
		t.Errorf("settle ends as %+v", s)
	}
	log := m.log.String()
	for _, text := range []string{"the balance of 0x… is not known", "9c1-IAD", "no example"} {
		if !strings.Contains(log, text) {
			t.Errorf("the log lacks %q: %s", text, log)
		}
	}
	if strings.Contains(strings.ToLower(log), strings.ToLower(payer[2:])) {
		t.Errorf("the log names the payer: %s", log)
	}
	for _, bad := range []string{"not base64", base64.StdEncoding.EncodeToString([]byte("no JSON")), strings.Repeat("e30=", 300)} {
		said = bad
		if s := m.facilitator.Settle(t.Context(), p, 1); s.State != payments.Settled || s.Extensions != "" {
			t.Errorf("%.20s is passed on: %+v", bad, s)
		}
	}
}

// TestTheChainSaysWhetherAContractMayHaveSigned checks signatures of 65 bytes, which a contract
// may also make. If the chain is asked, the code at the address decides who verifies the
// signature. Otherwise the facilitator verifies it.
func TestTheChainSaysWhetherAContractMayHaveSigned(t *testing.T) {
	for _, tc := range []struct {
		name            string
		asks, contract  bool
		signer          string
		down            bool
		reason          string
		verifies, codes int // number of calls to /verify, and of eth_getCode
	}{
		{"the owner of a contract, chain asked", true, true, "owner", false, "", 1, 1},
		{"the owner of a contract, chain not asked", false, true, "owner", false, "", 1, 0},
		{"the owner of a contract, chain down", true, true, "owner", true, "", 1, 0},
		{"a thief before a contract", true, true, "thief", false, x402.ReasonSignature, 1, 1},
		{"a thief before a key, chain asked", true, false, "thief", false, x402.ReasonSignature, 0, 1},
		{"a thief before a key, chain not asked", false, false, "thief", false, x402.ReasonSignature, 1, 0},
		{"the key", true, false, "payer", false, "", 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := openMarket(t, tc.asks, nil)
			_, order := m.payment("one")
			if tc.contract {
				m.chain.Deploy(order.Authorization.From, x402test.NewWallet("owner").Address)
			}
			order.Wallet = x402test.NewWallet(tc.signer)
			payment, err := x402.Decode(order.Header())
			if err == nil {
				err = payment.Verify(order.Accepted, quickURL, now, true)
			}
			if err != nil {
				t.Fatal(err)
			}
			m.chain.Down(tc.down)
			if got := reason(m.facilitator.Verify(t.Context(), payment.Payment)); got != tc.reason {
				t.Errorf("said %q, want %q", got, tc.reason)
			}
			if m.server.Calls("verify") != tc.verifies || m.chain.Calls("eth_getCode") != tc.codes {
				t.Errorf("%d calls to verify, %d for code", m.server.Calls("verify"), m.chain.Calls("eth_getCode"))
			}
		})
	}
}

// TestAFacilitatorThatDoesNotSupportUsIsReported checks that an operator can see why payments are
// off.
func TestAFacilitatorThatDoesNotSupportUsIsReported(t *testing.T) {
	m := newMarket(t, nil)
	m.server.Next("supported", x402test.Fault{Kind: x402test.NotSupported}, x402test.Fault{Kind: x402test.NotSupported}, x402test.Fault{Kind: x402test.HTML})
	for _, want := range []string{"it does not support eip155:84532", "it does not support eip155:84532", "it does not answer /supported", ""} {
		if err := m.facilitator.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := m.facilitator.Problem(); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("the problem is %q, want %q", got, want)
		}
	}
	if n := strings.Count(m.log.String(), "does not support our network"); n != 1 || !strings.Contains(m.log.String(), "exact eip155:1 v2") {
		t.Errorf("logged %d times: %s", n, m.log.String())
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		m := answering(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+r.URL.Path, status) })
		p, _ := m.payment("one")
		if err := m.facilitator.Verify(t.Context(), p); err == nil || reason(err) != err.Error() {
			t.Errorf("%d: verify says %v", status, err)
		}
		if s := m.facilitator.Settle(t.Context(), p, 1); s.State != payments.Unknown {
			t.Errorf("%d: settle ends as %+v", status, s)
		}
	}
	if asked {
		t.Error("another server was asked")
	}
}

func TestVerifySaysNoOrCannotBeAsked(t *testing.T) {
	no := func(reason string, status int) x402test.Fault {
		return x402test.Fault{Kind: x402test.Refuse, Reason: reason, Status: status}
	}
	for _, tc := range []struct {
		name   string
		fault  x402test.Fault
		reason string // reason of the refusal; empty means that the facilitator could not be asked
	}{
		{"no", no("insufficient_funds", 200), "insufficient_funds"},
		{"no with 400", no("invalid_exact_evm_signature", 400), "invalid_exact_evm_signature"},
		{"no with a strange reason", no("<b>you</b> are poor", 200), x402.ReasonVerifyError},
		{"no without a reason", no("", 200), x402.ReasonVerifyError},
		{"no, in the old words", no("No matching payment requirements", 200), x402.ReasonNoMatch},
		{"no with 500", no("insufficient_funds", 500), ""},
		{"401", x402test.Fault{Kind: x402test.Status, Status: 401}, ""},
		{"500", x402test.Fault{Kind: x402test.Status, Status: 500}, ""},
		{"html", x402test.Fault{Kind: x402test.HTML}, ""},
		{"garbage", x402test.Fault{Kind: x402test.Garbage}, ""},
		{"drop", x402test.Fault{Kind: x402test.Drop}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMarket(t, nil)
			m.server.Next("verify", tc.fault)
			p, _ := m.payment("one")
			err := m.facilitator.Verify(t.Context(), p)
			var refused *payments.PaymentRefused
			if got := errors.As(err, &refused); err == nil || got != (tc.reason != "") || got && refused.Reason != tc.reason {
				t.Errorf("said %v, want %q", err, tc.reason)
			}
			if err := m.facilitator.Verify(t.Context(), p); err != nil {
				t.Errorf("and then %v", err)
			}
		})
	}
}

func TestVerifyJudgesWhatOnlyTheChainKnows(t *testing.T) {
	m := newMarket(t, nil)
	p, order := m.payment("spent")
	if _, err := m.chain.Settle(order.Domain.Asset, order.Authorization); err != nil {
		t.Fatal(err)
	}
	if got := reason(m.facilitator.Verify(t.Context(), p)); got != "invalid_exact_evm_nonce_already_used" {
		t.Errorf("a payment that was spent elsewhere: %q", got)
	}
}

func TestMoreCallsThanTheFacilitatorTakesAreRefusedBeforeAClaim(t *testing.T) {
	m := newMarket(t, nil)
	m.server.Always("verify", x402test.Fault{Kind: x402test.Delay})
	p, _ := m.payment("one")
	var group sync.WaitGroup
	for range x402.MaxInFlight {
		group.Go(func() {
			if err := m.facilitator.Verify(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	m.server.Await("verify", x402.MaxInFlight)
	if err := m.facilitator.Verify(t.Context(), p); err == nil || reason(err) != err.Error() {
		t.Errorf("one more is told %v", err)
	}
	if got := m.server.Calls("verify"); got != x402.MaxInFlight {
		t.Errorf("%d calls were made", got)
	}
	m.server.Release()
	group.Wait()
}

func TestWhatIsSent(t *testing.T) {
	for _, minimal := range []bool{false, true} {
		m := newMarket(t, func(c *x402.FacilitatorConfig) { c.Minimal, c.Bearer = minimal, "a secret" })
		m.server.Require("a secret")
		p, order := m.payment("one")
		m.wants(m.facilitator.Settle(t.Context(), p, 1), payments.Settled, "facilitator", 1)
		var sent struct {
			Version      int                       `json:"x402Version"`
			Payload      map[string]jsontext.Value `json:"paymentPayload"`
			Requirements x402.Requirements         `json:"paymentRequirements"`
		}
		if err := json.Unmarshal(m.server.Last("settle"), &sent); err != nil {
			t.Fatal(err)
		}
		if sent.Version != 2 || sent.Requirements != order.Accepted {
			t.Errorf("sent %+v", sent)
		}
		_, resource := sent.Payload["resource"]
		_, extensions := sent.Payload["extensions"]
		if resource == minimal || extensions == minimal || len(sent.Payload) < 3 {
			t.Errorf("minimal %v: the payload has %d members", minimal, len(sent.Payload))
		}
		if strings.Contains(m.log.String(), "secret") {
			t.Error("the token is in the log")
		}
	}
	m := newMarket(t, func(c *x402.FacilitatorConfig) { c.Bearer = "an old one" })
	m.server.Require("a secret")
	p, _ := m.payment("one")
	if err := m.facilitator.Verify(t.Context(), p); err == nil || reason(err) != err.Error() {
		t.Errorf("with a wrong token: %v", err)
	}
}

func TestAddressesOfTheSettingsMustBeAuthentic(t *testing.T) {
	for address, good := range map[string]bool{
		"https://facilitator.example": true, "https://facilitator.example/v2/": true, "http://127.0.0.1:4022": true, "http://localhost:1": true, "http://[::1]:1": true,
		"http://facilitator.example": false, "http://127.0.0.1.example": false, "": false, "facilitator.example": false, "ftp://facilitator.example": false, "https://a:b@facilitator.example": false,
	} {
		for _, rpc := range []bool{false, true} {
			config, setting := x402.FacilitatorConfig{URL: address, Network: x402.DevNetwork}, "X402_FACILITATOR_URL"
			if rpc {
				if address == "" {
					continue // this client does not ask the chain
				}
				config.URL, config.RPCURL, setting = "https://facilitator.example", address, "X402_RPC_URL"
			}
			_, err := x402.NewFacilitator(config)
			if (err == nil) != good || err != nil && !strings.HasPrefix(err.Error(), setting) {
				t.Errorf("%s as %s: %v", address, setting, err)
			}
		}
	}
	if _, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: "https://facilitator.example?a=b", Network: x402.DevNetwork}); err == nil {
		t.Error("nothing can be appended to a query")
	}
	_, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: "https://facilitator.example", Network: x402.DevNetwork, Confirmations: -1})
	if err == nil || !strings.HasPrefix(err.Error(), "X402_CONFIRMATIONS") {
		t.Errorf("minus one confirmation: %v", err)
	}
}

// inProcess sends requests to a handler without a network, so that a test can run on a synthetic
// clock.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder, done := httptest.NewRecorder(), make(chan bool)
	go func() {
		defer close(done)
		h.ServeHTTP(recorder, r)
	}()
	select {
	case <-done:
		return recorder.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func TestConfiguredFollowsWhatTheFacilitatorSupports(t *testing.T) {
	server := x402test.NewFacilitator(t, x402test.NewChain(t, clock), clock)
	synctest.Test(t, func(t *testing.T) {
		f, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: "https://facilitator.example", Network: x402.DevNetwork, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		f.Through(inProcess{server})
		status, none := x402test.Fault{Kind: x402test.Status, Status: 503}, x402test.Fault{Kind: x402test.NotSupported}
		html := x402test.Fault{Kind: x402test.HTML}
		server.Next("supported", status, none)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() {
			f.Run(ctx)
			close(ended)
		}()
		step := func(after time.Duration, want bool, what string) {
			t.Helper()
			time.Sleep(after) // on the synthetic clock of the test
			synctest.Wait()
			if f.Configured() != want {
				t.Errorf("%s: configured is %v", what, f.Configured())
			}
		}
		step(0, false, "an outage at the start")
		step(time.Second, false, "a list without our kind")
		step(2*time.Second, true, "soon after the facilitator supports it")
		server.Next("supported", status, none, html, none, html, x402test.Fault{}, none, none, status, none, x402test.Fault{})
		step(time.Minute, true, "an outage")
		step(time.Minute, true, "one list without our kind")
		step(time.Minute, true, "no clear answer")
		step(time.Minute, true, "a second list without our kind")
		step(time.Minute, true, "no clear answer")
		step(time.Minute, true, "our kind again")
		step(time.Minute, true, "one")
		step(time.Minute, true, "two")
		step(time.Minute, true, "an outage between")
		step(time.Minute, false, "three clear answers without our kind")
		step(time.Minute, true, "our kind again")
		cancel()
		<-ended
	})
}

func TestVerifyAndSettleWaitNoLongerThanTheyMay(t *testing.T) {
	silent := inProcess{http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
	order := specified(t)
	payment, err := x402.Decode(order.Header())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: "https://facilitator.example", Network: x402.DevNetwork, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		f.Through(silent)
		begin := time.Now()
		if err := f.Verify(t.Context(), payment.Payment); err == nil || time.Since(begin) != 10*time.Second {
			t.Errorf("verify gave up after %v with %v", time.Since(begin), err)
		}
		begin = time.Now()
		if s := f.Settle(t.Context(), payment.Payment, 1); s.State != payments.Unknown || time.Since(begin) != 30*time.Second {
			t.Errorf("settle gave up after %v with %+v", time.Since(begin), s)
		}
	})
}

func TestDevVerifiesForRealAndMovesNothing(t *testing.T) {
	var dev x402.Dev
	m := newMarket(t, nil)
	p, order := m.payment("one")
	if err := dev.Verify(t.Context(), p); err != nil {
		t.Error(err)
	}
	s := dev.Settle(t.Context(), p, 1)
	if want := (payments.Settlement{State: payments.Settled, Transaction: "dev:" + p.ID, Payer: p.Payer, Evidence: "dev"}); s != want {
		t.Errorf("settled as %+v", s)
	}
	for name, falsify := range map[string]func(*x402test.Order){
		"another signer":         func(o *x402test.Order) { o.Wallet = x402test.NewWallet("thief") },
		"a contract's signature": func(o *x402test.Order) { o.Signature = make([]byte, 97) },
	} {
		false := order
		falsify(&false)
		payment, err := x402.Decode(false.Header())
		if err != nil {
			t.Fatal(err)
		}
		if got := reason(dev.Verify(t.Context(), payment.Payment)); got != x402.ReasonSignature {
			t.Errorf("%s: %q", name, got)
		}
	}
}
