package keeper

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/tree"
)

// Newest reads the partition's newest checkpoint from the database. It returns nil if there is
// none.
func Newest(ctx context.Context, p *ledger.Partition) (*checkpoint.Published, error) {
	var size, epoch int64
	var root ledger.Hash
	var note string
	err := p.Ledger().Row(ctx, `select c.size, c.root, c.note, h.epoch from ledger_head h, lateral (
		select size, root, note from checkpoints c where c.p = h.p order by size desc limit 1) c where h.p = $1`,
		[]any{p.Number()}, &size, &root, &note, &epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return checkpoint.NewPublished(checkpoint.Checkpoint{Origin: p.Origin(), Size: size, Root: tree.Hash(root)}, epoch, []byte(note)), nil
}

// newest returns the newest checkpoint in the database, or nil. Another node may have made it a
// moment ago, so the one in this node's memory may be older: a client that asks one node after the
// other would take that for a rollback. newest returns the one in memory if the database cannot be
// read or has an older one.
func newest(ctx context.Context, p *ledger.Partition) (*checkpoint.Published, error) {
	stored, err := Newest(ctx, p)
	if known := Known(p); known != nil && (stored == nil || stored.Size < known.Size) {
		return known, nil
	}
	return stored, err
}

// At reads the checkpoint with this size from the database. It fails if there is none.
func At(ctx context.Context, p *ledger.Partition, size int64) (*checkpoint.Published, error) {
	var root ledger.Hash
	var note string
	err := p.Ledger().Row(ctx, `select root, note from checkpoints where p = $1 and size = $2`, []any{p.Number(), size}, &root, &note)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return checkpoint.NewPublished(checkpoint.Checkpoint{Origin: p.Origin(), Size: size, Root: tree.Hash(root)}, 0, []byte(note)), nil
}

// Sizes returns the sizes of the newest checkpoints below a size, at most limit of them, in
// ascending order.
func Sizes(ctx context.Context, p *ledger.Partition, below int64, limit int) (sizes []int64, err error) {
	err = p.Ledger().Reading(ctx, func() error {
		rows, err := p.Ledger().Pool().Query(ctx, `select size from checkpoints where p = $1 and size < $2 order by size desc limit $3`, p.Number(), below, limit)
		if err == nil {
			sizes, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		}
		return err
	})
	slices.Reverse(sizes)
	return sizes, err
}

// Keys returns the public keys that may have signed the partition's notes. It includes compromised
// keys: a note outside is evidence of lost events, whichever key has signed it.
func Keys(ctx context.Context, p *ledger.Partition) ([]ed25519.PublicKey, error) {
	ring, _, err := p.Keyring(ctx)
	return ring.Public(ledger.PurposeCheckpoint), err
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ReadTiles reads the stored tiles of a partition in the order of wanted. The result of a missing
// tile has no data.
func ReadTiles(ctx context.Context, db querier, p int16, wanted []tree.Tile) ([]tree.Tile, error) {
	levels, numbers := make([]int16, len(wanted)), make([]int64, len(wanted))
	for i, t := range wanted {
		levels[i], numbers[i] = int16(t.Level), t.N
	}
	rows, err := db.Query(ctx, `select w.i, t.data from unnest($2::smallint[], $3::bigint[]) with ordinality w (level, n, i),
		lateral (select data from tiles t where t.p = $1 and t.level = w.level and t.n = w.n limit 1) t`, p, levels, numbers)
	if err != nil {
		return nil, fmt.Errorf("read tiles: %w", err)
	}
	found := slices.Clone(wanted)
	for i := range found {
		found[i].Data = nil
	}
	var i int64
	var data []byte
	if _, err = pgx.ForEachRow(rows, []any{&i, &data}, func() error {
		found[i-1].Data = slices.Clone(data)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read tiles: %w", err)
	}
	return found, nil
}

// Proofs returns the newest checkpoint and a source of proofs for its tree. Both are nil if there
// is no checkpoint yet.
func Proofs(ctx context.Context, p *ledger.Partition) (*tree.Proofs, *checkpoint.Published, error) {
	newest, err := newest(ctx, p)
	if err != nil || newest == nil {
		return nil, nil, err
	}
	return proofsAt(ctx, p, newest.Size, newest.Root), newest, nil
}

// proofsAt returns a source of proofs for the tree of a size and root.
func proofsAt(ctx context.Context, p *ledger.Partition, size int64, root tree.Hash) *tree.Proofs {
	return tree.NewProofs(ctx, size, root, func(ctx context.Context, wanted []tree.Tile) (found []tree.Tile, err error) {
		err = p.Ledger().Reading(ctx, func() (err error) {
			found, err = ReadTiles(ctx, p.Ledger().Pool(), p.Number(), wanted)
			return err
		})
		return found, err
	})
}

// Tile returns the first width hashes of a stored tile. It returns nil if the newest checkpoint
// covers fewer hashes of the tile.
func Tile(ctx context.Context, p *ledger.Partition, level int, n int64, width int) ([]byte, error) {
	newest, err := newest(ctx, p)
	if err != nil || newest == nil {
		return nil, err
	}
	if level > 7 || n < 0 || n*tree.Width+int64(width) > newest.Size>>(tree.Height*level) {
		return nil, nil
	}
	var found []tree.Tile
	err = p.Ledger().Reading(ctx, func() (err error) {
		found, err = ReadTiles(ctx, p.Ledger().Pool(), p.Number(), []tree.Tile{{Level: level, N: n}})
		return err
	})
	if err != nil || len(found[0].Data) < 32*width {
		return nil, err
	}
	return found[0].Data[:32*width], nil
}
