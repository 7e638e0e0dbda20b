package keeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
)

// reached is the result of a step.
type reached int

const (
	behind    reached = iota // the tree needs more steps to the head
	atHead                   // the tree covers the head
	elsewhere                // another session, of this node or another one, works on the tree
)

// errOtherKeys means that the stream of signing keys has changed since the keeper read it.
var errOtherKeys = errors.New("the signing keys have changed")

// retiredKey means that none of the keeper's keys may sign the tree. Its text tells an operator
// what to do.
type retiredKey struct {
	id       string
	position int64
}

// Error implements error.
func (r retiredKey) Error() string {
	return fmt.Sprintf("the checkpoint key %s of this node was retired at position %d: set CHECKPOINT_KEY to the new key and restart the node", r.id, r.position)
}

// step calls growAndSign, and calls it again if the signing keys have changed. It reads the keys
// outside of the transaction of growAndSign, because reading them needs another connection.
func (k *keeper) step(ctx context.Context, sign bool) (reached, error) {
	now, err := k.growAndSign(ctx, sign)
	if !errors.Is(err, errOtherKeys) {
		return now, err
	}
	ring, history, err := k.partition.Keyring(ctx)
	if err != nil {
		return behind, err
	}
	k.ring, k.version = ring, history.Version()
	return k.growAndSign(ctx, sign)
}

// growAndSign grows the tree in one transaction and signs it if it reaches the head. It stores the
// note outside the database before it commits the checkpoint. If another session works on the
// tree, growAndSign reads the newest checkpoint from the database instead.
func (k *keeper) growAndSign(ctx context.Context, sign bool) (_ reached, err error) {
	tx, err := k.ledger.Pool().Begin(ctx)
	if err != nil {
		return behind, err
	}
	defer func() {
		_ = tx.Rollback(context.WithoutCancel(ctx))
		if err != nil {
			k.builder = nil // the builder may be ahead of the stored tree
		}
	}()
	// The lock on the tree head lets only one session at a time grow the tree.
	var size int64
	var root ledger.Hash
	err = tx.QueryRow(ctx, `select size, root from tree_head where p = $1 for update skip locked`, k.partition.Number()).Scan(&size, &root)
	if errors.Is(err, pgx.ErrNoRows) {
		return elsewhere, k.follow(ctx)
	}
	if err != nil {
		return behind, fmt.Errorf("read tree head: %w", err)
	}
	// The ledger must not end before the tree or before a published checkpoint.
	var epoch, head int64
	if err := tx.QueryRow(ctx, `select epoch, pos from ledger_head where p = $1`, k.partition.Number()).Scan(&epoch, &head); err != nil {
		return behind, fmt.Errorf("read ledger head: %w", err)
	}
	if last := k.kept.Published.Load(); head < size || last != nil && (last.Epoch != epoch || last.Size > head) {
		return behind, k.ledger.Refuse(fmt.Errorf("the ledger ends at position %d, but a checkpoint covers %d events: the database is older than that checkpoint", head, max(size, lastSize(last))))
	}
	if k.builder == nil || k.builder.Size() != size || k.builder.Root() != tree.Hash(root) {
		if k.builder, err = k.resume(ctx, tx, size, root); err != nil {
			return behind, err
		}
	}
	// Grow the tree, sign it if it is at the head, and store it.
	now := behind
	if head <= size+k.options.Step {
		now = atHead
	}
	full, err := k.add(ctx, tx, size, min(head, size+k.options.Step))
	if err != nil {
		return behind, err
	}
	var made *checkpoint.Published
	if sign && now == atHead {
		made, err = k.sign(ctx, tx, epoch)
		if errors.As(err, &retiredKey{}) {
			return behind, errors.Join(err, k.follow(ctx))
		}
		if err != nil {
			return behind, err
		}
	}
	if err := k.store(ctx, tx, full, made); err != nil {
		return behind, err
	}
	if err := tx.Commit(ctx); err != nil {
		return behind, fmt.Errorf("commit a checkpoint: %w", err)
	}
	k.publish(made)
	return now, nil
}

func lastSize(p *checkpoint.Published) int64 {
	if p == nil {
		return 0
	}
	return p.Size
}

// resume reads the right edge of the tree and checks it against the stored root.
func (k *keeper) resume(ctx context.Context, tx pgx.Tx, size int64, root ledger.Hash) (*tree.Builder, error) {
	partial, err := ReadTiles(ctx, tx, k.partition.Number(), tree.Partial(size))
	if err != nil {
		return nil, err
	}
	b, err := tree.Resume(size, partial)
	if err != nil {
		return nil, fmt.Errorf("%w (run countersign verify; if events or tiles are wrong, restore a verified copy)", err)
	}
	if b.Root() != tree.Hash(root) {
		return nil, fmt.Errorf("%w: its root differs from the stored one", tree.ErrEdge)
	}
	return b, nil
}

