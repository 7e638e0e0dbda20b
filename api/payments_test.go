package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/discovery"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
	apistore "github.com/countersign/countersign/api/store"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// buyer is the wallet that signs payments for the calls of a node.
var buyer = x402test.NewWallet("payer")

// unpaid returns the demand for the price of a call, like an indexer requests it.
func (n *node) unpaid(path string) x402.PaymentRequired {
	n.t.Helper()
	a := n.send(http.MethodPost, path, "")
	n.demands(a, x402.PaymentIsRequired)
	required, err := x402.ReadRequired(a.header.Get(x402.HeaderRequired))
	if err != nil {
		n.t.Fatal(err)
	}
	return required
}

// demands fails the test unless the answer is a 402 with this reason. Its header must contain the
// same object as its body, without the extensions that do not fit.
func (n *node) demands(a answer, reason string) {
	n.t.Helper()
	n.wants(a, http.StatusPaymentRequired)
	header := a.header.Get(x402.HeaderRequired)
	sent, err := x402.ReadRequired(header)
	if err != nil || len(header) > x402.MaxChallenge {
		n.t.Errorf("PAYMENT-REQUIRED of %d characters, %v", len(header), err)
	}
	var body x402.PaymentRequired
	a.decode(n.t, &body)
	maps.DeleteFunc(body.Extensions, func(name string, _ jsontext.Value) bool { return sent.Extensions[name] == nil })
	if diff := cmp.Diff(body, sent); diff != "" {
		n.t.Errorf("PAYMENT-REQUIRED is not the body: %s", diff)
	}
	if got := a.members(n.t)["error"]; got != reason {
		n.t.Errorf("error %q, want %q", got, reason)
	}
	want := map[string]string{"Cache-Control": "no-store", "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": op.ExposedHeaders}
	for name, value := range want {
		if a.header.Get(name) != value {
			n.t.Errorf("%s is %q", name, a.header.Get(name))
		}
	}
	n.discreet(a)
}

// order returns an unsigned payment for a call.
func (n *node) order(path, nonce string) x402test.Order {
	n.t.Helper()
	return buyer.Order(n.unpaid(path), n.t.Name()+nonce, n.clock.Now())
}

// pay sends a call with a payment.
func (n *node) pay(path, payment, body string) answer {
	n.t.Helper()
	return n.post(path, "", body, "PAYMENT-SIGNATURE", payment)
}

// settled fails the test unless the answer is a paid 200.
func (n *node) settled(a answer) x402.SettleResponse {
	n.t.Helper()
	n.wants(a, http.StatusOK)
	response, err := x402.ReadResponse(a.header.Get(x402.HeaderResponse))
	if err != nil || !response.Success || response.Transaction == "" || response.Payer != buyer.Address.String() || response.Network != x402.DevNetwork {
		n.t.Errorf("PAYMENT-RESPONSE %+v, %v", response, err)
	}
	if a.header.Get("Cache-Control") != "private, no-store" || a.header.Get("Access-Control-Allow-Origin") != "*" {
		n.t.Errorf("%v", a.header)
	}
	return response
}

// unsettled fails the test unless the answer says that the outcome of the payment is unknown.
func (n *node) unsettled(a answer) {
	n.t.Helper()
	n.wants(a, http.StatusServiceUnavailable)
	m := a.members(n.t)
	if id, _ := m["paymentId"].(string); m["error"] != "settlement_pending" || m["code"] != "settlement_pending" || !strings.HasPrefix(id, "pay_") ||
		m["retry"] != "send the same PAYMENT-SIGNATURE again; do not sign a new payment" || a.header.Get("Retry-After") != "2" {
		n.t.Errorf("%v %v", a, a.header)
	}
	response, err := x402.ReadResponse(a.header.Get(x402.HeaderResponse))
	if err != nil || response.Success || response.ErrorReason != "settlement_pending" || a.header.Get(x402.HeaderRequired) != "" {
		n.t.Errorf("PAYMENT-RESPONSE %+v, %v", response, err)
	}
}

// recorded returns the types of the events of payments, in order.
func (n *node) recorded() []string {
	n.t.Helper()
	types := []string{}
	for _, e := range Since(n.t, n.app, nil) {
		if strings.HasPrefix(e.Stream, "payment/") {
			types = append(types, e.Type)
		}
	}
	return types
}

const lsBody = `{"command":"ls"}`

func TestPaidCallInDevelopmentMode(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	payment := n.order(quickPath, "").Header()
	first := n.pay(quickPath, payment, lsBody)
	response := n.settled(first)
	if response.Transaction != "dev:"+x402.ID(x402.DevNetwork, n.server.path.Payments.Terms.Asset, buyer.Address.String(), x402test.Word(t.Name()).String()) || response.Amount != "10000" {
		t.Errorf("%+v", response)
	}
	if got := n.recorded(); !slices.Equal(got, []string{events.TypePaymentClaimed, events.TypePaymentSettled, events.TypeCallCompleted}) {
		t.Errorf("%v", got)
	}
	n.unchanged(func() {
		again := n.pay(quickPath, payment, `{ "command" : "ls" }`)
		if n.settled(again) != response || !bytes.Equal(again.body, first.body) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("the same payment again: %v", again)
		}
		n.refused(n.pay(quickPath, payment, `{"command":"ls /tmp"}`), 409, ground.CodeOtherRequest, "")
	})
	var health struct {
		Payments string `json:"payments"`
	}
	n.get("/api/health").decode(t, &health)
	if health.Payments != "dev" {
		t.Errorf("health says %q", health.Payments)
	}
}

