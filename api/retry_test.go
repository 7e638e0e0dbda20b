package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
)

// TestEveryPaidToolTakesAnIdempotencyKey checks for every paid tool what the instructions tell a
// model to do after a time-out: the same call with the same idempotencyKey gets the same answer
// and is counted once. Over HTTP the key is a header.
func TestEveryPaidToolTakesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	session := n.dial(eras[0], "X-API-Key", key)
	for _, s := range services.List() {
		keyed := `{"idempotencyKey":"retry-` + s.Operation + `",` + strings.TrimPrefix(strings.TrimSpace(s.Example), "{")
		before := n.used(key)
		first := n.callTool(session, s.Operation, keyed)
		again := n.callTool(session, s.Operation, keyed)
		if first.isError || again.text != first.text || n.used(key) != before+1 {
			t.Errorf("%s: %+v\nand again %+v; %d calls counted", s.Operation, first, again, n.used(key)-before)
		}
		o := n.server.table.Find(s.Operation)
		if !o.KeyOutsideBody() {
			continue // the key is a member of the body, so the hash in the answer covers it
		}
		rest := n.post(op.ServicePath(s), key, s.Example, "Idempotency-Key", "retry-"+s.Operation)
		if n.wants(rest, http.StatusOK); string(rest.body) != first.text {
			t.Errorf("%s over HTTP is another call: %s", s.Operation, rest.body)
		}
		reused := n.callTool(session, s.Operation, `{"idempotencyKey":"retry-`+s.Operation+`"}`)
		if !reused.isError {
			t.Errorf("%s without its members: %+v", s.Operation, reused)
		}
	}
	for key, code := range map[string]string{`""`: "out_of_range", `7`: "wrong_type", `"` + strings.Repeat("x", 201) + `"`: "too_long"} {
		a := n.callTool(session, "action_safety_quick_gate", `{"command":"ls","idempotencyKey":`+key+`}`)
		if !a.isError || !strings.Contains(a.text, `"`+code+`"`) || !strings.Contains(a.text, `"/idempotencyKey"`) {
			t.Errorf("%s: %+v", key, a)
		}
	}
	if a := n.callTool(session, "action_safety_quick_gate", `{"command":"pwd","idempotencyKey":"retry-action_safety_quick_gate"}`); !a.isError || !strings.Contains(a.text, "idempotency_key_reused") {
		t.Errorf("another command with the same key: %+v", a)
	}
	if a := n.callTool(session, "action_safety_quick_gate", `{"command":"ls","idempotencyKey":null}`); a.isError {
		t.Errorf("null is absent: %+v", a)
	}
	other := n.dial(eras[0], "X-API-Key", key, "Idempotency-Key", "another")
	if a := n.callTool(other, "action_safety_quick_gate", `{"command":"ls","idempotencyKey":"one"}`); !a.isError || !strings.Contains(a.text, "inconsistent_input") {
		t.Errorf("two keys: %+v", a)
	}
}