// add grows the tree by the events after the position size, up to the position upTo. It queries
// only events that this node does not have in memory.
func (k *keeper) add(ctx context.Context, tx pgx.Tx, size, upTo int64) (full []tree.Tile, err error) {
	add := func(hash ledger.Hash) {
		k.builder.Add(tree.Leaf(hash), func(t tree.Tile) { full = append(full, t) })
	}
	for size < upTo {
		if held := k.partition.Recent(size); len(held) > 0 {
			for _, e := range held[:min(int64(len(held)), upTo-size)] {
				add(e.Hash)
				size++
			}
			continue
		}
		rows, err := tx.Query(ctx, `select pos, hash from events where p = $1 and pos > $2 and pos <= $3 order by pos`, k.partition.Number(), size, upTo)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		var position int64
		var hash ledger.Hash
		_, err = pgx.ForEachRow(rows, []any{&position, &hash}, func() error {
			if size++; position != size {
				return fmt.Errorf("%w: position %d is missing", ledger.ErrTampered, size)
			}
			add(hash)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if size < upTo {
			return nil, fmt.Errorf("%w: the events end at %d", ledger.ErrTampered, size)
		}
	}
	return full, nil
}

// sign returns the note of the tree. It signs and stores a new one outside the database, unless
// the database already has a note of this tree. It returns errOtherKeys if the stream of signing
// keys has grown since the keeper read it. All events of the tree are committed, so the
// keeper misses no retirement in the tree.
func (k *keeper) sign(ctx context.Context, tx pgx.Tx, epoch int64) (*checkpoint.Published, error) {
	c := checkpoint.Checkpoint{Origin: k.partition.Origin(), Size: k.builder.Size(), Root: k.builder.Root()}
	var stored *string
	var version int64
	err := tx.QueryRow(ctx, `select c.note, k.version from tree_head t
		left join checkpoints c on c.p = $1 and c.size = $2 and c.root = $3,
		lateral (select coalesce(max(version), 0) as version from events where p = $1 and tenant = $4 and stream = $5) k where t.p = $1`,
		k.partition.Number(), c.Size, c.Root[:], k.partition.Service(), ledger.SigningKeyStream).Scan(&stored, &version)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read checkpoints: %w", err)
	case stored != nil:
		return checkpoint.NewPublished(c, epoch, []byte(*stored)), nil
	case version > k.version:
		return nil, errOtherKeys
	}
	signer, err := k.signer(c.Size)
	if err != nil {
		return nil, err
	}
	text, err := checkpoint.Sign(c, signer.Key())
	if err != nil {
		return nil, err
	}
	return checkpoint.NewPublished(c, epoch, text), k.options.Folder.Put(ctx, epoch, c, text)
}

// signer returns the key of this node that may sign a tree of a size.
func (k *keeper) signer(size int64) (*seal.Signer, error) {
	for _, s := range []*seal.Signer{k.options.Signer, k.options.Next} {
		if s == nil {
			continue
		}
		if key, known := k.ring[s.KeyID()]; known && key.Purpose == ledger.PurposeCheckpoint && !key.Retired(size) {
			return s, nil
		}
	}
	own := k.options.Signer.KeyID()
	return nil, retiredKey{own, k.ring[own].To}
}

// store writes tiles, tree head and checkpoint in the transaction. A partial tile is updated in
// its row.
func (k *keeper) store(ctx context.Context, tx pgx.Tx, full []tree.Tile, made *checkpoint.Published) error {
	// The tiles share the builder's memory and are valid only until the next Add.
	tiles := append(full, k.builder.Tiles()...)
	levels, numbers, data := make([]int16, len(tiles)), make([]int64, len(tiles)), make([][]byte, len(tiles))
	for i, t := range tiles {
		levels[i], numbers[i], data[i] = int16(t.Level), t.N, t.Data
	}
	root := k.builder.Root()
	edge := []byte{} // not null, even for the empty tree
	for _, h := range k.builder.Edge() {
		edge = append(edge, h[:]...)
	}
	batch := &pgx.Batch{}
	batch.Queue(`insert into tiles (p, level, n, data) select $1, t.* from unnest($2::smallint[], $3::bigint[], $4::bytea[]) t
		on conflict (p, level, n) do update set data = excluded.data`, k.partition.Number(), levels, numbers, data)
	batch.Queue(`update tree_head set size = $2, root = $3, edge = $4 where p = $1`, k.partition.Number(), k.builder.Size(), root[:], edge)
	if made != nil {
		batch.Queue(`insert into checkpoints (p, size, root, note) values ($1, $2, $3, $4)
			on conflict (p, size) do update set root = excluded.root, note = excluded.note, stamp = null where checkpoints.root <> excluded.root`,
			k.partition.Number(), made.Size, made.Root[:], string(made.Note))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("store the tree: %w", err)
	}
	return nil
}
