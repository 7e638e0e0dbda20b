package tree_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/ledger/tree"
)

// grown is a tree with all tiles that it ever stored.
type grown struct {
	tree.Builder
	tiles  map[[2]int64][]byte
	theirs *compact.Range
	roots  []tree.Hash // roots[n] is the root at size n
}

func grow(n int64) *grown {
	g := &grown{tiles: map[[2]int64][]byte{}, roots: []tree.Hash{tree.Empty()}}
	g.theirs = (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	for i := range n {
		event := eventHash(i)
		g.Add(tree.Leaf(event), g.store)
		if err := g.theirs.Append(rfc6962.DefaultHasher.HashLeaf(event[:]), nil); err != nil {
			panic(err)
		}
		if n <= 3_000 { // compute every root only for a small tree
			g.roots = append(g.roots, g.Root())
		}
	}
	for _, t := range g.Tiles() {
		g.store(t)
	}
	return g
}

func eventHash(i int64) [32]byte { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i))) }

func (g *grown) store(t tree.Tile) { g.tiles[[2]int64{int64(t.Level), t.N}] = t.Data }

func (g *grown) source(_ context.Context, wanted []tree.Tile) ([]tree.Tile, error) {
	for i, w := range wanted {
		wanted[i].Data = g.tiles[[2]int64{int64(w.Level), w.N}]
	}
	return wanted, nil
}

// The tiles are those of the package comment, for the empty tree and for one of 70,000 leaves.
func TestTilesOfTheExample(t *testing.T) {
	if tree.Empty() != sha256.Sum256(nil) {
		t.Error("the root of no events")
	}
	g := grow(70_000)
	for place, width := range map[[2]int64]int{{0, 272}: 256, {0, 273}: 112, {1, 0}: 256, {1, 1}: 17, {2, 0}: 1} {
		if got := len(g.tiles[place]) / 32; got != width {
			t.Errorf("tile %v has %d hashes, want %d", place, got, width)
		}
	}
	if len(g.tiles) != 274+2+1 {
		t.Errorf("%d tiles", len(g.tiles))
	}
}

// Root, edge and proofs equal those of another implementation, and a tree that is resumed from its
// partial tiles grows in the same way.
func TestTreeIsThatOfAnotherImplementation(t *testing.T) {
	g := grow(3_000)
	root, err := g.theirs.GetRootHash(nil)
	if err != nil || tree.Hash(root) != g.Root() {
		t.Fatalf("root %x, want %x, %v", g.Root(), root, err)
	}
	for i, h := range g.theirs.Hashes() {
		if g.Edge()[i] != tree.Hash(h) {
			t.Fatalf("edge %d", i)
		}
	}
	proofs := tree.NewProofs(t.Context(), g.Size(), g.Root(), g.source)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, g.Size()).Draw(t, "size")
		position := rapid.Int64Range(1, size).Draw(t, "position")
		included, err := proofs.Inclusion(size, position)
		if err != nil {
			t.Fatal(err)
		}
		event := eventHash(position - 1)
		leaf := tree.Leaf(event)
		if err := tree.CheckInclusion(included, size, g.roots[size], position, leaf); err != nil {
			t.Fatal(err)
		}
		err = proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(position-1), uint64(size), leaf[:], octets(included), g.roots[size][:])
		if err != nil {
			t.Fatal(err)
		}
		if size > 1 && tree.CheckInclusion(included, size, g.roots[size], position%size+1, leaf) == nil {
			t.Fatal("the proof is good for another position")
		}
		consistent, err := proofs.Consistency(position, size)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.CheckConsistency(consistent, size, g.roots[size], position, g.roots[position]); err != nil {
			t.Fatal(err)
		}
		err = proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(position), uint64(size), octets(consistent), g.roots[position][:], g.roots[size][:])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := proofs.Root(size); err != nil || got != g.roots[size] {
			t.Fatalf("root of %d: %v", size, err)
		}
	})
	for _, size := range []int64{0, 1, 255, 256, 257, 511, 512, 2_999, 3_000} {
		short := grow(size)
		again, err := tree.Resume(size, short.Tiles())
		if err != nil {
			t.Fatal(err)
		}
		for i := size; i < size+600; i++ {
			short.Add(tree.Leaf(eventHash(i)), func(tree.Tile) {})
			again.Add(tree.Leaf(eventHash(i)), func(tree.Tile) {})
		}
		if short.Root() != again.Root() {
			t.Errorf("a tree of %d went on as another", size)
		}
	}
	if _, err := tree.Resume(257, nil); err == nil {
		t.Error("a tree went on without its edge")
	}
}

