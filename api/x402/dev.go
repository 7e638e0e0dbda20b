package x402

import (
	"context"

	"github.com/countersign/countersign/commands/payments"
)

// Dev is the development mode: payments settle in the ledger alone, and no money moves. Signatures
// are really verified, and a nonce is used once its payment is recorded as settled.
type Dev struct{}

// Mode returns "dev".
func (Dev) Mode() string { return payments.ModeDev }

// Configured returns true, because Dev depends on no other server.
func (Dev) Configured() bool { return true }

// Head returns 0, because there is no chain.
func (Dev) Head(context.Context) int64 { return 0 }

// Verify refuses a payment that the payer's own key has not signed. There is no chain that could
// verify a contract's signature.
func (Dev) Verify(_ context.Context, p payments.Payment) error {
	if !signedByPayer(p) {
		return refuse(ReasonSignature)
	}
	return nil
}

// signedByPayer reports whether the payer's own key has signed a payment.
func signedByPayer(p payments.Payment) bool {
	payment, err := Read(p.Payload)
	return err == nil && payment.signedByPayer()
}

// Settle returns that the payment is settled: recording it is the settlement.
func (Dev) Settle(_ context.Context, p payments.Payment, _ int) payments.Settlement {
	return payments.Settlement{State: payments.Settled, Transaction: "dev:" + p.ID, Payer: p.Payer, Evidence: "dev"}
}
