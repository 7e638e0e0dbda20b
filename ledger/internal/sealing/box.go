// Package sealing has the cryptography of the vault, which an audit does again with keys
// that it unwraps itself: data keys wrapped under a key-encryption key, the box in which a
// payload carries its personal members, and the commitments in their place. Package vault
// has the specification.
package sealing

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/internal/preimage"
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

const commitmentDomain = "svc-commitment-v1\n"

// Sealed is the member "sealed" of a payload. Its box holds the openings of the payload's
// personal members.
type Sealed struct {
	KeyID     string `json:"keyId"`
	Nonce     []byte `json:"nonce"`
	Box       []byte `json:"box"`
	Signature string `json:"signature,omitempty"` // over the record with commitments in place, if there is a record
}

// Seal encrypts the openings of an event into the box.
func (s *Sealed) Seal(key cipher.AEAD, tenant, eventID string, openings []Opening) error {
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

// Open decrypts the openings of an event.
func (s *Sealed) Open(key cipher.AEAD, tenant, eventID string) (openings []Opening, err error) {
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

func (s *Sealed) additional(tenant, eventID string) []byte {
	return preimage.S(preimage.S(preimage.S(nil, tenant), eventID), s.KeyID)
}

// Opening is a personal member of a payload with the salt of its commitment.
type Opening struct {
	Pointer string      `json:"pointer"`
	Salt    []byte      `json:"salt"`
	Value   canon.Value `json:"value"`
}

// NewOpening draws the salt for a value.
func NewOpening(pointer string, value jsontext.Value) Opening {
	o := Opening{Pointer: pointer, Salt: make([]byte, 32), Value: canon.Value(value)}
	rand.Read(o.Salt)
	return o
}

// Path splits a JSON pointer without escapes into its members.
func Path(pointer string) []string { return strings.Split(strings.TrimPrefix(pointer, "/"), "/") }

// Committed is the value that replaces the opening's value in the payload.
func (o Opening) Committed() []byte { return []byte(`{"$committed":"` + o.commitment() + `"}`) }

func (o Opening) commitment() string {
	h := sha256.New()
	h.Write([]byte(commitmentDomain))
	h.Write(o.Salt)
	h.Write(o.Value)
	return hex.EncodeToString(h.Sum(nil))
}

// Reopen puts the values of openings back in the place of their commitments. It returns an
// error that names the pointer of an opening which does not match its commitment.
func Reopen(members map[string]jsontext.Value, openings []Opening) error {
	for _, o := range openings {
		path := Path(o.Pointer)
		name, inner := path[0], path[1:]
		start, end, found := canon.Find(members[name], inner...)
		var c struct {
			Commitment string `json:"$committed"`
		}
		if !found || json.Unmarshal(members[name][start:end], &c) != nil || c.Commitment != o.commitment() {
			return errors.New("commitment " + o.Pointer)
		}
		members[name] = canon.Put(members[name], jsontext.Value(o.Value), inner...)
	}
	return nil
}
