package x402

import "github.com/countersign/countersign/policy/normal"

// Reasons of refusals. The protocol defines all except ReasonNoMatch, which comes from the
// reference server, and the last two.
const (
	ReasonPayload         = "invalid_payload"
	ReasonVersion         = "invalid_x402_version"
	ReasonResource        = "resource_mismatch"
	ReasonNoMatch         = "No matching payment requirements"
	ReasonRecipient       = "invalid_exact_evm_recipient_mismatch"
	ReasonValue           = "invalid_exact_evm_payload_authorization_value_mismatch"
	ReasonValidBefore     = "invalid_exact_evm_payload_authorization_valid_before"
	ReasonValidAfter      = "invalid_exact_evm_payload_authorization_valid_after"
	ReasonSignature       = "invalid_exact_evm_signature"
	ReasonPending         = "settlement_pending"
	ReasonVerifyError     = "unexpected_verify_error"
	ReasonSettleError     = "unexpected_settle_error"
	ReasonUsedElsewhere   = "authorization_used_elsewhere"
	ReasonExpiredUnused   = "authorization_expired_unused"
	reasonUnsupported     = "unsupported_scheme"
	reasonInvalidState    = "invalid_transaction_state"
	suffixNonceUsed       = "_nonce_already_used"
	suffixFailed          = "_transaction_failed"
	suffixSimulationFails = "_transaction_simulation_failed"
	suffixOtherTransfer   = "_transfer_event_mismatch" // found only after the transaction was mined
)

var plainReason = normal.Pattern(`^[a-z0-9_]{1,80}$`)

// passOn returns a facilitator's reason if it has the form of a reason, else the second argument,
// because buyers must not see other external texts.
func passOn(reason, otherwise string) string {
	if plainReason(reason) || reason == ReasonNoMatch {
		return reason
	}
	return otherwise
}
