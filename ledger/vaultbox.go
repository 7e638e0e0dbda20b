package ledger

import (
	"crypto/cipher"
	"crypto/rand"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/packing"
	"github.com/countersign/countersign/policy/canon"
)

// packFrom is the length in bytes from which the openings in a box are packed. Below it
// packing saves next to nothing.
//
// A box holds its openings as canonical JSON, which begins with "[", or the same packed
// (package packing). They are packed before they are encrypted, since ciphertext cannot
// be compressed. A reader of the ledger sees the length of either form.
const packFrom = 128

// seal encrypts the openings of an event into the box.
func (s *sealed) seal(key cipher.AEAD, tenant, eventID string, openings []opening) error {
	plain, err := canon.Marshal(openings)
	if err != nil {
		return err
	}
	if len(plain) >= packFrom {
		plain = packing.Pack(plain)
	}
	s.Nonce = make([]byte, key.NonceSize())
	rand.Read(s.Nonce)
	s.Box = key.Seal(nil, s.Nonce, plain, s.additional(tenant, eventID))
	return nil
}

// open decrypts the openings of an event.
func (s *sealed) open(key cipher.AEAD, tenant, eventID string) (openings []opening, err error) {
	plain, err := key.Open(nil, s.Nonce, s.Box, s.additional(tenant, eventID))
	switch {
	case err != nil:
		return nil, err
	case packing.Packed(plain):
		plain, err = packing.Unpack(plain)
	}
	if err != nil {
		return nil, err
	}
	return openings, json.Unmarshal(plain, &openings)
}
