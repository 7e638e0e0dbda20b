package commands

import (
	"time"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/attest"
)

// attestation signs the statement of one attest call: the members of its answer
// beside the receipt.
func (a *App) attestation(signer *seal.Signer, body []byte, now time.Time) (map[string]any, error) {
	record, err := attest.Draft(body)
	if err != nil {
		return nil, err
	}
	record.AttestationID, record.IssuedAt = a.NewID("att_"), Stamp(now)
	envelope, err := signer.Sign(attest.PayloadType, record)
	if err != nil {
		return nil, err
	}
	return map[string]any{"record": envelope.Record, "integrity": envelope.Integrity, "verifyUrl": a.BaseURL + "/api/verify"}, nil
}
