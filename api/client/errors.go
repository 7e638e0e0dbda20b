package client

// Code is the kind of an error.
type Code string

// The codes. The clients for other languages use the same codes.
const (
	Misused            Code = "misused"             // the program used the client wrongly
	Stopped            Code = "stopped"             // the verdict or the decision denies the action
	NeedsApproval      Code = "needs_approval"      // a person must approve first, and has not done so in time
	Rejected           Code = "rejected"            // a person rejected the action
	Expired            Code = "expired"             // the decision or its approval is no longer valid
	Used               Code = "used"                // the decision was executed before
	Ended              Code = "ended"               // the decision is no longer in effect: a policy has ended it, or it was executed in another process
	Unavailable        Code = "unavailable"         // there was no usable answer in time
	Refused            Code = "refused"             // the server refused the request (status 4xx or a redirect)
	PaymentRequired    Code = "payment_required"    // the call must be paid
	QuotaExhausted     Code = "quota_exhausted"     // the free calls of this month are used up: see UpgradeURL
	NotVerified        Code = "not_verified"        // an answer or a signed record is invalid
	OfferChanged       Code = "offer_changed"       // the signed payment differs from the decided one; it was not sent
	PaymentUnconfirmed Code = "payment_unconfirmed" // Pay sent the payment, but no answer confirms that the seller took it
	ReceiptMissing     Code = "receipt_missing"     // the action ran, but its receipt was not recorded; Err is the function's error
)

// Error explains why nothing ran. The package comment names the two exceptions.
type Error struct {
	Code       Code
	Message    string // safe to show to a model
	Status     int    // HTTP status of the answer that caused the error; otherwise 0
	UpgradeURL string // address where more calls can be bought
	Err        error  // cause; may be nil
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func misused(message string) *Error { return &Error{Code: Misused, Message: message} }

func notVerified(why string) *Error {
	return &Error{Code: NotVerified, Message: "the answer of the service was not accepted: " + why}
}
