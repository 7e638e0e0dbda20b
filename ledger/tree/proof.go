package tree

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrNoTile means that a tile is not stored, or is narrower than requested.
var ErrNoTile = errors.New("tree: there is no such tile")

// Source reads stored tiles and returns them in the order of wanted. A tile may be wider than it
// was at the size of the tree that the proof is for.
type Source func(ctx context.Context, wanted []Tile) ([]Tile, error)

// Proofs makes proofs from tiles. It checks all tiles that it reads against the root, so it
// returns either a correct proof or an error.
type Proofs struct {
	size   int64
	hashes tlog.HashReader
}

// NewProofs returns Proofs for the tree with this size and root, and for all smaller trees.
func NewProofs(ctx context.Context, size int64, root Hash, source Source) *Proofs {
	return &Proofs{size, tlog.TileHashReader(tlog.Tree{N: size, Hash: root}, &reader{ctx: ctx, source: source, checked: map[tileAt][]byte{}})}
}

// Inclusion returns a proof that the tree of a size contains the event at a position. The proof
// has the siblings of the nodes on the path from leaf to root, from the bottom up.
func (p *Proofs) Inclusion(size, position int64) ([]Hash, error) {
	if size < 1 || size > p.size || position < 1 || position > size {
		return nil, fmt.Errorf("%w: position %d of %d", ErrNoTile, position, size)
	}
	proof, err := tlog.ProveRecord(size, position-1, p.hashes)
	return []Hash(proof), err
}

// Consistency returns a proof that a tree extends its own earlier state. Its sizes are from
// (earlier) and to (later).
func (p *Proofs) Consistency(from, to int64) ([]Hash, error) {
	if from < 1 || from > to || to > p.size {
		return nil, fmt.Errorf("%w: sizes %d and %d", ErrNoTile, from, to)
	}
	proof, err := tlog.ProveTree(to, from, p.hashes)
	return []Hash(proof), err
}

// Root returns the root that the tree had at a size.
func (p *Proofs) Root(size int64) (Hash, error) {
	if size < 0 || size > p.size {
		return Hash{}, fmt.Errorf("%w: size %d", ErrNoTile, size)
	}
	return tlog.TreeHash(size, p.hashes)
}

// Range returns a proof that the tree of a size contains the events after position from, up to and
// including position to. before and behind are the roots of the perfect subtrees on either side,
// from left to right. Together with the leaves in the range they cover the tree.
func (p *Proofs) Range(size, from, to int64) (before, behind []Hash, err error) {
	if from < 0 || from >= to || to > size || size > p.size {
		return nil, nil, fmt.Errorf("%w: positions %d to %d of %d", ErrNoTile, from+1, to, size)
	}
	left, right := subtrees(0, from), subtrees(to, size)
	var indexes []int64
	for _, s := range append(left, right...) {
		indexes = append(indexes, tlog.StoredHashIndex(s.level, s.from>>s.level))
	}
	hashes, err := p.hashes.ReadHashes(indexes)
	if err != nil {
		return nil, nil, err
	}
	return hashes[:len(left):len(left)], hashes[len(left):], nil
}

// CheckRange checks a proof of Range. leaves are those of the range, which begins after position
// from; root is that of the tree of this size.
func CheckRange(before, behind []Hash, size int64, root Hash, from int64, leaves []Hash) error {
	bad := errors.New("the hashes do not match the tree on both sides of the range")
	to := from + int64(len(leaves))
	if from < 0 || len(leaves) == 0 || to > size {
		return bad
	}
	left, right := subtrees(0, from), subtrees(to, size)
	if len(left) != len(before) || len(right) != len(behind) {
		return bad
	}
	known := map[subtree]Hash{}
	for i, s := range left {
		known[s] = before[i]
	}
	for i, leaf := range leaves {
		known[subtree{from + int64(i), 0}] = leaf
	}
	for i, s := range right {
		known[s] = behind[i]
	}
	if rootOf(known, 0, size) != root {
		return bad
	}
	return nil
}

// subtree is a perfect subtree. It covers 2^level leaves; from is the index of the first one.
type subtree struct {
	from  int64
	level int
}

// subtrees returns the smallest list of perfect subtrees that cover a range of leaves: from is the
// index of the first one, and to the index after the last one.
func subtrees(from, to int64) (list []subtree) {
	for from < to {
		level := 0
		for from&(1<<(level+1)-1) == 0 && from+1<<(level+1) <= to {
			level++
		}
		list = append(list, subtree{from, level})
		from += 1 << level
	}
	return list
}

