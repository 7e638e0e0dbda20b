package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// TestEveryPaidExampleReproduces checks that every service's paid example can be reproduced, so
// that none is refunded.
func TestEveryPaidExampleReproduces(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	d := n.openAPIDocument()
	refunds := described{"post", "/api/refunds", d.at("paths", "/api/refunds", "post").(map[string]any)}
	for _, s := range services.List() {
		path := op.ServicePath(s)
		o := n.order(path, s.Name)
		n.settled(n.pay(path, o.Header(), s.Example))
		id := x402.ID(x402.DevNetwork, n.server.path.Payments.Terms.Asset, buyer.Address.String(), o.Authorization.Nonce.String())
		a := n.post("/api/refunds", "", fmt.Sprintf(`{"paymentId":%q,"operation":%q,"request":%s}`, id, s.Operation, s.Example))
		n.wants(a, 200)
		d.valid(t, refunds, a)
		m := a.members(t)
		if m["reproduced"] != true || m["refund"] != nil || m["recordedOutputHash"] != m["recomputedOutputHash"] || m["paymentId"] != id {
			t.Errorf("%s: %v", s.Name, m)
		}
	}
}

func TestRefundRefusals(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	o := n.order(quickPath, "")
	n.settled(n.pay(quickPath, o.Header(), lsBody))
	id := x402.ID(x402.DevNetwork, n.server.path.Payments.Terms.Asset, buyer.Address.String(), o.Authorization.Nonce.String())
	ask := func(id, operation, request string) answer {
		return n.post("/api/refunds", "", fmt.Sprintf(`{"paymentId":%q,"operation":%q,"request":%s}`, id, operation, request))
	}
	const quick = "action_safety_quick_gate"
	n.unchanged(func() {
		n.wants(ask(id, quick, ` { "command" : "ls" } `), 200)
		n.refused(ask("pay_"+strings.Repeat("0", 32), quick, lsBody), 404, ground.CodeNotFound, "")
		n.refused(ask(id, quick, `{"command":"pwd"}`), 409, ground.CodeOtherRequest, "")
		n.refused(ask(id, "agent_action_safety_loop", lsBody), 409, ground.CodeOtherRequest, "")
		n.refused(ask(id, canary, lsBody), 400, "unknown_operation", "/operation")
		for _, purchase := range []string{"purchase_product", "probe_purchase"} {
			a := ask(id, purchase, `{}`)
			n.refused(a, 400, "unknown_operation", "/operation")
			if !strings.Contains(string(a.body), n.url+"/refunds has the contact") {
				t.Errorf("%s leads nowhere: %s", purchase, a.body)
			}
		}
		n.refused(ask("pay_1", quick, lsBody), 400, "-", "/paymentId")
		n.refused(ask(id, quick, `7`), 400, "-", "/request")
	})
}

// TestSampleRaisesTheAlarm checks that the daily sample reports wrong calls and no correct ones.
func TestSampleRaisesTheAlarm(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	n.settled(n.pay(quickPath, n.order(quickPath, "").Header(), lsBody))
	const alarm = "a settled call has another result when it is computed again"
	if n.reconciler.Sample(t.Context()); strings.Contains(n.log.String(), alarm) {
		t.Errorf("%s", n.log)
	}
	type input struct {
		Command string `json:"command"`
	}
	type output struct {
		Command string `json:"command"`
	}
	changed := policy.Declare(policy.Service{Name: "changed", Operation: "action_safety_quick_gate", Bare: true},
		func(in input) (output, error) { return output(in), nil })
	n.server.table.Find(changed.Operation).Service = &changed
	if n.reconciler.Sample(t.Context()); !strings.Contains(n.log.String(), alarm) {
		t.Errorf("%s", n.log)
	}
}

// TestARefundIsDocumentedByExample checks that the contract and the page that promises refunds
// show what to send, with every member.
func TestARefundIsDocumentedByExample(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	page := string(n.get("/refunds.md").body)
	for _, member := range []string{"paymentId", "operation", "request"} {
		if !strings.Contains(page, `"`+member+`"`) {
			t.Errorf("/refunds does not name %s", member)
		}
	}
	d := n.openAPIAt("/openapi-full.json")
	if example := d.at("paths", "/api/refunds", "post", "requestBody", "content", "application/json", "example"); example == nil {
		t.Error("the contract has no example")
	}
	n.refused(n.post("/api/refunds", "", n.server.table.Find("request_refund").Example), http.StatusNotFound, "not_found", "")
}
