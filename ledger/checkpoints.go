package ledger

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
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

// CheckpointStream is where the ledger says what its checkpoints vouch for and
// which events they have lost, in the tenant ServiceTenant.
const CheckpointStream = "checkpoints"

const (
	checkpointEvery = time.Second
	// lastCheckpointWithin bounds what a clean end waits for its last checkpoint.
	lastCheckpointWithin = 2 * time.Second
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
	ledger  *Ledger
	options Checkpoints
	p       int16
	builder *tree.Builder // nil: to be read from the tiles

	mirrored  chan *Published
	beginning atomic.Bool // the tree is brought to the head, since a start that did not wait for it
	published atomic.Pointer[Published]
	news      broadcast    // after each new checkpoint
	current   atomic.Int64 // unix microseconds when the newest checkpoint last covered the head
}

// KeepCheckpoints signs a checkpoint about every second in which there are new
// events, on the one node of those on this database that is first to. An existing
// ledger without checkpoints begins with an event that says what the first one
// vouches for. CheckOutside comes before it. Close ends it.
//
// A tree that is far behind, as that of a ledger without checkpoints is, is brought to
// the head in the background: no start waits for it, and appends go on meanwhile.
func (l *Ledger) KeepCheckpoints(ctx context.Context, c Checkpoints, newID func() string) error {
	k := l.newKeeper(c)
	far, err := k.farBehind(ctx)
	if err == nil && !far {
		err = k.toBegin(ctx, newID)
	}
	if err != nil {
		return err
	}
	if !l.keeper.CompareAndSwap(nil, k) {
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
	ring, _, err := k.ledger.Keyring(ctx)
	if err != nil {
		return false, err
	}
	if _, err := ring.mayActivate(PurposeCheckpoint, k.options.Signer); err != nil {
		return false, err
	}
	var behind int64
	err = k.ledger.row(ctx, `select h.pos - t.size from ledger_head h join tree_head t using (p) where p = $1`, []any{k.p}, &behind)
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
		sleep(ctx, nil, k.options.Every)
	}
	return false
}

func (l *Ledger) newKeeper(c Checkpoints) *keeper {
	if c.Every == 0 {
		c.Every = checkpointEvery
	}
	if c.Step == 0 {
		c.Step = checkpointStep
	}
	return &keeper{ledger: l, options: c, p: partition, mirrored: make(chan *Published, 1)}
}

// Checkpoint is the newest checkpoint that this node knows of, or nil.
func (l *Ledger) Checkpoint() *Published {
	if k := l.keeper.Load(); k != nil {
		return k.published.Load()
	}
	return nil
}

// Covered waits until a checkpoint covers a position and returns it; nil where ctx
// ends before, or this node knows of no checkpoints.
func (l *Ledger) Covered(ctx context.Context, position int64) *Published {
	k := l.keeper.Load()
	if k == nil {
		return nil
	}
	for {
		news := k.news.wait() // before looking: what comes later wakes us
		if p := k.published.Load(); p != nil && p.Size >= position {
			return p
		}
		if !sleep(ctx, news, 0) {
			return nil
		}
	}
}

// CheckpointsBegin says whether this node still brings the tree to the head, before
// it signs its first checkpoint since the start.
func (l *Ledger) CheckpointsBegin() bool {
	k := l.keeper.Load()
	return k != nil && k.beginning.Load()
}

// CheckpointLag is for how long the newest checkpoint has been behind the head; 0
// where this node keeps none.
func (l *Ledger) CheckpointLag() time.Duration {
	k := l.keeper.Load()
	if k == nil {
		return 0
	}
	return max(0, time.Since(time.UnixMicro(k.current.Load()))-2*k.options.Every)
}