// TestPaidReceiptNamesThePayment checks that the signed receipt of a paid call names the payment,
// and says that no money moved.
func TestPaidReceiptNamesThePayment(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	a := n.pay(runPath, n.order(runPath, "").Header(), `{"command":"rm -rf /"}`)
	n.settled(a)
	var run struct {
		WorkflowID string
		Receipt    struct {
			Record struct{ PaymentID, Settlement string }
		}
	}
	if err := json.Unmarshal(a.body, &run, json.MatchCaseInsensitiveNames(true)); err != nil || run.Receipt.Record.Settlement != "dev" || !strings.HasPrefix(run.Receipt.Record.PaymentID, "pay_") {
		t.Errorf("%+v, %v", run.Receipt.Record, err)
	}
	n.wants(n.get("/api/agent-workflows/action-safety/status/"+run.WorkflowID), 200)
	var envelope struct {
		Receipt map[string]any `json:"receipt"`
	}
	a.decode(t, &envelope)
	text, _ := json.Marshal(envelope.Receipt)
	verdict := n.post("/api/verify", "", string(text)).members(t)
	if verdict["valid"] != true {
		t.Errorf("%v", verdict)
	}
}

// door is one way to call the service.
type door struct {
	name     string
	resource func(n *node) string
	cents    int
	body     string // valid body
	bodies   map[string]string
	call     func(n *node, headers []string, payment *x402test.Order, body string) int
}

func overHTTP(path string) func(*node, []string, *x402test.Order, string) int {
	return func(n *node, headers []string, payment *x402test.Order, body string) int {
		media := "application/json"
		if body == "a=b" {
			media = "application/x-www-form-urlencoded"
		}
		headers = append([]string{"Content-Type", media}, headers...)
		if payment != nil {
			headers = append(headers, "PAYMENT-SIGNATURE", payment.Header())
		}
		a := n.send(http.MethodPost, path, body, headers...)
		n.discreet(a)
		if a.status == 402 {
			n.demands(a, a.members(n.t)["error"].(string))
		}
		return a.status
	}
}

// overMCP returns a function that calls a tool, and returns the HTTP status that its answer
// corresponds to.
func overMCP(tool string) func(*node, []string, *x402test.Order, string) int {
	return func(n *node, headers []string, payment *x402test.Order, body string) int {
		meta := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
		if payment != nil {
			meta += `,"x402/payment":` + string(payment.JSON())
		}
		for i := 0; i < len(headers); i += 2 { // over MCP the message contains the payment
			if headers[i] == "PAYMENT-SIGNATURE" {
				meta += `,"x402/payment":` + fmt.Sprintf("%q", headers[i+1])
				headers = slices.Delete(slices.Clone(headers), i, i+2)
			}
		}
		a := n.send(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s}}}`, tool, body, meta),
			append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28",
				"Mcp-Method", "tools/call", "Mcp-Name", tool}, headers...)...)
		n.discreet(a)
		if a.status != 200 {
			return a.status
		}
		var message struct {
			Result struct {
				IsError    bool           `json:"isError"`
				Structured map[string]any `json:"structuredContent"`
				Content    []struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"result"`
		}
		a.decode(n.t, &message)
		var refused op.Problem
		switch {
		case !message.Result.IsError:
			return 200
		case message.Result.Structured["accepts"] != nil:
			return 402
		case len(message.Result.Content) != 1 || json.Unmarshal([]byte(message.Result.Content[0].Text), &refused) != nil:
			n.t.Errorf("%s", a.body)
		}
		return contract.StatusOf(refused.Code)
	}
}

