package x402

import (
	"context"

	"github.com/countersign/countersign/commands/payments"
)

// Dev is the development mode: payments settle only in the ledger, and no money moves. Signatures
// are verified as usual. A nonce is used when its payment is recorded as settled.
type Dev struct{}

// Mode returns "dev".
func (Dev) Mode() string { return payments.ModeDev }

// Configured returns true, because Dev depends on no other server.
func (Dev) Configured() bool { return true }

// Head returns 0, because there is no chain.
func (Dev) Head(context.Context) int64 { return 0 }

// Verify refuses a payment that is not signed by the payer's own key. Without a chain, a
// contract's signature cannot be verified.
func (Dev) Verify(_ context.Context, p payments.Payment) error {
	if !signedByPayer(p) {
		return refuse(ReasonSignature)
	}
	return nil
}

// signedByPayer reports whether a payment is signed by the payer's own key.
func signedByPayer(p payments.Payment) bool {
	payment, err := Read(p.Payload)
	return err == nil && payment.signedByPayer()
}

// Settle returns the payment as settled. No money moves: the settlement is only recorded in the
// ledger.
func (Dev) Settle(_ context.Context, p payments.Payment, _ int) payments.Settlement {
	return payments.Settlement{State: payments.Settled, Transaction: "dev:" + p.ID, Payer: p.Payer, Evidence: "dev"}
}
