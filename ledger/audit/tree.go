package audit

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/timestamp"
	"github.com/countersign/countersign/ledger/tree"
)

type storedHead struct {
	size       int64
	root, edge []byte
}

type storedNote struct {
	size int64
	root []byte
	note string

	stamp []byte // time stamp of the note; nil if it has none
}

// growTree adds the leaves of a range to the tree. It compares the stored tiles, checkpoints and
// pins of these sizes with the tree.
func (r *run) growTree(ctx context.Context, s *spanResult) error {
	notes, err := r.readNotes(ctx, s.from, s.to)
	if err != nil {
		return err
	}
	var full []tree.Tile
	for _, hash := range s.hashes {
		r.tree.Add(tree.Leaf(hash), func(t tree.Tile) { full = append(full, t) })
		size := r.tree.Size()
		for len(notes) > 0 && notes[0].size == size {
			r.checkNote(notes[0])
			notes = notes[1:]
		}
		for i := range r.pins {
			if pin := &r.pins[i]; pin.Size == size {
				pin.met = true
				if pin.Root != r.tree.Root() {
					r.fault(Fault{"events", fmt.Sprintf("pos 1 to %d", size), 0, "hash", "FORK: the events do not match the checkpoint of " + pin.Name})
				}
			}
		}
		if size == r.treeHead.size {
			r.checkTreeHead()
			if err := r.compareTiles(ctx, r.tree.Tiles(), true); err != nil {
				return err
			}
		}
	}
	if limit := r.treeHead.size; r.tree.Size() > limit { // tiles are stored only up to the tree head
		full = slices.DeleteFunc(full, func(t tree.Tile) bool { return (t.N+1)<<(tree.Height*(t.Level+1)) > limit })
	}
	return r.compareTiles(ctx, full, false)
}

func (r *run) readNotes(ctx context.Context, from, to int64) ([]storedNote, error) {
	rows, err := r.pool.Query(ctx, `select size, root, note, stamp from checkpoints where p = $1 and size > $2 and size <= $3 order by size`, r.p, from, to)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	notes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n storedNote, err error) {
		return n, row.Scan(&n.size, &n.root, &n.note, &n.stamp)
	})
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return notes, nil
}

func (r *run) checkNote(n storedNote) {
	r.report.Checkpoints++
	row, root := fmt.Sprintf("size %d", n.size), r.tree.Root()
	if !bytes.Equal(n.root, root[:]) {
		r.fault(Fault{"checkpoints", row, n.size, "root", fmt.Sprintf("the events have the root %x", root)})
	}
	c, void, err := r.ring.OpenNote([]byte(n.note), r.Origin)
	if void {
		r.voidNotes++
	}
	switch {
	case err != nil:
		r.fault(Fault{"checkpoints", row, n.size, "note", err.Error()})
	case c.Size != n.size || c.Root != root:
		r.fault(Fault{"checkpoints", row, n.size, "note", "the note has another size or root"})
	}
	if n.stamp == nil {
		return
	}
	if _, err := timestamp.Parse(n.stamp, []byte(n.note)); err != nil {
		r.fault(Fault{"checkpoints", row, n.size, "stamp", err.Error()})
	}
}

func (r *run) checkTreeHead() {
	root := r.tree.Root()
	var edge []byte
	for _, h := range r.tree.Edge() {
		edge = append(edge, h[:]...)
	}
	row := fmt.Sprintf("p %d", r.p)
	if !bytes.Equal(r.treeHead.root, root[:]) {
		r.fault(Fault{"tree_head", row, 0, "root", fmt.Sprintf("the first %d events have the root %x", r.treeHead.size, root)})
	}
	if !bytes.Equal(r.treeHead.edge, edge) {
		r.fault(Fault{"tree_head", row, 0, "edge", fmt.Sprintf("must be the edge of the tree of %d events", r.treeHead.size)})
	}
}

