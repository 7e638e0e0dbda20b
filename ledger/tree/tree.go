// Package tree implements the Merkle tree over the events of a ledger, stored in tiles.
//
// It is the tree of RFC 6962 with SHA-256. The data of leaf i is the 32 bytes of the hash of the
// event at position i+1, so
//
//	leaf = SHA-256( 0x00 ‖ event hash )        node = SHA-256( 0x01 ‖ left ‖ right )
//
// and the root of an empty tree is SHA-256("").
//
// # Tiles
//
// As in C2SP tlog-tiles, tile (level L, n) contains the hashes of 256 neighbouring subtrees, each
// over 256^L leaves, starting at subtree 256·n, 32 bytes each. The last tile of a level may be
// partial. It only grows: its hashes never change. Every proof, for every size, is made from
// tiles.
//
// Example: a tree of 70,000 events has the full level-0 tiles 0 to 272 and a partial one (273) of
// 112 hashes, one full level-1 tile (0), and a partial one (1) of 17 hashes: 70,000 = 256·273 +
// 112 and 273 = 256·1 + 17. Level 2 has one partial tile of one hash.
package tree

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Height is the height of a tile: its lower edge has 2^8 hashes.
const Height = 8

// Width is the number of hashes in a full tile.
const Width = 1 << Height

// Hash is a leaf, a node or a root.
type Hash = tlog.Hash

// Leaf returns the leaf for an event's hash.
func Leaf(event [32]byte) Hash { return tlog.RecordHash(event[:]) }

// Empty returns the root of an empty tree.
func Empty() Hash {
	h, _ := tlog.TreeHash(0, nil) // cannot fail: an empty tree needs no reads
	return h
}

// Tile is a tile of the tree. Data has 32 bytes per hash.
type Tile struct {
	Level int
	N     int64
	Data  []byte
}

// Builder grows a tree leaf by leaf. It keeps only the partial tiles of the right edge, so it
// stays small for any size of the tree. The zero value is the empty tree.
type Builder struct {
	size int64
	edge [][]Hash // for each level the hashes of the last tile if it is partial, at most 255
}

// ErrEdge means that partial tiles do not belong to a tree of the given size.
var ErrEdge = errors.New("tree: the right edge does not match a tree of this size")

// Resume returns a builder for a tree of a size, given the partial tiles of its right edge.
func Resume(size int64, partial []Tile) (*Builder, error) {
	b := &Builder{size: size}
	for level := 0; size>>(Height*level) > 0; level++ {
		width := int(size >> (Height * level) % Width)
		b.edge = append(b.edge, nil)
		if width == 0 {
			continue
		}
		n := size >> (Height * (level + 1))
		for _, t := range partial {
			if t.Level == level && t.N == n && len(t.Data) >= 32*width {
				b.edge[level] = hashes(t.Data[:32*width])
			}
		}
		if b.edge[level] == nil {
			return nil, fmt.Errorf("%w: level %d lacks tile %d", ErrEdge, level, n)
		}
	}
	return b, nil
}

// Partial lists the partial tiles of a tree's right edge, without data. Resume needs these tiles.
func Partial(size int64) []Tile {
	var tiles []Tile
	for level := 0; size>>(Height*level) > 0; level++ {
		if size>>(Height*level)%Width != 0 {
			tiles = append(tiles, Tile{Level: level, N: size >> (Height * (level + 1))})
		}
	}
	return tiles
}

func hashes(data []byte) []Hash {
	h := make([]Hash, len(data)/32, Width)
	for i := range h {
		copy(h[i][:], data[32*i:])
	}
	return h
}

// Size returns the number of leaves.
func (b *Builder) Size() int64 { return b.size }

// Add appends a leaf and calls full for every tile that became full.
func (b *Builder) Add(leaf Hash, full func(Tile)) {
	b.size++
	for level := 0; ; level++ {
		if level == len(b.edge) {
			b.edge = append(b.edge, make([]Hash, 0, Width))
		}
		b.edge[level] = append(b.edge[level], leaf)
		if len(b.edge[level]) < Width {
			return
		}
		full(Tile{level, b.size>>(Height*(level+1)) - 1, data(b.edge[level])})
		leaf = perfect(b.edge[level])
		b.edge[level] = b.edge[level][:0]
	}
}

func data(h []Hash) []byte {
	d := make([]byte, 0, 32*len(h))
	for i := range h {
		d = append(d, h[i][:]...)
	}
	return d
}

// Tiles returns the partial tiles of the right edge.
func (b *Builder) Tiles() []Tile {
	tiles := Partial(b.size)
	for i := range tiles {
		tiles[i].Data = data(b.edge[tiles[i].Level])
	}
	return tiles
}

// perfect returns the root over 2^k hashes.
func perfect(h []Hash) Hash {
	if len(h) == 1 {
		return h[0]
	}
	return tlog.NodeHash(perfect(h[:len(h)/2]), perfect(h[len(h)/2:]))
}

// Edge returns the roots of the perfect subtrees that make up the tree, the largest (leftmost)
// first.
func (b *Builder) Edge() []Hash {
	var nodes []Hash
	for level := len(b.edge) - 1; level >= 0; level-- {
		rest := b.edge[level]
		for k := Width / 2; k > 0; k /= 2 {
			if len(rest)&k != 0 {
				nodes = append(nodes, perfect(rest[:k]))
				rest = rest[k:]
			}
		}
	}
	return nodes
}

// Root returns the root of the tree.
func (b *Builder) Root() Hash {
	nodes := b.Edge()
	if len(nodes) == 0 {
		return Empty()
	}
	root := nodes[len(nodes)-1]
	for i := len(nodes) - 2; i >= 0; i-- {
		root = tlog.NodeHash(nodes[i], root)
	}
	return root
}
