package proof

import (
	"crypto/ed25519"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
)

// A checkpoint key signs trees of a partition up to its retirement there, or up to the position from
// which it is compromised. What is known of the key in another partition does not matter.
func TestKeysForAHead(t *testing.T) {
	public := ed25519.PublicKey("a key")
	in := func(partition int, to, void int64) bundle.Key {
		return bundle.Key{Purpose: ledger.PurposeCheckpoint, Public: public, Partition: partition, To: to, Void: void}
	}
	for _, c := range []struct {
		name string
		set  []bundle.Key
		size int64
		want int
	}{
		{"below the retirement", []bundle.Key{in(1, 8, 0)}, 7, 1},
		{"at the retirement", []bundle.Key{in(1, 8, 0)}, 8, 0},
		{"compromised", []bundle.Key{in(1, 0, 8)}, 8, 0},
		{"retired here, and not yet elsewhere", []bundle.Key{in(0, 90, 0), in(1, 8, 0)}, 8, 0},
		{"of another partition alone", []bundle.Key{in(0, 0, 0)}, 8, 0},
		{"of any partition", []bundle.Key{in(bundle.AnyPartition, 0, 0)}, 8, 1},
		{"for records", []bundle.Key{{Purpose: ledger.PurposeRecord, Public: public, Partition: 1}}, 8, 0},
	} {
		if got := headKeysOf(c.set).at(1, c.size); len(got) != c.want {
			t.Errorf("%s: %d keys, want %d", c.name, len(got), c.want)
		}
	}
	if got := headKeysOf([]bundle.Key{in(0, 3, 0), in(1, 0, 2)}).all(); len(got) != 2 {
		t.Errorf("%d of all keys", len(got))
	}
}
