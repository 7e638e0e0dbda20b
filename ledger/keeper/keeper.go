// Package keeper makes the checkpoints of a ledger. It grows the Merkle tree of each partition
// (step.go), signs its head about once a second, stores the note in a folder outside the database,
// and sends it to mirrors, witnesses (witness.go) and a time-stamp authority (stamp.go). At the
// start of a node, CheckOutside compares the database with these notes (rollback.go), to detect a
// database that was restored from an older copy, truncated or replaced. read.go reads stored
// checkpoints, tiles and proofs.
package keeper

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/kept"
	"github.com/countersign/countersign/ledger/internal/wait"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/timestamp"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// Options say how the heads of a ledger's trees are signed and where the notes are stored.
type Options struct {
	Signer    *seal.Signer // key that signs only checkpoints
	Next      *seal.Signer // key that signs as soon as a rotation has made it the checkpoint key; may be nil
	Folder    checkpoint.Folder
	Mirrors   []checkpoint.Store   // stores that get the newest note; if one fails, the failure is logged, and the store gets the next note
	Witnesses []checkpoint.Witness // witnesses that get the newest note, with the same handling of failures
	Authority *timestamp.Authority // time-stamp authority that stamps a note about every hour; may be nil
	Every     time.Duration        // time between two checkpoints; 0 means a second
	Step      int64                // largest number of events by which one transaction grows the tree; 0 means 20,000
}

// Stores returns the stores whose newest notes CheckOutside reads: the folder and the mirrors.
func (c Options) Stores() []checkpoint.Store {
	return append([]checkpoint.Store{c.Folder}, c.Mirrors...)
}

// Stream contains the events that state what a partition's checkpoints cover and which events an
// accepted rollback has lost. It is in the partition's service tenant.
const Stream = "checkpoints"

const (
	every       = time.Second           // time between two checkpoints
	lastWithin  = 5 * time.Second       // time limit for the last checkpoint at a shutdown
	stepEvents  = 20_000                // events by which one transaction grows the tree
	mirrorEvery = 10 * time.Second      // time between two notes to mirrors and witnesses
	growAgain   = 50 * time.Millisecond // time until the next check of a tree that another session is growing
	pruneEvery  = time.Hour             // time between two removals of old notes from the folder
	pruneAfter  = 24 * time.Hour        // age from which a note may be removed
)

// beginning is the statement in the event ledger.checkpoints_begun.
const beginning = "The first checkpoint vouches for the events up to this size as they stood when it was made. " +
	"Nothing outside the database can show that they were the same before; from here on a change, a removal and a cut tail are found."

// keeper grows the tree of one partition and signs its heads. The goroutine of run owns builder,
// ring and version, and that of mirror owns stampAt. Other goroutines read only kept.
type keeper struct {
	partition *ledger.Partition
	ledger    *ledger.Ledger
	options   Options
	builder   *tree.Builder // if nil, step resumes it from the stored tiles

	ring    ledger.Keyring // signing keys of the partition
	version int64          // version of the stream of signing keys that ring was read from

	kept     *kept.State                // state that other goroutines may read
	mirrored chan *checkpoint.Published // passes the newest checkpoint to mirror
	stampAt  time.Time                  // time at which mirror requests the next time stamp
}

// Start starts a keeper for each partition. It signs a checkpoint about every second in which
// there are new events, until the ledger is closed. If several nodes use one database, the first
// to lock the tree signs. In a ledger without checkpoints, Start appends an event that states
// which existing events the first checkpoint covers. CheckOutside must run before Start.
//
// A tree that is several steps behind the head grows in the background: Start does not wait for
// it, and appends continue.
func Start(ctx context.Context, l *ledger.Ledger, c Options, newID func() string) error {
	for _, p := range l.Partitions() {
		if err := start(ctx, p, c, newID); err != nil {
			return err
		}
	}
	return nil
}

func start(ctx context.Context, p *ledger.Partition, c Options, newID func() string) error {
	l, k := p.Ledger(), newKeeper(p, c)
	far, err := k.farBehind(ctx)
	if err == nil && !far {
		err = k.toBegin(ctx, newID)
	}
	if err != nil {
		return err
	}
	k.kept.Beginning.Store(far)
	k.kept.Current.Store(time.Now().UnixMicro())
	if !p.Kept().CompareAndSwap(nil, k.kept) {
		return errors.New("a keeper of checkpoints is already running")
	}
	l.Go(func(ctx context.Context) {
		if !far || k.beginLate(ctx, newID) {
			k.run(ctx)
		}
	})
	l.Go(k.mirror)
	return nil
}

