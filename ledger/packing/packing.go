// Package packing makes small JSON texts smaller: Zstandard (RFC 8878) with a
// dictionary of what countersign writes again and again, so that names of members,
// texts of rules and whole lists that never change cost an octet or two.
//
// A packed text is one frame, which names its dictionary, and anybody can read it:
//
//	zstd -d -D v1.dict
//
// A dictionary that was released is never changed and never removed: what was packed
// by it must be read for ever. A further one gets the next number and a file beside
// the first; what is written is packed by the newest. bench packing tells how one is
// made.
package packing

import (
	_ "embed" // of the dictionaries
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed v1.dict
var first []byte

// dictionaries are all there ever were, the newest last.
var dictionaries = [][]byte{first}

// magic begins a frame, and no JSON text.
const magic = "\x28\xb5\x2f\xfd"

// Limit of octets unpacked: an event's payload has at most 2 MiB, and what is sealed in
// it less than that and is packed once more.
const Limit = 8 << 20

// encoder and decoder are made when they are needed first: most runs of the program
// read no ledger.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderDict(dictionaries[len(dictionaries)-1]), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true))
		if err != nil {
			panic(fmt.Sprintf("packing: the newest dictionary: %v", err)) // it is a part of the program, and a test packs by it
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderDicts(dictionaries...), zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(Limit))
		if err != nil {
			panic(fmt.Sprintf("packing: dictionaries: %v", err))
		}
		return d
	})
)

// ErrDictionary is a text that was packed by a dictionary which this program does not
// have: a newer one has written it.
var ErrDictionary = errors.New("packed by a dictionary of a newer program: start that one")

// Pack is the text in a frame.
func Pack(text []byte) []byte { return encoder().EncodeAll(text, make([]byte, 0, len(text)/2+64)) }

// Packed says whether octets are a frame, and not the text itself.
func Packed(octets []byte) bool {
	return len(octets) >= len(magic) && string(octets[:len(magic)]) == magic
}

// Unpack is the text in a frame.
func Unpack(frame []byte) ([]byte, error) {
	text, err := decoder().DecodeAll(frame, nil)
	switch {
	case errors.Is(err, zstd.ErrUnknownDictionary):
		return nil, ErrDictionary
	case err != nil:
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return text, nil
}
