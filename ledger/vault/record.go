package vault

import (
	"context"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/internal/sealing"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// SealRecord encrypts personal members, as Seal does, in a payload with a signed record. stored
// has the payload's members in canonical form (record, integrity and others). pointers lists the
// personal members, for example "/record/subject/agentId"; absent ones are skipped. The member
// sealed also gets the signer's signature over the record with its commitments, so the stored
// record can be verified without the plaintext and after an erasure. The record's own signature is
// valid again after Open has restored the values.
func (v *Vault) SealRecord(ctx context.Context, tenant, eventID, keyID string, signer *seal.Signer, stored map[string]jsontext.Value, pointers ...string) ([]byte, error) {
	key, err := v.dataKey(ctx, tenant, keyID)
	if err != nil {
		return nil, err
	}
	members := maps.Clone(stored)
	var openings []sealing.Opening
	for _, pointer := range pointers {
		path := sealing.Path(pointer)
		whole := members[path[0]]
		start, end, present := canon.Find(whole, path[1:]...)
		if whole == nil || !present && len(path) > 1 {
			continue
		}
		o := sealing.NewOpening(pointer, whole[start:end])
		openings = append(openings, o)
		members[path[0]] = slices.Concat(whole[:start], o.Committed(), whole[end:])
	}
	signed, err := signer.SignCanonical(seal.TypeCommitted, members["record"])
	if err != nil {
		return nil, err
	}
	s := sealing.Sealed{KeyID: keyID, Signature: signed.Integrity.Signature}
	if err := s.Seal(key, tenant, eventID, openings); err != nil {
		return nil, err
	}
	if members["sealed"], err = canon.Marshal(s); err != nil {
		return nil, err
	}
	return canon.Object(members), nil
}
