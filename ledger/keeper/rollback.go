package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// recentLeaves is the number of events before the head that every start checks, because a crash or
// a mistake most likely damages the end.
const recentLeaves = 10_000

// endBatch is the number of these events that are read at once.
const endBatch = 1000

// Rollback is the error of a database that lacks events which a checkpoint outside covers, or that
// has other events: it was restored from an older copy, truncated or replaced.
type Rollback struct {
	Partition int16
	From, To  int64  // positions of the missing events; if From is 1, the database may have other events at these positions instead
	Head      int64  // last position in the database
	Store     string // store that has the note
	Reason    string
	Note      []byte
}

// Error says what is missing and what the operator can do.
func (r *Rollback) Error() string {
	return fmt.Sprintf("the database does not match a published checkpoint: %s (the note is in %s). "+
		"Restore the newest copy of the database and start again. If there is none, serve --accept-rollback continues without positions %d to %d "+
		"and records that in a signed event", r.Reason, r.Store, r.From, r.To)
}

// Is makes every Rollback a ledger.ErrRollback.
func (r *Rollback) Is(target error) bool { return target == ledger.ErrRollback }

// CheckOutside makes the checks of a start, before the first append:
//
//   - the head row matches the last event;
//   - the last events have their hashes and are the leaves of the tree, as far as it has grown;
//   - the newest notes outside the database, in the folder and in every mirror that can be read, are signed by a key of this ledger and
//     belong to the same history.
//
// It returns a *Rollback if a note covers events that the database lacks. unreachable lists the
// mirrors that could not be read, and found reports whether there was any note. The tree grows
// only to the size of the notes.
func CheckOutside(ctx context.Context, l *ledger.Ledger, c Options) (found bool, unreachable []string, err error) {
	for _, p := range l.Partitions() {
		here, missed, err := checkOutside(ctx, p, c)
		found = found || here
		for _, store := range missed {
			if !slices.Contains(unreachable, store) {
				unreachable = append(unreachable, store)
			}
		}
		if err != nil {
			return found, unreachable, err
		}
	}
	return found, unreachable, nil
}

func checkOutside(ctx context.Context, p *ledger.Partition, c Options) (found bool, unreachable []string, err error) {
	l := p.Ledger()
	if err := checkEnd(ctx, p); err != nil {
		return false, nil, err
	}
	// Read the notes before the head: other nodes may continue to append, and their notes would be
	// ahead of a head that was read earlier.
	var notes []outsideNote
	for _, store := range c.Stores() {
		epoch, text, err := store.Newest(ctx, p.Origin())
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			unreachable = append(unreachable, store.String()+": "+err.Error())
		default:
			notes = append(notes, outsideNote{store.String(), epoch, text})
		}
	}
	var head, epoch, size int64
	err = l.Row(ctx, `select h.pos, h.epoch, t.size from ledger_head h join tree_head t on t.p = h.p where h.p = $1`, []any{p.Number()}, &head, &epoch, &size)
	if err != nil {
		return false, nil, fmt.Errorf("read ledger head: %w", err)
	}
	if err := checkLast(ctx, p, head, size); err != nil {
		return false, nil, err
	}
	k := newKeeper(p, c)
	for _, note := range notes {
		if err := k.compare(ctx, note, head, epoch); err != nil {
			return true, unreachable, err
		}
	}
	return len(notes) > 0, unreachable, nil
}

type outsideNote struct {
	store string
	epoch int64
	text  []byte
}

// compare checks a note against the database.
func (k *keeper) compare(ctx context.Context, n outsideNote, head, epoch int64) error {
	p := k.partition
	keys, err := Keys(ctx, p)
	if err != nil {
		return err
	}
	if k.options.Signer != nil { // an older copy of the database may lack the key
		keys = append(keys, k.options.Signer.Public())
	}
	rollback := func(from, to int64, reason string) error {
		return &Rollback{Partition: p.Number(), From: from, To: to, Head: head, Store: n.store, Reason: reason, Note: n.text}
	}
	c, err := checkpoint.Open(n.text, p.Origin(), keys...)
	if err != nil {
		return rollback(1, max(c.Size, 1), fmt.Sprintf("the newest note cannot be trusted: %v", err))
	}
	if n.epoch < epoch {
		if declared, err := declared(ctx, p, c.Size); declared || err != nil {
			return err
		}
	}
	switch {
	case c.Size > head:
		return rollback(head+1, c.Size, fmt.Sprintf("it ends at position %d, but a checkpoint covers %d events", head, c.Size))
	case n.epoch > epoch:
		return rollback(1, c.Size, fmt.Sprintf("it has epoch %d, but a checkpoint has epoch %d", epoch, n.epoch))
	}
	root, err := k.rootAt(ctx, c.Size)
	if err != nil {
		return fmt.Errorf("read the tree: %w", err)
	}
	if root != c.Root {
		return rollback(1, c.Size, fmt.Sprintf("its first %d events do not match a checkpoint", c.Size))
	}
	return nil
}