// TestGate sends every kind of credential with every kind of body over REST, over MCP and as a
// purchase, with x402 off and on. Credential, payment and body must be checked in the same order
// everywhere.
func TestGate(t *testing.T) {
	t.Parallel()
	large := `{"command":"` + strings.Repeat("x", 70_000) + `"}`
	product := "/api/purchase/policy-starter-pack"
	doors := []door{
		{"REST", func(n *node) string { return n.url + quickPath }, 1, lsBody,
			map[string]string{"invalid": `{"command":" ls"}`, "garbage": `{"command"`, "large": large, "form": "a=b", "none": ""}, overHTTP(quickPath)},
		{"MCP", func(*node) string { return "mcp://tool/" + gate }, 1, lsBody, map[string]string{"invalid": `{"command":" ls"}`}, overMCP(gate)},
		{"a purchase", func(n *node) string { return n.url + product }, 0, `{}`,
			map[string]string{"invalid": `{"email":7}`, "garbage": `{"email"`, "large": large, "form": "a=b"}, overHTTP(product)},
	}
	nodes := []*node{startNode(t, setup{}), startNode(t, setup{dev: true})}
	malformed := map[string]int{"invalid": 400, "garbage": 400, "large": 413, "form": 400, "none": 400}
	// off and on are the statuses for a valid body, with x402 off and on. judged reports, for off
	// and on, whether an invalid body gets its own error. If not, the credential alone decides the
	// status.
	for _, c := range []struct {
		name    string
		headers func(n *node) []string
		pays    bool
		off, on int
		judged  [2]bool
		buys    [2]int // the answers for a purchase, if they differ
	}{
		{"nothing", nil, false, 503, 402, [2]bool{}, [2]int{}},
		{"a payment", nil, true, 503, 200, [2]bool{false, true}, [2]int{}},
		{"a payment with a bad key", with("X-API-Key", canary), true, 503, 200, [2]bool{false, true}, [2]int{}},
		{"garbage for a payment", with("PAYMENT-SIGNATURE", canary), false, 503, 402, [2]bool{}, [2]int{}},
		{"garbage for a payment with a key", func(n *node) []string { return []string{"PAYMENT-SIGNATURE", canary, "X-API-Key", n.issueKey()} }, false, 503, 402, [2]bool{}, [2]int{}},
		{"a payment of version 1", with("X-PAYMENT", "eyJ4NDAyVmVyc2lvbiI6MX0="), false, 503, 402, [2]bool{}, [2]int{}},
		{"a key", func(n *node) []string { return []string{"X-API-Key", n.issueKey()} }, false, 200, 200, [2]bool{true, true}, [2]int{503, 402}},
		{"a key as bearer", func(n *node) []string { return []string{"Authorization", "Bearer " + n.issueKey()} }, false, 200, 200, [2]bool{true, true}, [2]int{503, 402}},
		{"an organization's token", func(n *node) []string { return []string{"Authorization", "Bearer " + n.organizationToken()} }, false, 503, 402, [2]bool{}, [2]int{}},
		{"an agent without credit", func(n *node) []string {
			return []string{"Authorization", "Bearer " + n.token(n.register(), "catalog:read")}
		}, false, 503, 402, [2]bool{}, [2]int{}},
		{"a bad key", with("X-API-Key", canary), false, 401, 401, [2]bool{}, [2]int{}},
		{"an unknown token", with("Authorization", "Bearer a.b.c"), false, 401, 401, [2]bool{}, [2]int{}},
		{"a token twice", with("Authorization", "Bearer a.b.c", "Authorization", "Bearer a.b.c"), false, 401, 401, [2]bool{}, [2]int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for mode, n := range nodes {
				n := n.in(t)
				for _, d := range doors {
					want, judged := []int{c.off, c.on}[mode], c.judged[mode]
					if d.name == "a purchase" && c.buys[mode] != 0 {
						want, judged = c.buys[mode], false
					}
					if d.name == "MCP" && strings.Contains(c.name, "with a bad key") {
						continue // over MCP, an invalid key is refused even if the message contains a payment
					}
					try := func(name, body string, want int) {
						var headers []string
						if c.headers != nil {
							headers = c.headers(n)
						}
						var order *x402test.Order
						if c.pays {
							cents := d.cents
							if cents == 0 {
								p, _ := n.app.Product("policy-starter-pack")
								cents = int(p.PriceCents)
							}
							o := buyer.Order(n.server.path.Payments.Terms.Challenge(x402.Resource{URL: d.resource(n)}, cents, nil), fmt.Sprint(t.Name(), d.name, c.name, name), n.clock.Now())
							order = &o
						}
						before := n.head()
						if got := d.call(n, headers, order, body); got != want {
							t.Errorf("x402 %s, %s, %s, %s body: %d, want %d", []string{"off", "on"}[mode], d.name, c.name, name, got, want)
						}
						if after := n.head(); (after != before) != (want == 200) {
							t.Errorf("x402 %s, %s, %s, %s body: %d events", []string{"off", "on"}[mode], d.name, c.name, name, after-before)
						}
					}
					try("good", d.body, want)
					for name, body := range d.bodies {
						if judged {
							try(name, body, malformed[name])
						} else {
							try(name, body, want)
						}
					}
				}
			}
		})
	}
}

func with(pairs ...string) func(*node) []string { return func(*node) []string { return pairs } }

// TestGateBeforeTheCredential checks that a payment header that is sent twice is refused, and that
// a call of something that is not for sale gets no demand for payment.
func TestGateBeforeTheCredential(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	payment := n.order(quickPath, "").Header()
	n.unchanged(func() {
		n.demands(n.post(quickPath, "", lsBody, "PAYMENT-SIGNATURE", payment, "PAYMENT-SIGNATURE", payment), x402.ReasonPayload)
		n.demands(n.post(quickPath, "", lsBody, "X-PAYMENT", "e30="), x402.VersionIsRequired)
		for _, headers := range [][]string{nil, {"PAYMENT-SIGNATURE", payment}, {"X-API-Key", canary}} {
			n.refused(n.post("/api/purchase/no-such-product", "", "{}", headers...), 404, "-", "-")
			n.refused(n.post("/api/purchase/monthly-pass", "", "{}", headers...), 400, "-", "-")
			n.refused(n.post("/api/agent-services/no-such/service", "", "{}", headers...), 404, "-", "-")
			n.refused(n.send(http.MethodPut, quickPath, "{}", headers...), 405, "-", "-")
		}
	})
}

