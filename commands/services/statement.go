package services

import (
	"time"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// statement signs the statement that a service declares, and returns the members of the answer
// that contain it.
func (a *Services) statement(signer *seal.Signer, s policy.Statement, answer policy.Answer, now time.Time) (map[string]any, error) {
	envelope, err := signer.Sign(s.PayloadType, answer.State(a.NewID(s.IDPrefix), canon.Stamp(now)))
	if err != nil {
		return nil, err
	}
	return map[string]any{"record": envelope.Record, "integrity": envelope.Integrity, "verifyUrl": a.BaseURL + "/api/verify"}, nil
}
