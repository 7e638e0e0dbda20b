package api

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/ledger/ledgertest"
)

const (
	gate    = "action_safety_quick_gate"
	command = `{"command":"git push --force origin main"}`
)

// demanded returns the demand for a payment in a tool's answer.
func (n *node) demanded(a toolAnswer) x402.PaymentRequired {
	n.t.Helper()
	var required x402.PaymentRequired
	if err := json.Unmarshal([]byte(a.structured), &required); err != nil || !a.isError {
		n.t.Fatalf("%+v: %v", a, err)
	}
	var text, structured any
	if json.Unmarshal([]byte(a.text), &text) != nil || json.Unmarshal([]byte(a.structured), &structured) != nil {
		n.t.Fatalf("%+v", a)
	}
	if diff := cmp.Diff(structured, text); diff != "" {
		n.t.Errorf("text and structured content differ:\n%s", diff)
	}
	return required
}

// ended returns the outcome of the payment of a tool call.
func ended(t *testing.T, a toolAnswer) x402.SettleResponse {
	t.Helper()
	text, err := json.Marshal(a.meta["x402/payment-response"])
	if err != nil {
		t.Fatal(err)
	}
	var r x402.SettleResponse
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func payment(o x402test.Order) any { return jsonRaw(o.JSON()) }

// TestToolsArePaidFor checks that a tool without a payment demands its price, like REST. With a
// payment the answer is computed once and can be fetched over REST, too. A payment for one call
// does not pay for another.
func TestToolsArePaidFor(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	wallet := x402test.NewWallet("payer")
	rest, err := x402.ReadRequired(n.post(quickPath, "", "").header.Get("Payment-Required"))
	if err != nil {
		t.Fatal(err)
	}
	for _, era := range eras {
		// A payment in an HTTP header belongs to no tool and is ignored; in a message it is used.
		session := n.dial(era, "PAYMENT-SIGNATURE", wallet.Order(rest, "in the header "+era, n.clock.Now()).Header())
		var required x402.PaymentRequired
		n.unchanged(func() { required = n.demanded(n.callTool(session, gate, command)) })
		if required.Resource.URL != "mcp://tool/"+gate || required.Error != "Payment required" || required.Extensions["bazaar"] != nil || required.Extensions["payment-identifier"] == nil {
			t.Errorf("%+v", required)
		}
		if diff := cmp.Diff(rest.Accepts, required.Accepts); diff != "" {
			t.Errorf("offers (-REST +MCP):\n%s", diff)
		}
		order := wallet.Order(required, "nonce "+era, n.clock.Now())
		paid := n.callTool(session, gate, command, "x402/payment", payment(order))
		if response := ended(t, paid); paid.isError || !strings.Contains(paid.structured, `"risk":"critical"`) || paid.structured != paid.text ||
			!response.Success || response.Payer != wallet.Address.String() || response.Amount != "10000" || !strings.HasPrefix(response.Transaction, "dev:pay_") {
			t.Errorf("%+v", paid)
		}
		n.unchanged(func() {
			again := n.callTool(session, gate, command, "x402/payment", payment(order))
			if diff := cmp.Diff(ended(t, paid), ended(t, again)); diff != "" || again.structured != paid.structured {
				t.Errorf("again: %+v\n%s", again, diff)
			}
			over := n.post(quickPath, "", command, "PAYMENT-SIGNATURE", order.Header())
			if over.status != 200 || string(over.body) != paid.structured {
				t.Errorf("over REST: %v", over)
			}
			n.refusedTool(n.callTool(session, gate, `{"command":"ls"}`, "x402/payment", payment(order)), 409,
				n.post(quickPath, "", `{"command":"ls"}`, "PAYMENT-SIGNATURE", order.Header()))
			other := wallet.Order(required, "other "+era, n.clock.Now())
			n.refusedTool(n.callTool(session, gate, `{}`, "x402/payment", payment(other)), 400,
				n.post(quickPath, "", `{}`, "PAYMENT-SIGNATURE", wallet.Order(rest, "other "+era, n.clock.Now()).Header()))
		})
	}
}

// TestAToolsBadPayments checks that a refused payment is answered with the reason and a new offer,
// and that nothing is charged, even if the same request has a valid key.
func TestAToolsBadPayments(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	key := n.issueKey()
	wallet := x402test.NewWallet("payer")
	session := n.dial(eras[1], "X-API-Key", key)
	required := n.demanded(n.callTool(n.dial(eras[1]), gate, command))
	dear := n.demanded(n.callTool(n.dial(eras[1]), "options_price", `{}`))
	good := wallet.Order(required, "good", n.clock.Now())
	tampered := good
	tampered.Signature = wallet.Order(required, "another", n.clock.Now()).Sign()
	elsewhere := good
	elsewhere.Resource = "mcp://tool/command_risk_score"
	n.unchanged(func() {
		for reason, sent := range map[string]any{
			"invalid_payload":                  "a string",
			"invalid_x402_version":             map[string]any{"x402Version": 1},
			"invalid_exact_evm_signature":      payment(tampered),
			"resource_mismatch":                payment(elsewhere),
			"No matching payment requirements": payment(wallet.Order(dear, "dear", n.clock.Now())),
		} {
			again := n.demanded(n.callTool(session, gate, command, "x402/payment", sent))
			if again.Error != reason {
				t.Errorf("%s: %q", reason, again.Error)
			}
			if diff := cmp.Diff(required.WithError(reason), again); diff != "" {
				t.Errorf("%s is no new offer (-want +got):\n%s", reason, diff)
			}
		}
	})
}

// settlingNode returns a node whose payments settle on a chain.
func settlingNode(t *testing.T, wait time.Duration) (*node, *x402test.Facilitator, *x402test.Chain) {
	t.Helper()
	clock := ledgertest.NewClock(ledgertest.Present())
	chain := x402test.NewChain(t, clock.Now)
	facilitator := x402test.NewFacilitator(t, chain, clock.Now)
	settler, err := x402.NewFacilitator(x402.FacilitatorConfig{URL: facilitator.URL, Network: x402.DevNetwork, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := settler.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return startNode(t, setup{clock: clock, settler: settler, wait: wait}), facilitator, chain
}

// TestABuyerHangsUpOnATool checks that a buyer who disconnects during the settlement pays once and
// can fetch the answer later, with each protocol version in eras. In one of these versions, the
// end of a request cancels its call.
func TestABuyerHangsUpOnATool(t *testing.T) {
	t.Parallel()
	n, facilitator, chain := settlingNode(t, 0)
	for i, era := range eras {
		session := n.dial(era)
		order := x402test.NewWallet("payer").Order(n.demanded(n.callTool(session, gate, command)), "nonce "+era, n.clock.Now())
		facilitator.Next("settle", x402test.Fault{Kind: x402test.Delay})
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: gate, Arguments: jsonRaw(command), Meta: sdk.Meta{"x402/payment": payment(order)}})
			gone <- err
		}()
		facilitator.Await("settle", i+1)
		hangUp()
		if err := <-gone; err == nil {
			t.Error("the call was answered before it settled")
		}
		facilitator.Release()
		a := n.callTool(n.dial(era), gate, command, "x402/payment", payment(order))
		if a.isError || !ended(t, a).Success || chain.Transfers() != i+1 {
			t.Errorf("%s: %d transfers, %+v", era, chain.Transfers(), a)
		}
	}
}

