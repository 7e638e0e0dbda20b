package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/timestamp"
)

const (
	stampEvery = time.Hour        // time between two time stamps of a ledger
	stampAgain = 10 * time.Minute // time until the next try after a failure
)

// stamp asks the time-stamp authority to sign the note of a checkpoint, if the last stamp of the
// ledger is old enough. It stores the answer in the database and next to the note. Afterwards the
// note does not change: no signature of a witness is added to it.
func (k *keeper) stamp(ctx context.Context, made *checkpoint.Published) error {
	if k.options.Authority == nil || time.Now().Before(k.stampAt) {
		return nil
	}
	k.stampAt = time.Now().Add(stampAgain)
	last, err := Stamped(ctx, k.partition, 1<<62, nil)
	if err != nil {
		return err
	}
	if last != nil {
		stamp, err := timestamp.Parse(last.Stamp, last.Note)
		if err == nil && time.Since(stamp.Time) < stampEvery { // this node before its restart, or another node, has requested the stamp
			k.stampAt = stamp.Time.Add(stampEvery)
			return nil
		}
	}
	witnessed, err := At(ctx, k.partition, made.Size) // the note with the signatures of the witnesses
	if err != nil {
		return err
	}
	answer, err := k.options.Authority.Ask(ctx, witnessed.Note)
	if err != nil {
		return err
	}
	// Another node may have stamped the note in the meantime. Its stamp stays, because exports may
	// have it already.
	updated, err := k.ledger.Pool().Exec(ctx, `update checkpoints set stamp = $4 where p = $1 and size = $2 and note = $3 and stamp is null`,
		k.partition.Number(), made.Size, string(witnessed.Note), answer)
	if err != nil {
		return fmt.Errorf("store a time stamp: %w", err)
	}
	if updated.RowsAffected() == 0 {
		k.stampAt = time.Time{} // check again with the next note
		return nil
	}
	k.stampAt = time.Now().Add(stampEvery)
	// The folder may have the note without the line of a witness that another node has added.
	if err := k.options.Folder.Put(ctx, made.Epoch, made.Checkpoint, witnessed.Note); err != nil {
		return err
	}
	return k.options.Folder.PutStamp(k.partition.Origin(), made.Epoch, made.Size, answer)
}

// StampedNote is a note with the answer of a time-stamp authority about it.
type StampedNote struct {
	Size  int64
	Note  []byte
	Stamp []byte
}

// Stamped returns the newest stamped note whose tree has at most size events and for which accept
// returns true, or nil if there is none. If accept is nil, every note is accepted.
func Stamped(ctx context.Context, p *ledger.Partition, size int64, accept func(StampedNote) bool) (*StampedNote, error) {
	for {
		var found StampedNote
		err := p.Ledger().Row(ctx, `select size, note, stamp from checkpoints where p = $1 and size <= $2 and stamp is not null order by size desc limit 1`,
			[]any{p.Number(), size}, &found.Size, &found.Note, &found.Stamp)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read time stamps: %w", err)
		case accept == nil || accept(found):
			return &found, nil
		}
		size = found.Size - 1
	}
}
