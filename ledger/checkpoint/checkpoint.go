// Package checkpoint signs and reads the heads of a ledger's tree, and stores them outside of the
// database, where an operator of the database cannot remove them.
//
// # The note
//
// A checkpoint is a C2SP signed note (c2sp.org/tlog-checkpoint): three lines, an empty line, and
// signature lines. The first line is the ledger's origin, which is also the name of the key. The
// second is the size of the tree, which is the position of its last event. The third is the root
// of the tree in base64.
//
//	ledger.example.com/countersign/0
//	2
//	eU8uOhpgXYnTAyjHs9UKLaaMLBI0cfe4CRQUefdT/ZY=
//
//	— ledger.example.com/countersign/0 auY8UM5U1dwt1x6qmpJUzWETxlXsUJQCBYd7rQfkYRXm570hNHYy8MRns4HCvrIQZ9Sk1VBHDAQ5kxIyjPDvKobW6QU=
//	— ledger.example.com/countersign/0 vdIOPTfc2gaxbQWagQbpoyNsZ/vXEBWbtYt9wraEHVTVr198yszkL2Lz1gXe8cwt4zSYEKc18gy8nD83GkH68XwU5wM=
//
// This note covers the two events of the example in package ledger. It is signed with the seed 00
// 01 … 1f. The first signature is over the note, the second is for COSE receipts (cose.go). The
// verifier key is
// ledger.example.com/countersign/0+6ae63c50+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4. Any
// program that reads signed notes (Go's sumdb/note, for example) can check it. Signature lines of
// witnesses (c2sp.org/tlog-cosignature) may follow.
package checkpoint

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/ledger/tree"
)

// Checkpoint is the head of a tree.
type Checkpoint struct {
	Origin string
	Size   int64 // number of events, which is the position of the last one
	Root   tree.Hash
}

// Text returns the three lines that the signatures of a note cover.
func (c Checkpoint) Text() string {
	return c.Origin + "\n" + strconv.FormatInt(c.Size, 10) + "\n" + base64.StdEncoding.EncodeToString(c.Root[:]) + "\n"
}

// Short returns size and root as the value of the header Ledger-Checkpoint.
func (c Checkpoint) Short() string {
	return strconv.FormatInt(c.Size, 10) + " " + base64.StdEncoding.EncodeToString(c.Root[:])
}

// algEd25519 is the byte that notes use for the algorithm Ed25519.
const algEd25519 = 1

// keyHash returns the number that identifies a key in a note: the first 4 bytes of SHA-256( name
// ‖ "\n" ‖ 0x01 ‖ public key ), big-endian.
func keyHash(name string, public ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n\x01"), public...))
	return binary.BigEndian.Uint32(sum[:4])
}

// VerifierKey formats a public key for programs that read signed notes: name+hash+base64.
func VerifierKey(name string, public ed25519.PublicKey) string {
	return fmt.Sprintf("%s+%08x+%s", name, keyHash(name, public), base64.StdEncoding.EncodeToString(append([]byte{algEd25519}, public...)))
}

// Partition returns the partition number at the end of a note's origin, or -1 if there is none. It
// does not check the signature; Open does.
func Partition(text []byte) int {
	origin, _, _ := strings.Cut(string(text), "\n")
	p, err := strconv.ParseUint(origin[strings.LastIndexByte(origin, '/')+1:], 10, 15)
	if err != nil {
		return -1
	}
	return int(p)
}

// signer implements note.Signer with a key that may be outside of this process.
type signer struct {
	name string
	key  crypto.Signer
}

// Name implements note.Signer.
func (s signer) Name() string { return s.name }

// KeyHash implements note.Signer.
func (s signer) KeyHash() uint32 { return keyHash(s.name, s.key.Public().(ed25519.PublicKey)) }

// Sign implements note.Signer.
func (s signer) Sign(text []byte) ([]byte, error) { return s.key.Sign(nil, text, crypto.Hash(0)) }

// Sign returns the signed note of a checkpoint. The key must be an Ed25519 key.
func Sign(c Checkpoint, key crypto.Signer) ([]byte, error) {
	if _, ok := key.Public().(ed25519.PublicKey); !ok {
		return nil, errors.New("sign a checkpoint: the key is not an Ed25519 key")
	}
	signs := signer{c.Origin, key}
	return note.Sign(&note.Note{Text: c.Text()}, signs, coseSigner{signs, c.Root})
}

// ErrNote means that a text is not a checkpoint of the requested ledger, signed by a trusted key.
var ErrNote = errors.New("checkpoint")

// Open reads a note of the ledger with this origin. At least one of the keys must have signed it.
func Open(text []byte, origin string, keys ...ed25519.PublicKey) (Checkpoint, error) {
	c, err := Parse(text)
	if err != nil {
		return c, err
	}
	if c.Origin != origin {
		return c, fmt.Errorf("%w: the note is of another ledger: %s", ErrNote, c.Origin)
	}
	var verifiers []note.Verifier
	known := map[uint32]bool{} // package note refuses the same key twice
	for _, key := range keys {
		if id := keyHash(origin, key); known[id] {
			continue
		} else {
			known[id] = true
		}
		v, err := note.NewVerifier(VerifierKey(origin, key))
		if err != nil {
			return c, fmt.Errorf("%w: %w", ErrNote, err)
		}
		verifiers = append(verifiers, v)
	}
	if _, err := note.Open(text, note.VerifierList(verifiers...)); err != nil {
		return c, fmt.Errorf("%w: no trusted key has signed the note", ErrNote)
	}
	return c, checkLines(text, c, verifiers)
}

// checkLines checks every signature line of the trusted keys. Package note ignores a second line
// of the same key, so with a valid and an invalid line its result would depend on their order.
func checkLines(text []byte, c Checkpoint, verifiers []note.Verifier) error {
	_, lines, _ := strings.Cut(string(text), "\n\n")
	for line := range strings.Lines(lines) {
		name, encoded, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "— "), " ")
		signature, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if err != nil || len(signature) < 5 || base64.StdEncoding.EncodeToString(signature) != encoded {
			return fmt.Errorf("%w: a signature line is malformed", ErrNote)
		}
		for _, v := range verifiers {
			if name == v.Name() && binary.BigEndian.Uint32(signature) == v.KeyHash() && !v.Verify([]byte(c.Text()), signature[4:]) {
				return fmt.Errorf("%w: a signature line of a trusted key is not valid", ErrNote)
			}
		}
	}
	return nil
}

// Parse reads a note without checking its signatures.
func Parse(text []byte) (Checkpoint, error) {
	bad := fmt.Errorf("%w: a note must have origin, size, root, an empty line and signatures", ErrNote)
	body, signatures, found := strings.Cut(string(text), "\n\n")
	lines := strings.Split(body, "\n")
	if !found || len(lines) != 3 || lines[0] == "" || !strings.HasPrefix(signatures, "— ") || strings.Contains(signatures, "\n\n") {
		return Checkpoint{}, bad
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, bad
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != 32 || base64.StdEncoding.EncodeToString(root) != lines[2] {
		return Checkpoint{}, bad
	}
	return Checkpoint{lines[0], size, tree.Hash(root)}, nil
}

// Published is a checkpoint together with its signed note.
type Published struct {
	Checkpoint
	Epoch int64
	Note  []byte
	Short string // value of the header Ledger-Checkpoint
}

// NewPublished returns a Published for a checkpoint, its epoch and its signed note.
func NewPublished(c Checkpoint, epoch int64, text []byte) *Published {
	return &Published{c, epoch, text, c.Short()}
}