// begin activates the checkpoint key, with the event that says from where on.
func (k *keeper) begin(ctx context.Context, newID func() string) error {
	ring, _, err := k.ledger.Keyring(ctx)
	if err != nil {
		return err
	}
	var also []Draft
	if ring.active(PurposeCheckpoint) == "" {
		if err := k.grow(ctx); err != nil {
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
	return k.ledger.activateFirst(ctx, PurposeCheckpoint, k.options.Signer, newID(), also)
}

// grow brings the tree to the head, in steps, without signing anything.
func (k *keeper) grow(ctx context.Context) error {
	for {
		caughtUp, err := k.step(ctx, false)
		switch {
		case err != nil:
			return err
		case caughtUp && k.builder != nil:
			return nil
		case caughtUp && !sleep(ctx, nil, growAgain): // another node is at work on the tree
			return ctx.Err()
		}
	}
}

// toHead brings the tree to the head and signs it.
func (k *keeper) toHead(ctx context.Context) error {
	for {
		caughtUp, err := k.step(ctx, true)
		if err != nil || caughtUp {
			return err
		}
	}
}

// run signs when something has changed, at most once in a while, until ctx ends. Then
// it signs once more: whoever puts an older database back while nothing runs is found
// out by the whole of what was acknowledged.
func (k *keeper) run(ctx context.Context) {
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpointWithin)
		defer cancel()
		if err := k.toHead(last); err != nil {
			k.ledger.log.Warn("no last checkpoint made; what came in the last second is in the database alone", "error", err)
		}
	}()
	pruned := time.Now()
	for ctx.Err() == nil {
		changed := k.ledger.Changed()
		if err := k.toHead(ctx); err != nil {
			if ctx.Err() == nil {
				k.ledger.log.Error("checkpoint not made; appends go on", "error", err)
			}
			k.builder = nil
		} else {
			k.current.Store(time.Now().UnixMicro())
		}
		if time.Since(pruned) > pruneEvery {
			pruned = time.Now()
			k.prune()
		}
		sleep(ctx, nil, k.options.Every)
		sleep(ctx, changed, k.options.Every)
	}
}

func (k *keeper) prune() {
	p := k.published.Load()
	if p == nil {
		return
	}
	// A day of notes a second apart; what is older goes by the hour.
	below := p.Size - int64(pruneAfter/k.options.Every)
	if err := k.options.Folder.Prune(k.ledger.origin, p.Epoch, below, func(int64) bool { return false }); err != nil {
		k.ledger.log.Warn("prune checkpoints", "error", err)
	}
}

// step grows the tree by one transaction and, once it is at the head, signs it.
// The note is outside the database before the checkpoint counts. Where another
// node is at work, it takes over what that one has published.
func (k *keeper) step(ctx context.Context, sign bool) (caughtUp bool, err error) {
	tx, err := k.ledger.pool.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		_ = tx.Rollback(context.WithoutCancel(ctx))
		if err != nil {
			k.builder = nil // it may be ahead of what is stored
		}
	}()
	var size int64
	var root Hash
	err = tx.QueryRow(ctx, `select size, root from tree_head where p = $1 for update skip locked`, k.p).Scan(&size, into(&root))
	if errors.Is(err, pgx.ErrNoRows) {
		return true, k.follow(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("read tree head: %w", err)
	}
	var epoch, head int64
	if err := tx.QueryRow(ctx, `select epoch, pos from ledger_head where p = $1`, k.p).Scan(&epoch, &head); err != nil {
		return false, fmt.Errorf("read ledger head: %w", err)
	}
	if last := k.published.Load(); head < size || last != nil && (last.Epoch != epoch || last.Size > head) {
		return false, k.ledger.seq.halt(fmt.Errorf("the ledger ends at position %d and a checkpoint was made at %d: the database is older than what was published", head, max(size, lastSize(last))))
	}
	if k.builder == nil || k.builder.Size() != size || k.builder.Root() != tree.Hash(root) {
		if k.builder, err = k.resume(ctx, tx, size, root); err != nil {
			return false, err
		}
	}
	caughtUp = head <= size+k.options.Step
	full, err := k.add(ctx, tx, size, min(head, size+k.options.Step))
	if err != nil {
		return false, err
	}
	var made *Published
	if sign && caughtUp {
		if made, err = k.sign(ctx, tx, epoch); err != nil {
			return false, err
		}
	}
	if err := k.store(ctx, tx, full, made); err != nil {
		return false, err
	}
	if err := tx.Commit(ctx); err != nil {
		return false, fmt.Errorf("commit a checkpoint: %w", err)
	}
	k.publish(made)
	return caughtUp, nil
}

func lastSize(p *Published) int64 {
	if p == nil {
		return 0
	}
	return p.Size
}

// resume reads the right edge, which must have the root that is stored.
func (k *keeper) resume(ctx context.Context, tx pgx.Tx, size int64, root Hash) (*tree.Builder, error) {
	partial, err := readTiles(ctx, tx, k.p, tree.Partial(size))
	if err != nil {
		return nil, err
	}
	b, err := tree.Resume(size, partial)
	if err != nil {
		return nil, fmt.Errorf("%w (countersign tree rebuild makes the tiles again)", err)
	}
	if b.Root() != tree.Hash(root) {
		return nil, fmt.Errorf("%w: its root is not the stored one", tree.ErrEdge)
	}
	return b, nil
}