// TestTamperedPayments checks that a payment that differs from the offer buys nothing.
func TestTamperedPayments(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	now := n.clock.Now().Unix()
	for name, c := range map[string]struct {
		change func(*x402test.Order)
		reason string
	}{
		"amount of the terms":    {func(o *x402test.Order) { o.Accepted.Amount = "1" }, x402.ReasonNoMatch},
		"too little":             {func(o *x402test.Order) { o.Authorization.Value = big.NewInt(9999) }, x402.ReasonValue},
		"too much":               {func(o *x402test.Order) { o.Authorization.Value = big.NewInt(10001) }, x402.ReasonValue},
		"recipient of the terms": {func(o *x402test.Order) { o.Accepted.PayTo = buyer.Address.String() }, x402.ReasonNoMatch},
		"recipient":              {func(o *x402test.Order) { o.Authorization.To = buyer.Address }, x402.ReasonRecipient},
		"network":                {func(o *x402test.Order) { o.Accepted.Network = "eip155:8453" }, x402.ReasonNoMatch},
		"chain id signed":        {func(o *x402test.Order) { o.Domain.ChainID = 1 }, x402.ReasonSignature},
		"expired":                {func(o *x402test.Order) { o.Authorization.ValidBefore = big.NewInt(now + 5) }, x402.ReasonValidBefore},
		"valid for too long":     {func(o *x402test.Order) { o.Authorization.ValidBefore = big.NewInt(now + 86_401) }, x402.ReasonValidBefore},
		"not yet valid":          {func(o *x402test.Order) { o.Authorization.ValidAfter = big.NewInt(now + 60) }, x402.ReasonValidAfter},
		"another's signature":    {func(o *x402test.Order) { o.Wallet = x402test.NewWallet("thief") }, x402.ReasonSignature},
		"nonce changed after signing": {func(o *x402test.Order) {
			o.Signature = o.Sign()
			o.Authorization.Nonce = x402test.Word("another")
		}, x402.ReasonSignature},
		"version 1":             {func(o *x402test.Order) { o.Version = 1 }, x402.ReasonVersion},
		"of another endpoint":   {func(o *x402test.Order) { o.Resource = n.url + runPath }, x402.ReasonResource},
		"a contract's, long":    {func(o *x402test.Order) { o.Signature = bytes.Repeat([]byte{1}, 200) }, x402.ReasonSignature},
		"a signature too short": {func(o *x402test.Order) { o.Signature = bytes.Repeat([]byte{1}, 64) }, x402.ReasonSignature},
	} {
		n.unchanged(func() {
			o := n.order(quickPath, name)
			c.change(&o)
			a := n.pay(quickPath, o.Header(), lsBody)
			if a.status != http.StatusPaymentRequired {
				t.Errorf("%s: %v", name, a)
				return
			}
			n.demands(a, c.reason)
		})
	}
	n.unchanged(func() {
		o := n.order(quickPath, "malformed").Named("short")
		n.refused(n.pay(quickPath, o.Header(), lsBody), 400, "invalid_payment_identifier", "")
	})
}

// TestOnePaymentOneRequest checks that a payment that was claimed by one request is refused for
// every other.
func TestOnePaymentOneRequest(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	o := n.order(runPath, "")
	o.Resource = ""
	n.settled(n.pay(runPath, o.Header(), lsBody))
	n.unchanged(func() {
		n.refused(n.pay("/api/agent-services/review-triage/submit", o.Header(), exampleOf(t, "review-triage/submit")), 409, ground.CodeOtherRequest, "")
		n.refused(n.pay(runPath, o.Header(), `{"command":"pwd"}`), 409, ground.CodeOtherRequest, "")
		n.refused(n.pay(runPath, o.Header(), `{"command":" pwd"}`), 400, "-", "-") // the body is checked first
		forged := o
		forged.Signature = bytes.Repeat([]byte{1}, 65)
		n.demands(n.pay(runPath, forged.Header(), lsBody), x402.ReasonSignature)
	})
	named := n.order(quickPath, "named").Named("0123456789abcdef")
	n.settled(n.pay(quickPath, named.Header(), lsBody))
	n.unchanged(func() {
		other := n.order(quickPath, "other").Named("0123456789abcdef")
		n.refused(n.pay(quickPath, other.Header(), lsBody), 409, ground.CodeOtherRequest, "")
	})
}

func exampleOf(t *testing.T, name string) string {
	for _, s := range services.List() {
		if s.Name == name {
			return s.Example
		}
	}
	t.Fatalf("no service %s", name)
	return ""
}

// TestPaidAnswerForEver checks that a paid answer remains available after a long time, other
// terms, a restart and the loss of the signing key, and that its payment still cannot be used for
// another request.
func TestPaidAnswerForEver(t *testing.T) {
	t.Parallel()
	db := Databases.New(t)
	first := startNode(t, setup{on: db, dev: true})
	payment := first.order(runPath, "").Header()
	before := first.pay(runPath, payment, lsBody)
	first.settled(before)
	second := startNode(t, setup{on: db, dev: true, clock: ledgertest.NewClock(first.clock.Now().Add(400 * 24 * time.Hour)), noSigner: true})
	second.server.path.Payments.Terms.MaxTimeoutSeconds = 60 // change the terms
	second.unchanged(func() {
		again := second.pay(runPath, payment, lsBody)
		second.settled(again)
		if diff := cmp.Diff(string(before.body), string(again.body)); diff != "" {
			t.Error(diff)
		}
		second.refused(second.pay(runPath, payment, `{"command":"pwd"}`), 409, ground.CodeOtherRequest, "")
	})
}

// TestEightEqualPaymentsAtOnce checks that eight equal concurrent payments lead to one claim and
// equal answers, and never to a 402.
func TestEightEqualPaymentsAtOnce(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			db, clock := Databases.New(t), f.clock
			var all []*node
			for range nodes {
				all = append(all, startNode(t, setup{on: db, clock: clock, settler: f.settler(t)}))
			}
			payment := all[0].order(quickPath, "").Header()
			answers := make([]answer, 8)
			parallel(len(answers), func(i int) {
				var err error
				if answers[i], err = all[i%nodes].try(http.MethodPost, quickPath, lsBody, append(asJSON(""), "PAYMENT-SIGNATURE", payment)...); err != nil {
					t.Error(err)
				}
			})
			for i, a := range answers {
				all[0].settled(a)
				if !bytes.Equal(a.body, answers[0].body) || a.header.Get(x402.HeaderResponse) != answers[0].header.Get(x402.HeaderResponse) {
					t.Errorf("answer %d is %v", i, a)
				}
			}
			// Only the call that claimed the payment made an attempt.
			want := []string{events.TypePaymentClaimed, events.TypePaymentSettled, events.TypeCallCompleted}
			if diff := cmp.Diff(want, all[0].recorded()); diff != "" || f.chain.Transfers() != 1 {
				t.Errorf("%d transfers\n%s", f.chain.Transfers(), diff)
			}
		})
	}
}

// fake is a facilitator with its chain.
type fake struct {
	clock       *ledgertest.Clock
	chain       *x402test.Chain
	facilitator *x402test.Facilitator
}

