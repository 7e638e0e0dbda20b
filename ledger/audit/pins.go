package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/keeper"
)

// pinned is an auditor's note with a flag: met is true once the walk has compared it with the
// tree.
type pinned struct {
	Pin
	checkpoint.Checkpoint
	met bool
}

// seenEvent is the last event of a tenant or series in a pin.
type seenEvent struct {
	pin                   string
	tenant, series, agent string // as returned by checkpoint.SplitName
	checkpoint.Seen
}

// readOutside reads the newest note of each store outside the database. It runs before begin reads
// the head, so that in an intact ledger no note is ahead of that head.
func (r *run) readOutside(ctx context.Context) error {
	if len(r.Outside) == 0 {
		return nil
	}
	origin := fmt.Sprintf("%s/%d", r.Origin, r.p)
	if r.Origin == "" {
		err := r.pool.QueryRow(ctx, `select origin from ledger_head where p = $1`, r.p).Scan(&origin)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // begin reports the missing row
		} else if err != nil {
			return fmt.Errorf("read ledger head: %w", err)
		}
	}
	r.Pins = slices.Clone(r.Pins)
	for _, store := range r.Outside {
		epoch, text, err := store.Newest(ctx, origin)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.othersIn(store, origin)
		case err != nil:
			r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("that no checkpoint in %s covers more events: the store could not be read: %v", store, err))
		default:
			r.Pins = append(r.Pins, Pin{store.String(), text, epoch})
		}
	}
	return nil
}

// othersIn reports a gap if a folder has checkpoints of other ledgers and none of this one. An
// attacker who replaces a whole ledger must give the new one another origin.
func (r *run) othersIn(store checkpoint.Store, origin string) {
	folder, ok := store.(checkpoint.Folder)
	if !ok || r.p > 0 {
		return
	}
	if others := folder.Ledgers(); len(others) > 0 {
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("that %s is the same ledger as before: %s has no checkpoint of it, but has checkpoints of %s", origin, folder, others[0]))
	}
}

// readPins parses the notes that were kept outside the database.
func (r *run) readPins(ctx context.Context) error {
	for _, pin := range r.Pins {
		kept, err := checkpoint.ParsePin(pin.Note)
		if err != nil {
			r.fault(Fault{"checkpoints", "pinned by " + pin.Name, 0, "note", err.Error()})
			continue
		}
		for name, seen := range kept.Tenants {
			tenant, series, agent := checkpoint.SplitName(name)
			if ledger.Home(tenant, r.n) == r.p {
				r.seen = append(r.seen, seenEvent{pin.Name, tenant, series, agent, seen})
			}
		}
		if err := r.readPin(ctx, pin, kept.Note); err != nil {
			return err
		}
	}
	if len(r.Pins) == 0 {
		r.report.Gaps = append(r.report.Gaps, "that history was not replaced before you first saw it (no --pin given)")
	}
	slices.SortFunc(r.pins, func(a, b pinned) int { return int(a.Size - b.Size) })
	return nil
}

func (r *run) readPin(ctx context.Context, pin Pin, note []byte) error {
	c, void, err := r.ring.OpenNote(note, r.Origin)
	if err == nil && pin.epoch > 0 && pin.epoch < r.head.epoch { // the note is older than a declared rollback
		if declared, err := r.declaredLoss(ctx, c.Size); declared || err != nil {
			return err
		}
	}
	if err != nil {
		r.fault(Fault{"checkpoints", "pinned by " + pin.Name, 0, "note", err.Error()})
		if pin.epoch == 0 || c.Size <= r.head.pos {
			return nil
		} // otherwise the database may be older than the activation of the key: report the missing events, too
	}
	switch {
	case void:
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("anything that the note of %s would prove, because a compromised key signed it", pin.Name))
	case c.Size > r.head.pos:
		r.fault(Fault{"events", fmt.Sprintf("pos %d to %d", r.head.pos+1, c.Size), r.head.pos + 1, "pos",
			fmt.Sprintf("ROLLBACK: the events are missing; %s has a checkpoint of %d events", pin.Name, c.Size)})
	case pin.epoch > r.head.epoch:
		r.headFault("epoch", "ROLLBACK: %s has a checkpoint of epoch %d", pin.Name, pin.epoch)
	default:
		r.pins = append(r.pins, pinned{Pin: pin, Checkpoint: c})
	}
	return nil
}

// declaredLoss reports whether an accepted rollback explains that a checkpoint of this size was
// lost. The walk checks the signature of the declaration.
func (r *run) declaredLoss(ctx context.Context, size int64) (bool, error) {
	declared, err := r.stream(ctx, keeper.Stream)
	if err != nil {
		return false, fmt.Errorf("read declared rollbacks: %w", err)
	}
	return slices.ContainsFunc(declared, func(e ledger.Event) bool {
		loss, ok := keeper.Declaration(e)
		return ok && loss.LostFrom <= size && size <= loss.LostTo
	}), nil
}

// seenEvents checks that the events in the pins still exist, by tenant and sequence or by their
// number in a series.
func (r *run) seenEvents(ctx context.Context) error {
	for _, seen := range r.seen {
		var hash []byte
		var position int64
		where, column, within, arguments := "tseq = $3", "tseq", "", []any{r.p, seen.tenant, seen.Sequence}
		switch {
		case seen.agent != "":
			where, column, within, arguments = "agent_n = $3 and series = $4 and agent = $5", "agent_n", seen.series+" "+seen.agent+" ", append(arguments, seen.series, seen.agent)
		case seen.series != "":
			where, column, within, arguments = "series_n = $3 and series = $4", "series_n", seen.series+" ", append(arguments, seen.series)
		}
		err := r.pool.QueryRow(ctx, `select pos, hash from events where p = $1 and tenant = $2 and `+where, arguments...).Scan(&position, &hash)
		row := fmt.Sprintf("tenant %s, %s%s %d", seen.tenant, within, column, seen.Sequence)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			r.fault(Fault{"events", row, 0, column, fmt.Sprintf("ROLLBACK: the event is missing, but the pin %s contains it", seen.pin)})
		case err != nil:
			return fmt.Errorf("read events: %w", err)
		case hex.EncodeToString(hash) != seen.Hash:
			r.fault(Fault{"events", row, position, "hash", fmt.Sprintf("FORK: the pin %s contains another event there, with the hash %s", seen.pin, seen.Hash)})
		}
	}
	return nil
}

// NewestNotes returns, for each partition of a database, the newest checkpoint at or before a
// position. It skips partitions without such a checkpoint.
func NewestNotes(ctx context.Context, databaseURL string, upTo []int64) (notes [][]byte, err error) {
	conn, err := ledger.Connect(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for p, position := range upTo {
		var text string
		err = conn.QueryRow(ctx, `select note from checkpoints where p = $1 and size <= $2 order by size desc limit 1`, int16(p), position).Scan(&text)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return nil, fmt.Errorf("read checkpoints: %w", err)
		default:
			notes = append(notes, []byte(text))
		}
	}
	return notes, nil
}
