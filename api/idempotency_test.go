package api

import (
	"net/http"
	"testing"

	"github.com/countersign/countersign/api/op"
)

// repeatable lists the free POSTs that may be sent again, with the reason why that creates nothing
// twice. All others refuse an Idempotency-Key, because they could not honour it.
var repeatable = map[string]string{
	"assurance_decide":        "idempotencyKey is a member of the body",
	"assurance_bind_receipt":  "a decision has one receipt",
	"assurance_approve":       "a decision has one approval",
	"activate_policy":         "a draft is activated once",
	"freeze_policies":         "frozen is frozen, and must never be refused for a header",
	"choose_organization":     "it changes the session",
	"add_member":              "somebody is a member once",
	"open_billing_portal":     "a link to what is there",
	"create_download":         "a link to what was bought",
	"purchase_product":        "the payment is the key",
	"request_refund":          "a payment has one refund",
	"request_access_token":    "tokens end by themselves",
	"revoke_access_token":     "revoked is revoked",
	"introspect_access_token": "it reads",
	"claim_agent":             "an agent is claimed once",
	"request_sign_in":         "each call sends an e-mail, and few are allowed",
	"sign_out":                "out is out",
	"send_webhook_again":      "the message keeps its id",
	"verify_record":           "it reads",
	"report_guard_log":        "a part follows on the one before, and the same part is answered as it was",
}

// TestEveryPostKeepsOrRefusesAnIdempotencyKey checks that every POST that creates something
// honours an Idempotency-Key or refuses it.
func TestEveryPostKeepsOrRefusesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, o := range operations() {
		if o.Method != http.MethodPost || o.Service != nil {
			continue
		}
		seen++
		if o.Creates == (repeatable[o.ID] != "") {
			t.Errorf("%s needs Creates, or a reason in repeatable of api/idempotency_test.go why it may be sent again, and not both: %v, %q", o.ID, o.Creates, repeatable[o.ID])
		}
	}
	if seen < 20 {
		t.Errorf("only %d operations were looked at", seen)
	}
}

// TestAnIdempotencyKeyShows checks that a key must be one line of visible characters, in the
// header as in the body. Line separators and invisible characters would make two different keys
// look alike.
func TestAnIdempotencyKeyShows(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	for _, separator := range []string{"\u2028", "\u2029", "\u0085", "\u200b"} {
		bad := "a" + separator + "b"
		a := n.send(http.MethodPost, quickPath, lsBody, "Content-Type", "application/json", "X-API-Key", key, "Idempotency-Key", bad)
		n.refused(a, 400, op.CodeInvalidBody, "")
		n.refused(n.post(runPath, key, `{"command":"ls","idempotencyKey":"`+bad+`"}`), 400, "out_of_range", "/idempotencyKey")
		for _, member := range []string{"runId", "agentId", "purpose"} {
			a := n.send(http.MethodPost, "/api/assurance/decisions", `{"protocol":"mcp","idempotencyKey":"k","subject":{`+map[bool]string{true: ``, false: `"runId":"r",`}[member == "runId"]+`"`+member+`":"`+bad+`"},"intent":{"serverId":"s","toolName":"t"}}`,
				"Content-Type", "application/json", "Authorization", "Bearer "+n.organizationToken())
			if a.status != 400 {
				t.Errorf("%q in %s: %v", separator, member, a)
			}
		}
	}
}
