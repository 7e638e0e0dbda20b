package ledger

import (
	"bytes"
	"compress/flate"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/packing"
	"github.com/countersign/countersign/policy/canon"
)

// A box holds its openings as canonical JSON, which begins with "[". Where they are
// long it holds the same packed (package packing): what is encrypted nobody packs
// later. Boxes of before hold deflatedMark and the same by DEFLATE (RFC 1951). Lengths
// are seen by whoever reads the ledger in either form. All forms stay readable for ever.
const (
	deflatedMark = 0x01
	packFrom     = 128 // octets; below, packing saves next to nothing
)

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
	case len(plain) > 0 && plain[0] == deflatedMark:
		plain, err = inflate(plain[1:])
	}
	if err != nil {
		return nil, err
	}
	return openings, json.Unmarshal(plain, &openings)
}

func inflate(deflated []byte) ([]byte, error) {
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(deflated)), packing.Limit+1))
	if err == nil && len(plain) > packing.Limit {
		err = errors.New("a box is too large")
	}
	return plain, err
}
