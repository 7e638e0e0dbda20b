// Package sealing contains the cryptography of the vault: wrapping of data keys under a
// key-encryption key, the encrypted box with a payload's personal members, and the commitments in
// their place. It is separate from the vault because an audit uses it with keys that it unwraps
// itself. Package vault has the specification.
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

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/preimage"
	"github.com/countersign/countersign/ledger/packing"
	"github.com/countersign/countersign/policy/canon"
)

// packFrom is the length in bytes from which the openings in a box are packed. Below it packing
// saves almost nothing.
//
// The plaintext of a box is the canonical JSON of the openings, which begins with "[", or its
// packed form (package packing). It is packed before encryption, because ciphertext cannot be
// compressed. A reader of the ledger can see the length of the plaintext.
const packFrom = 128

const commitmentDomain = "svc-commitment-v1\n"

// Sealed is the member "sealed" of a payload. Its box contains the encrypted openings of the
// payload's personal members.
type Sealed struct {
	KeyID     string `json:"keyId"`
	Nonce     []byte `json:"nonce"`
	Box       []byte `json:"box"`
	Signature string `json:"signature,omitempty"` // signature over the record with its commitments, if the payload has a record
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

// NewOpening returns an opening of a value with a random salt.
func NewOpening(pointer string, value jsontext.Value) Opening {
	o := Opening{Pointer: pointer, Salt: make([]byte, 32), Value: canon.Value(value)}
	rand.Read(o.Salt)
	return o
}

// Path splits a JSON pointer without escapes into member names.
func Path(pointer string) []string { return strings.Split(strings.TrimPrefix(pointer, "/"), "/") }

// Committed returns the JSON value that replaces the opening's value in the payload.
func (o Opening) Committed() []byte { return []byte(events.Committed + `"` + o.commitment() + `"}`) }

func (o Opening) commitment() string {
	h := sha256.New()
	h.Write([]byte(commitmentDomain))
	h.Write(o.Salt)
	h.Write(o.Value)
	return hex.EncodeToString(h.Sum(nil))
}

// Reopen replaces commitments by the values of their openings. If an opening does not match its
// commitment, the error names its pointer.
func Reopen(members map[string]jsontext.Value, openings []Opening) error {
	for _, o := range openings {
		path := Path(o.Pointer)
		name, inner := path[0], path[1:]
		start, end, found := canon.Find(members[name], inner...)
		var c struct {
			Commitment string `json:"$committed"`
		}
		if !found || json.Unmarshal(members[name][start:end], &c) != nil || c.Commitment != o.commitment() {
			return errors.New("the value of " + o.Pointer + " does not match its commitment")
		}
		members[name] = canon.Put(members[name], jsontext.Value(o.Value), inner...)
	}
	return nil
}