// farBehind reports whether the tree is more than one step behind the head. It returns an error if
// the signer's key cannot be activated, so that Start fails instead of the background work.
func (k *keeper) farBehind(ctx context.Context) (bool, error) {
	ring, _, err := k.partition.Keyring(ctx)
	if err != nil {
		return false, err
	}
	if _, err := ring.MayActivate(ledger.PurposeCheckpoint, k.options.Signer); err != nil {
		return false, err
	}
	var behind int64
	err = k.ledger.Row(ctx, `select h.pos - t.size from ledger_head h join tree_head t using (p) where p = $1`, []any{k.partition.Number()}, &behind)
	if err != nil {
		return false, fmt.Errorf("read tree head: %w", err)
	}
	return behind > k.options.Step, nil
}

// toBegin activates the key and signs the current head.
func (k *keeper) toBegin(ctx context.Context, newID func() string) error {
	if err := k.begin(ctx, newID); err != nil {
		return err
	}
	return k.toHead(ctx)
}

// beginLate repeats toBegin until it succeeds. It returns false if ctx ends first; then the keeper
// must not sign.
func (k *keeper) beginLate(ctx context.Context, newID func() string) bool {
	for ctx.Err() == nil {
		err := k.toBegin(ctx, newID)
		if err == nil {
			k.kept.Current.Store(time.Now().UnixMicro())
			k.kept.Beginning.Store(false)
			return true
		}
		if ctx.Err() == nil {
			k.ledger.Log().Error("checkpoints cannot start yet; appends continue", "error", err)
		}
		k.builder = nil
		wait.For(ctx, nil, k.options.Every)
	}
	return false
}

func newKeeper(p *ledger.Partition, c Options) *keeper {
	if c.Every == 0 {
		c.Every = every
	}
	if c.Step == 0 {
		c.Step = stepEvents
	}
	return &keeper{partition: p, ledger: p.Ledger(), options: c, kept: &kept.State{Every: c.Every}, mirrored: make(chan *checkpoint.Published, 1)}
}

// Known returns the newest checkpoint that this node has in memory, or nil.
func Known(p *ledger.Partition) *checkpoint.Published {
	if k := p.Kept().Load(); k != nil {
		return k.Published.Load()
	}
	return nil
}

// Covered waits until a checkpoint covers a position, and returns that checkpoint. It returns nil
// if ctx ends first, or if this node keeps no checkpoints.
func Covered(ctx context.Context, p *ledger.Partition, position int64) *checkpoint.Published {
	k := p.Kept().Load()
	if k == nil {
		return nil
	}
	for {
		news := k.News.Wait() // taken before Load, so that no later checkpoint is missed
		if newest := k.Published.Load(); newest != nil && newest.Size >= position {
			return newest
		}
		if !wait.For(ctx, news, 0) {
			return nil
		}
	}
}

// Beginning reports whether a tree of this node is still growing to the head after the start,
// before its first checkpoint.
func Beginning(l *ledger.Ledger) bool {
	return slices.ContainsFunc(l.Partitions(), func(p *ledger.Partition) bool {
		k := p.Kept().Load()
		return k != nil && k.Beginning.Load()
	})
}

// Lag returns how long the newest checkpoint has been behind the head, beyond the usual two
// intervals, in the partition with the longest lag. It returns 0 if this node keeps no
// checkpoints.
func Lag(l *ledger.Ledger) (lag time.Duration) {
	for _, p := range l.Partitions() {
		if k := p.Kept().Load(); k != nil {
			lag = max(lag, time.Since(time.UnixMicro(k.Current.Load()))-2*k.Every)
		}
	}
	return lag
}

// Problem says why this node signs no checkpoints although it has a key for them, and what to do. It
// is empty if there is no such problem.
func Problem(l *ledger.Ledger) string {
	for _, p := range l.Partitions() {
		if k := p.Kept().Load(); k != nil {
			if problem := k.Problem.Load(); problem != nil {
				return *problem
			}
		}
	}
	return ""
}

// begin activates the checkpoint key. If it is the first one, the same append contains an event
// that states which existing events the tree covers.
func (k *keeper) begin(ctx context.Context, newID func() string) error {
	ring, _, err := k.partition.Keyring(ctx)
	if err != nil {
		return err
	}
	var also []ledger.Pending
	if ring.Active(ledger.PurposeCheckpoint) == "" {
		if err := k.grow(ctx, math.MaxInt64); err != nil {
			return err
		}
		root := k.builder.Root()
		payload, err := canon.Marshal(events.CheckpointsBegun{Size: k.builder.Size(), Root: hex.EncodeToString(root[:]),
			KeyID: k.options.Signer.KeyID(), Statement: beginning})
		if err != nil {
			return err
		}
		also = []ledger.Pending{{Stream: Stream, Expect: ledger.Any(1), ID: newID(), Type: events.TypeCheckpointsBegun,
			SchemaVersion: 1, Actor: "system", Payload: payload}}
	}
	return k.partition.ActivateFirst(ctx, ledger.PurposeCheckpoint, k.options.Signer, newID(), also)
}

