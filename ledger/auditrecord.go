package ledger

import (
	"bytes"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/sealing"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// auditedPayload is what the audit reads of a payload.
type auditedPayload struct {
	Record     jsontext.Value
	Integrity  *seal.Integrity
	Sealed     *sealing.Sealed
	Policy     jsontext.Value
	PolicyHash string
	KeyID      string
}

// readAudited reads those members of a canonical payload, and passes over the rest.
func readAudited(payload []byte) (p auditedPayload, err error) {
	return p, canon.Walk(payload, func(name string, value jsontext.Value) error {
		switch name {
		case "record":
			p.Record = value
		case "policy":
			p.Policy = value
		case "integrity":
			if value.Kind() == 'n' {
				return nil
			}
			p.Integrity = &seal.Integrity{}
			return readIntegrity(value, p.Integrity)
		case "sealed":
			return json.Unmarshal(value, &p.Sealed)
		case "policyHash":
			return readText(value, &p.PolicyHash)
		case "keyId":
			return readText(value, &p.KeyID)
		}
		return nil
	})
}

func readIntegrity(object jsontext.Value, i *seal.Integrity) error {
	return canon.Walk(object, func(name string, value jsontext.Value) error {
		switch name {
		case "canonicalization":
			return readText(value, &i.Canonicalization)
		case "hashAlgorithm":
			return readText(value, &i.HashAlgorithm)
		case "recordHash":
			return readText(value, &i.RecordHash)
		case "payloadType":
			return readText(value, &i.PayloadType)
		case "signatureAlgorithm":
			return readText(value, &i.SignatureAlgorithm)
		case "keyId":
			return readText(value, &i.KeyID)
		case "signature":
			return readText(value, &i.Signature)
		}
		return nil
	})
}

// readText reads a member that must be a string; nearly all have no escapes.
func readText(value jsontext.Value, into *string) error {
	if inside := len(value) - 1; inside > 0 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		*into = string(value[1:inside])
		return nil
	}
	return json.Unmarshal(value, into)
}

// auditedRecord is what it reads of the record inside.
type auditedRecord struct {
	OrgID, DecisionID, BindingHash, DecisionRecordHash, IssuedAt, ReceivedAt string

	PolicyHash string // of the member policy
}

func readRecord(object jsontext.Value) (r auditedRecord, err error) {
	return r, canon.Walk(object, func(name string, value jsontext.Value) error {
		switch name {
		case "orgId":
			return readText(value, &r.OrgID)
		case "decisionId":
			return readText(value, &r.DecisionID)
		case "bindingHash":
			return readText(value, &r.BindingHash)
		case "decisionRecordHash":
			return readText(value, &r.DecisionRecordHash)
		case "issuedAt":
			return readText(value, &r.IssuedAt)
		case "receivedAt":
			return readText(value, &r.ReceivedAt)
		case "policy":
			if start, end, found := canon.Find(value, "policyHash"); found {
				return readText(value[start:end], &r.PolicyHash)
			}
		}
		return nil
	})
}

// record checks what a payload says: its form, the signature of the record inside,
// and that it belongs to this tenant, time, policy and decision.
func (s *spanResult) record(ctx context.Context, r *audit, e *Event, t *tenantSpan) {
	fault := func(column, format string, args ...any) { s.fault(eventFault(e.Position, column, format, args...)) }
	if !canon.IsCanonical(e.Payload) {
		fault("payload", "want canonical JSON")
		return
	}
	if e.Tenant == ServiceIn(r.p) && e.Stream == SigningKeyStream {
		kept := *e
		kept.Payload = bytes.Clone(e.Payload) // the row's memory is used again
		s.keys = append(s.keys, kept)
		s.records++
		return
	}
	payload, err := readAudited(e.Payload)
	if err != nil {
		fault("payload", "want an object with the members of its type")
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
		if declared, ok := declaration(*e); ok {
			s.declared = append(s.declared, declared.Epoch)
		}
	}
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
		}
	}
	if payload.Integrity == nil {
		if e.KeyID != "" {
			fault("key_id", "want none: the payload carries no signed record")
		}
		return
	}
	s.records++
	s.signatures(r, e, payload, record, openings == nil)
	s.meaning(r, e, payload, t)
}

