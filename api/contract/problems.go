package contract

import (
	"net/http"
	"sync"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/policy/assurance"
)

// explained is the text of the page that explains an error code. Only answers with status 200 are
// charged, so the texts in charged nearly all begin with "no".
type explained struct {
	code                        string
	status                      int
	cause, charged, retry, send string
}

const (
	uncharged = "no"
	never     = "no: the answer would be the same"
	sameAgain = "yes, the same body with the same Idempotency-Key or PAYMENT-SIGNATURE; never a new payment"
)

// problems lists every error code, in the order of the page: errors of the request, of the caller,
// of the service. It is the only table that maps codes to statuses. A code that is not listed
// concerns the body and has status 400.
var problems = []explained{
	{"invalid_request", http.StatusBadRequest, "The body or a header does not have the documented shape: not JSON, of another content type, or unreadable.", uncharged, never, "JSON as the operation's schema has it, with Content-Type: application/json."},
	{"invalid_json", http.StatusBadRequest, "The body is no strict JSON: a text is not UTF-8, a number is too large, or something follows the end.", uncharged, never, "One JSON object, as your library writes it."},
	{"duplicate_field", http.StatusBadRequest, "A member stands twice in one object, of which readers take one or the other.", uncharged, never, "Each member once; path names the object."},
	{"missing_field", http.StatusBadRequest, "A required member is not there.", uncharged, never, "The member that path names."},
	{"unknown_field", http.StatusBadRequest, "There is a member that the operation does not know. Its name may differ in case only.", uncharged, never, "Only the documented members."},
	{"wrong_type", http.StatusBadRequest, "A member has another JSON type than the documented one.", uncharged, never, "The type that the message names. Numbers are not written as texts."},
	{"invalid_enum", http.StatusBadRequest, "A member has none of the documented values.", uncharged, never, "One of the values in the schema, in lower case."},
	{"invalid_value", http.StatusBadRequest, "A member has the right type, and its value cannot be used; the message says why.", uncharged, never, "A value as the message asks for it."},
	{"invalid_format", http.StatusBadRequest, "A text is not in the documented form.", uncharged, never, "The form that the message names."},
	{"invalid_date", http.StatusBadRequest, "A date or time is not one, or is not in the documented form.", uncharged, never, "YYYY-MM-DD, or RFC 3339 with a zone."},
	{"out_of_range", http.StatusBadRequest, "A value is too small, too large, or not of the documented form; of a text: it may begin or end with white space.", uncharged, never, "A value within the bounds of the schema, trimmed."},
	{"too_long", http.StatusBadRequest, "A text is longer than its bound.", uncharged, never, "The whole, if it can be shorter. Never a cut command: what is cut off is not judged."},
	{"too_many_items", http.StatusBadRequest, "A list is longer than its bound.", uncharged, never, "Several calls, or a shorter list."},
	{"mutually_exclusive", http.StatusBadRequest, "Two members exclude each other.", uncharged, never, "One of the two that the message names."},
	{"inconsistent_input", http.StatusBadRequest, "Two members contradict each other.", uncharged, never, "Members that agree; the message names both."},
	{"invalid_workflow_id", http.StatusBadRequest, "The workflow id does not begin with asw_ followed by a UUID.", uncharged, never, "The workflowId as it was answered."},
	{"invalid_email", http.StatusBadRequest, "The e-mail address is not one, or has more than 254 characters.", uncharged, never, "One plain address."},
	{"invalid_cursor", http.StatusBadRequest, "The cursor is not one that a page gave, or what it names is gone.", uncharged, never, "nextCursor as it was answered, or no cursor for the first page."},
	{"invalid_log", http.StatusBadRequest, "The lines of a guard's log do not follow one another: one was changed, left out or put in.", "nothing was recorded", never, "The lines as they were written; countersign gate log says where the chain is broken."},
	{"invalid_signature", http.StatusBadRequest, "The signature is not of that key over these lines.", "nothing was recorded", never, "The report as countersign gate log push makes it."},
	{"invalid_payment_identifier", http.StatusBadRequest, "The payment identifier of the x402 extension has another form.", uncharged, never, "16 to 128 letters, digits, hyphens and underscores."},
	{"subscription_product", http.StatusBadRequest, "A subscription cannot be bought over x402.", uncharged, never, "POST /api/checkout."},
	{"unknown_operation", http.StatusBadRequest, "No service has that operation.", uncharged, never, "The operationId of the call that was paid for."},
	{"arguments_hash_mismatch", http.StatusBadRequest, "toolArgumentsHash is not the hash of toolArguments.", uncharged, never, "The SHA-256 of the canonical arguments, or the arguments alone."},
	{"no_cash_flows", http.StatusBadRequest, "All cash flows are zero.", uncharged, never, "At least one flow that is not zero."},
	{"growth_not_below_discount_rate", http.StatusBadRequest, "A growing perpetuity needs a growth rate below the discount rate.", uncharged, never, "A smaller growth rate, or an exit multiple."},
	{"yield_not_found", http.StatusBadRequest, "The price has no single yield.", uncharged, never, "A price that the cash flows can reach."},
	{"price_outside_no_arbitrage_bounds", http.StatusBadRequest, "No volatility gives that price.", uncharged, never, "A market price within the bounds that the message names."},
	{"weights_do_not_sum_to_one", http.StatusBadRequest, "The weights of the positions do not sum to 1.", uncharged, never, "Weights that do, or market values for all."},
	{"returns_incomplete", http.StatusBadRequest, "The positions have not all the same number of returns.", uncharged, never, "Returns of one length for every position, or for none."},
	{"catch_up_not_above_carry", http.StatusBadRequest, "A catch-up at or below the carry never catches up.", uncharged, never, "A catchUpRate above carryRate."},
	{"empty_manifest", http.StatusBadRequest, "The manifest has neither tools nor a way to start or reach a server.", uncharged, never, "The whole manifest."},

	{ground.CodeUnauthorized, http.StatusUnauthorized, "There is no credential, or it is unknown, revoked or expired; or one header stands twice.", uncharged, "no: with a credential that is good", "X-API-Key with a key of POST /api/keys/free, a PAYMENT-SIGNATURE, or a new token."},
	{accounts.CodeInvalidClient, http.StatusUnauthorized, "The client id or secret is wrong.", uncharged, never, "The pair as it was registered; POST /api/auth/register makes a new one."},
	{organizations.CodeForbidden, http.StatusForbidden, "The credential is good and has not this right, or the request comes from another site.", uncharged, never, "A credential of a role or organization that may."},
	{accounts.CodeInsufficientScope, http.StatusForbidden, "The token lacks the scope.", uncharged, "no: with a token that has it", "A token requested with the scope; a claim may have to come first."},
	{store.CodeNoEntitlement, http.StatusForbidden, "There is no access to that product.", uncharged, never, "Buy it, or ask as who bought it."},
	{store.StatusCanceled, http.StatusForbidden, "Access has ended: the subscription was canceled.", uncharged, never, "A new subscription."},
	{store.StatusPastDue, http.StatusForbidden, "Access is suspended: a payment of the subscription is late.", uncharged, "yes, after the payment", "POST /api/billing-portal leads to where it is paid."},
	{store.StatusExpired, http.StatusForbidden, "Access has ended with its period.", uncharged, never, "A new purchase."},
	{store.StatusRefunded, http.StatusForbidden, "Access has ended with a refund.", uncharged, never, "A new purchase."},
	{store.StatusDisputed, http.StatusForbidden, "Access is suspended while the payment is disputed.", uncharged, "yes, after the dispute", "Whatever the dispute needs."},
	{store.StatusRevoked, http.StatusForbidden, "The operator has ended access.", uncharged, never, "Ask the operator."},

	{ground.CodeNotFound, http.StatusNotFound, "There is nothing at this address, or nothing that this credential may see.", uncharged, never, "An address of /openapi-full.json."},
	{op.CodeNoProduct, http.StatusNotFound, "No product has that slug.", uncharged, never, "A slug of GET /api/catalog."},
	{op.CodeMethod, http.StatusMethodNotAllowed, "The address does not take this method.", uncharged, never, "One of the methods that the header Allow names."},
	{op.CodeTooLarge, http.StatusRequestEntityTooLarge, "The body is larger than the operation takes.", uncharged, never, "A smaller body; the message names the limit."},
	{accounts.CodeGone, http.StatusGone, "The link was used, or is too old.", uncharged, never, "A new link."},

	{ground.CodeKeyReused, http.StatusConflict, "The idempotency key was used for another content.", uncharged, never, "A new key for a new purpose; the same content for a retry."},
	{ground.CodeOtherRequest, http.StatusConflict, "The payment, or its payment identifier, belongs to another request than this one.", "no: a payment is charged once, for the request it was made for", never, "For its answer: the operation and body that were paid for, with the same PAYMENT-SIGNATURE. For another request: a payment of its own."},
	{ground.CodeNotSettled, http.StatusConflict, "The payment was refused, or is not settled yet: nothing was charged that could be given back.", uncharged, "after the payment has settled", "The call that was paid for, with the same PAYMENT-SIGNATURE, for its answer. What was refused needs no refund."},
	{ground.CodeNotTheBuyer, http.StatusConflict, "The purchase is paid, and the request does not show that it comes from its buyer: the payment alone, which is public on a chain, gives no later link.", "no: the purchase was charged once", never, "The claimSecret, payment identifier, Idempotency-Key or e-mail of the first request, a message signed by the paying address, or a session signed in with the e-mail of the order."},
	{ground.CodeDownloadsUsed, http.StatusConflict, "Every download of the purchase is used.", uncharged, never, "Nothing; ask the operator for another download."},
	{ground.CodeErased, http.StatusConflict, "What the payment or idempotency key was for was erased on request, and cannot be answered again.", "no: what was charged, was before the erasure", never, "A new key or payment, to have it computed again."},
	{ground.CodeClaimed, http.StatusConflict, "Another customer has claimed the agent.", uncharged, never, "An agent of your own: POST /api/auth/register."},
	{organizations.CodeConflict, http.StatusConflict, "What is there does not allow it: it was changed or done already, or a bound is reached. The message says what.", uncharged, "after reading it again", "What fits what is there now."},
	{organizations.CodeNoActivePolicy, http.StatusConflict, "The organization has no active policy.", "no decision was recorded", "after activation", "An administrator activates a policy first."},
	{decisions.CodeNoMatch, http.StatusConflict, "The receipt does not name the decision that it is bound to.", "no receipt was recorded", never, "decisionId, decisionRecordHash and bindingHash of one decision."},
	{assurance.CodeOtherPolicy, http.StatusConflict, "The asserted policy is not the active one.", "no decision was recorded", never, "The active policy's id and version, or none."},
	{assurance.CodeWeakerPolicy, http.StatusConflict, "The asserted policy allows more than the active one.", "no decision was recorded", never, "An assertion that is as strict, or none."},

	{ground.CodeQuota, http.StatusTooManyRequests, "The key's calls of this month are used up, and no pass pays.", uncharged, "after resetsAt", "A pass: upgradeUrl leads there. Where payPerCall is true, the same call paid over x402."},
	{ground.CodeTooManyKeys, http.StatusTooManyRequests, "Too many keys were issued to this address this month.", uncharged, "next month", "The key you have."},
	{op.CodeRateLimited, http.StatusTooManyRequests, "Too many requests with this credential or, without a good one, from this network address.", uncharged, "after Retry-After", "Fewer requests at a time."},

	{ground.CodeUnavailable, http.StatusServiceUnavailable, "What was asked cannot be proven done now: the database or the ledger does not answer, or too many requests are under way.", "unknown; if it was, the same request again is answered without a second charge", sameAgain, "The same again after Retry-After."},
	{ground.CodeNoSigner, http.StatusServiceUnavailable, "The service has no signing key, and what must be signed is not written.", uncharged, "when the operator has set one", "Nothing; the operator must act."},
	{ground.CodeNotConfigured, http.StatusServiceUnavailable, "x402 is not configured here, and the request has nothing else to pay with.", uncharged, never, "X-API-Key with a free key: POST /api/keys/free."},
	{payments.CodeNoFacilitator, http.StatusServiceUnavailable, "The facilitator of payments does not answer, and so nothing was taken.", uncharged, sameAgain, "The same again, or an API key."},
	{x402.ReasonPending, http.StatusServiceUnavailable, "A payment was sent, and how it ends is not known yet.", "perhaps; never twice, and never without the answer", "yes, the same PAYMENT-SIGNATURE; do not sign a new payment", "The same again after Retry-After, until it is answered."},
	{op.CodeNoMail, http.StatusServiceUnavailable, "The service cannot send e-mails.", uncharged, "when the operator has set it up", "Nothing; the operator must act."},
	{op.CodeNoCheckout, http.StatusServiceUnavailable, "Cards are not taken here.", uncharged, never, "A purchase over x402, if it is configured."},
	{op.CodeCheckoutFailed, http.StatusServiceUnavailable, "The provider of the card checkout does not answer.", uncharged, "yes", "The same again."},
	{op.CodeInternal, http.StatusInternalServerError, "A fault of ours. It is in our log under the request id.", "if it was, the same request again is answered without a second charge", "once, with the same Idempotency-Key or PAYMENT-SIGNATURE", "The request id to the operator."},
}

// statuses maps each listed code to its status.
var statuses = sync.OnceValue(func() map[string]int {
	byCode := map[string]int{}
	for _, p := range problems {
		byCode[p.code] = p.status
	}
	return byCode
})

// Problems returns the table for the pages.
func Problems() (list []site.Problem) {
	for _, p := range problems {
		list = append(list, site.Problem{Code: p.code, Status: p.status, Cause: p.cause, Charged: p.charged, Retry: p.retry, Send: p.send})
	}
	return list
}

// StatusOf returns the HTTP status of an error code.
func StatusOf(code string) int {
	if status, known := statuses()[code]; known {
		return status
	}
	return http.StatusBadRequest
}

// HasPage reports whether a page explains this code.
func HasPage(code string) bool { return statuses()[code] != 0 }
