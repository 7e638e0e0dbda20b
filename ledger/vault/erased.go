package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// DataKeyOf identifies a data key of a tenant.
type DataKeyOf struct{ Tenant, KeyID string }

// Refuse makes the vault treat these data keys as destroyed. The caller has a record outside of
// the database that they were destroyed. Refuse returns the keys that the database still has,
// because it was restored from a backup made before their erasure; these erasures must be
// repeated. Call Refuse before the vault is used.
func (v *Vault) Refuse(ctx context.Context, keys []DataKeyOf) (still []DataKeyOf, err error) {
	v.refused = map[DataKeyOf]bool{}
	for _, k := range keys {
		if v.refused[k] {
			continue
		}
		v.refused[k] = true
		var held bool
		if err := v.ledger.Row(ctx, `select exists (select from subject_keys where p = $1 and tenant = $2 and key_id = $3 and destroyed_us is null)`,
			[]any{v.ledger.Home(k.Tenant).Number(), k.Tenant, k.KeyID}, &held); err != nil {
			return nil, err
		}
		if held {
			still = append(still, k)
		}
	}
	return still, nil
}

const rewrite = `alter table subject_keys alter column wrapped_key type bytea using wrapped_key || ''::bytea`

// Vacuum rewrites the table of data keys, so that no page of the table or its indexes contains a
// destroyed key, and then runs CHECKPOINT if the role may. The role in url must own the table. Vacuum does not
// remove destroyed keys from write-ahead log segments, replicas and backups.
func Vacuum(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var owns bool
	if err := conn.QueryRow(ctx, `select pg_has_role(relowner, 'usage') from pg_class where oid = 'public.subject_keys'::regclass`).Scan(&owns); err != nil {
		return err
	}
	if !owns {
		return errors.New("the role of DATABASE_URL does not own the table subject_keys: run the command with the role that migrates the schema")
	}
	// VACUUM would keep rows that an older snapshot may still read. Changing the column type
	// writes a new table and new indexes with only the current rows.
	if _, err := conn.Exec(ctx, rewrite); err != nil {
		return fmt.Errorf("rewrite subject_keys: %w", err)
	}
	var may bool
	if err := conn.QueryRow(ctx, `select pg_has_role('pg_checkpoint', 'usage')`).Scan(&may); err != nil || !may {
		return err // this is not an error: the old pages are unlinked, and the server makes its next checkpoint itself
	}
	_, err = conn.Exec(ctx, `checkpoint`)
	return err
}
