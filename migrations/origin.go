package migrations

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"
)

// Genesis is what the first event of a tenant has as its previous hash, and what
// a head at position 0 has as its last one (for the empty tenant name):
//
//	SHA-256( "svc-ledger-genesis-v1\0" ‖ S(origin) ‖ S(tenant) )
//
// where S(x) is the length of x in octets as 4 octets big-endian, then x. The
// origin here is that of the partition: it ends in "/" and its number.
func Genesis(origin, tenant string) [sha256.Size]byte {
	b := []byte("svc-ledger-genesis-v1\x00")
	for _, s := range []string{origin, tenant} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return sha256.Sum256(b)
}

// initialise writes the head of partition 0 and the head of its empty tree,
// unless they are there, and checks that the origin is the one asked for.
func initialise(ctx context.Context, conn *pgx.Conn, origin string) error {
	wanted := origin
	if origin == "" {
		id, err := ulid.New(ulid.Now(), rand.Reader)
		if err != nil {
			return fmt.Errorf("make an origin: %w", err)
		}
		origin = "countersign.local/" + id.String()
	}
	origin += "/0"
	genesis, emptyRoot := Genesis(origin, ""), sha256.Sum256(nil)
	stored := ""
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into ledger_head (p, origin, last_hash) values (0, $1, $2) on conflict (p) do nothing`, origin, genesis[:])
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into tree_head (p, size, root, edge) values (0, 0, $1, '') on conflict (p) do nothing`, emptyRoot[:])
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `select origin from ledger_head where p = 0`).Scan(&stored)
	})
	if err != nil {
		return fmt.Errorf("write the ledger's head: %w", err)
	}
	if wanted != "" && stored != wanted+"/0" {
		return fmt.Errorf("this ledger has another origin, for ever: %s", stored)
	}
	return nil
}