// A changed tile gives an error and no proof.
func TestAChangedTileGivesNoProof(t *testing.T) {
	g := grow(700)
	g.tiles[[2]int64{0, 1}][40] ^= 1
	proofs := tree.NewProofs(t.Context(), g.Size(), g.Root(), g.source)
	if _, err := proofs.Inclusion(700, 300); err == nil {
		t.Error("a proof was made from a changed tile")
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string][2]int64{
		"000": {0, 256}, "067": {67, 256}, "x001/067": {1067, 256}, "x001/x234/067.p/17": {1_234_067, 17},
	} {
		if n, w, err := tree.ParseNumber(text); err != nil || n != want[0] || int64(w) != want[1] {
			t.Errorf("%s: %d %d %v", text, n, w, err)
		}
	}
	for _, bad := range []string{"", "0", "x067", "1/067", "x000/067", "067.p/0", "067.p/256", "067.p/01", "x1/067", "-01", "+01", "x001/x002/x003/x004/x005/x006/007"} {
		if _, _, err := tree.ParseNumber(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func octets(h []tree.Hash) [][]byte {
	b := make([][]byte, len(h))
	for i := range h {
		b[i] = h[i][:]
	}
	return b
}

// CheckRange accepts a range of leaves with the hashes on both sides. It refuses another leaf or
// another position.
func TestRangeOfATree(t *testing.T) {
	const most = 3_000
	g := grow(most)
	proofs := tree.NewProofs(t.Context(), most, g.Root(), g.source)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, most).Draw(t, "size")
		from := rapid.Int64Range(0, size-1).Draw(t, "from")
		to := rapid.Int64Range(from+1, size).Draw(t, "to")
		before, behind, err := proofs.Range(size, from, to)
		if err != nil {
			t.Fatal(err)
		}
		var leaves []tree.Hash
		for i := from; i < to; i++ {
			leaves = append(leaves, tree.Leaf(eventHash(i)))
		}
		check := func(from int64) error {
			return tree.CheckRange(before, behind, size, g.roots[size], from, leaves)
		}
		if err := check(from); err != nil {
			t.Fatal(err)
		}
		if check(from+1) == nil || from > 0 && check(from-1) == nil {
			t.Fatal("the range passes at another place")
		}
		leaves[rapid.IntRange(0, len(leaves)-1).Draw(t, "changed")][0]++
		if check(from) == nil {
			t.Fatal("a changed leaf passes")
		}
	})
}

// Proofs that need the same tile read it only once.
func TestProofsReadATileOnce(t *testing.T) {
	t.Parallel()
	const size = 3 * tree.Width
	var b tree.Builder
	stored := map[[2]int64][]byte{}
	keep := func(tile tree.Tile) { stored[[2]int64{int64(tile.Level), tile.N}] = tile.Data }
	for i := range size {
		b.Add(tree.Leaf([32]byte{byte(i), byte(i >> 8)}), keep)
	}
	for _, tile := range b.Tiles() {
		keep(tile)
	}
	reads := map[[2]int64]int{}
	proofs := tree.NewProofs(t.Context(), size, b.Root(), func(_ context.Context, wanted []tree.Tile) ([]tree.Tile, error) {
		for i, w := range wanted {
			reads[[2]int64{int64(w.Level), w.N}]++
			wanted[i].Data = stored[[2]int64{int64(w.Level), w.N}]
		}
		return wanted, nil
	})
	for position := int64(1); position <= size; position++ {
		proof, err := proofs.Inclusion(size, position)
		if err != nil || tree.CheckInclusion(proof, size, b.Root(), position, tree.Leaf([32]byte{byte(position - 1), byte((position - 1) >> 8)})) != nil {
			t.Fatalf("position %d: %v", position, err)
		}
	}
	for tile, n := range reads {
		if n != 1 {
			t.Errorf("tile %+v was read %d times", tile, n)
		}
	}
}
