package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// recentLeaves are hashed again at each start: what a crash or a careless hand
// damages is most likely to be at the end.
const recentLeaves = 10_000

// Rollback is a database that lacks events, or has others, than a checkpoint
// outside of it says: it was restored from an older copy, or somebody cut it.
type Rollback struct {
	Partition int16
	From, To  int64  // positions that are missing, or (From 1) not the ones that were
	Head      int64  // where the database ends
	Place     string // where the note lies
	Reason    string
	Note      []byte
}

// Error tells an operator what is missing and how to go on.
func (r *Rollback) Error() string {
	return fmt.Sprintf("the database is not the one that was published: %s (the note lies in %s). "+
		"Restore the newest copy of the database and start again. If there is none, serve --accept-rollback goes on without positions %d to %d, "+
		"and a signed event says so for ever", r.Reason, r.Place, r.From, r.To)
}

// ErrRollback matches every Rollback.
var ErrRollback = errors.New("ledger: the database is older than its checkpoints")

// Is says that a Rollback is an ErrRollback.
func (r *Rollback) Is(target error) bool { return target == ErrRollback }

// CheckOutside makes the checks of a start, before the first append: the head row
// is the last event; the newest note outside the database, of the folder and of
// every mirror that can be reached, is signed by a key of this ledger and is of the
// same history; the last events have their hashes, and are the leaves of the tree as
// far as it has grown. Its error is a *Rollback where the notes know more than the
// database; unreachable are the mirrors that could not be asked, and found is whether
// any note was. The tree is grown to what a note speaks of and no further: where there
// is none, nothing waits for it.
func (l *Ledger) CheckOutside(ctx context.Context, c Checkpoints) (found bool, unreachable []string, err error) {
	err = l.each(func(p *Partition) error {
		here, missed, err := p.checkOutside(ctx, c)
		found = found || here
		for _, place := range missed {
			if !slices.Contains(unreachable, place) {
				unreachable = append(unreachable, place)
			}
		}
		return err
	})
	return found, unreachable, err
}

func (p *Partition) checkOutside(ctx context.Context, c Checkpoints) (found bool, unreachable []string, err error) {
	l := p.ledger
	if err := p.checkEnd(ctx); err != nil {
		return false, nil, err
	}
	// The notes come first: beside nodes that go on writing, what is outside is ahead of
	// what was read of the database before.
	var notes []outsideNote
	for _, store := range c.Stores() {
		epoch, text, err := store.Newest(ctx, p.origin)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			unreachable = append(unreachable, store.String()+": "+err.Error())
		default:
			notes = append(notes, outsideNote{store.String(), epoch, text})
		}
	}
	var head, epoch, size int64
	err = l.Row(ctx, `select h.pos, h.epoch, t.size from ledger_head h join tree_head t on t.p = h.p where h.p = $1`, []any{p.p}, &head, &epoch, &size)
	if err != nil {
		return false, nil, fmt.Errorf("read ledger head: %w", err)
	}
	if err := p.checkLast(ctx, head, size); err != nil {
		return false, nil, err
	}
	k := p.newKeeper(c)
	for _, note := range notes {
		if err := k.compare(ctx, note, head, epoch); err != nil {
			return true, unreachable, err
		}
	}
	return len(notes) > 0, unreachable, nil
}

type outsideNote struct {
	place string
	epoch int64
	text  []byte
}

// compare holds a note against the database.
func (k *keeper) compare(ctx context.Context, n outsideNote, head, epoch int64) error {
	p := k.partition
	keys, err := p.CheckpointKeys(ctx)
	if err != nil {
		return err
	}
	if k.options.Signer != nil { // an older database may not know the key yet
		keys = append(keys, k.options.Signer.Public())
	}
	rollback := func(from, to int64, reason string) error {
		return &Rollback{Partition: p.p, From: from, To: to, Head: head, Place: n.place, Reason: reason, Note: n.text}
	}
	c, err := checkpoint.Open(n.text, p.origin, keys...)
	if err != nil {
		return rollback(1, max(c.Size, 1), fmt.Sprintf("the newest note cannot be trusted: %v", err))
	}
	if n.epoch < epoch {
		if declared, err := p.declared(ctx, c.Size); declared || err != nil {
			return err
		}
	}
	switch {
	case c.Size > head:
		return rollback(head+1, c.Size, fmt.Sprintf("it ends at position %d, and a checkpoint says that there were %d events", head, c.Size))
	case n.epoch > epoch:
		return rollback(1, c.Size, fmt.Sprintf("it is of epoch %d, and a checkpoint is of epoch %d", epoch, n.epoch))
	}
	root, err := k.rootAt(ctx, c.Size)
	if err != nil {
		return fmt.Errorf("read the tree: %w", err)
	}
	if root != c.Root {
		return rollback(1, c.Size, fmt.Sprintf("its first %d events are not those that a checkpoint vouches for", c.Size))
	}
	return nil
}

// rootAt is the root that the tree had at a size, to which it grows first if need be.
func (k *keeper) rootAt(ctx context.Context, size int64) (tree.Hash, error) {
	var grown int64
	var root Hash
	err := k.grow(ctx, size)
	if err == nil {
		err = k.ledger.Row(ctx, `select size, root from tree_head where p = $1`, []any{k.partition.p}, &grown, &root)
	}
	if err != nil {
		return tree.Hash{}, err
	}
	return k.partition.proofsAt(ctx, grown, tree.Hash(root)).Root(size)
}

