package audit

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/sealing"
	"github.com/countersign/countersign/policy/canon"
)

// errClosed means that a box could not be decrypted: no key-encryption key was given, or the data
// key was destroyed.
var errClosed = errors.New("the fields with personal data were not decrypted")

// auditDataKeys is the largest number of unwrapped keys in memory.
const auditDataKeys = 10_000

// auditVault decrypts the personal members of payloads. It unwraps the data keys itself,
// independently of package vault.
type auditVault struct {
	pool *pgxpool.Pool
	p    int16
	kek  cipher.AEAD // if nil, nothing is decrypted

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

// open restores the personal members of a payload and returns its record, if it has one. Without
// the data key the error is errClosed.
func (v *auditVault) open(ctx context.Context, e ledger.Event, payload auditedPayload) (jsontext.Value, error) {
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
		return record, errors.New("the box cannot be decrypted: it belongs to another event, or was changed")
	}
	members, err := canon.Members(e.Payload)
	if err != nil {
		return record, err
	}
	if err := sealing.Reopen(members, openings); err != nil {
		return record, fmt.Errorf("%w: %w of %s", ledger.ErrTampered, err, e.ID)
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
			return nil, errors.New("the data key cannot be unwrapped")
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

// dataKeys checks every row of subject_keys: either the key unwraps under the key-encryption key
// for its subject, or an event subject.erased records that it was destroyed.
func (r *run) dataKeys(ctx context.Context) error {
	erased := map[string]erasure{}
	for _, e := range r.erased {
		erased[e.tenant+"\x00"+e.keyID] = e
	}
	// Read the rows in pages, and compare them with the erasures that the walk has found.
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
				fault("destroyed_us", "must be %d, the time of the event at position %d", e.occurredUS, e.position)
			case destroyed != nil && len(reference)+len(wrapped)+len(kekID) > 0:
				fault("wrapped_key", "must be empty: in the row of a destroyed key only the time is set")
			case destroyed != nil:
			case said:
				fault("wrapped_key", "the event at position %d says that the key was destroyed, but the row still has it", e.position)
			case r.vault.kek != nil:
				if want := sealing.KEKName(r.KEK); kekID != want {
					fault("kek_id", "must be %s", want)
				}
				if _, err := sealing.Unwrap(r.vault.kek, wrapped, tenant, id, reference); err != nil {
					fault("wrapped_key", "the key cannot be unwrapped for this tenant, key_id and subject_ref")
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
	// Each entry left in erased has no row.
	for _, e := range erased {
		r.fault(Fault{"subject_keys", fmt.Sprintf("tenant %s, key_id %s", e.tenant, e.keyID), e.position, "key_id", "the row of the erased key is missing"})
	}
	if r.vault.kek == nil {
		r.report.Gaps = append(r.report.Gaps, "the wrapped data keys in subject_keys (DATA_KEK is not given)")
	}
	return nil
}

// unsaid searches after the head of this audit for the events of destroyed keys: a subject may
// have been erased since the audit began.
func (r *run) unsaid(ctx context.Context, keys []erasure) error {
	for _, k := range keys {
		var saidUS int64
		err := r.pool.QueryRow(ctx, `select occurred_us from events where p = $1 and tenant = $2 and stream = $3 and pos > $4 and type = $5`,
			r.p, k.tenant, "subject/"+k.keyID, r.head.pos, events.TypeSubjectErased).Scan(&saidUS)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("read erasures: %w", err)
		case err != nil || saidUS != k.occurredUS:
			r.fault(Fault{"subject_keys", fmt.Sprintf("tenant %s, key_id %s", k.tenant, k.keyID), 0, "destroyed_us", "the key was destroyed, but there is no event subject.erased"})
		}
	}
	return nil
}
