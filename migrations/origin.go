package migrations

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"
)

// Genesis returns the previous hash of a tenant's first event, and the last hash of a head at
// position 0 (for the empty tenant name):
//
//	SHA-256( "svc-ledger-genesis-v1\0" ‖ S(origin) ‖ S(tenant) )
//
// where S(x) is the length of x in bytes as 4 bytes big-endian, then x. origin is that of the
// partition: it ends in "/" and the partition's number.
func Genesis(origin, tenant string) [sha256.Size]byte {
	b := []byte("svc-ledger-genesis-v1\x00")
	for _, s := range []string{origin, tenant} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return sha256.Sum256(b)
}

// initialise writes the head, and the head of the empty tree, of each partition if they do not
// exist. It checks that origin and number of partitions are the requested ones. Neither can change
// later, but partitions can be added until the first event. If partitions is 0, the existing
// number is used, or one.
func initialise(ctx context.Context, conn *pgx.Conn, origin string, partitions int) error {
	wanted := origin
	if origin == "" {
		id, err := ulid.New(ulid.Now(), rand.Reader)
		if err != nil {
			return fmt.Errorf("create an origin: %w", err)
		}
		origin = "countersign.local/" + id.String()
	}
	var stored ledgerHeads
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
		if stored, err = readHeads(ctx, tx); err != nil {
			return err
		}
		if stored.n > 0 {
			origin = strings.TrimSuffix(stored.origin, "/0")
		}
		if stored.n == 0 || stored.events == 0 && partitions > stored.n {
			if err := addHeads(ctx, tx, origin, stored.n, max(partitions, 1)); err != nil {
				return err
			}
			if stored, err = readHeads(ctx, tx); err == nil { // read again, because another program may have been faster
				origin = strings.TrimSuffix(stored.origin, "/0")
			}
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("write the ledger's head: %w", err)
	case wanted != "" && origin != wanted:
		return fmt.Errorf("LEDGER_ORIGIN differs from the origin of this ledger, which is %s and cannot change", strings.TrimSuffix(stored.origin, "/0"))
	case partitions != 0 && partitions != stored.n:
		return fmt.Errorf("this ledger has %d partitions, which cannot change, and %d are requested: set LEDGER_PARTITIONS to %d or unset it; another number needs a new, empty database",
			stored.n, partitions, stored.n)
	}
	return nil
}

// ledgerHeads summarizes the head rows.
type ledgerHeads struct {
	n      int
	origin string // origin of partition 0
	events int64
}

func readHeads(ctx context.Context, tx pgx.Tx) (h ledgerHeads, err error) {
	err = tx.QueryRow(ctx, `select count(*), coalesce(min(origin) filter (where p = 0), ''), coalesce(sum(pos), 0)::bigint from ledger_head`).
		Scan(&h.n, &h.origin, &h.events)
	return h, err
}

// addHeads creates the partitions with the numbers n where from <= n < to.
func addHeads(ctx context.Context, tx pgx.Tx, origin string, from, to int) error {
	emptyRoot := sha256.Sum256(nil)
	for p := from; p < to; p++ {
		full := origin + "/" + strconv.Itoa(p)
		genesis := Genesis(full, "")
		_, err := tx.Exec(ctx, `insert into ledger_head (p, origin, last_hash) values ($1, $2, $3) on conflict (p) do nothing`, p, full, genesis[:])
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into tree_head (p, size, root, edge) values ($1, 0, $2, '') on conflict (p) do nothing`, p, emptyRoot[:])
		if err != nil {
			return err
		}
	}
	return nil
}