func newFake(t *testing.T) *fake {
	f := &fake{clock: ledgertest.NewClock(ledgertest.Present())}
	f.chain = x402test.NewChain(t, f.clock.Now)
	f.facilitator = x402test.NewFacilitator(t, f.chain, f.clock.Now)
	return f
}

// settler returns a new client of the facilitator and the chain.
func (f *fake) settler(t *testing.T) *x402.Facilitator {
	t.Helper()
	s := f.settlerWith(t, f.chain.URL)
	if !s.Configured() {
		t.Fatal("the settler is not configured")
	}
	return s
}

// withoutChain returns a new client that does not ask the chain.
func (f *fake) withoutChain(t *testing.T) *x402.Facilitator { return f.settlerWith(t, "") }

func (f *fake) settlerWith(t *testing.T, chain string) *x402.Facilitator {
	t.Helper()
	s, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: f.facilitator.URL, RPCURL: chain, Network: x402.DevNetwork, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = s.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFaultsOfTheFacilitator checks every failure between us and the facilitator: the payment is
// charged once or not at all, every charge gets its answer, and there is no 402 while the outcome
// is unknown.
func TestFaultsOfTheFacilitator(t *testing.T) {
	t.Parallel()
	type fault = x402test.Fault
	for name, c := range map[string]struct {
		verify, settle []fault
		status         int // status of the first answer
		reason         string
		transfers      int // transfers at the end
		settles        int // calls at the end; -1 means any number
	}{
		"all is well":                      {nil, nil, 200, "", 1, 1},
		"verify refuses":                   {[]fault{{Kind: x402test.Refuse, Reason: "insufficient_funds"}}, nil, 402, "insufficient_funds", 0, 0},
		"verify refuses with a status":     {[]fault{{Kind: x402test.Refuse, Reason: "insufficient_funds", Status: 400}}, nil, 402, "insufficient_funds", 0, 0},
		"verify answers 500":               {[]fault{{Kind: x402test.Status, Status: 500}}, nil, 503, "", 0, 0},
		"verify answers a page":            {[]fault{{Kind: x402test.HTML}}, nil, 503, "", 0, 0},
		"verify answers garbage":           {[]fault{{Kind: x402test.Garbage}}, nil, 503, "", 0, 0},
		"verify is cut":                    {[]fault{{Kind: x402test.Drop}}, nil, 503, "", 0, 0},
		"settle refuses":                   {nil, []fault{{Kind: x402test.Refuse, Reason: "insufficient_funds"}}, 402, "insufficient_funds", 0, 1},
		"settle says the nonce is used":    {nil, []fault{{Kind: x402test.Refuse, Reason: "invalid_exact_evm_nonce_already_used"}}, 200, "", 1, -1},
		"settle answers 500 before":        {nil, []fault{{Kind: x402test.Status, Status: 500}}, 200, "", 1, -1},
		"settle answers a page":            {nil, []fault{{Kind: x402test.HTML}}, 200, "", 1, -1},
		"settle answers garbage":           {nil, []fault{{Kind: x402test.Garbage}}, 200, "", 1, -1},
		"settle is cut before":             {nil, []fault{{Kind: x402test.Drop}}, 200, "", 1, -1},
		"settle is cut after":              {nil, []fault{{Kind: x402test.SettleThenDrop}}, 200, "", 1, -1},
		"settle answers 500 after":         {nil, []fault{{Kind: x402test.SettleThen500}}, 200, "", 1, -1},
		"settle is pending":                {nil, []fault{{Kind: x402test.Pending}}, 200, "", 1, -1},
		"settle is cut before, then after": {nil, []fault{{Kind: x402test.Drop}, {Kind: x402test.SettleThenDrop}}, 200, "", 1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			n := startNode(t, setup{clock: f.clock, settler: f.settler(t)})
			payment := n.order(quickPath, "").Header()
			f.facilitator.Next("verify", c.verify...)
			f.facilitator.Next("settle", c.settle...)
			a := n.pay(quickPath, payment, lsBody)
			switch c.status {
			case 200:
				n.settled(a)
			case 402:
				n.demands(a, c.reason)
				if response := a.header.Get(x402.HeaderResponse); (response != "") != (c.settles > 0) {
					t.Errorf("PAYMENT-RESPONSE %q", response)
				}
			case 503:
				n.refused(a, 503, payments.CodeNoFacilitator, "")
				if len(n.recorded()) != 0 {
					t.Errorf("recorded %v", n.recorded())
				}
			}
			if f.chain.Transfers() != c.transfers || c.settles >= 0 && f.facilitator.Calls("settle") != c.settles {
				t.Errorf("%d transfers, %d calls", f.chain.Transfers(), f.facilitator.Calls("settle"))
			}
			// The same payment again. A payment that was refused before the claim may be valid
			// now. A claimed payment keeps its state.
			again := n.pay(quickPath, payment, lsBody)
			switch {
			case c.status == 402 && c.settles > 0:
				n.demands(again, c.reason)
			default:
				n.settled(again)
				if f.chain.Transfers() != 1 {
					t.Errorf("%d transfers", f.chain.Transfers())
				}
			}
		})
	}
}

// TestDatabaseGoneBetweenSettlingAndRecording checks the case that the money has moved, the
// database is down, and there is no chain to ask: the facilitator's answer is kept until it can be
// recorded.
func TestDatabaseGoneBetweenSettlingAndRecording(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: f.withoutChain(t)})
	payment := n.order(quickPath, "").Header()
	f.facilitator.Next("settle", x402test.Fault{Kind: x402test.Delay})
	answered := make(chan answer, 1)
	go func() {
		a, err := n.try(http.MethodPost, quickPath, lsBody, append(asJSON(""), "PAYMENT-SIGNATURE", payment)...)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	f.facilitator.Await("settle", 1)
	n.db.Away(t)
	f.facilitator.Release()
	n.unsettled(<-answered)
	n.db.Back(t)
	n.settled(n.pay(quickPath, payment, lsBody))
	if f.chain.Transfers() != 1 || f.facilitator.Calls("settle") != 1 {
		t.Errorf("%d transfers, %d calls", f.chain.Transfers(), f.facilitator.Calls("settle"))
	}
}

