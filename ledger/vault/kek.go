package vault

import (
	"context"
	"crypto/cipher"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/internal/sealing"
	"github.com/countersign/countersign/ledger/internal/wait"
)

// RotateKEK wraps every data key again under another key-encryption key, in one transaction, and
// returns the number of keys that it has wrapped. No event changes, because payloads are encrypted
// with the data keys. Keys that are already wrapped under the new key stay unchanged, so a
// rotation can be repeated. The login must own the tables, which the service's role does not. No
// node may be connected, because it would continue to create data keys under the old key.
func RotateKEK(ctx context.Context, databaseURL string, old, next []byte) (wrapped int, err error) {
	from, err := sealing.Cipher(old)
	if err != nil {
		return 0, fmt.Errorf("the old key: %w", err)
	}
	to, err := sealing.Cipher(next)
	if err != nil {
		return 0, fmt.Errorf("the new key: %w", err)
	}
	conn, err := ledger.Connect(ctx, databaseURL)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := alone(ctx, conn); err != nil {
		return 0, err
	}
	// Read all data keys that are wrapped under another key than next, and wrap them again.
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `lock table subject_keys in exclusive mode`); err != nil {
			return fmt.Errorf("lock the data keys (a login that owns the tables is needed): %w", err)
		}
		rows, err := tx.Query(ctx, `select p, tenant, key_id, subject_ref, kek_id, wrapped_key from subject_keys
			where destroyed_us is null and kek_id <> $1`, sealing.KEKName(next))
		if err != nil {
			return err
		}
		keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[wrappedKey])
		if err != nil {
			return err
		}
		var batch pgx.Batch
		for _, k := range keys {
			again, err := k.rewrap(from, to, sealing.KEKName(old))
			if err != nil {
				return err
			}
			batch.Queue(`update subject_keys set kek_id = $4, wrapped_key = $5 where p = $1 and tenant = $2 and key_id = $3`,
				k.Partition, k.Tenant, k.ID, sealing.KEKName(next), again)
		}
		wrapped = len(keys)
		return tx.SendBatch(ctx, &batch).Close()
	})
	if err != nil {
		return 0, fmt.Errorf("wrap the data keys again (nothing has changed): %w", err)
	}
	return wrapped, nil
}

// alone returns an error if another session uses the database. It retries for some seconds,
// because a session that has just ended is still listed briefly. A login without pg_read_all_stats
// cannot see the kind of the sessions of other roles, so all of these count as nodes.
func alone(ctx context.Context, conn *pgx.Conn) error {
	var others int
	for range 30 {
		if err := conn.QueryRow(ctx, `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
			and (backend_type = 'client backend' and application_name not like 'citus_internal gpid=%' or backend_type is null and usesysid is not null)`).Scan(&others); err != nil {
			return fmt.Errorf("check for other sessions: %w", err)
		}
		if others == 0 {
			return nil
		}
		wait.For(ctx, nil, 100*time.Millisecond)
	}
	return fmt.Errorf("%d other sessions use the database: stop every node first (on a cluster use a login with pg_read_all_stats, which can recognize the cluster's own sessions)", others)
}

// wrappedKey is a row of subject_keys.
type wrappedKey struct {
	Partition  int16
	Tenant, ID string
	Reference  []byte
	KEK        string
	Wrapped    []byte
}

func (k wrappedKey) rewrap(from, to cipher.AEAD, old string) ([]byte, error) {
	key, err := sealing.Unwrap(from, k.Wrapped, k.Tenant, k.ID, k.Reference)
	if err != nil || k.KEK != old {
		return nil, fmt.Errorf("%w: the data key %s of tenant %s is wrapped under key %s, not %s", ErrWrongKEK, k.ID, k.Tenant, k.KEK, old)
	}
	return sealing.Wrap(to, key, k.Tenant, k.ID, k.Reference), nil
}
