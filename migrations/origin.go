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

// initialise writes, for each partition, the head and the head of its empty tree,
// unless they are there, and checks that origin and number of partitions are those
// asked for. Both are for ever; the number may be another as long as nothing was
// appended. partitions 0 is what is there, or else one.
func initialise(ctx context.Context, conn *pgx.Conn, origin string, partitions int) error {
	wanted := origin
	if origin == "" {
		id, err := ulid.New(ulid.Now(), rand.Reader)
		if err != nil {
			return fmt.Errorf("make an origin: %w", err)
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
			if stored, err = readHeads(ctx, tx); err == nil { // another program may have been first
				origin = strings.TrimSuffix(stored.origin, "/0")
			}
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("write the ledger's head: %w", err)
	case wanted != "" && origin != wanted:
		return fmt.Errorf("this ledger has another origin, for ever: %s", stored.origin)
	case partitions != 0 && partitions != stored.n:
		return fmt.Errorf("this ledger has %d partitions, for ever, and %d are asked for: set LEDGER_PARTITIONS to %d or unset it; another number needs a new, empty database",
			stored.n, partitions, stored.n)
	}
	return nil
}

// ledgerHeads is what the head rows say together.
type ledgerHeads struct {
	n      int
	origin string // of partition 0
	events int64
}

func readHeads(ctx context.Context, tx pgx.Tx) (h ledgerHeads, err error) {
	err = tx.QueryRow(ctx, `select count(*), coalesce(min(origin) filter (where p = 0), ''), coalesce(sum(pos), 0)::bigint from ledger_head`).
		Scan(&h.n, &h.origin, &h.events)
	return h, err
}

// addHeads makes the partitions from one number up to, but not with, another.
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