// declared says whether an accepted rollback covers the loss of a size.
func (p *Partition) declared(ctx context.Context, size int64) (bool, error) {
	history, err := p.ledger.Read(ctx, p.Service(), CheckpointStream)
	if err != nil {
		return false, err
	}
	for _, e := range history.Events {
		if r, ok := Declaration(e); ok && r.LostFrom <= size && size <= r.LostTo {
			return true, nil
		}
	}
	return false, nil
}

// Declaration reads the record of a ledger.rollback_declared.
func Declaration(e Event) (events.Rollback, bool) {
	var stored events.RollbackDeclared
	var record events.Rollback
	ok := e.Type == events.TypeRollbackDeclared && e.Read(&stored) == nil && canon.Decode(stored.Record, &record) == nil
	return record, ok
}

// checkEnd checks that the head row is the last event.
func (p *Partition) checkEnd(ctx context.Context) error {
	var head int64
	var hash Hash
	if err := p.ledger.Row(ctx, `select pos, last_hash from ledger_head where p = $1`, []any{p.p}, &head, &hash); err != nil {
		return fmt.Errorf("read ledger head: %w", err)
	}
	last, want := int64(0), Genesis(p.origin, "")
	err := p.ledger.Row(ctx, `select pos, hash from events where p = $1 order by pos desc limit 1`, []any{p.p}, &last, &want)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read events: %w", err)
	}
	// Another node may append between the two.
	if last < head || last == head && want != hash {
		return fmt.Errorf("%w: the head row (position %d) is not the last event (%d); countersign verify says more", ErrTampered, head, last)
	}
	return nil
}

// checkLast hashes the last events up to the head again and compares them with the
// tree of a size. Their tenants must be at home here: else the ledger was made for
// another number of partitions.
func (p *Partition) checkLast(ctx context.Context, head, size int64) error {
	for from := max(0, head-recentLeaves); from < head; {
		stored, err := p.StoredAfter(ctx, from, int(min(feedBatch, head-from)))
		if err != nil {
			return err
		}
		var wanted []tree.Tile
		for n := from / tree.Width; n <= (size-1)/tree.Width && n <= (from+feedBatch)/tree.Width; n++ {
			wanted = append(wanted, tree.Tile{N: n})
		}
		tiles, err := ReadTiles(ctx, p.ledger.pool, p.p, wanted)
		if err != nil {
			return err
		}
		for _, e := range stored {
			if from++; e.Position != from {
				return fmt.Errorf("%w: position %d is missing", ErrTampered, from)
			}
			if p.ledger.Home(e.Tenant) != p {
				return fmt.Errorf("%w: the tenant of position %d is not at home in partition %d of %d; countersign verify says more", ErrTampered, from, p.p, len(p.ledger.partitions))
			}
			if from > size {
				continue
			}
			leaf, at := tree.Leaf(e.Hash), int((from-1)%tree.Width)*32
			data := tiles[(from-1)/tree.Width-wanted[0].N].Data
			if len(data) < at+32 || [32]byte(data[at:at+32]) != leaf {
				return fmt.Errorf("%w: position %d is not the leaf of the tree; countersign verify says more", ErrTampered, from)
			}
		}
		if len(stored) == 0 {
			return fmt.Errorf("%w: the events end at %d", ErrTampered, from)
		}
	}
	return nil
}

// AcceptRollback goes on with a database that lacks events: the epoch is raised,
// which stops every other node, and a signed event says for ever what was lost. It
// comes before this node's first append and after Activate.
func (l *Ledger) AcceptRollback(ctx context.Context, r *Rollback, signer *seal.Signer, eventID string) error {
	p := l.Partition(r.Partition)
	var epoch int64
	err := l.Row(ctx, `update ledger_head set epoch = epoch + 1 where p = $1 returning epoch`, []any{p.p}, &epoch)
	if err != nil {
		return fmt.Errorf("raise the epoch: %w", err)
	}
	ring, keys, err := p.Keyring(ctx)
	if err != nil {
		return err
	}
	if _, known := ring[signer.KeyID()]; !known {
		if err := p.ActivateFirst(ctx, PurposeRecord, signer, eventID+"_key", nil); err != nil {
			return err
		}
		if _, keys, err = p.Keyring(ctx); err != nil {
			return err
		}
	}
	envelope, err := signer.Sign(TypeRollback, events.Rollback{Schema: "svc-rollback-v1", LostFrom: r.From, LostTo: r.To, LastNote: string(r.Note), Epoch: epoch})
	if err != nil {
		return err
	}
	payload, err := canon.Marshal(events.RollbackDeclared{Record: envelope.Record, Integrity: envelope.Integrity})
	if err != nil {
		return err
	}
	_, err = l.Append(ctx, Append{Tenant: p.Service(), Guards: []Guard{keys.Guard()}, Drafts: []Draft{{
		Stream: CheckpointStream, Expect: Any(1 << 30), ID: eventID, Type: events.TypeRollbackDeclared,
		SchemaVersion: 1, Actor: "operator", KeyID: signer.KeyID(), Payload: payload}}})
	return err
}

// TypeRollback is the payload type of the record in ledger.rollback_declared.
const TypeRollback = "application/vnd.svc.rollback.v1+json"
