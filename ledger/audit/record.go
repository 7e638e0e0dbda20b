package audit

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// record checks a payload: its form, the signature of its record, and that the record belongs to
// this tenant, time, policy and decision.
func (s *spanResult) record(ctx context.Context, r *run, e *ledger.Event, t *tenantSpan) {
	fault := func(column, format string, args ...any) { s.fault(eventFault(e.Position, column, format, args...)) }
	if !canon.IsCanonical(e.Payload) {
		fault("payload", "must be canonical JSON")
		return
	}
	if e.Tenant == ledger.ServiceIn(r.p) && e.Stream == ledger.SigningKeyStream {
		kept := *e
		kept.Payload = bytes.Clone(e.Payload) // pgx reuses the row's memory
		s.keys = append(s.keys, kept)
		s.records++
		return
	}
	// Record what later checks need from events of these types.
	payload, err := readAudited(e.Payload)
	if err != nil {
		fault("payload", "must be an object with the members of its type")
		return
	}
	switch e.Type {
	case events.TypeSubjectErased:
		s.erased = append(s.erased, erasure{e.Tenant, payload.KeyID, e.OccurredUS, e.Position})
	case events.TypePolicyActivated:
		if canon.Hash(payload.Policy) != payload.PolicyHash {
			fault("payload", "the policy hashes to %s", canon.Hash(payload.Policy))
		}
		t.policy = payload.PolicyHash
	case events.TypeRollbackDeclared:
		if declared, ok := keeper.Declaration(*e); ok {
			s.declared = append(s.declared, declared.Epoch)
		}
	}
	// Decrypt the personal members, if possible, and put them back into the record.
	record := payload.Record
	var openings error
	if payload.Sealed != nil {
		r.set.add(kindKeyUse, 0, e.Position, e.Tenant, payload.Sealed.KeyID)
		record, openings = r.vault.open(ctx, *e, payload)
		switch {
		case errors.Is(openings, errClosed):
			s.unopened++
		case openings != nil:
			fault("payload", "sealed: %s", openings)
		default:
			r.set.addAgent(e, record)
		}
	}
	// A payload without the member integrity has no signed record.
	if payload.Integrity == nil {
		if events.IsSigned(e.Type) {
			fault("payload", "must contain a signed record, as every event of its type")
		}
		if e.KeyID != "" {
			fault("key_id", "must be empty: the payload contains no signed record")
		}
		return
	}
	s.records++
	s.signatures(r, e, payload, record, openings == nil)
	s.meaning(r, e, payload, t)
}

// signatures checks the signature over the stored record and, if the personal members were
// decrypted, the signature over the record with these members.
func (s *spanResult) signatures(r *run, e *ledger.Event, payload auditedPayload, opened jsontext.Value, open bool) {
	fault := func(column, format string, args ...any) { s.fault(eventFault(e.Position, column, format, args...)) }
	i := *payload.Integrity
	if i.KeyID != e.KeyID {
		fault("key_id", "must be %s, the key of the record", i.KeyID)
	}
	if !i.HasKnownAlgorithms() {
		fault("payload", "integrity: an algorithm is unknown")
	}
	signing, whyNot := r.ring.InUse(i.KeyID, e.Position)
	if whyNot != "" {
		fault("payload", "record: key: %s", whyNot)
		return
	}
	if signing.Compromised(e.Position) { // not a fault: the operator has declared the key compromised, and the event itself is intact
		s.void.add(voided{e.Position, 1})
	}
	key := signing.Public
	sealedRecord := payload.Sealed != nil && payload.Sealed.Signature != ""
	if sealedRecord && !r.verifier.Signed(key, seal.TypeCommitted, payload.Record, payload.Sealed.Signature) {
		fault("payload", "sealed: the signature does not match the key and the stored record")
	}
	if sealedRecord && !open && bytes.Contains(payload.Record, []byte(`{"$committed":`)) {
		return
	}
	if !sealedRecord || !open {
		opened = payload.Record
	}
	if got := canon.Hash(opened); got != i.RecordHash {
		fault("payload", "record: it hashes to %s, not to recordHash", got)
	}
	if !r.verifier.Signed(key, i.PayloadType, opened, i.Signature) {
		fault("payload", "record: the signature does not match the key and the record")
	}
}

// meaning checks the tenant, time, policy and decision that the record names.
func (s *spanResult) meaning(r *run, e *ledger.Event, payload auditedPayload, t *tenantSpan) {
	fault := func(format string, args ...any) { s.fault(eventFault(e.Position, "payload", format, args...)) }
	record, err := readRecord(payload.Record)
	if err != nil {
		fault("record must be an object")
		return
	}
	if record.OrgID != "" && record.OrgID != e.Tenant {
		fault("record: its organization is %s, but the event's tenant is %s", record.OrgID, e.Tenant)
	}
	for _, text := range []string{record.IssuedAt, record.ReceivedAt} {
		if text == "" {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, text); err != nil || at.UnixMicro() > e.OccurredUS {
			fault("record: its time is after that of the event, %s", e.Occurred().Format(time.RFC3339Nano))
		}
	}
	switch e.Type {
	case events.TypeDecisionRecorded:
		if e.Stream != "decision/"+record.DecisionID {
			fault("record: its decision is not that of its stream")
		}
		r.set.add(kindDecision, r.set.fingerprint(payload.Integrity.RecordHash, record.BindingHash), e.Position, e.Tenant, e.Stream)
		switch {
		case t.policy != "" && record.PolicyHash != t.policy:
			fault("record: it names policy %s, but the active one was %s", record.PolicyHash, t.policy)
		case t.policy == "" && t.needs.policy == "":
			t.needs = needed{record.PolicyHash, e.Position}
		case t.policy == "" && t.needs.policy != record.PolicyHash:
			fault("record: it names another policy than the decision at position %d, but no policy was activated after that decision", t.needs.position)
		}
	case events.TypeReceiptRecorded, events.TypeApprovalRecorded:
		if e.Stream != "decision/"+record.DecisionID {
			fault("record: its decision is not that of its stream")
		}
		r.set.add(kindFollower, r.set.fingerprint(record.DecisionRecordHash, record.BindingHash), e.Position, e.Tenant, e.Stream)
	}
}
