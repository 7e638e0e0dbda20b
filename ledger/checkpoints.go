package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/wait"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// Checkpoints say how the heads of a ledger's tree are signed and where they are
// kept outside the database.
type Checkpoints struct {
	Signer    *seal.Signer // its key is for checkpoints and for nothing else
	Folder    checkpoint.Folder
	Mirrors   []checkpoint.Store   // retried, never waited for
	Witnesses []checkpoint.Witness // likewise
	Every     time.Duration        // 0: a second
	Step      int64                // events that the tree grows by in one transaction; 0: 20,000
}

// Stores are the places whose newest note counts: the folder and the mirrors.
func (c Checkpoints) Stores() []checkpoint.Store {
	return append([]checkpoint.Store{c.Folder}, c.Mirrors...)
}

// CheckpointStream is where the ledger says what its checkpoints vouch for and
// which events they have lost, in the
// service's tenant of its partition.
const CheckpointStream = "checkpoints"

const (
	checkpointEvery = time.Second
	// lastCheckpointWithin bounds what a clean end waits for its last checkpoint.
	lastCheckpointWithin = 5 * time.Second
	checkpointStep       = 20_000
	mirrorEvery          = 10 * time.Second
	growAgain            = 50 * time.Millisecond
	pruneEvery           = time.Hour
	pruneAfter           = 24 * time.Hour
)

// beginning is the statement of ledger.checkpoints_begun.
const beginning = "The first checkpoint vouches for the events up to this size as they stood when it was made. " +
	"Nothing outside the database can show that they were the same before; from here on a change, a removal and a cut tail are found."

// Published is a checkpoint with its note.
type Published struct {
	checkpoint.Checkpoint
	Epoch int64
	Note  []byte
	Short string // the value of the header Ledger-Checkpoint
}

// keeper grows the tree of one partition and signs its heads. Its goroutine owns
// builder; what is published is read by everybody.
type keeper struct {
	partition *Partition
	ledger    *Ledger
	options   Checkpoints
	builder   *tree.Builder // nil: to be read from the tiles

	mirrored  chan *Published
	beginning atomic.Bool // the tree is brought to the head, since a start that did not wait for it
	published atomic.Pointer[Published]
	news      wait.Broadcast // after each new checkpoint
	current   atomic.Int64   // unix microseconds when the newest checkpoint last covered the head
}

// KeepCheckpoints signs a checkpoint about every second in which there are new
// events, on the one node of those on this database that is first to. An existing
// ledger without checkpoints begins with an event that says what the first one
// vouches for. CheckOutside comes before it. Close ends it.
//
// A tree that is far behind, as that of a ledger without checkpoints is, is brought to
// the head in the background: no start waits for it, and appends go on meanwhile.
func (l *Ledger) KeepCheckpoints(ctx context.Context, c Checkpoints, newID func() string) error {
	return l.each(func(p *Partition) error { return p.keepCheckpoints(ctx, c, newID) })
}

func (p *Partition) keepCheckpoints(ctx context.Context, c Checkpoints, newID func() string) error {
	l, k := p.ledger, p.newKeeper(c)
	far, err := k.farBehind(ctx)
	if err == nil && !far {
		err = k.toBegin(ctx, newID)
	}
	if err != nil {
		return err
	}
	if !p.keeper.CompareAndSwap(nil, k) {
		return errors.New("checkpoints are kept already")
	}
	k.beginning.Store(far)
	k.current.Store(time.Now().UnixMicro())
	l.done.Go(func() {
		if !far || k.beginLate(l.background, newID) {
			k.run(l.background)
		}
	})
	l.done.Go(func() { k.mirror(l.background) })
	return nil
}

// farBehind says whether the tree needs several steps to the head. A key that could
// not be activated is an error now, and not one of the background.
func (k *keeper) farBehind(ctx context.Context) (bool, error) {
	ring, _, err := k.partition.Keyring(ctx)
	if err != nil {
		return false, err
	}
	if _, err := ring.MayActivate(PurposeCheckpoint, k.options.Signer); err != nil {
		return false, err
	}
	var behind int64
	err = k.ledger.Row(ctx, `select h.pos - t.size from ledger_head h join tree_head t using (p) where p = $1`, []any{k.partition.p}, &behind)
	if err != nil {
		return false, fmt.Errorf("read tree head: %w", err)
	}
	return behind > k.options.Step, nil
}

// toBegin activates the key, and signs the head of now.
func (k *keeper) toBegin(ctx context.Context, newID func() string) error {
	if err := k.begin(ctx, newID); err != nil {
		return err
	}
	return k.toHead(ctx)
}

// beginLate does what a start did not wait for, until it is done or ctx ends: then it
// is false, and nothing may be signed.
func (k *keeper) beginLate(ctx context.Context, newID func() string) bool {
	for ctx.Err() == nil {
		err := k.toBegin(ctx, newID)
		if err == nil {
			k.current.Store(time.Now().UnixMicro())
			k.beginning.Store(false)
			return true
		}
		if ctx.Err() == nil {
			k.ledger.log.Error("checkpoints do not begin yet; appends go on", "error", err)
		}
		k.builder = nil
		wait.For(ctx, nil, k.options.Every)
	}
	return false
}

func (p *Partition) newKeeper(c Checkpoints) *keeper {
	if c.Every == 0 {
		c.Every = checkpointEvery
	}
	if c.Step == 0 {
		c.Step = checkpointStep
	}
	return &keeper{partition: p, ledger: p.ledger, options: c, mirrored: make(chan *Published, 1)}
}

