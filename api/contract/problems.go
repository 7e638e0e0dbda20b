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
	{"invalid_request", http.StatusBadRequest, "The body or a header does not have the documented shape: not JSON, of another content type, or unreadable.", uncharged, never, "Send JSON that matches the operation's schema, with Content-Type: application/json."},
	{"invalid_json", http.StatusBadRequest, "The body is not strict JSON: a string is not UTF-8, a number is too large, or data follows the end of the value.", uncharged, never, "Send one JSON object, written by a JSON library."},
	{"duplicate_field", http.StatusBadRequest, "One object has the same member twice. JSON readers disagree about which of the two counts.", uncharged, never, "Send each member once. path names the object."},
	{"missing_field", http.StatusBadRequest, "A required member is missing.", uncharged, never, "Add the member that path names."},
	{"unknown_field", http.StatusBadRequest, "The body has a member that the operation does not define. Perhaps the name differs only in upper and lower case.", uncharged, never, "Send only the documented members."},
	{"wrong_type", http.StatusBadRequest, "A member has the wrong JSON type.", uncharged, never, "Send the type that the message names. Do not write a number as a string."},
	{"invalid_enum", http.StatusBadRequest, "The value of a member is not one of the documented values.", uncharged, never, "Send one of the values in the schema, in lower case."},
	{"invalid_value", http.StatusBadRequest, "A member has the right type, but its value cannot be used. The message says why.", uncharged, never, "Send a value that the message allows."},
	{"invalid_format", http.StatusBadRequest, "A string does not have the documented format.", uncharged, never, "Send the format that the message names."},
	{"invalid_date", http.StatusBadRequest, "A date or time does not exist, or does not have the documented format.", uncharged, never, "Send a date as YYYY-MM-DD and a time as RFC 3339 with a time zone."},
	{"out_of_range", http.StatusBadRequest, "A number is too small or too large, or a string is too short, begins or ends with white space, or does not match the documented pattern.", uncharged, never, "Send a value within the limits of the schema, without white space at the ends."},
	{"too_long", http.StatusBadRequest, "A string is longer than its limit.", uncharged, never, "Send a complete value that is shorter. Never cut a command off: the missing part is not judged."},
	{"too_many_items", http.StatusBadRequest, "A list is longer than its limit.", uncharged, never, "Send a shorter list, or several calls."},
	{"mutually_exclusive", http.StatusBadRequest, "Two members exclude each other.", uncharged, never, "Send one of the two members that the message names."},
	{"inconsistent_input", http.StatusBadRequest, "Two members contradict each other.", uncharged, never, "Send members that agree. The message names both."},
	{"invalid_workflow_id", http.StatusBadRequest, "The workflow id does not begin with asw_ followed by a UUID.", uncharged, never, "Send the workflowId of the answer that started the workflow."},
	{"invalid_email", http.StatusBadRequest, "The e-mail address is not valid, or has more than 254 characters.", uncharged, never, "Send one address without a name, such as user@example.com."},
	{"invalid_cursor", http.StatusBadRequest, "The cursor is not the nextCursor of a page, or the item that it names was removed.", uncharged, never, "Send the nextCursor of the page before. For the first page, send no cursor."},
	{"invalid_log", http.StatusBadRequest, "The lines of a guard's log do not form a chain: a line was changed, left out or added.", "nothing was recorded", never, "Send the lines unchanged. The command countersign gate log shows where the chain is broken."},
	{"invalid_signature", http.StatusBadRequest, "The signature does not verify over these lines with the public key of the report.", "nothing was recorded", never, "Send the report with countersign gate log push."},
	{"invalid_payment_identifier", http.StatusBadRequest, "The payment identifier of the x402 extension does not have the documented format.", uncharged, never, "Send 16 to 128 letters, digits, hyphens and underscores."},
	{"subscription_product", http.StatusBadRequest, "A subscription cannot be bought over x402.", uncharged, never, "Use POST /api/checkout."},
	{"unknown_operation", http.StatusBadRequest, "No service has an operation with that id.", uncharged, never, "Send the operationId of the call that was paid for."},
	{"arguments_hash_mismatch", http.StatusBadRequest, "toolArgumentsHash is not the hash of toolArguments.", uncharged, never, "Send the SHA-256 of the canonical arguments, or only the arguments."},
	{"no_cash_flows", http.StatusBadRequest, "All cash flows are zero.", uncharged, never, "Send at least one cash flow that is not zero."},
	{"growth_not_below_discount_rate", http.StatusBadRequest, "A growing perpetuity needs a growth rate below the discount rate.", uncharged, never, "Send a smaller growth rate, or an exit multiple."},
	{"yield_not_found", http.StatusBadRequest, "The price has no single yield.", uncharged, never, "Send a price that the cash flows can reach."},
	{"price_outside_no_arbitrage_bounds", http.StatusBadRequest, "No volatility gives that price.", uncharged, never, "Send a market price within the bounds that the message names."},
	{"weights_do_not_sum_to_one", http.StatusBadRequest, "The weights of the positions do not sum to 1.", uncharged, never, "Send weights that sum to 1, or market values for all positions."},
	{"returns_incomplete", http.StatusBadRequest, "The positions do not all have the same number of returns.", uncharged, never, "Send the same number of returns for every position, or no returns."},
	{"catch_up_not_above_carry", http.StatusBadRequest, "catchUpRate is not above carryRate, so the catch-up would never end.", uncharged, never, "Send a catchUpRate above carryRate."},
	{"empty_manifest", http.StatusBadRequest, "The manifest has no tools, and no command or address of a server.", uncharged, never, "Send the complete manifest."},

	{ground.CodeUnauthorized, http.StatusUnauthorized, "The request has no credential, or one that is unknown, revoked or expired, or it has the header of a credential twice.", uncharged, "only with a valid credential", "Send X-API-Key with a key of POST /api/keys/free, a PAYMENT-SIGNATURE, or a new token."},
	{accounts.CodeInvalidClient, http.StatusUnauthorized, "The client id or secret is wrong.", uncharged, never, "Send the client id and secret that the registration returned. POST /api/auth/register issues new ones."},
	{organizations.CodeForbidden, http.StatusForbidden, "The credential is valid but does not have this right, or a browser sent the request from another site.", uncharged, never, "Use a credential whose role and organization have the right."},
	{accounts.CodeInsufficientScope, http.StatusForbidden, "The token does not have the scope of this operation.", uncharged, "only with a token that has the scope", "Request a token with the scope. Some scopes also require that a customer has claimed the agent."},
	{store.CodeNoEntitlement, http.StatusForbidden, "The customer has not bought that product.", uncharged, never, "Buy the product, or use a credential of the customer who bought it."},
	{store.StatusCanceled, http.StatusForbidden, "Access has ended because the subscription was canceled.", uncharged, never, "Buy a new subscription."},
	{store.StatusPastDue, http.StatusForbidden, "Access is suspended because a payment of the subscription is late.", uncharged, "yes, after the payment", "Pay in the billing portal: POST /api/billing-portal returns its address."},
	{store.StatusExpired, http.StatusForbidden, "Access has ended because its period is over.", uncharged, never, "Buy the product again."},
	{store.StatusRefunded, http.StatusForbidden, "Access has ended because the purchase was refunded.", uncharged, never, "Buy the product again."},
	{store.StatusDisputed, http.StatusForbidden, "Access is suspended because the payment is disputed.", uncharged, "yes, after the dispute", "Wait until the card's bank has decided the dispute, or ask the operator."},
	{store.StatusRevoked, http.StatusForbidden, "The operator has ended access.", uncharged, never, "Ask the operator."},

	{ground.CodeNotFound, http.StatusNotFound, "The address does not exist, or this credential may not read what it names.", uncharged, never, "Use an address of /openapi-full.json."},
	{op.CodeNoProduct, http.StatusNotFound, "No product has that slug.", uncharged, never, "Send a slug of GET /api/catalog."},
	{op.CodeMethod, http.StatusMethodNotAllowed, "The address does not support this method.", uncharged, never, "Use one of the methods that the header Allow names."},
	{op.CodeTooLarge, http.StatusRequestEntityTooLarge, "The body is larger than the limit of the operation.", uncharged, never, "Send a smaller body. The message names the limit."},
	{accounts.CodeGone, http.StatusGone, "The link was used before, or has expired.", uncharged, never, "Request a new link."},

	{ground.CodeKeyReused, http.StatusConflict, "The idempotency key was used before with another content.", uncharged, never, "For a retry, send the same content. For a new purpose, send a new key."},
	{ground.CodeOtherRequest, http.StatusConflict, "The payment, or its payment identifier, belongs to another request.", "no: a payment is charged once, for the request it was made for", never, "To get the answer of that request, repeat it with the same PAYMENT-SIGNATURE. For this request, send a new payment."},
	{ground.CodeNotSettled, http.StatusConflict, "The payment was refused, or is not settled yet, so there is no charge to refund.", uncharged, "after the payment has settled", "To get the answer, repeat the call that was paid for with the same PAYMENT-SIGNATURE. A refused payment needs no refund."},
	{ground.CodeNotTheBuyer, http.StatusConflict, "The purchase is paid, but the request does not prove that the buyer sent it. The payment is no proof, because everybody can copy it from the chain.", "no: the purchase was charged once", never, "Send the claimSecret of the first answer; the payment identifier, Idempotency-Key or e-mail of the first request; or a message signed by the paying address. Or sign in with the e-mail of the order."},
	{ground.CodeDownloadsUsed, http.StatusConflict, "All downloads of the purchase were used.", uncharged, never, "Ask the operator for another download."},
	{ground.CodeErased, http.StatusConflict, "The answer to this payment or idempotency key was erased on request and cannot be sent again.", "no: if there was a charge, it was before the erasure", never, "Send a new key or payment to get a new answer."},
	{ground.CodeClaimed, http.StatusConflict, "Another customer has claimed the agent.", uncharged, never, "Register an agent of your own with POST /api/auth/register."},
	{organizations.CodeConflict, http.StatusConflict, "The current state does not allow the change: another person has changed it, it was made before, or a limit is reached. The message says which.", uncharged, "after reading the current state", "Read the current state and send a change that it allows."},
	{organizations.CodeNoActivePolicy, http.StatusConflict, "The organization has no active policy.", "no decision was recorded", "after activation", "Ask an administrator to activate a policy."},
	{decisions.CodeNoMatch, http.StatusConflict, "The ids and hashes of the receipt do not belong to one decision.", "no receipt was recorded", never, "Send decisionId, decisionRecordHash and bindingHash of the same decision."},
	{assurance.CodeOtherPolicy, http.StatusConflict, "The policy in the request does not have the id and version of the active policy.", "no decision was recorded", never, "Send the id and version of the active policy, or no policy."},
	{assurance.CodeWeakerPolicy, http.StatusConflict, "The policy in the request allows more than the active policy.", "no decision was recorded", never, "Send a policy that is at least as strict as the active one, or no policy."},

	{ground.CodeQuota, http.StatusTooManyRequests, "The key's free calls of this month are used up, and no pass pays for more.", uncharged, "after resetsAt", "Buy a pass at upgradeUrl. If payPerCall is true, you can also send the same call with an x402 payment."},
	{ground.CodeTooManyKeys, http.StatusTooManyRequests, "Too many keys were issued this month for this e-mail address from this network address.", uncharged, "next month", "Use the key that you have."},
	{op.CodeRateLimited, http.StatusTooManyRequests, "There were too many requests with this credential or, without a valid credential, from this network address.", uncharged, "after Retry-After", "Send fewer requests at a time."},

	{ground.CodeUnavailable, http.StatusServiceUnavailable, "The service could not confirm that it did the request: the database or the ledger does not answer, or too many requests are under way.", "unknown: if there was a charge, repeating the same request gets the answer without a second charge", sameAgain, "Repeat the same request after Retry-After."},
	{ground.CodeNoSigner, http.StatusServiceUnavailable, "The service has no signing key, so it cannot write signed records.", uncharged, "when the operator has set one", "You cannot do anything: the operator must act."},
	{ground.CodeNotConfigured, http.StatusServiceUnavailable, "x402 is not configured here, and the request has no API key.", uncharged, never, "Send X-API-Key with a free key of POST /api/keys/free."},
	{payments.CodeNoFacilitator, http.StatusServiceUnavailable, "The x402 facilitator does not answer, so no payment was made.", uncharged, sameAgain, "Repeat the same request, or send an API key."},
	{x402.ReasonPending, http.StatusServiceUnavailable, "The payment was sent to the chain, and it is not known yet whether it will settle.", "perhaps: never twice, and never without the answer", "yes, the same PAYMENT-SIGNATURE; do not sign a new payment", "Repeat the same request after Retry-After until the answer comes."},
	{op.CodeNoMail, http.StatusServiceUnavailable, "The service cannot send e-mails.", uncharged, "when the operator has set it up", "You cannot do anything: the operator must act."},
	{op.CodeNoCheckout, http.StatusServiceUnavailable, "Card payments are not configured here.", uncharged, never, "Buy over x402 if it is configured."},
	{op.CodeCheckoutFailed, http.StatusServiceUnavailable, "The provider of the card checkout does not answer.", uncharged, "yes", "Repeat the same request."},
	{op.CodeInternal, http.StatusInternalServerError, "The service has a fault. The operator's log has the details under the request id.", "perhaps: if there was a charge, repeating the same request gets the answer without a second charge", "yes, once, with the same Idempotency-Key or PAYMENT-SIGNATURE", "If it fails again, send the request id to the operator."},
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
