package forms

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/tree"
)

// TLogProof returns a C2SP tlog-proof file, which proves that the event at a position is in the
// tree of a checkpoint. The entry of the log is the 32-byte hash of the event, so its leaf is
// SHA-256( 0x00 ‖ hash ). note is the checkpoint with all of its signatures.
func TLogProof(position int64, proof []tree.Hash, note []byte) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "c2sp.org/tlog-proof@v1\nindex %d\n", position-1)
	for _, h := range proof {
		b.WriteString(base64.StdEncoding.EncodeToString(h[:]) + "\n")
	}
	return append([]byte(b.String()+"\n"), note...)
}

// TLogPolicy returns a C2SP tlog-policy file that accepts the checkpoints of a ledger if one of
// the keys has signed them. It requires no witness. To require witnesses, add their lines and a
// quorum.
func TLogPolicy(origin string, keys []ed25519.PublicKey) []byte {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString("log " + checkpoint.VerifierKey(origin, key) + "\n")
	}
	return []byte(b.String() + "quorum none\n")
}