// grow grows the tree to a size, or to the head if that is smaller, without signing.
func (k *keeper) grow(ctx context.Context, size int64) error { return k.here(ctx, size, false) }

// here grows the tree to a size, or to the head if that is smaller. It waits while another session
// works on the tree.
func (k *keeper) here(ctx context.Context, size int64, sign bool) error {
	for {
		var grown int64
		if err := k.ledger.Row(ctx, `select size from tree_head where p = $1`, []any{k.partition.Number()}, &grown); err != nil {
			return fmt.Errorf("read tree head: %w", err)
		}
		if grown >= size {
			return nil
		}
		now, err := k.step(ctx, sign)
		switch {
		case err != nil || now == atHead:
			return err
		case now == elsewhere && !wait.For(ctx, nil, growAgain):
			return ctx.Err()
		}
	}
}

// toHead grows the tree to the head and signs it, unless another node does.
func (k *keeper) toHead(ctx context.Context) error {
	for {
		if now, err := k.step(ctx, true); err != nil || now != behind {
			return err
		}
	}
}

// run signs a checkpoint after changes, at most one per interval, until ctx ends. Then it signs a
// last one that covers all acknowledged events, so that a rollback of the database while no node
// runs is detected. When ctx ends, the session of an interrupted step may still lock the tree; so
// the last step waits for the lock (method here).
func (k *keeper) run(ctx context.Context) {
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWithin)
		defer cancel()
		if err := k.here(last, math.MaxInt64, true); err != nil {
			k.ledger.Log().Warn("the last checkpoint could not be made; no note outside the database covers the events of the last second", "error", err)
		}
	}()
	pruned := time.Now()
	for ctx.Err() == nil {
		changed := k.partition.Changed()
		if err := k.toHead(ctx); err != nil {
			if ctx.Err() == nil && !k.problem(err) {
				k.ledger.Log().Error("checkpoint not made; appends continue", "origin", k.partition.Origin(), "error", err)
			}
			k.builder = nil
		} else {
			k.kept.Current.Store(time.Now().UnixMicro())
		}
		if time.Since(pruned) > pruneEvery {
			pruned = time.Now()
			k.prune()
		}
		wait.For(ctx, nil, k.options.Every)
		wait.For(ctx, changed, k.options.Every)
	}
}

// problem reports whether an error means that the keys of this node are retired. The first time it
// logs that, and stores it for Problem. Another node may have a key, so the keeper goes on reading
// the checkpoints.
func (k *keeper) problem(err error) bool {
	var retired retiredKey
	if !errors.As(err, &retired) {
		return false
	}
	if text := retired.Error(); k.kept.Problem.CompareAndSwap(nil, &text) {
		k.ledger.Log().Error("this node signs no checkpoints; appends continue", "origin", k.partition.Origin(), "error", err)
		k.kept.News.Signal()
	}
	return true
}

func (k *keeper) prune() {
	p := k.kept.Published.Load()
	if p == nil {
		return
	}
	// This keeps about a day of notes, if there was one event per interval.
	below := p.Size - int64(pruneAfter/k.options.Every)
	stamped := func(size int64) bool { return k.options.Folder.HasStamp(k.partition.Origin(), p.Epoch, size) }
	if err := k.options.Folder.Prune(k.partition.Origin(), p.Epoch, below, stamped); err != nil {
		k.ledger.Log().Warn("prune checkpoints", "error", err)
	}
}

// publish stores a checkpoint in kept and passes it to mirror.
func (k *keeper) publish(made *checkpoint.Published) {
	if made == nil {
		return
	}
	if last := k.kept.Published.Load(); last != nil && last.Size == made.Size && last.Epoch == made.Epoch {
		return
	}
	k.kept.Published.Store(made)
	k.kept.News.Signal()
	select {
	case <-k.mirrored: // replace an older checkpoint that mirror has not taken yet
	default:
	}
	select {
	case k.mirrored <- made:
	default:
	}
}

// follow stores the newest checkpoint, which another node has made, in kept.
func (k *keeper) follow(ctx context.Context) error {
	newest, err := Newest(ctx, k.partition)
	if err == nil && newest != nil {
		k.kept.Published.Store(newest)
		k.kept.News.Signal()
	}
	return err
}
