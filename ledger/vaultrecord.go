package ledger

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// SealRecord is Seal for a payload, given by its members in canonical form, that
// holds a signed record (members record and integrity) with personal members
// inside or beside it: pointers name them in the payload,
// "/record/subject/agentId" for example, and those that are absent are passed
// over. Beside box stands the signer's signature over the record as it is
// stored, with commitments in place, so that it can be checked without the
// openings and after an erasure. The record's own signature holds again as soon
// as Open has put the values back.
func (v *Vault) SealRecord(ctx context.Context, tenant, eventID, keyID string, signer *seal.Signer, stored map[string]jsontext.Value, pointers ...string) ([]byte, error) {
	key, err := v.dataKey(ctx, tenant, keyID)
	if err != nil {
		return nil, err
	}
	members := maps.Clone(stored)
	var openings []opening
	for _, pointer := range pointers {
		path := parts(pointer)
		whole := members[path[0]]
		start, end, present := canon.Find(whole, path[1:]...)
		if whole == nil || !present && len(path) > 1 {
			continue
		}
		o := opening{Pointer: pointer, Salt: make([]byte, 32), Value: canon.Value(whole[start:end])}
		rand.Read(o.Salt)
		openings = append(openings, o)
		members[path[0]] = slices.Concat(whole[:start], []byte(`{"$committed":"`+o.commitment()+`"}`), whole[end:])
	}
	signed, err := signer.SignCanonical(seal.TypeCommitted, members["record"])
	if err != nil {
		return nil, err
	}
	s := sealed{KeyID: keyID, Signature: signed.Integrity.Signature}
	if err := s.seal(key, tenant, eventID, openings); err != nil {
		return nil, err
	}
	if members["sealed"], err = canon.Marshal(s); err != nil {
		return nil, err
	}
	return canon.Object(members), nil
}

func parts(pointer string) []string { return strings.Split(strings.TrimPrefix(pointer, "/"), "/") }

// reopen puts the values of openings back in the place of their commitments.
func reopen(e Event, members map[string]jsontext.Value, openings []opening) error {
	for _, o := range openings {
		path := parts(o.Pointer)
		name, inner := path[0], path[1:]
		start, end, found := canon.Find(members[name], inner...)
		var c committed
		if !found || json.Unmarshal(members[name][start:end], &c) != nil || c.Commitment != o.commitment() {
			return fmt.Errorf("%w: commitment %s of %s", ErrTampered, o.Pointer, e.ID)
		}
		members[name] = canon.Put(members[name], jsontext.Value(o.Value), inner...)
	}
	return nil
}
