package keeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/wait"
	"github.com/countersign/countersign/ledger/tree"
)

// mirror sends the newest note to every mirror and witness, and sometimes to the time-stamp
// authority, one after the other. After a failure it tries again with the next note.
func (k *keeper) mirror(ctx context.Context) {
	sizes := make([]int64, len(k.options.Witnesses)) // last size that each witness has seen
	for ctx.Err() == nil {
		var made *checkpoint.Published
		select {
		case made = <-k.mirrored:
		case <-ctx.Done():
			return
		}
		for _, store := range k.options.Mirrors {
			if err := store.Put(ctx, made.Epoch, made.Checkpoint, made.Note); err != nil && ctx.Err() == nil {
				k.ledger.Log().Warn("checkpoint not mirrored", "mirror", store.String(), "error", err)
			}
		}
		for i, w := range k.options.Witnesses {
			witnessed, err := k.witness(ctx, w, made, &sizes[i])
			if err != nil && ctx.Err() == nil {
				k.ledger.Log().Error("checkpoint not witnessed", "witness", w.Name(), "error", err)
			}
			made = witnessed // the next witness's line is added to this one's
		}
		if err := k.stamp(ctx, made); err != nil && ctx.Err() == nil {
			k.ledger.Log().Warn("checkpoint not time-stamped; checkpoints continue", "error", err)
		}
		if len(k.options.Mirrors)+len(k.options.Witnesses) > 0 {
			wait.For(ctx, nil, mirrorEvery)
		}
	}
}

// witness sends a checkpoint to a witness and returns it with the witness's signature line in its
// note. It returns the checkpoint as it was if the note cannot get this line: because it has the
// line already or has a time stamp (a node that was restarted sends its last checkpoint again),
// because another node has changed the note or has sent a newer one, or because of an error before
// the line was stored. seen is the last size that the witness has seen. If seen is wrong, the
// witness answers with the right size, and the checkpoint is sent again.
func (k *keeper) witness(ctx context.Context, w checkpoint.Witness, made *checkpoint.Published, seen *int64) (*checkpoint.Published, error) {
	if w.Signed(made.Note) {
		return made, nil
	}
	proofs, newest, err := Proofs(ctx, k.partition)
	if err != nil || newest == nil || newest.Size < made.Size {
		return made, err
	}
	for range 2 {
		var proof []tree.Hash
		if *seen > made.Size { // the witness has a newer note, which another node of this ledger must have made
			stored, err := Newest(ctx, k.partition)
			if err == nil && (stored == nil || *seen > stored.Size) {
				err = fmt.Errorf("%w: the witness is at size %d, and every checkpoint of this ledger is smaller", checkpoint.ErrInconsistent, *seen)
			}
			return made, err
		}
		if *seen > 0 {
			if proof, err = proofs.Consistency(*seen, made.Size); err != nil {
				return made, err
			}
		}
		cosigned, err := w.Add(ctx, *seen, proof, made.Note)
		var other checkpoint.SizeError
		switch {
		case errors.As(err, &other):
			*seen = int64(other)
			continue
		case err != nil:
			return made, err
		}
		*seen = made.Size
		return k.replaceNote(ctx, made, cosigned)
	}
	return made, errors.New("the witness names another size each time")
}

// replaceNote replaces the note of a checkpoint by one with one more signature line, and returns the
// checkpoint with this note. It changes nothing and returns the checkpoint as it was if another node
// has changed the stored note, or if the note has a time stamp, because a time stamp is about the
// exact bytes of a note.
func (k *keeper) replaceNote(ctx context.Context, made *checkpoint.Published, cosigned []byte) (*checkpoint.Published, error) {
	updated, err := k.ledger.Pool().Exec(ctx, `update checkpoints set note = $4 where p = $1 and size = $2 and note = $3 and stamp is null`,
		k.partition.Number(), made.Size, string(made.Note), string(cosigned))
	if err != nil || updated.RowsAffected() == 0 {
		return made, err
	}
	stored := checkpoint.NewPublished(made.Checkpoint, made.Epoch, cosigned)
	k.kept.Published.CompareAndSwap(made, stored)
	return stored, k.options.Folder.Put(ctx, made.Epoch, made.Checkpoint, cosigned)
}
