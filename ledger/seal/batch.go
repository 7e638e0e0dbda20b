package seal

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"

	"filippo.io/edwards25519"
)

// Batch checks many signatures for less than half of what each alone costs. Those
// of a batch are right if and only if, for random numbers z that nobody knows
// beforehand,
//
//	8 ( Σ zᵢRᵢ + Σ zᵢkᵢAᵢ - (Σ zᵢsᵢ)B ) = 0
//
// (a wrong one passes with a chance of 2⁻¹²⁸), with one term for each key however
// often it has signed. Where the sum is not 0, each signature is checked alone, so
// that the wrong one is named. The factor 8 lets pass what only the holder of a key
// can make and other checks refuse, a signature with a point of small order in it;
// nobody else can. A Batch belongs to one goroutine.
type Batch struct{ entries []batched }

type batched struct {
	key       ed25519.PublicKey
	text      []byte // that was signed
	signature []byte
	wrong     func()
}

// batchSize bounds the memory of a batch; more saves little.
const batchSize = 128

// Add is Signed with its answer put off: wrong is called, at the latest by Flush,
// if the signature is not of the key over the record.
func (b *Batch) Add(key ed25519.PublicKey, payloadType string, canonical []byte, signature string, wrong func()) {
	octets, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || base64.StdEncoding.EncodeToString(octets) != signature || len(octets) != ed25519.SignatureSize {
		wrong()
		return
	}
	b.entries = append(b.entries, batched{key, preAuth(payloadType, canonical), octets, wrong})
	if len(b.entries) == batchSize {
		b.Flush()
	}
}

// Flush checks what was added.
func (b *Batch) Flush() {
	if !b.right() {
		for _, e := range b.entries {
			if !ed25519.Verify(e.key, e.text, e.signature) {
				e.wrong()
			}
		}
	}
	clear(b.entries)
	b.entries = b.entries[:0]
}

// right says whether the sum of all is 0. What is not even a point or a number is
// wrong.
func (b *Batch) right() bool {
	base := edwards25519.NewScalar()
	scalars, points := []*edwards25519.Scalar{base}, []*edwards25519.Point{edwards25519.NewGeneratorPoint()}
	keys := map[string]*edwards25519.Scalar{}
	for _, e := range b.entries {
		r, err := new(edwards25519.Point).SetBytes(e.signature[:32])
		if err != nil {
			return false
		}
		s, err := edwards25519.NewScalar().SetCanonicalBytes(e.signature[32:])
		if err != nil {
			return false
		}
		ofKey := keys[string(e.key)]
		if ofKey == nil {
			a, err := new(edwards25519.Point).SetBytes(e.key)
			if err != nil {
				return false
			}
			ofKey = edwards25519.NewScalar()
			keys[string(e.key)] = ofKey
			scalars, points = append(scalars, ofKey), append(points, a)
		}
		z, k := random128(), challenge(e)
		base.MultiplyAdd(z, s, base)
		ofKey.MultiplyAdd(z, k, ofKey)
		scalars, points = append(scalars, z), append(points, r)
	}
	base.Negate(base)
	sum := new(edwards25519.Point).VarTimeMultiScalarMult(scalars, points)
	return sum.MultByCofactor(sum).Equal(edwards25519.NewIdentityPoint()) == 1
}

// challenge is k = SHA-512(R ‖ A ‖ text), as RFC 8032 has it.
func challenge(e batched) *edwards25519.Scalar {
	h := sha512.New()
	h.Write(e.signature[:32])
	h.Write(e.key)
	h.Write(e.text)
	k, err := edwards25519.NewScalar().SetUniformBytes(h.Sum(nil))
	if err != nil {
		panic(err) // 64 octets always make a number
	}
	return k
}

func random128() *edwards25519.Scalar {
	var octets [32]byte
	rand.Read(octets[:16])
	z, err := edwards25519.NewScalar().SetCanonicalBytes(octets[:])
	if err != nil {
		panic(err) // below 2^128 it is one
	}
	return z
}