// add grows the tree from the events behind size up to a position. What this node
// has committed it need not read.
func (k *keeper) add(ctx context.Context, tx pgx.Tx, size, upTo int64) (full []tree.Tile, err error) {
	add := func(hash Hash) {
		k.builder.Add(tree.Leaf(hash), func(t tree.Tile) { full = append(full, t) })
	}
	for size < upTo {
		if held := k.ledger.tail.after(size); len(held) > 0 {
			for _, e := range held[:min(int64(len(held)), upTo-size)] {
				add(e.Hash)
				size++
			}
			continue
		}
		rows, err := tx.Query(ctx, `select pos, hash from events where p = $1 and pos > $2 and pos <= $3 order by pos`, k.p, size, upTo)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		var position int64
		var hash Hash
		_, err = pgx.ForEachRow(rows, []any{&position, into(&hash)}, func() error {
			if size++; position != size {
				return fmt.Errorf("%w: position %d is missing", ErrTampered, size)
			}
			add(hash)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if size < upTo {
			return nil, fmt.Errorf("%w: the events end at %d", ErrTampered, size)
		}
	}
	return full, nil
}

// sign makes the note, unless this size has one, and writes it outside.
func (k *keeper) sign(ctx context.Context, tx pgx.Tx, epoch int64) (*Published, error) {
	c := checkpoint.Checkpoint{Origin: k.ledger.origin, Size: k.builder.Size(), Root: k.builder.Root()}
	var stored string
	err := tx.QueryRow(ctx, `select note from checkpoints where p = $1 and size = $2 and root = $3`, k.p, c.Size, c.Root[:]).Scan(&stored)
	if err == nil {
		return newPublished(c, epoch, []byte(stored)), nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	text, err := checkpoint.Sign(c, k.options.Signer.Key())
	if err != nil {
		return nil, err
	}
	return newPublished(c, epoch, text), k.options.Folder.Put(ctx, epoch, c, text)
}

func newPublished(c checkpoint.Checkpoint, epoch int64, text []byte) *Published {
	return &Published{c, epoch, text, c.Short()}
}

// store writes tiles, tree head and checkpoint. A partial tile grows in its row.
func (k *keeper) store(ctx context.Context, tx pgx.Tx, full []tree.Tile, made *Published) error {
	// The builder gives tiles that share its memory only until the next Add.
	tiles := append(full, k.builder.Tiles()...)
	levels, numbers, data := make([]int16, len(tiles)), make([]int64, len(tiles)), make([][]byte, len(tiles))
	for i, t := range tiles {
		levels[i], numbers[i], data[i] = int16(t.Level), t.N, t.Data
	}
	root := k.builder.Root()
	edge := []byte{} // of the empty tree: not null
	for _, h := range k.builder.Edge() {
		edge = append(edge, h[:]...)
	}
	batch := &pgx.Batch{}
	batch.Queue(`insert into tiles (p, level, n, data) select $1, t.* from unnest($2::smallint[], $3::bigint[], $4::bytea[]) t
		on conflict (p, level, n) do update set data = excluded.data`, k.p, levels, numbers, data)
	batch.Queue(`update tree_head set size = $2, root = $3, edge = $4 where p = $1`, k.p, k.builder.Size(), root[:], edge)
	if made != nil {
		batch.Queue(`insert into checkpoints (p, size, root, note) values ($1, $2, $3, $4)
			on conflict (p, size) do update set root = excluded.root, note = excluded.note where checkpoints.root <> excluded.root`,
			k.p, made.Size, made.Root[:], string(made.Note))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("store the tree: %w", err)
	}
	return nil
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
	k.news.signal()
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
	newest, err := k.ledger.NewestCheckpoint(ctx)
	if err == nil && newest != nil {
		k.published.Store(newest)
		k.news.signal()
	}
	return err
}

// mirror carries the newest note to every mirror and witness, one after the other,
// and tries again what failed as soon as there is a newer one.
func (k *keeper) mirror(ctx context.Context) {
	sizes := make([]int64, len(k.options.Witnesses)) // that each witness has seen
	for ctx.Err() == nil {
		var made *Published
		select {
		case made = <-k.mirrored:
		case <-ctx.Done():
			return
		}
		for _, store := range k.options.Mirrors {
			if err := store.Put(ctx, made.Epoch, made.Checkpoint, made.Note); err != nil && ctx.Err() == nil {
				k.ledger.log.Warn("checkpoint not mirrored", "mirror", store.String(), "error", err)
			}
		}
		for i, w := range k.options.Witnesses {
			if err := k.witness(ctx, w, made, &sizes[i]); err != nil && ctx.Err() == nil {
				k.ledger.log.Error("checkpoint not witnessed", "witness", w.Name(), "error", err)
			}
		}
		if len(k.options.Mirrors)+len(k.options.Witnesses) > 0 {
			sleep(ctx, nil, mirrorEvery)
		}
	}
}

// NewestCheckpoint reads the newest checkpoint of the database, or nil.
func (l *Ledger) NewestCheckpoint(ctx context.Context) (*Published, error) {
	var size, epoch int64
	var root Hash
	var note string
	err := l.row(ctx, `select c.size, c.root, c.note, h.epoch from ledger_head h, lateral (
		select size, root, note from checkpoints c where c.p = h.p order by size desc limit 1) c where h.p = $1`,
		[]any{int16(partition)}, &size, into(&root), &note, &epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return newPublished(checkpoint.Checkpoint{Origin: l.origin, Size: size, Root: tree.Hash(root)}, epoch, []byte(note)), nil
}

// CheckpointAt reads the checkpoint of a size.
func (l *Ledger) CheckpointAt(ctx context.Context, size int64) (*Published, error) {
	var root Hash
	var note string
	err := l.row(ctx, `select root, note from checkpoints where p = $1 and size = $2`, []any{int16(partition), size}, into(&root), &note)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return newPublished(checkpoint.Checkpoint{Origin: l.origin, Size: size, Root: tree.Hash(root)}, 0, []byte(note)), nil
}

// CheckpointSizes lists the sizes of the newest checkpoints below one, ascending.
func (l *Ledger) CheckpointSizes(ctx context.Context, below int64, limit int) (sizes []int64, err error) {
	err = l.reading(ctx, func() error {
		rows, err := l.pool.Query(ctx, `select size from checkpoints where p = $1 and size < $2 order by size desc limit $3`, int16(partition), below, limit)
		if err == nil {
			sizes, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		}
		return err
	})
	slices.Reverse(sizes)
	return sizes, err
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readTiles reads stored tiles in the order asked for; one that is not stored has
// no data.
func readTiles(ctx context.Context, db querier, p int16, wanted []tree.Tile) ([]tree.Tile, error) {
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
func (l *Ledger) Proofs(ctx context.Context) (*tree.Proofs, *Published, error) {
	newest := l.Checkpoint()
	if newest == nil {
		var err error
		if newest, err = l.NewestCheckpoint(ctx); err != nil || newest == nil {
			return nil, nil, err
		}
	}
	return l.proofsAt(ctx, newest.Size, newest.Root), newest, nil
}

// proofsAt makes proofs in the tree of a size and root.
func (l *Ledger) proofsAt(ctx context.Context, size int64, root tree.Hash) *tree.Proofs {
	return tree.NewProofs(ctx, size, root, func(ctx context.Context, wanted []tree.Tile) (found []tree.Tile, err error) {
		err = l.reading(ctx, func() (err error) {
			found, err = readTiles(ctx, l.pool, partition, wanted)
			return err
		})
		return found, err
	})
}

// Tile is a stored tile cut to a width in hashes, or nil where the newest
// checkpoint covers none so wide.
func (l *Ledger) Tile(ctx context.Context, level int, n int64, width int) ([]byte, error) {
	newest := l.Checkpoint()
	if newest == nil {
		var err error
		if newest, err = l.NewestCheckpoint(ctx); err != nil || newest == nil {
			return nil, err
		}
	}
	if level > 7 || n < 0 || n*tree.Width+int64(width) > newest.Size>>(tree.Height*level) {
		return nil, nil
	}
	var found []tree.Tile
	err := l.reading(ctx, func() (err error) {
		found, err = readTiles(ctx, l.pool, partition, []tree.Tile{{Level: level, N: n}})
		return err
	})
	if err != nil || len(found[0].Data) < 32*width {
		return nil, err
	}
	return found[0].Data[:32*width], nil
}

// CheckpointKeys are the public keys that this ledger's notes may be signed with.
func (l *Ledger) CheckpointKeys(ctx context.Context) ([]ed25519.PublicKey, error) {
	ring, _, err := l.Keyring(ctx)
	return ring.Public(PurposeCheckpoint), err
}