// rootAt returns the root of the tree at a size. If the tree is smaller, rootAt grows it first.
func (k *keeper) rootAt(ctx context.Context, size int64) (tree.Hash, error) {
	var grown int64
	var root ledger.Hash
	err := k.grow(ctx, size)
	if err == nil {
		err = k.ledger.Row(ctx, `select size, root from tree_head where p = $1`, []any{k.partition.Number()}, &grown, &root)
	}
	if err != nil {
		return tree.Hash{}, err
	}
	return proofsAt(ctx, k.partition, grown, tree.Hash(root)).Root(size)
}

// declared reports whether an accepted rollback covers the loss of a checkpoint of this size.
func declared(ctx context.Context, p *ledger.Partition, size int64) (bool, error) {
	history, err := p.Ledger().Read(ctx, p.Service(), Stream)
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

// Declaration returns the record in an event ledger.rollback_declared. The result is false for
// other events.
func Declaration(e ledger.Event) (events.Rollback, bool) {
	var stored events.RollbackDeclared
	var record events.Rollback
	ok := e.Type == events.TypeRollbackDeclared && e.Read(&stored) == nil && canon.Decode(stored.Record, &record) == nil
	return record, ok
}

// checkEnd checks that the head row matches the last event.
func checkEnd(ctx context.Context, p *ledger.Partition) error {
	var head int64
	var hash ledger.Hash
	if err := p.Ledger().Row(ctx, `select pos, last_hash from ledger_head where p = $1`, []any{p.Number()}, &head, &hash); err != nil {
		return fmt.Errorf("read ledger head: %w", err)
	}
	last, want := int64(0), ledger.Genesis(p.Origin(), "")
	err := p.Ledger().Row(ctx, `select pos, hash from events where p = $1 order by pos desc limit 1`, []any{p.Number()}, &last, &want)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read events: %w", err)
	}
	// Another node may append between the two reads, so a later last event is no fault.
	if last < head || last == head && want != hash {
		return fmt.Errorf("%w: the head row is at position %d and differs from the last event, at position %d. Run countersign verify for details", ledger.ErrTampered, head, last)
	}
	return nil
}

// checkLast reads the last events, which checks their hashes, and compares them with the leaves of
// the tree of this size. It also checks that their tenants belong to this partition; otherwise the
// ledger was made with another number of partitions.
func checkLast(ctx context.Context, p *ledger.Partition, head, size int64) error {
	for from := max(0, head-recentLeaves); from < head; {
		stored, err := p.StoredAfter(ctx, from, int(min(endBatch, head-from)))
		if err != nil {
			return err
		}
		var wanted []tree.Tile
		for n := from / tree.Width; n <= (size-1)/tree.Width && n <= (from+endBatch)/tree.Width; n++ {
			wanted = append(wanted, tree.Tile{N: n})
		}
		tiles, err := ReadTiles(ctx, p.Ledger().Pool(), p.Number(), wanted)
		if err != nil {
			return err
		}
		for _, e := range stored {
			if from++; e.Position != from {
				return fmt.Errorf("%w: position %d is missing", ledger.ErrTampered, from)
			}
			if p.Ledger().Home(e.Tenant) != p {
				return fmt.Errorf("%w: the tenant of position %d does not belong to partition %d of %d. Run countersign verify for details", ledger.ErrTampered, from, p.Number(), len(p.Ledger().Partitions()))
			}
			if from > size {
				continue
			}
			leaf, at := tree.Leaf(e.Hash), int((from-1)%tree.Width)*32
			data := tiles[(from-1)/tree.Width-wanted[0].N].Data
			if len(data) < at+32 || [32]byte(data[at:at+32]) != leaf {
				return fmt.Errorf("%w: position %d does not match its leaf in the tree. Run countersign verify for details", ledger.ErrTampered, from)
			}
		}
		if len(stored) == 0 {
			return fmt.Errorf("%w: the events end at %d", ledger.ErrTampered, from)
		}
	}
	return nil
}

// AcceptRollback lets a ledger continue without the events that its database lacks. It raises the
// epoch, which stops every other node, and appends a signed event about the loss. It must be
// called after Activate and before this node's first append.
func AcceptRollback(ctx context.Context, l *ledger.Ledger, r *Rollback, signer *seal.Signer, eventID string) error {
	p := l.Partition(r.Partition)
	var epoch int64
	err := l.Row(ctx, `update ledger_head set epoch = epoch + 1 where p = $1 returning epoch`, []any{p.Number()}, &epoch)
	if err != nil {
		return fmt.Errorf("raise the epoch: %w", err)
	}
	ring, keys, err := p.Keyring(ctx)
	if err != nil {
		return err
	}
	if _, known := ring[signer.KeyID()]; !known {
		if err := p.ActivateFirst(ctx, ledger.PurposeRecord, signer, eventID+"_key", nil); err != nil {
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
	_, err = l.Append(ctx, ledger.Append{Tenant: p.Service(), Preconditions: []ledger.Precondition{keys.Precondition()}, Events: []ledger.Pending{{
		Stream: Stream, Expect: ledger.Any(1 << 30), ID: eventID, Type: events.TypeRollbackDeclared,
		SchemaVersion: 1, Actor: "operator", KeyID: signer.KeyID(), Payload: payload}}})
	return err
}

// TypeRollback is the payload type of the signed record in ledger.rollback_declared.
const TypeRollback = "application/vnd.svc.rollback.v1+json"
