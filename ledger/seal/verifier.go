package seal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/base64"
	"strings"
	"sync"

	"filippo.io/edwards25519"
)

// Verifier checks many signatures of few keys for less than half of the cost of checking each
// alone. It keeps the multiples of a key that has signed much, and then needs only additions of
// points. Its result for each signature is exactly that of crypto/ed25519 and verify.py, by the
// same equation:
//
//	R = [s]B - [k]A
//
// Checking a batch of signatures by one sum of all would be faster still, but is not used: it
// also accepts signatures that the equation refuses, those with a point of small order in
// them, which the holder of a key can make on purpose. A ledger must not be true for one
// verifier and false for the next.
//
// The zero value is ready, and safe for several goroutines.
type Verifier struct {
	mu   sync.Mutex // guards keys and what is counted in them
	keys map[string]*verified
}

// verified is a key whose signatures the Verifier has checked.
type verified struct {
	times int
	once  sync.Once
	minus *multiples // of -A; nil until it is worth the work, and where A is no point
}

const (
	worthMultiples = 64 // signatures, for which the multiples of a key are made: they cost what 20 to 30 cost
	mostMultiples  = 32 // keys that a Verifier remembers, each with 640 KiB
)

// Signed returns the same as the function Signed.
func (v *Verifier) Signed(key ed25519.PublicKey, payloadType string, canonical []byte, signature string) bool {
	octets, ok := oneSpelling(signature)
	if !ok || len(octets) != ed25519.SignatureSize || len(key) != ed25519.PublicKeySize {
		return false
	}
	minus := v.multiples(key)
	if minus == nil {
		return ed25519.Verify(key, preAuth(payloadType, canonical), octets)
	}
	s, err := edwards25519.NewScalar().SetCanonicalBytes(octets[32:])
	if err != nil {
		return false
	}
	r := edwards25519.NewIdentityPoint()
	ofBase().add(r, s)
	minus.add(r, challenge(octets[:32], key, preAuthHead(payloadType, canonical), canonical))
	return bytes.Equal(r.Bytes(), octets[:32])
}

// multiples returns the multiples of the negated key, or nil while the key has not signed
// enough to be worth the work.
func (v *Verifier) multiples(key ed25519.PublicKey) *multiples {
	v.mu.Lock()
	k := v.keys[string(key)]
	if k == nil && len(v.keys) < mostMultiples {
		if v.keys == nil {
			v.keys = map[string]*verified{}
		}
		k = &verified{}
		v.keys[string(key)] = k
	}
	often := false
	if k != nil {
		k.times++
		often = k.times > worthMultiples
	}
	v.mu.Unlock()
	if !often {
		return nil
	}
	k.once.Do(func() {
		if a, err := new(edwards25519.Point).SetBytes(key); err == nil {
			k.minus = multiplesOf(a.Negate(a))
		}
	})
	return k.minus
}

// challenge is k = SHA-512(R ‖ A ‖ text), as RFC 8032 has it, of a text in two parts.
func challenge(r, key, head, rest []byte) *edwards25519.Scalar {
	h := sha512.New()
	for _, part := range [][]byte{r, key, head, rest} {
		h.Write(part)
	}
	k, err := edwards25519.NewScalar().SetUniformBytes(h.Sum(nil))
	if err != nil {
		panic(err) // 64 bytes always make a number
	}
	return k
}

// multiples of a point P: [i][j] is (j+1)·256ⁱ·P.
type multiples [32][128]edwards25519.Point

func multiplesOf(p *edwards25519.Point) *multiples {
	var m multiples
	first := new(edwards25519.Point).Set(p)
	for i := range m {
		m[i][0].Set(first)
		for j := 1; j < len(m[i]); j++ {
			m[i][j].Add(&m[i][j-1], first)
		}
		first.Add(&m[i][127], &m[i][127])
	}
	return &m
}

// ofBase are the multiples of the base point B.
var ofBase = sync.OnceValue(func() *multiples { return multiplesOf(edwards25519.NewGeneratorPoint()) })

// add adds n·P to a sum. Each byte of n selects a multiple; a byte above 128 selects a
// negative one, and carries one to the next byte. The last byte of a reduced scalar is at
// most 16, so nothing is carried out of it. The time that add takes depends on n, which is
// harmless, since everything that is checked here is public.
func (m *multiples) add(sum *edwards25519.Point, n *edwards25519.Scalar) {
	carry := 0
	for i, octet := range n.Bytes() {
		digit := int(octet) + carry
		carry = 0
		if digit > 128 {
			digit, carry = digit-256, 1
		}
		switch {
		case digit > 0:
			sum.Add(sum, &m[i][digit-1])
		case digit < 0:
			sum.Subtract(sum, &m[i][-digit-1])
		}
	}
}

// oneSpelling decodes a signature, and refuses every spelling of it but the one that base64
// encoders write. The strict decoder alone would skip line breaks.
func oneSpelling(signature string) (octets []byte, ok bool) {
	if strings.ContainsAny(signature, "\r\n") {
		return nil, false
	}
	octets, err := base64.StdEncoding.Strict().DecodeString(signature)
	return octets, err == nil
}