// TestInvalidRequestIsNotVerified checks that the payment of an invalid request is not even
// verified.
func TestInvalidRequestIsNotVerified(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: f.settler(t)})
	n.unchanged(func() {
		n.refused(n.pay(quickPath, n.order(quickPath, "").Header(), `{"command":" ls"}`), 400, "-", "/command")
	})
	if f.facilitator.Calls("verify") != 0 || f.facilitator.Calls("settle") != 0 {
		t.Errorf("%d verified, %d settled", f.facilitator.Calls("verify"), f.facilitator.Calls("settle"))
	}
}

// TestSlowSettlement checks that a settlement that takes longer than the answer may wait continues
// in the background. The same payment gets the answer later, even if the buyer has disconnected.
func TestSlowSettlement(t *testing.T) {
	t.Parallel()
	for name, hangUp := range map[string]bool{"the buyer waits": false, "the buyer hangs up": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			n := startNode(t, setup{clock: f.clock, settler: f.settler(t), wait: 50 * time.Millisecond})
			payment := n.order(quickPath, "").Header()
			f.facilitator.Next("settle", x402test.Fault{Kind: x402test.Delay})
			if hangUp {
				ctx, cancel := context.WithCancel(t.Context())
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url+quickPath, strings.NewReader(lsBody))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Payment-Signature", payment)
				go func() {
					f.facilitator.Await("settle", 1)
					cancel()
				}()
				if answer, err := n.client.Do(r); err == nil {
					_ = answer.Body.Close() // the answer came first
				}
			} else {
				n.unsettled(n.pay(quickPath, payment, lsBody))
				n.refused(n.pay(quickPath, payment, `{"command":"pwd"}`), 409, ground.CodeOtherRequest, "")
			}
			f.facilitator.Await("settle", 1) // wait for the call, because a call that has not arrived cannot be released
			f.facilitator.Release()
			n.app.PaymentWait = 30 * time.Second
			n.settled(n.pay(quickPath, payment, lsBody))
			if f.chain.Transfers() != 1 || f.facilitator.Calls("settle") != 1 {
				t.Errorf("%d transfers, %d calls", f.chain.Transfers(), f.facilitator.Calls("settle"))
			}
		})
	}
}

// TestReconcilerFindsOutWhatBecameOfAPayment checks a node that dies before it records the outcome
// of a settlement. At the next start the reconciler finds the transfer on the chain, or settles
// the payment, or finds that it has expired, and the buyer gets the answer or the refusal.
func TestReconcilerFindsOutWhatBecameOfAPayment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  x402test.Fault
		calls  int
		expire bool
		status int
	}{
		"settled, not recorded":       {x402test.Fault{Kind: x402test.SettleThenDrop}, 1, false, 200},
		"claimed, not settled":        {x402test.Fault{Kind: x402test.Drop}, 2, false, 200},
		"never settled, and too late": {x402test.Fault{Kind: x402test.Drop}, 1, true, 402},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			db := Databases.New(t)
			first := startNode(t, setup{on: db, clock: f.clock, settler: f.settler(t), wait: time.Nanosecond})
			payment := first.order(runPath, "").Header()
			f.facilitator.Next("settle", c.fault)
			// The node makes one attempt, does not get the answer, and dies.
			first.app.Settling = func(id string, attempt int) <-chan struct{} {
				p, _ := first.app.Payment(t.Context(), id)
				if p.State != payments.PaymentIsClaimed || attempt != 1 {
					t.Errorf("%+v, attempt %d", p, attempt)
				}
				first.app.Settler.Settle(t.Context(), claimedPayment(t, first, id), 1)
				return nil
			}
			first.unsettled(first.pay(runPath, payment, lsBody))
			if got := first.recorded(); !slices.Equal(got, []string{events.TypePaymentClaimed}) {
				t.Fatalf("%v", got)
			}
			if c.expire {
				f.clock.Add(10 * time.Minute)
				f.chain.Advance(f.clock.Now())
			}
			second := startNode(t, setup{on: db, clock: f.clock, settler: f.settler(t), noSigner: true})
			// At its start the reconciler processes the payments in the read model, and later
			// those that are a minute old. While the clock does not advance, no payment gets that
			// old.
			if open, err := second.projections.Payments(t.Context(), "open", 10); err != nil || len(open) != 1 {
				t.Fatalf("%+v, %v", open, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { second.reconciler.Run(ctx); close(done) }()
			defer func() { cancel(); <-done }()
			a := second.pay(runPath, payment, lsBody)
			switch c.status {
			case 200:
				second.settled(a)
			default:
				second.demands(a, x402.ReasonExpiredUnused)
			}
			if want := map[bool]int{true: 0, false: 1}[c.expire]; f.chain.Transfers() != want || f.facilitator.Calls("settle") != c.calls {
				t.Errorf("%d transfers, %d calls", f.chain.Transfers(), f.facilitator.Calls("settle"))
			}
			if open, err := second.projections.Payments(t.Context(), "open", 10); err != nil || len(open) != 0 {
				t.Errorf("%+v, %v", open, err)
			}
		})
	}
}

