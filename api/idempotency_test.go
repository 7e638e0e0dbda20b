package api

import (
	"net/http"
	"testing"
)

// repeatable are the POSTs without a charge that may be sent again, and why nothing
// is made twice. All others refuse an Idempotency-Key, which they could not honour.
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
	"request_sign_in":         "a letter, of which there are few",
	"sign_out":                "out is out",
	"send_webhook_again":      "the message keeps its id",
	"verify_record":           "it reads",
	"report_guard_log":        "a part follows on the one before, and the same part is answered as it was",
}

// An Idempotency-Key works on every POST that creates something, or is refused.
func TestEveryPostKeepsOrRefusesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, op := range operations() {
		if op.method != http.MethodPost || op.service != nil {
			continue
		}
		seen++
		if op.anew == (repeatable[op.id] != "") {
			t.Errorf("%s: it creates anew (%v), or it may be sent again because %q", op.id, op.anew, repeatable[op.id])
		}
	}
	if seen < 20 {
		t.Errorf("only %d operations were looked at", seen)
	}
}