// TestAToolsPaymentWithoutAnEnd checks that a tool call whose payment has an unknown outcome is
// not answered with a demand for another payment, but with a text that contains the state of the
// payment.
func TestAToolsPaymentWithoutAnEnd(t *testing.T) {
	t.Parallel()
	n, facilitator, chain := settlingNode(t, time.Millisecond)
	facilitator.Always("settle", x402test.Fault{Kind: x402test.SettleThenDrop})
	session := n.dial(eras[1])
	order := x402test.NewWallet("payer").Order(n.demanded(n.callTool(session, gate, command)), "nonce", n.clock.Now())
	a := n.callTool(session, gate, command, "x402/payment", payment(order))
	if response := ended(t, a); !a.isError || a.structured != "" || response.Success || response.ErrorReason != "settlement_pending" {
		t.Errorf("%+v", a)
	}
	var problem struct {
		Error, Code, PaymentID, Retry string
	}
	if err := json.Unmarshal([]byte(a.text), &problem, json.MatchCaseInsensitiveNames(true)); err != nil || problem.Error != "settlement_pending" ||
		problem.Code != "settlement_pending" || !strings.HasPrefix(problem.PaymentID, "pay_") || problem.Retry == "" {
		t.Errorf("%s: %v", a.text, err)
	}
	facilitator.Await("settle", 1)
	if transfers := chain.Transfers(); transfers != 1 {
		t.Errorf("%d transfers", transfers)
	}
}

