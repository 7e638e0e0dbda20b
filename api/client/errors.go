package client

// Code says what kind of error it is.
type Code string

// The codes. The clients for other languages have the same.
const (
	Misused            Code = "misused"             // the client, or a call of it, was made wrongly
	Stopped            Code = "stopped"             // the verdict or the decision says no
	NeedsApproval      Code = "needs_approval"      // a person has to approve first, and has not done so in time
	Rejected           Code = "rejected"            // a person has rejected it
	Expired            Code = "expired"             // the decision or its approval is no longer valid
	Used               Code = "used"                // the decision was executed before
	Ended              Code = "ended"               // the service says that the decision no longer holds: a policy has ended it, or it was executed in another process
	Unavailable        Code = "unavailable"         // no usable answer came in time
	Refused            Code = "refused"             // the other side refuses the request (a status of 4xx, a redirect)
	PaymentRequired    Code = "payment_required"    // the call has to be paid
	QuotaExhausted     Code = "quota_exhausted"     // the free calls of the month are used up: see UpgradeURL
	NotVerified        Code = "not_verified"        // an answer or a signed record is not what it must be
	OfferChanged       Code = "offer_changed"       // something else was signed than what was decided about; no payment was sent
	PaymentUnconfirmed Code = "payment_unconfirmed" // Pay: the payment was sent, and no answer says that the seller took it
	ReceiptMissing     Code = "receipt_missing"     // it ran, and no receipt of it was recorded: Err is what the function returned
)

// Error says why nothing ran. The package comment names the two exceptions.
type Error struct {
	Code       Code
	Message    string // can be given to a model
	Status     int    // HTTP status of the answer, if one is the reason
	UpgradeURL string // where to get more calls
	Err        error  // the cause, if there is one
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

func misused(message string) *Error { return &Error{Code: Misused, Message: message} }

func notVerified(why string) *Error {
	return &Error{Code: NotVerified, Message: "the answer of the service was not accepted: " + why}
}
