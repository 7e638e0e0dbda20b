package checkpoint

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/ledger/tree"
)

// A note has a second signature line of the ledger's key. It signs the same root for COSE receipts
// (RFC 9942): from this line and an inclusion proof anybody can make a receipt of any event later,
// without the key. Other readers of notes skip the line, because they do not know its algorithm.
//
// The signature is Ed25519 over the Sig_structure of RFC 9052
//
//	["Signature1", protected, h'', root]    protected: {1: -8, 4: key id, 395: 1}
//
// -8 is EdDSA; 395: 1 is the data structure RFC9162_SHA256; the key id is the one in the key set,
// as 8 bytes. The line's key hash is
//
//	SHA-256( name ‖ "\n" ‖ 0xff ‖ "rfc9942" ‖ public key )[:4]
const algCOSE = "\xffrfc9942"

// Labels and values of RFC 9052 and RFC 9942.
const (
	coseAlgorithm, coseEdDSA      = 1, 8 // EdDSA is -8
	coseKeyID                     = 4
	coseStructure, coseRFC9162    = 395, 1
	coseProofs, coseInclusion     = 396, 1 // an inclusion proof is -1
	coseTagSign1                  = 18
	cborUint, cborNegative, cborB = 0, 1, 2 // major types; cborB is a byte string
	cborText, cborArray, cborMap  = 3, 4, 5
	cborTag                       = 6
	cborNull                      = 0xf6
)

// cborHead returns the head of a CBOR item in its shortest form.
func cborHead(major byte, n uint64) []byte {
	b := major << 5
	switch {
	case n < 24:
		return []byte{b | byte(n)}
	case n < 1<<8:
		return []byte{b | 24, byte(n)}
	case n < 1<<16:
		return binary.BigEndian.AppendUint16([]byte{b | 25}, uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32([]byte{b | 26}, uint32(n))
	}
	return binary.BigEndian.AppendUint64([]byte{b | 27}, n)
}

func cborBytes(b []byte) []byte { return append(cborHead(cborB, uint64(len(b))), b...) }

// coseProtected returns the protected header of receipts that a key signs.
func coseProtected(public ed25519.PublicKey) []byte {
	id := sha256.Sum256(public)
	return slices.Concat(cborHead(cborMap, 3),
		cborHead(cborUint, coseAlgorithm), cborHead(cborNegative, coseEdDSA-1),
		cborHead(cborUint, coseKeyID), cborBytes(id[:8]),
		cborHead(cborUint, coseStructure), cborHead(cborUint, coseRFC9162))
}

// coseSigned returns the bytes that the signature of a receipt covers.
func coseSigned(public ed25519.PublicKey, root tree.Hash) []byte {
	return slices.Concat(cborHead(cborArray, 4), cborHead(cborText, uint64(len("Signature1"))), []byte("Signature1"),
		cborBytes(coseProtected(public)), cborBytes(nil), cborBytes(root[:]))
}

// coseSigner signs the second signature line of a note.
type coseSigner struct {
	signer
	root tree.Hash
}

// KeyHash implements note.Signer.
func (s coseSigner) KeyHash() uint32 { return coseKeyHash(s.name, s.key.Public().(ed25519.PublicKey)) }

func coseKeyHash(name string, public ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n"+algCOSE), public...))
	return binary.BigEndian.Uint32(sum[:4])
}

// Sign implements note.Signer. It ignores the text and signs the root, which the text contains.
func (s coseSigner) Sign([]byte) ([]byte, error) {
	return s.key.Sign(nil, coseSigned(s.key.Public().(ed25519.PublicKey), s.root), crypto.Hash(0))
}

// Receipts makes COSE receipts for the events that a note covers.
type Receipts struct {
	size                 int64
	protected, signature []byte
}

// NewReceipts reads a note. One of the keys must have signed the note, and one of them its line
// for receipts.
func NewReceipts(text []byte, keys ...ed25519.PublicKey) (Receipts, error) {
	c, err := Parse(text)
	if err == nil {
		c, err = Open(text, c.Origin, keys...)
	}
	if err != nil {
		return Receipts{}, err
	}
	for _, key := range keys {
		signature := lineOf(text, c.Origin, coseKeyHash(c.Origin, key))
		if signature != nil && ed25519.Verify(key, coseSigned(key, c.Root), signature) {
			return Receipts{c.Size, coseProtected(key), signature}, nil
		}
	}
	return Receipts{}, fmt.Errorf("%w: no trusted key has signed the note for COSE receipts", ErrNote)
}

// Of returns the receipt of the event at a position: a COSE_Sign1 without payload, whose entry is
// the 32-byte hash of the event. It does not check the proof.
func (r Receipts) Of(position int64, proof []tree.Hash) []byte {
	path := cborHead(cborArray, uint64(len(proof)))
	for _, h := range proof {
		path = append(path, cborBytes(h[:])...)
	}
	inclusion := slices.Concat(cborHead(cborArray, 3), cborHead(cborUint, uint64(r.size)), cborHead(cborUint, uint64(position-1)), path)
	return slices.Concat(cborHead(cborTag, coseTagSign1), cborHead(cborArray, 4), cborBytes(r.protected),
		cborHead(cborMap, 1), cborHead(cborUint, coseProofs),
		cborHead(cborMap, 1), cborHead(cborNegative, coseInclusion-1), cborHead(cborArray, 1), cborBytes(inclusion),
		[]byte{cborNull}, cborBytes(r.signature))
}

// lineOf returns the signature of a note's line with this name and key hash, or nil.
func lineOf(text []byte, name string, hash uint32) []byte {
	_, lines, _ := bytes.Cut(text, []byte("\n\n"))
	for line := range strings.Lines(string(lines)) {
		encoded, ours := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "— "+name+" ")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if ours && err == nil && len(signature) == 4+ed25519.SignatureSize && binary.BigEndian.Uint32(signature) == hash {
			return signature[4:]
		}
	}
	return nil
}