// TestAToolAtTheQuotaIsPaidFor checks that a tool call whose key has no calls left gets an offer
// of payment, and that the same call works with a payment.
func TestAToolAtTheQuotaIsPaidFor(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	key := n.issueKey()
	n.spend(key, 250)
	session := n.dial(eras[0], "X-API-Key", key)
	if a := n.callTool(session, gate, command); !a.isError || a.structured != "" || !strings.Contains(a.text, `"payPerCall":true`) {
		t.Errorf("%+v", a)
	}
	order := x402test.NewWallet("payer").Order(n.demanded(n.callTool(n.dial(eras[0]), gate, command)), "nonce", n.clock.Now())
	if a := n.callTool(session, gate, command, "x402/payment", payment(order)); a.isError || !ended(t, a).Success {
		t.Errorf("%+v", a)
	}
}

// TestAnAgentsTokenPaysForTools checks that an agent's access token pays with the agent's credit,
// as over REST. A call that the credit does not cover can be paid by x402.
func TestAnAgentsTokenPaysForTools(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	poor, rich := n.register(), n.register()
	n.wants(n.claim("Cookie", n.signIn("owner@example.com"), "Authorization", "Bearer "+n.token(rich, ""), "Origin", n.url, "Content-Type", "application/json"), 200)
	for _, era := range eras {
		n.demanded(n.callTool(n.dial(era, "Authorization", "Bearer "+n.token(poor, "")), gate, command))
		session := n.dial(era, "Authorization", "Bearer "+n.token(rich, ""))
		if a := n.callTool(session, gate, command); a.isError || a.meta["x402/payment-response"] != nil || !strings.Contains(a.structured, `"risk":"critical"`) {
			t.Errorf("%+v", a)
		}
	}
	status := n.send("GET", "/api/keys/free/status", "", "Authorization", "Bearer "+n.token(rich, ""))
	if n.wants(status, 200); !strings.Contains(string(status.body), `"usedCents":2`) {
		t.Errorf("%v", status)
	}
}

// TestADemandFitsTheOutputSchema checks that a demand for payment matches the tool's output
// schema, which a client may validate.
func TestADemandFitsTheOutputSchema(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	session := n.dial(eras[1])
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if how := session.InitializeResult().Instructions; !strings.Contains(how, "x402/payment") {
		t.Errorf("the instructions do not say how to pay: %s", how)
	}
	for _, tool := range list.Tools {
		o := n.server.table.Find(tool.Name)
		if o == nil || o.Service == nil {
			continue
		}
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: map[string]any{}})
		if err != nil || !result.IsError {
			t.Errorf("%s: %v %v", tool.Name, result, err)
			continue
		}
		if err := compileJSON(t, tool.Name, tool.OutputSchema).Validate(result.StructuredContent); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
		var demand struct {
			Accepts []x402.Requirements `json:"accepts"`
		}
		text, _ := json.Marshal(result.StructuredContent)
		if err := json.Unmarshal(text, &demand); err != nil {
			t.Fatal(err)
		}
		want := []x402.Requirements{n.server.path.Payments.Terms.Offer(o.Service.PriceCents)}
		if diff := cmp.Diff(want, demand.Accepts); diff != "" {
			t.Errorf("%s: offers (-want +got):\n%s", tool.Name, diff)
		}
	}
}