// claimedPayment returns a payment from its claim.
func claimedPayment(t *testing.T, n *node, id string) payments.Payment {
	history, err := n.app.Ledger.Read(t.Context(), n.app.Ledger.Service(id), "payment/"+id)
	if err != nil {
		t.Fatal(err)
	}
	var claim events.PaymentClaimed
	if err := n.app.Vault.Open(t.Context(), history.Events[0], &claim); err != nil {
		t.Fatal(err)
	}
	p, err := x402.Read([]byte(claim.Payload))
	if err != nil {
		t.Fatal(err)
	}
	return p.Payment
}

// TestReconcilerNeedsNoBuyer checks that the reconciler settles a payment that no caller asks for
// again.
func TestReconcilerNeedsNoBuyer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	n := startNode(t, setup{clock: f.clock, settler: f.settler(t), wait: time.Nanosecond})
	f.facilitator.Always("settle", x402test.Fault{Kind: x402test.Drop})
	n.unsettled(n.pay(quickPath, n.order(quickPath, "").Header(), lsBody))
	f.facilitator.Await("settle", 3) // the attempts of the call that claimed the payment
	// Start the reconciler only now: payments that are open at its start get one attempt, not
	// several.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.reconciler.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	if ready := n.get("/readyz").members(t); ready["openPayments"] != 1.0 {
		t.Errorf("%v", ready)
	}
	f.facilitator.Always("settle", x402test.Fault{})
	for !n.reconciler.Rests() { // wait until the reconciler has made its attempts and scheduled the next one
		runtime.Gosched()
	}
	f.clock.Add(2 * time.Minute) // the next attempt is due
	f.facilitator.Await("settle", 4)
	for n.head() < int64(len(n.app.Ledger.Partitions()))+4 { // one event per partition activates its signing key
		if _, err := n.projections.Payments(t.Context(), "open", 1); err != nil {
			t.Fatal(err)
		}
	}
	list, err := n.projections.Payments(t.Context(), "settled", 10)
	if err != nil || len(list) != 1 || f.chain.Transfers() != 1 {
		t.Errorf("%+v, %v, %d transfers", list, err, f.chain.Transfers())
	}
}

// TestNotConfiguredUntilTheFacilitatorSupportsUs checks that x402 is off while the facilitator
// does not answer or does not settle our kind of payment, and on as soon as it does.
func TestNotConfiguredUntilTheFacilitatorSupportsUs(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.facilitator.Next("supported", x402test.Fault{Kind: x402test.NotSupported})
	settler := f.withoutChain(t)
	n := startNode(t, setup{clock: f.clock, settler: settler})
	n.refused(n.send(http.MethodPost, quickPath, ""), 503, ground.CodeNotConfigured, "")
	if m := n.get("/readyz").members(t); m["facilitator"] != "it does not support eip155:84532, scheme exact, version 2" || !slices.Contains(m["degraded"].([]any), any("facilitator")) {
		t.Errorf("%v", m)
	}
	if m := n.get("/.well-known/x402").members(t); m["configured"] != false || len(m["resources"].([]any)) != 0 || m["payTo"] != nil {
		t.Errorf("%v", m)
	}
	if err := settler.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.unpaid(quickPath)
	if m := n.get("/readyz").members(t); m["facilitator"] != nil || slices.Contains(m["degraded"].([]any), any("facilitator")) {
		t.Errorf("%v", m)
	}
	if m := n.get("/.well-known/x402").members(t); m["configured"] != true || m["settlement"] != "facilitator" {
		t.Errorf("%v", m)
	}
}

// TestEveryPriceFollowsFromItsDeclaration checks that all places state the same prices.
func TestEveryPriceFollowsFromItsDeclaration(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	var manifest discovery.Manifest
	n.get("/.well-known/x402").decode(t, &manifest)
	if diff := cmp.Diff(string(n.get("/.well-known/x402.json").body), string(n.get("/.well-known/x402").body)); diff != "" {
		t.Error(diff)
	}
	var pricing services.Pricing
	n.get("/api/pricing").decode(t, &pricing)
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Price       *struct {
				Price struct{ Amount string }
			} `json:"x-payment-info"`
		}
	}
	if err := json.Unmarshal(n.get("/openapi.json").body, &document, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if len(pricing.Services) != len(services.List()) || pricing.FreeCallsPerMonth != 250 || pricing.Pass == nil || pricing.Pass.PriceUSD != "29.00" || pricing.Pass.CreditCents != 3500 {
		t.Errorf("%+v", pricing)
	}
	for i, s := range services.List() {
		path := op.ServicePath(s)
		required := n.unpaid(path)
		units := fmt.Sprint(s.PriceCents * 10_000)
		dollars := fmt.Sprintf("%d.%02d", s.PriceCents/100, s.PriceCents%100)
		if required.Resource.URL != n.url+path || len(required.Accepts) != 1 || required.Accepts[0].Amount != units {
			t.Errorf("%s: the 402 is %+v", s.Name, required)
		}
		if p := pricing.Services[i]; p != (services.PricedService{OperationID: s.Operation, Path: path, MCPTool: s.Operation, PriceCents: s.PriceCents, PriceUSD: dollars, PassCredits: s.PriceCents}) {
			t.Errorf("%s: the price list has %+v", s.Name, p)
		}
		if item := manifest.Items[i]; !cmp.Equal(item.Resource, required.Resource) || !cmp.Equal(item.Accepts, required.Accepts) || manifest.Resources[i] != n.url+path || item.Input == nil {
			t.Errorf("%s: the manifest has %+v", s.Name, item)
		}
		if o := document.Paths[path]["post"]; o.OperationID != s.Operation || o.Price == nil || o.Price.Price.Amount != dollars {
			t.Errorf("%s: OpenAPI has %+v", s.Name, o)
		}
	}
	products := manifest.Items[len(services.List()):]
	var catalogue apistore.ProductList
	n.get("/api/catalog").decode(t, &catalogue)
	for at, p := range n.app.Products {
		shown := catalogue.Products[at]
		if shown.Slug != p.Slug || shown.PriceCents != p.PriceCents || (shown.X402 != nil) != (p.Kind == store.OneTime) {
			t.Errorf("%s: the catalogue has %+v", p.Slug, shown)
		}
		if p.Kind != store.OneTime {
			continue
		}
		demand := n.unpaid("/api/purchase/" + p.Slug).Accepts[0]
		if shown.X402.Amount != demand.Amount || shown.X402.Network != demand.Network || demand.Amount != fmt.Sprint(p.PriceCents*10_000) ||
			(shown.X402.Note != "") != (p.PriceCents > 100) {
			t.Errorf("%s: the catalogue has %+v, the 402 %+v", p.Slug, shown.X402, demand)
		}
		i := slices.IndexFunc(products, func(o discovery.Offered) bool { return o.Resource.URL == n.url+"/api/purchase/"+p.Slug })
		if i < 0 || products[i].Accepts[0].Amount != fmt.Sprint(p.PriceCents*10_000) {
			t.Errorf("%s: the manifest has %+v", p.Slug, products)
		}
	}
	for _, v := range verdicts {
		var quick quickResult
		n.pay(quickPath, n.order(quickPath, v.risk).Header(), v.body).decode(t, &quick)
		next := quick.NextRecommendedCall
		if next == nil {
			continue
		}
		if i := slices.IndexFunc(pricing.Services, func(p services.PricedService) bool { return p.Path == next.Path }); i < 0 || pricing.Services[i].PriceCents != next.PriceCents {
			t.Errorf("after %s the quick gate names %+v", v.risk, next)
		}
	}
}

