package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/tree"
)

// witness shows a checkpoint to a witness and keeps its line with the note. seen
// is the size that the witness is thought to be at; it says so itself if not.
func (k *keeper) witness(ctx context.Context, w checkpoint.Witness, made *Published, seen *int64) error {
	proofs, newest, err := k.ledger.Proofs(ctx)
	if err != nil || newest == nil || newest.Size < made.Size {
		return err
	}
	for range 2 {
		var proof []tree.Hash
		if *seen > made.Size {
			return fmt.Errorf("%w: it is at size %d and this ledger at %d", checkpoint.ErrInconsistent, *seen, made.Size)
		}
		if *seen > 0 {
			if proof, err = proofs.Consistency(*seen, made.Size); err != nil {
				return err
			}
		}
		cosigned, err := w.Add(ctx, *seen, proof, made.Note)
		var other checkpoint.SizeError
		switch {
		case errors.As(err, &other):
			*seen = int64(other)
			continue
		case err != nil:
			return err
		}
		*seen = made.Size
		if err := k.options.Folder.Put(ctx, made.Epoch, made.Checkpoint, cosigned); err != nil {
			return err
		}
		_, err = k.ledger.pool.Exec(ctx, `update checkpoints set note = $3 where p = $1 and size = $2`, k.p, made.Size, string(cosigned))
		k.published.CompareAndSwap(made, newPublished(made.Checkpoint, made.Epoch, cosigned))
		return err
	}
	return errors.New("the witness names another size each time")
}
