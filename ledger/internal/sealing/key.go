package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/countersign/countersign/ledger/internal/preimage"
)

// ErrWrongKEK means that a data key was wrapped under another key-encryption key.
var ErrWrongKEK = errors.New("ledger: the data keys cannot be unwrapped: DATA_KEK is not the key of this ledger")

// Cipher returns AES-256-GCM under a data key or a key-encryption key.
func Cipher(key []byte) (cipher.AEAD, error) {
	if len(key) != 32 {
		return nil, errors.New("the key must have 32 bytes")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// KEKName returns the id of a key-encryption key: the first 16 hex digits of its SHA-256.
func KEKName(kek []byte) string {
	sum := sha256.Sum256(kek)
	return hex.EncodeToString(sum[:8])
}

// Wrap encrypts a data key under a key-encryption key. It returns the nonce followed by the
// ciphertext.
func Wrap(kek cipher.AEAD, key []byte, tenant, id string, reference []byte) []byte {
	nonce := make([]byte, kek.NonceSize())
	rand.Read(nonce)
	return kek.Seal(nonce, nonce, key, bound(tenant, id, reference))
}

// Unwrap decrypts a data key that Wrap has encrypted. Its only error is ErrWrongKEK.
func Unwrap(kek cipher.AEAD, wrapped []byte, tenant, id string, reference []byte) ([]byte, error) {
	n := kek.NonceSize()
	if len(wrapped) < n {
		return nil, ErrWrongKEK
	}
	key, err := kek.Open(nil, wrapped[:n], wrapped[n:], bound(tenant, id, reference))
	if err != nil {
		return nil, ErrWrongKEK
	}
	return key, nil
}

// bound returns the additional data that binds a wrapped key to its tenant, its id and the
// pseudonym of its subject, so that a key cannot be moved to another row.
func bound(tenant, id string, reference []byte) []byte {
	return preimage.S(preimage.S(preimage.S(nil, tenant), id), reference)
}
