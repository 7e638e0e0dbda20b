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

// Verifier verifies many signatures of few keys for less than half of the cost of single
// verifications. For a key with many signatures it caches multiples of the public key, and then
// needs only additions of points. Its result is the same as that of crypto/ed25519 and verify.py
// for every signature, because it evaluates the same equation:
//
//	R = [s]B - [k]A
//
// Verifying a batch of signatures by one sum would be faster, but it also accepts some signatures
// that the equation refuses: those that contain a point of small order, which the holder of a key
// can make on purpose. Two verifiers must not disagree about a ledger.
//
// The zero value is ready for use by several goroutines.
type Verifier struct {
	mu   sync.Mutex // guards keys and their counters
	keys map[string]*verified
}

// verified is the state of a key whose signatures the Verifier has checked.
type verified struct {
	times int
	once  sync.Once
	minus *multiples // multiples of -A; nil until times exceeds worthMultiples, or if the key is not a valid point
}

const (
	worthMultiples = 64 // number of signatures after which the multiples of a key are computed: that costs as much as 20 to 30 verifications
	mostMultiples  = 32 // largest number of keys that a Verifier caches, each with 640 KiB
)

// Signed returns the same result as the function Signed.
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

// multiples returns the multiples of the negated key. It returns nil if the key has too few
// signatures so far to justify computing them, if the Verifier has cached enough other keys, or if
// the key is not a valid point.
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

// challenge returns k = SHA-512(R ‖ A ‖ text) of RFC 8032. The text is passed in two parts.
func challenge(r, key, head, rest []byte) *edwards25519.Scalar {
	h := sha512.New()
	for _, part := range [][]byte{r, key, head, rest} {
		h.Write(part)
	}
	k, err := edwards25519.NewScalar().SetUniformBytes(h.Sum(nil))
	if err != nil {
		panic(err) // cannot happen: 64 bytes always give a scalar
	}
	return k
}

// multiples contains multiples of a point P: [i][j] is (j+1)·256ⁱ·P.
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

// ofBase returns the multiples of the base point B.
var ofBase = sync.OnceValue(func() *multiples { return multiplesOf(edwards25519.NewGeneratorPoint()) })

// add adds n·P to a sum. Each byte of n selects a multiple. A byte above 128 selects a negative
// multiple and carries one to the next byte. The last byte of a reduced scalar is at most 16, so
// it carries nothing. The running time depends on n, which is harmless, because all inputs are
// public.
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

// oneSpelling decodes a base64 signature and refuses any encoding other than the one that encoders
// write. The strict decoder alone would skip line breaks.
func oneSpelling(signature string) (octets []byte, ok bool) {
	if strings.ContainsAny(signature, "\r\n") {
		return nil, false
	}
	octets, err := base64.StdEncoding.Strict().DecodeString(signature)
	return octets, err == nil
}