// signatures checks the record as it is stored, and, where its personal members
// could be put back, as it was signed.
func (s *spanResult) signatures(r *audit, e *Event, payload auditedPayload, opened jsontext.Value, open bool) {
	fault := func(column, format string, args ...any) { s.fault(eventFault(e.Position, column, format, args...)) }
	i := *payload.Integrity
	if i.KeyID != e.KeyID {
		fault("key_id", "want %s, the key of the record", i.KeyID)
	}
	if i.Canonicalization != canon.Name || i.HashAlgorithm != "sha256" || i.SignatureAlgorithm != "Ed25519" {
		fault("payload", "integrity: the algorithms are not ours")
	}
	signing, whyNot := r.ring.InUse(i.KeyID, e.Position)
	if whyNot != "" {
		fault("payload", "record: key: %s", whyNot)
		return
	}
	if signing.Compromised(e.Position) { // as the operator has said: history is what it was
		s.void.add(voided{e.Position, 1})
	}
	key := signing.Public
	sealedRecord := payload.Sealed != nil && payload.Sealed.Signature != ""
	if sealedRecord && !r.verifier.Signed(key, seal.TypeCommitted, payload.Record, payload.Sealed.Signature) {
		fault("payload", "sealed: the signature is not of this key over the record as it is stored")
	}
	if sealedRecord && !open {
		return
	}
	if !sealedRecord {
		opened = payload.Record
	}
	if got := canon.Hash(opened); got != i.RecordHash {
		fault("payload", "record: it hashes to %s, not to recordHash", got)
	}
	if !r.verifier.Signed(key, i.PayloadType, opened, i.Signature) {
		fault("payload", "record: the signature is not of this key over the record")
	}
}

// meaning checks what the record says about tenant, time, policy and decision.
func (s *spanResult) meaning(r *audit, e *Event, payload auditedPayload, t *tenantSpan) {
	fault := func(format string, args ...any) { s.fault(eventFault(e.Position, "payload", format, args...)) }
	record, err := readRecord(payload.Record)
	if err != nil {
		fault("record: want an object")
		return
	}
	if record.OrgID != "" && record.OrgID != e.Tenant {
		fault("record: it is of organization %s and stands in tenant %s", record.OrgID, e.Tenant)
	}
	for _, text := range []string{record.IssuedAt, record.ReceivedAt} {
		if text == "" {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, text); err != nil || at.UnixMicro() > e.OccurredUS {
			fault("record: its time is after the event's, %s", e.Occurred().Format(time.RFC3339Nano))
		}
	}
	switch e.Type {
	case events.TypeDecisionRecorded:
		if e.Stream != "decision/"+record.DecisionID {
			fault("record: it is of another decision than its stream")
		}
		r.set.add(kindDecision, r.set.fingerprint(payload.Integrity.RecordHash, record.BindingHash), e.Position, e.Tenant, e.Stream)
		switch {
		case t.policy != "" && record.PolicyHash != t.policy:
			fault("record: it names policy %s, and the active one was %s", record.PolicyHash, t.policy)
		case t.policy == "" && t.needs.policy == "":
			t.needs = needed{record.PolicyHash, e.Position}
		case t.policy == "" && t.needs.policy != record.PolicyHash:
			fault("record: it names another policy than the decision at %d, and none was activated between", t.needs.position)
		}
	case events.TypeReceiptRecorded, events.TypeApprovalRecorded:
		if e.Stream != "decision/"+record.DecisionID {
			fault("record: it is of another decision than its stream")
		}
		r.set.add(kindFollower, r.set.fingerprint(record.DecisionRecordHash, record.BindingHash), e.Position, e.Tenant, e.Stream)
	}
}

// errClosed is a box without its data key: no key-encryption key was given, or the data
// key was destroyed.
var errClosed = errors.New("the personal members are not opened")

// auditDataKeys bounds the memory of unwrapped keys.
const auditDataKeys = 10_000

// auditVault opens sealed members with keys that it unwraps itself.
type auditVault struct {
	pool *pgxpool.Pool
	p    int16
	kek  cipher.AEAD // nil: nothing is opened

	mu    sync.Mutex // guards cache
	cache map[string]cipher.AEAD
}

func newAuditVault(pool *pgxpool.Pool, p int16, kek []byte) (*auditVault, error) {
	v := &auditVault{pool: pool, p: p, cache: map[string]cipher.AEAD{}}
	if kek == nil {
		return v, nil
	}
	var err error
	if v.kek, err = sealing.Cipher(kek); err != nil {
		return nil, fmt.Errorf("DATA_KEK: %w", err)
	}
	return v, nil
}

// open puts the personal members of a payload back and returns its record, if it
// has one. Without their key it is errClosed.
func (v *auditVault) open(ctx context.Context, e Event, payload auditedPayload) (jsontext.Value, error) {
	s, record := *payload.Sealed, payload.Record
	if v.kek == nil {
		return record, errClosed
	}
	key, err := v.dataKey(ctx, e.Tenant, s.KeyID)
	if err != nil {
		return record, err
	}
	openings, err := s.Open(key, e.Tenant, e.ID)
	if err != nil {
		return record, errors.New("the box does not open: it is of another event, or was changed")
	}
	members, err := canon.Members(e.Payload)
	if err != nil {
		return record, err
	}
	if err := sealing.Reopen(members, openings); err != nil {
		return record, fmt.Errorf("%w: %w of %s", ErrTampered, err, e.ID)
	}
	return members["record"], nil
}

