package checkpoint_test

import (
	"crypto/ed25519"
	"fmt"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/tree"
)

// The COSE receipt of the first of two events. It is made from the note and the inclusion proof,
// without the private key.
func ExampleReceipts_Of() {
	private := ed25519.NewKeyFromSeed(make([]byte, 32))
	first, second := tree.Leaf([32]byte{1}), tree.Leaf([32]byte{2})
	var builder tree.Builder
	builder.Add(first, func(tree.Tile) {})
	builder.Add(second, func(tree.Tile) {})
	note, err := checkpoint.Sign(checkpoint.Checkpoint{Origin: "ledger.example.com/0", Size: builder.Size(), Root: builder.Root()}, private)
	if err != nil {
		panic(err)
	}

	receipts, err := checkpoint.NewReceipts(note, private.Public().(ed25519.PublicKey))
	if err != nil {
		panic(err)
	}
	receipt := receipts.Of(1, []tree.Hash{second})
	const signed = 67 // null for the payload, the head of the signature, and its 64 bytes
	fmt.Printf("%x\n", receipt[:len(receipt)-signed])
	// In CBOR: 18([h'{1: -8, 4: key id, 395: 1}', {396: {-1: [h'[2, 0, [second]]']}}, null, signature]).

	// Output: d28451a301270448139e3940e64b549119018b01a119018ca120815826830200815820d84ada83b1ca056b551159cd436b200f62cbb41c56e2b7254a6b534f91e06952
}
