package tree

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrNoTile is a tile that is not stored, or not yet as wide as asked for.
var ErrNoTile = errors.New("tree: there is no such tile")

// Source reads stored tiles, in the order asked for. A tile may be wider than it
// was when the tree had the size that is asked about.
type Source func(ctx context.Context, wanted []Tile) ([]Tile, error)

// Proofs makes proofs from tiles. Everything it reads it checks against the root
// first, so a proof that it returns is right or an error is.
type Proofs struct {
	size   int64
	hashes tlog.HashReader
}

// NewProofs makes proofs for a tree of this size and root, and smaller ones.
func NewProofs(ctx context.Context, size int64, root Hash, source Source) *Proofs {
	return &Proofs{size, tlog.TileHashReader(tlog.Tree{N: size, Hash: root}, &reader{ctx, source})}
}

// Inclusion proves that a tree of a size holds the event at a position: the
// hashes beside the path from leaf to root, from the bottom up.
func (p *Proofs) Inclusion(size, position int64) ([]Hash, error) {
	if size < 1 || size > p.size || position < 1 || position > size {
		return nil, fmt.Errorf("%w: position %d of %d", ErrNoTile, position, size)
	}
	proof, err := tlog.ProveRecord(size, position-1, p.hashes)
	return []Hash(proof), err
}

// Consistency proves that the tree of the smaller size is the beginning of the
// larger one.
func (p *Proofs) Consistency(from, to int64) ([]Hash, error) {
	if from < 1 || from > to || to > p.size {
		return nil, fmt.Errorf("%w: sizes %d and %d", ErrNoTile, from, to)
	}
	proof, err := tlog.ProveTree(to, from, p.hashes)
	return []Hash(proof), err
}

// Root of the tree when it had a smaller size.
func (p *Proofs) Root(size int64) (Hash, error) {
	if size < 0 || size > p.size {
		return Hash{}, fmt.Errorf("%w: size %d", ErrNoTile, size)
	}
	return tlog.TreeHash(size, p.hashes)
}

// CheckInclusion checks a proof of Inclusion against a root.
func CheckInclusion(proof []Hash, size int64, root Hash, position int64, leaf Hash) error {
	return tlog.CheckRecord(tlog.RecordProof(proof), size, root, position-1, leaf)
}

// CheckConsistency checks a proof of Consistency: root is that of size, and old
// that of the smaller oldSize. Every tree continues the empty one.
func CheckConsistency(proof []Hash, size int64, root Hash, oldSize int64, old Hash) error {
	if oldSize == 0 {
		if old != Empty() {
			return errors.New("the root of no events is SHA-256 of nothing")
		}
		return nil
	}
	return tlog.CheckTree(tlog.TreeProof(proof), size, root, oldSize, old)
}

// reader is a Source as tlog wants it.
type reader struct {
	ctx    context.Context
	source Source
}

// Height implements tlog.TileReader.
func (r *reader) Height() int { return Height }

// SaveTiles implements tlog.TileReader; nothing is cached.
func (r *reader) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles implements tlog.TileReader.
func (r *reader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	wanted := make([]Tile, len(tiles))
	for i, t := range tiles {
		wanted[i] = Tile{Level: t.L, N: t.N}
	}
	found, err := r.source(r.ctx, wanted)
	if err != nil {
		return nil, err
	}
	data := make([][]byte, len(tiles))
	for i, t := range tiles {
		if len(found[i].Data) < 32*t.W {
			return nil, fmt.Errorf("%w: level %d, number %d, width %d", ErrNoTile, t.L, t.N, t.W)
		}
		data[i] = found[i].Data[:32*t.W]
	}
	return data, nil
}

// ParseNumber reads the number of a tile as C2SP tlog-tiles writes it in a path:
// groups of three digits, an x before each but the last (x001/x234/067), then,
// for a partial tile, .p/ and its width.
func ParseNumber(path string) (n int64, width int, err error) {
	bad := errors.New("tile: want a number such as x001/234, or x001/234.p/17 for a partial tile")
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