// Checkpoint is the newest checkpoint that this node knows of, or nil.
func (p *Partition) Checkpoint() *Published {
	if k := p.keeper.Load(); k != nil {
		return k.published.Load()
	}
	return nil
}

// Covered waits until a checkpoint covers a position and returns it; nil where ctx
// ends before, or this node knows of no checkpoints.
func (p *Partition) Covered(ctx context.Context, position int64) *Published {
	k := p.keeper.Load()
	if k == nil {
		return nil
	}
	for {
		news := k.news.Wait() // before looking: what comes later wakes us
		if newest := k.published.Load(); newest != nil && newest.Size >= position {
			return newest
		}
		if !wait.For(ctx, news, 0) {
			return nil
		}
	}
}

// CheckpointsBegin says whether this node still brings a tree to the head, before it
// signs its first checkpoint since the start.
func (l *Ledger) CheckpointsBegin() bool {
	return slices.ContainsFunc(l.partitions, func(p *Partition) bool {
		k := p.keeper.Load()
		return k != nil && k.beginning.Load()
	})
}

// CheckpointLag is for how long the newest checkpoint has been behind the head, in
// the partition where that is longest; 0 where this node keeps none.
func (l *Ledger) CheckpointLag() (lag time.Duration) {
	for _, p := range l.partitions {
		if k := p.keeper.Load(); k != nil {
			lag = max(lag, time.Since(time.UnixMicro(k.current.Load()))-2*k.options.Every)
		}
	}
	return lag
}

// begin activates the checkpoint key, with the event that says from where on.
func (k *keeper) begin(ctx context.Context, newID func() string) error {
	ring, _, err := k.partition.Keyring(ctx)
	if err != nil {
		return err
	}
	var also []Draft
	if ring.Active(PurposeCheckpoint) == "" {
		if err := k.grow(ctx, math.MaxInt64); err != nil {
			return err
		}
		root := k.builder.Root()
		payload, err := canon.Marshal(events.CheckpointsBegun{Size: k.builder.Size(), Root: hex.EncodeToString(root[:]),
			KeyID: k.options.Signer.KeyID(), Statement: beginning})
		if err != nil {
			return err
		}
		also = []Draft{{Stream: CheckpointStream, Expect: Any(1), ID: newID(), Type: events.TypeCheckpointsBegun,
			SchemaVersion: 1, Actor: "system", Payload: payload}}
	}
	return k.partition.ActivateFirst(ctx, PurposeCheckpoint, k.options.Signer, newID(), also)
}

// grow brings the tree to a size, or else to the head, in steps and without signing
// anything.
func (k *keeper) grow(ctx context.Context, size int64) error { return k.here(ctx, size, false) }

// here brings the tree to a size, or else to the head, by this node's own work, however
// long another is at work on it.
func (k *keeper) here(ctx context.Context, size int64, sign bool) error {
	for {
		var grown int64
		if err := k.ledger.Row(ctx, `select size from tree_head where p = $1`, []any{k.partition.p}, &grown); err != nil {
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

// toHead brings the tree to the head and signs it, unless another node does.
func (k *keeper) toHead(ctx context.Context) error {
	for {
		if now, err := k.step(ctx, true); err != nil || now != behind {
			return err
		}
	}
}

// run signs when something has changed, at most once in a while, until ctx ends. Then
// it signs once more: whoever puts an older database back while nothing runs is found
// out by the whole of what was acknowledged. It does so itself, since what ended may
// have been a step of its own, whose session holds the tree for a moment yet.
func (k *keeper) run(ctx context.Context) {
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpointWithin)
		defer cancel()
		if err := k.here(last, math.MaxInt64, true); err != nil {
			k.ledger.log.Warn("no last checkpoint made; what came in the last second is in the database alone", "error", err)
		}
	}()
	pruned := time.Now()
	for ctx.Err() == nil {
		changed := k.partition.Changed()
		if err := k.toHead(ctx); err != nil {
			if ctx.Err() == nil {
				k.ledger.log.Error("checkpoint not made; appends go on", "origin", k.partition.origin, "error", err)
			}
			k.builder = nil
		} else {
			k.current.Store(time.Now().UnixMicro())
		}
		if time.Since(pruned) > pruneEvery {
			pruned = time.Now()
			k.prune()
		}
		wait.For(ctx, nil, k.options.Every)
		wait.For(ctx, changed, k.options.Every)
	}
}

func (k *keeper) prune() {
	p := k.published.Load()
	if p == nil {
		return
	}
	// A day of notes a second apart; what is older goes by the hour.
	below := p.Size - int64(pruneAfter/k.options.Every)
	if err := k.options.Folder.Prune(k.partition.origin, p.Epoch, below, func(int64) bool { return false }); err != nil {
		k.ledger.log.Warn("prune checkpoints", "error", err)
	}
}

// publish shows a checkpoint to everybody and gives it to the mirrors.
func (k *keeper) publish(made *Published) {
	if made == nil {
		return
	}
	if last := k.published.Load(); last != nil && last.Size == made.Size && last.Epoch == made.Epoch {
		return
	}
	k.published.Store(made)
	k.news.Signal()
	select {
	case <-k.mirrored: // an older one that nobody has taken yet
	default:
	}
	select {
	case k.mirrored <- made:
	default:
	}
}

// follow takes over the newest checkpoint that another node has published.
func (k *keeper) follow(ctx context.Context) error {
	newest, err := k.partition.NewestCheckpoint(ctx)
	if err == nil && newest != nil {
		k.published.Store(newest)
		k.news.Signal()
	}
	return err
}