// compareTiles compares stored tiles with those computed from the events. A partial tile may have
// grown since the tree head was read.
func (r *run) compareTiles(ctx context.Context, want []tree.Tile, partial bool) error {
	if len(want) == 0 {
		return nil
	}
	found, err := keeper.ReadTiles(ctx, r.pool, r.p, want)
	if err != nil {
		return err
	}
	for i, w := range want {
		got := found[i].Data
		if partial && len(got) > len(w.Data) {
			var size int64
			if err := r.pool.QueryRow(ctx, `select size from tree_head where p = $1`, r.p).Scan(&size); err != nil {
				return fmt.Errorf("read tree head: %w", err)
			}
			if size > r.treeHead.size {
				got = got[:len(w.Data)]
			}
		}
		row := fmt.Sprintf("level %d, n %d", w.Level, w.N)
		switch {
		case len(got) == 0:
			r.fault(Fault{"tiles", row, 0, "data", "the tile is missing: proofs need it"})
		case !bytes.Equal(got, w.Data):
			r.fault(Fault{"tiles", row, 0, "data", "the tile does not contain the hashes of these events"})
		}
	}
	return nil
}

// finishTree reports a tree head, tiles, checkpoints and pins of more events than the ledger has.
func (r *run) finishTree(ctx context.Context) error {
	if r.treeHead.size == 0 {
		r.checkTreeHead0()
	}
	if r.treeHead.size > r.head.pos {
		r.fault(Fault{"tree_head", fmt.Sprintf("p %d", r.p), 0, "size", fmt.Sprintf("the ledger ends at position %d", r.head.pos)})
	}
	for _, pin := range r.pins {
		if !pin.met && pin.Size > 0 {
			r.fault(Fault{"events", fmt.Sprintf("pos %d", pin.Size), pin.Size, "pos", "the events end before the checkpoint of " + pin.Name})
		}
	}
	var beyond int64
	if err := r.pool.QueryRow(ctx, `select count(*) from checkpoints c where p = $1 and size > (select pos from ledger_head h where h.p = c.p)`, r.p).Scan(&beyond); err != nil {
		return fmt.Errorf("read checkpoints: %w", err)
	}
	if beyond > 0 {
		r.fault(Fault{"checkpoints", fmt.Sprintf("%d rows", beyond), 0, "size", "these checkpoints cover more events than there are"})
	}
	if err := r.pool.QueryRow(ctx, `select count(*) from checkpoints where p = $1 and size = 0`, r.p).Scan(&beyond); err != nil {
		return fmt.Errorf("read checkpoints: %w", err)
	}
	if beyond > 0 {
		r.fault(Fault{"checkpoints", "size 0", 0, "size", "there must be no checkpoint of an empty ledger"})
	}
	return r.strayTiles(ctx)
}

func (r *run) checkTreeHead0() {
	empty := tree.Empty()
	if len(r.treeHead.edge) > 0 || !bytes.Equal(r.treeHead.root, empty[:]) {
		r.fault(Fault{"tree_head", fmt.Sprintf("p %d", r.p), 0, "root", "must be the root and the edge of an empty tree"})
	}
}

// strayTiles reports tiles that do not belong to the tree. It reads tiles and tree head in one
// statement, because the tree may grow during the audit.
func (r *run) strayTiles(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `select level, n, size from tiles, (select coalesce(max(size), 0) size from tree_head where p = $1) head where p = $1
		and (level > 7 or n * 256 >= (size >> (8 * least(level, 7)))) order by level, n limit 20`, r.p)
	if err != nil {
		return fmt.Errorf("read tiles: %w", err)
	}
	var level int16
	var n, size int64
	if _, err = pgx.ForEachRow(rows, []any{&level, &n, &size}, func() error {
		r.fault(Fault{"tiles", fmt.Sprintf("level %d, n %d", level, n), 0, "n", fmt.Sprintf("a tree of %d events has no such tile", size)})
		return nil
	}); err != nil {
		return fmt.Errorf("read tiles: %w", err)
	}
	return nil
}