// TestPreflight checks that pages of every origin may call operations that need no cookie.
func TestPreflight(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	for _, path := range []string{quickPath, "/api/keys/free", "/api/keys/free/status", "/api/verify", "/api/checkout"} {
		a := n.send(http.MethodOptions, path, "", "Origin", "https://shop.example", "Access-Control-Request-Method", "POST")
		if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Access-Control-Allow-Headers") != op.AllowedHeaders ||
			a.header.Get("Access-Control-Max-Age") != "600" || a.header.Get("Access-Control-Allow-Methods") == "" || a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v %v", path, a, a.header)
		}
	}
	for _, path := range []string{"/api/assurance/decisions", "/api/auth/token", "/api/entitlements/x", "/api/billing-portal"} {
		if a := n.send(http.MethodOptions, path, "", "Origin", "https://shop.example"); a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, a.header)
		}
	}
	if !strings.Contains(op.AllowedHeaders, "X-PAYMENT,") { // a client of x402 v1 must be able to read the answer that refers it to v2
		t.Errorf("the preflight allows %s", op.AllowedHeaders)
	}
	if a := n.send(http.MethodGet, quickPath, "", "Origin", "https://shop.example"); a.status != 405 || a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a 405: %v %v", a, a.header)
	}
	if a := n.send(http.MethodPost, quickPath, lsBody, "Content-Type", "application/json", "X-API-Key", "x"); a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a 401: %v", a.header)
	}
}

// TestRefusedAtTheQuotaWorksWhenPaid checks that a call whose key has no calls left gets an offer
// of payment, and that the same call works with a payment.
func TestRefusedAtTheQuotaWorksWhenPaid(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	key := n.issueKey()
	parallel(10, func(int) {
		for range accounts.FreeCallsPerMonth / 10 {
			if a, err := n.try(http.MethodPost, quickPath, lsBody, asJSON(key)...); err != nil || a.status != 200 {
				t.Errorf("%v, %v", a, err)
			}
		}
	})
	a := n.post(quickPath, key, lsBody)
	n.refused(a, 429, ground.CodeQuota, "")
	m := a.members(t)
	if m["payPerCall"] != true || m["upgradeUrl"] != n.url+"/pricing#monthly-pass" || !strings.Contains(a.header.Get("Link"), `rel="upgrade"`) || a.header.Get("Retry-After") != "" {
		t.Errorf("%v %v", m, a.header)
	}
	n.settled(n.post(quickPath, key, lsBody, "PAYMENT-SIGNATURE", n.order(quickPath, "").Header()))
	if used := n.used(key); used != accounts.FreeCallsPerMonth {
		t.Errorf("%d calls used", used)
	}
}

// TestPaidCallsAreSealed checks that the log contains nothing of a payment, and that the buyer's
// request and its answer are encrypted.
func TestPaidCallsAreSealed(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	order := n.order(quickPath, "")
	n.settled(n.pay(quickPath, order.Header(), `{"command":"echo `+canary+`"}`))
	n.absent(canary)
	if strings.Contains(n.log.String(), hex.EncodeToString(order.Sign())) || strings.Contains(n.log.String(), order.Header()) {
		t.Error("the log holds a payment")
	}
}

// TestEveryReasonOfARefusedPaymentIsExplained checks that the documentation lists every reason
// with which a payment is refused.
func TestEveryReasonOfARefusedPaymentIsExplained(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	text := string(n.get("/docs/payments.md").body)
	file, err := parser.ParseFile(token.NewFileSet(), "x402/reason.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	reasons := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is {
			return true
		}
		for _, value := range spec.Values {
			if reason, is := literal(value); is && !strings.HasPrefix(reason, "_") { // the suffix of a facilitator's reason
				if reasons++; !strings.Contains(text, "`"+reason+"`") {
					t.Errorf("/docs/payments does not explain %s", reason)
				}
			}
		}
		return true
	})
	if reasons < 12 {
		t.Errorf("only %d reasons were found", reasons)
	}
}
