package op

import (
	"github.com/countersign/countersign/commands/ground"
)

// Codes of errors that the API itself returns, before a command runs.
const (
	CodeTooLarge    = "too_large"
	CodeMethod      = "method_not_allowed"
	CodeNotFound    = ground.CodeNotFound
	CodeInvalidBody = "invalid_request"
	CodeRateLimited = "rate_limited"
	CodeNoMail      = "mail_not_configured"

	CodeNoProduct      = "product_not_found"
	CodeNoCheckout     = "checkout_not_configured"
	CodeCheckoutFailed = "checkout_unavailable"

	CodeInternal = "internal_error" // code for an error that has none
)

// Problem is the body of every error. For operations with BareErrors only its first member is sent
// (BareProblem).
type Problem struct {
	Error       string `json:"error" jsonschema_description:"Explanation for people. It names the field, never the value."`
	Code        string `json:"code,omitempty" jsonschema_description:"Error code in snake case, for programs."`
	Path        string `json:"path,omitempty" jsonschema_description:"JSON pointer of the value that caused the error."`
	UpgradeURL  string `json:"upgradeUrl,omitempty" jsonschema:"format=uri"`
	ResetsAt    string `json:"resetsAt,omitempty" jsonschema:"format=date-time"`
	PayPerCall  bool   `json:"payPerCall,omitzero" jsonschema_description:"true if the same call can be paid over x402."`
	PaymentID   string `json:"paymentId,omitempty" jsonschema:"pattern=^pay_[0-9a-f]{32}$"`
	Retry       string `json:"retry,omitempty" jsonschema_description:"What to do while it is not known whether the payment settles."`
	ValidBefore string `json:"validBefore,omitempty" jsonschema:"format=date-time" jsonschema_description:"The payment can settle until this time and expires afterwards."`
	RequestID   string `json:"requestId,omitempty" jsonschema:"pattern=^req_[0-9A-Z]{26}$" jsonschema_description:"The value of X-Request-Id, which is also in the operator's log."`
	DocURL      string `json:"docUrl,omitempty" jsonschema:"format=uri" jsonschema_description:"Page that explains the code: its cause, charges, retries and what to send."`
}

// BareProblem is the error body of an operation with BareErrors. The contract of these operations
// allows no other member.
type BareProblem struct {
	Error string `json:"error" jsonschema_description:"Explanation for people. It names the field, never the value."`
}

// OAuthProblem is the body of an error of an OAuth endpoint (RFC 6749, section 5.2).
type OAuthProblem struct {
	Error       string `json:"error" jsonschema_description:"A code of RFC 6749, 7591 or 8707."`
	Description string `json:"error_description" jsonschema_description:"Explanation for people."`
}
