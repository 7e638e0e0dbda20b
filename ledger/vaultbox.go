package ledger

import (
	"bytes"
	"compress/flate"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/policy/canon"
)

// A box holds its openings as canonical JSON, which begins with "[". Where they are
// long it holds packedMark and the same, compressed (DEFLATE, RFC 1951): what is
// encrypted nobody compresses later, and an answer repeats much of itself. Lengths are
// seen by whoever reads the ledger in either form. Both forms stay readable for ever.
const (
	packedMark = 0x01
	packFrom   = 1 << 10 // octets; below, compressing costs more than it saves
	boxLimit   = 8 << 20 // octets unpacked; a payload is at most 2 MiB
)

// packers are compressors that nobody uses: one is large, and is made ready again
// faster than it is made.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is a good one
	return w
}}

// seal encrypts the openings of an event into the box.
func (s *sealed) seal(key cipher.AEAD, tenant, eventID string, openings []opening) error {
	plain, err := canon.Marshal(openings)
	if err != nil {
		return err
	}
	if len(plain) >= packFrom {
		if plain, err = pack(plain); err != nil {
			return err
		}
	}
	s.Nonce = make([]byte, key.NonceSize())
	rand.Read(s.Nonce)
	s.Box = key.Seal(nil, s.Nonce, plain, s.additional(tenant, eventID))
	return nil
}

// open decrypts the openings of an event.
func (s *sealed) open(key cipher.AEAD, tenant, eventID string) (openings []opening, err error) {
	plain, err := key.Open(nil, s.Nonce, s.Box, s.additional(tenant, eventID))
	if err == nil && len(plain) > 0 && plain[0] == packedMark {
		plain, err = unpack(plain)
	}
	if err != nil {
		return nil, err
	}
	return openings, json.Unmarshal(plain, &openings)
}

func pack(plain []byte) ([]byte, error) {
	packed := bytes.NewBuffer(append(make([]byte, 0, len(plain)/2), packedMark))
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(packed)
	_, err := w.Write(plain)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func unpack(packed []byte) ([]byte, error) {
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed[1:])), boxLimit+1))
	if err == nil && len(plain) > boxLimit {
		err = errors.New("a box is too large")
	}
	return plain, err
}
