package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/tree"
)

// NewestCheckpoint reads the partition's newest checkpoint of the database, or nil.
func (p *Partition) NewestCheckpoint(ctx context.Context) (*Published, error) {
	var size, epoch int64
	var root Hash
	var note string
	err := p.ledger.Row(ctx, `select c.size, c.root, c.note, h.epoch from ledger_head h, lateral (
		select size, root, note from checkpoints c where c.p = h.p order by size desc limit 1) c where h.p = $1`,
		[]any{p.p}, &size, &root, &note, &epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return newPublished(checkpoint.Checkpoint{Origin: p.origin, Size: size, Root: tree.Hash(root)}, epoch, []byte(note)), nil
}

// newest is the newest checkpoint that this node knows of, or else the database; nil
// if there is none yet.
func (p *Partition) newest(ctx context.Context) (*Published, error) {
	if known := p.Checkpoint(); known != nil {
		return known, nil
	}
	return p.NewestCheckpoint(ctx)
}

// CheckpointAt reads the checkpoint of a size.
func (p *Partition) CheckpointAt(ctx context.Context, size int64) (*Published, error) {
	var root Hash
	var note string
	err := p.ledger.Row(ctx, `select root, note from checkpoints where p = $1 and size = $2`, []any{p.p, size}, &root, &note)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return newPublished(checkpoint.Checkpoint{Origin: p.origin, Size: size, Root: tree.Hash(root)}, 0, []byte(note)), nil
}

// CheckpointSizes lists the sizes of the newest checkpoints below one, ascending.
func (p *Partition) CheckpointSizes(ctx context.Context, below int64, limit int) (sizes []int64, err error) {
	err = p.ledger.Reading(ctx, func() error {
		rows, err := p.ledger.pool.Query(ctx, `select size from checkpoints where p = $1 and size < $2 order by size desc limit $3`, p.p, below, limit)
		if err == nil {
			sizes, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		}
		return err
	})
	slices.Reverse(sizes)
	return sizes, err
}

// CheckpointKeys are the public keys that the partition's notes may be signed with,
// compromised ones included: a note outside tells of lost events, whoever made it.
func (p *Partition) CheckpointKeys(ctx context.Context) ([]ed25519.PublicKey, error) {
	ring, _, err := p.Keyring(ctx)
	return ring.Public(PurposeCheckpoint), err
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ReadTiles reads stored tiles in the order asked for; one that is not stored has
// no data.
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

// Proofs makes proofs up to the newest checkpoint; the second value is that
// checkpoint, nil if there is none yet.
func (p *Partition) Proofs(ctx context.Context) (*tree.Proofs, *Published, error) {
	newest, err := p.newest(ctx)
	if err != nil || newest == nil {
		return nil, nil, err
	}
	return p.proofsAt(ctx, newest.Size, newest.Root), newest, nil
}

// proofsAt makes proofs in the tree of a size and root.
func (p *Partition) proofsAt(ctx context.Context, size int64, root tree.Hash) *tree.Proofs {
	return tree.NewProofs(ctx, size, root, func(ctx context.Context, wanted []tree.Tile) (found []tree.Tile, err error) {
		err = p.ledger.Reading(ctx, func() (err error) {
			found, err = ReadTiles(ctx, p.ledger.pool, p.p, wanted)
			return err
		})
		return found, err
	})
}

// Tile is a stored tile cut to a width in hashes, or nil where the newest
// checkpoint covers none so wide.
func (p *Partition) Tile(ctx context.Context, level int, n int64, width int) ([]byte, error) {
	newest, err := p.newest(ctx)
	if err != nil || newest == nil {
		return nil, err
	}
	if level > 7 || n < 0 || n*tree.Width+int64(width) > newest.Size>>(tree.Height*level) {
		return nil, nil
	}
	var found []tree.Tile
	err = p.ledger.Reading(ctx, func() (err error) {
		found, err = ReadTiles(ctx, p.ledger.pool, p.p, []tree.Tile{{Level: level, N: n}})
		return err
	})
	if err != nil || len(found[0].Data) < 32*width {
		return nil, err
	}
	return found[0].Data[:32*width], nil
}
