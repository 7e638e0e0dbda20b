// Package preimage encodes the two kinds of fields in the ledger's hash inputs and in the
// additional data of encryptions (package ledger, "Hashes, byte for byte").
package preimage

import "encoding/binary"

// S appends a text or bytes: the length as 4 bytes, big-endian, then x itself.
func S[T ~string | ~[]byte](b []byte, x T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(x)))
	return append(b, x...)
}

// U appends a number as 8 bytes, big-endian.
func U(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }
