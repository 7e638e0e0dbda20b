package x402

import (
	"context"

	"github.com/countersign/countersign/commands/payments"
)

// Dev settles in the ledger alone: no money moves. Signatures are verified for
// real, and a nonce is used once its payment is recorded as settled.
type Dev struct{}

// Mode is "dev".
func (Dev) Mode() string { return payments.ModeDev }

// Configured is true: nobody needs to be asked.
func (Dev) Configured() bool { return true }

// Head is 0: there is no chain.
func (Dev) Head(context.Context) int64 { return 0 }

// Verify refuses what the payer's own key has not signed. There is no chain that
// could judge a contract's signature.
func (Dev) Verify(_ context.Context, p payments.Payment) error {
	if !signedByPayer(p) {
		return refuse(ReasonSignature)
	}
	return nil
}

// signedByPayer says whether the payer's own key has signed a payment.
func signedByPayer(p payments.Payment) bool {
	payment, err := Read(p.Payload)
	return err == nil && payment.signedByPayer()
}

// Settle says that the payment is settled: the record of it is the settlement.
func (Dev) Settle(_ context.Context, p payments.Payment, _ int) payments.Settlement {
	return payments.Settlement{State: payments.Settled, Transaction: "dev:" + p.ID, Payer: p.Payer, Evidence: "dev"}
}