func (v *auditVault) dataKey(ctx context.Context, tenant, id string) (cipher.AEAD, error) {
	name := tenant + "\x00" + id
	v.mu.Lock()
	key, hit := v.cache[name]
	v.mu.Unlock()
	if hit {
		if key == nil {
			return nil, errClosed
		}
		return key, nil
	}
	var reference, wrapped []byte
	err := v.pool.QueryRow(ctx, `select subject_ref, wrapped_key from subject_keys where p = $1 and tenant = $2 and key_id = $3`, v.p, tenant, id).Scan(&reference, &wrapped)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read a data key: %w", err)
	}
	if len(wrapped) > 0 {
		raw, err := sealing.Unwrap(v.kek, wrapped, tenant, id, reference)
		if err != nil {
			return nil, errors.New("its data key does not unwrap")
		}
		if key, err = sealing.Cipher(raw); err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.cache) >= auditDataKeys {
		clear(v.cache)
	}
	v.cache[name] = key
	if key == nil {
		return nil, errClosed
	}
	return key, nil
}

// dataKeys checks every row of subject_keys: it unwraps, under the key of this
// deployment and for this subject, or it was destroyed by an event that says so.
func (r *audit) dataKeys(ctx context.Context) error {
	erased := map[string]erasure{}
	for _, e := range r.erased {
		erased[e.tenant+"\x00"+e.keyID] = e
	}
	const page = 1000
	for tenant, id := "", ""; ; {
		rows, err := r.pool.Query(ctx, `select tenant, key_id, subject_ref, kek_id, wrapped_key, destroyed_us from subject_keys
			where p = $1 and (tenant, key_id) > ($2, $3) order by tenant, key_id limit $4`, r.p, tenant, id, page)
		if err != nil {
			return fmt.Errorf("read data keys: %w", err)
		}
		var reference, wrapped []byte
		var kekID string
		var destroyed *int64
		var unsaid []erasure
		n := 0
		_, err = pgx.ForEachRow(rows, []any{&tenant, &id, &reference, &kekID, &wrapped, &destroyed}, func() error {
			n++
			r.set.add(kindDataKey, 0, 0, tenant, id)
			e, said := erased[tenant+"\x00"+id]
			delete(erased, tenant+"\x00"+id)
			fault := func(column, format string, args ...any) {
				r.fault(Fault{"subject_keys", fmt.Sprintf("tenant %s, key_id %s", tenant, id), e.position, column, fmt.Sprintf(format, args...)})
			}
			switch {
			case destroyed != nil && !said:
				unsaid = append(unsaid, erasure{tenant, id, *destroyed, 0})
			case destroyed != nil && *destroyed != e.occurredUS:
				fault("destroyed_us", "want %d, the time of the event at %d", e.occurredUS, e.position)
			case destroyed != nil && len(reference)+len(wrapped)+len(kekID) > 0:
				fault("wrapped_key", "want nothing but the time in the row of a destroyed key")
			case destroyed != nil:
			case said:
				fault("wrapped_key", "the event at %d says that the key was destroyed, and it is here", e.position)
			case r.vault.kek != nil:
				if want := sealing.KEKName(r.KEK); kekID != want {
					fault("kek_id", "want %s", want)
				}
				if _, err := sealing.Unwrap(r.vault.kek, wrapped, tenant, id, reference); err != nil {
					fault("wrapped_key", "it does not unwrap for this tenant, key_id and subject_ref")
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read data keys: %w", err)
		}
		if err := r.unsaid(ctx, unsaid); err != nil {
			return err
		}
		if n < page {
			break
		}
	}
	for _, e := range erased {
		r.fault(Fault{"subject_keys", fmt.Sprintf("tenant %s, key_id %s", e.tenant, e.keyID), e.position, "key_id", "the row of the erased key is missing"})
	}
	if r.vault.kek == nil {
		r.report.Gaps = append(r.report.Gaps, "the wrapped data keys in subject_keys (DATA_KEK is not given)")
	}
	return nil
}

// unsaid looks for what says that keys were destroyed behind the head of this audit:
// somebody may have been erased since it began.
func (r *audit) unsaid(ctx context.Context, keys []erasure) error {
	for _, k := range keys {
		var saidUS int64
		err := r.pool.QueryRow(ctx, `select occurred_us from events where p = $1 and tenant = $2 and stream = $3 and pos > $4 and type = $5`,
			r.p, k.tenant, "subject/"+k.keyID, r.head.pos, events.TypeSubjectErased).Scan(&saidUS)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("read erasures: %w", err)
		case err != nil || saidUS != k.occurredUS:
			r.fault(Fault{"subject_keys", fmt.Sprintf("tenant %s, key_id %s", k.tenant, k.keyID), 0, "destroyed_us", "the key was destroyed, and no event subject.erased says so"})
		}
	}
	return nil
}