// rootOf computes the hash over a range of leaves: from is the index of the first one, and to the
// index after the last one. The known subtrees must cover the range.
func rootOf(known map[subtree]Hash, from, to int64) Hash {
	level := bits.Len64(uint64(to-from)) - 1
	if hash, ok := known[subtree{from, level}]; ok && to-from == 1<<level {
		return hash
	}
	if to-from == 1 {
		return Hash{} // known lacks a leaf: the result will not match the root
	}
	half := from + 1<<(bits.Len64(uint64(to-from-1))-1)
	return tlog.NodeHash(rootOf(known, from, half), rootOf(known, half, to))
}

// CheckInclusion checks a proof of Inclusion against a root.
func CheckInclusion(proof []Hash, size int64, root Hash, position int64, leaf Hash) error {
	return tlog.CheckRecord(tlog.RecordProof(proof), size, root, position-1, leaf)
}

// CheckConsistency checks a proof of Consistency. root is the root at size, and old is the root at
// oldSize, which is smaller. Every tree extends the empty tree.
func CheckConsistency(proof []Hash, size int64, root Hash, oldSize int64, old Hash) error {
	if oldSize == 0 {
		if old != Empty() {
			return errors.New("the root of an empty tree must be the SHA-256 of nothing")
		}
		return nil
	}
	return tlog.CheckTree(tlog.TreeProof(proof), size, root, oldSize, old)
}

// reader implements tlog.TileReader with a Source.
type reader struct {
	ctx    context.Context
	source Source

	mu      sync.Mutex        // guards checked
	checked map[tileAt][]byte // data of tiles that were checked against the root
}

type tileAt struct {
	level int
	n     int64
}

// cachedTiles limits the memory of a reader to 16 MiB. An export requests its proofs in the order
// of positions, so it rarely needs an older tile again.
const cachedTiles = 2048

// Height implements tlog.TileReader.
func (r *reader) Height() int { return Height }

// SaveTiles implements tlog.TileReader. It is called with tiles that were checked against the
// root.
func (r *reader) SaveTiles(tiles []tlog.Tile, data [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, t := range tiles {
		if len(r.checked) >= cachedTiles {
			clear(r.checked)
		}
		r.checked[tileAt{t.L, t.N}] = data[i]
	}
}

// ReadTiles implements tlog.TileReader.
func (r *reader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	var wanted []Tile
	var missing []int
	r.mu.Lock()
	for i, t := range tiles {
		if known := r.checked[tileAt{t.L, t.N}]; len(known) >= 32*t.W {
			data[i] = known[:32*t.W]
			continue
		}
		wanted, missing = append(wanted, Tile{Level: t.L, N: t.N}), append(missing, i)
	}
	r.mu.Unlock()
	if len(wanted) == 0 {
		return data, nil
	}
	found, err := r.source(r.ctx, wanted)
	if err != nil {
		return nil, err
	}
	for at, i := range missing {
		t := tiles[i]
		if len(found[at].Data) < 32*t.W {
			return nil, fmt.Errorf("%w: level %d, number %d, width %d", ErrNoTile, t.L, t.N, t.W)
		}
		data[i] = found[at].Data[:32*t.W]
	}
	return data, nil
}

// ParseNumber parses the number of a tile in a path of C2SP tlog-tiles. It has groups of three
// digits, and an x before each group but the last (x001/x234/067). In the path of a partial tile,
// .p/ and the width follow.
func ParseNumber(path string) (n int64, width int, err error) {
	bad := errors.New("tile: must be a number such as x001/234, or x001/234.p/17 for a partial tile")
	width = Width
	if number, w, partial := strings.Cut(path, ".p/"); partial {
		if width, err = strconv.Atoi(w); err != nil || width < 1 || width >= Width || strconv.Itoa(width) != w {
			return 0, 0, bad
		}
		path = number
	}
	groups := strings.Split(path, "/")
	if len(groups) > 6 {
		return 0, 0, bad
	}
	for i, group := range groups {
		digits, x := strings.CutPrefix(group, "x")
		if x != (i < len(groups)-1) || len(digits) != 3 || i == 0 && x && digits == "000" {
			return 0, 0, bad
		}
		v, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return 0, 0, bad
		}
		n = n*1000 + int64(v)
	}
	return n, width, nil
}
